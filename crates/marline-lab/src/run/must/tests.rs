//! Verdicts and their texts.

use super::*;
use crate::stats::Statistic;

/// A comparison of eight pairs: the measured improvement with its interval, and the published one.
fn result(measured: Option<f64>, interval: [f64; 2], published: Option<f64>) -> ComparisonResult {
    ComparisonResult {
        parameters: BTreeMap::from([("content_kb".to_owned(), 2400.into())]),
        metric: "completion_s".to_owned(),
        a: "bundle".to_owned(),
        b: "1c".to_owned(),
        statistic: Statistic::P95,
        pairs: 8,
        improvement_percent: measured,
        ci95: measured.map(|_| interval),
        published_percent: published,
        source: None,
    }
}

fn judge(claim: Claim, results: &[ComparisonResult]) -> MustResult {
    let covered = results.iter().map(|result| Covered { result, gain: None });
    let covered: Vec<_> = covered.collect();
    let must = Must {
        text: "bundle wins".to_owned(),
        explanation: Some("the link was too good".to_owned()),
        claim,
        checks: Vec::new(),
        alone: Vec::new(),
    };
    MustResult::judge(&must, &covered, 8)
}

#[test]
fn unmeasured_comparisons_leave_a_verdict_open_only_if_they_could_decide_it() {
    let sure = result(Some(20.0), [15.0, 25.0], Some(30.0));
    let unsure = result(Some(1.0), [-5.0, 6.0], Some(0.5));
    let worse = result(Some(-4.0), [-6.0, -2.0], Some(3.0));
    let unknown = result(None, [0.0, 0.0], Some(3.0));
    let better = Claim::AtLeastPercent(0.0);

    let must = judge(better, &[sure.clone(), unsure.clone()]);
    assert_eq!(
        (must.holds, must.met, must.of, must.better),
        (Some(true), 2, 2, 1)
    );

    let all = [sure.clone(), unsure.clone(), worse.clone(), unknown.clone()];
    let must = judge(better, &all);
    assert_eq!((must.holds, must.met, must.of), (Some(false), 2, 4));
    assert_eq!((must.better, must.worse, must.unmeasured), (1, 1, 1));
    assert_eq!(must.violations, std::slice::from_ref(&worse));

    let must = judge(better, &[sure.clone(), unknown]);
    assert_eq!((must.holds, must.verdict()), (None, "not known"));
    assert_eq!(judge(better, &[]).holds, None);

    let near = Claim::NeverWorseThanPercent(3.0);
    assert_eq!(
        judge(near, &[sure.clone(), worse.clone()]).holds,
        Some(false)
    );
    assert_eq!(
        judge(
            Claim::NeverWorseThanPercent(4.0),
            std::slice::from_ref(&worse)
        )
        .holds,
        Some(true)
    );

    // The unmeasured one decides.
    let half = Claim::ReachesPublishedIn(0.5);
    assert_eq!(judge(half, &all).holds, None);
    assert_eq!(
        judge(half, &[unsure.clone(), worse.clone()]).holds,
        Some(true)
    );
    assert_eq!(judge(half, &[unsure, worse, sure]).holds, Some(false));
}

#[test]
fn a_part_of_a_gain_is_kept_where_there_is_one() {
    let gains = |gain: &ComparisonResult, kept: &ComparisonResult| {
        let must = Must {
            text: "careful keeps most of the gain".to_owned(),
            explanation: None,
            claim: Claim::KeepsPartOfGain(0.5),
            checks: Vec::new(),
            alone: Vec::new(),
        };
        let covered = Covered {
            result: kept,
            gain: Some(gain),
        };
        let must = MustResult::judge(&must, &[covered], 8);
        (must.holds, must.of)
    };
    let gain = result(Some(40.0), [30.0, 50.0], None);
    let half = result(Some(20.0), [-5.0, 45.0], None);
    let less = result(Some(19.0), [15.0, 23.0], None);
    assert_eq!(gains(&gain, &half), (Some(true), 1));
    assert_eq!(gains(&gain, &less), (Some(false), 1));
    let unsure = result(Some(40.0), [-1.0, 60.0], None);
    assert_eq!(gains(&unsure, &less), (None, 0), "no gain is certain");
    let unknown = result(None, [0.0, 0.0], None);
    assert_eq!(gains(&unknown, &half), (None, 1));
    assert_eq!(gains(&gain, &unknown), (None, 1));
}

#[test]
fn displayed_verdicts_list_the_first_violations() {
    let mut short = result(Some(3.12), [-2.0, 6.0], Some(37.9));
    short.pairs = 7;
    let met = result(Some(40.0), [30.0, 50.0], Some(37.9));
    let mut results = vec![short; 14];
    results.push(met);
    let must = judge(Claim::ReachesPublishedIn(0.5), &results);
    let text = must.to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3 + SHOWN + 1);
    assert_eq!(lines[0], "does not hold: bundle wins");
    assert_eq!(
        lines[1],
        "  in 1 of 15 comparisons (8 needed); better with 95 % confidence in 1, worse in 0; runs are missing in 14"
    );
    assert_eq!(
        lines[3],
        "  not met by bundle at content_kb=2400: the p95 of completion_s is 3.1 % better than that of 1c \
         (95 % interval: -2.0 to 6.0 %; published: 37.9 % better)"
    );
    assert_eq!(lines[2], "  the link was too good");
    assert_eq!(lines[15], "  and not met in 2 more comparisons");
}

#[test]
fn what_is_worse_is_displayed_as_such() {
    let worse = result(Some(-4.0), [-6.0, -2.5], None);
    let text = judge(Claim::AtLeastPercent(0.0), &[worse]).to_string();
    let line = "  not met by bundle at content_kb=2400: the p95 of completion_s is 4.0 % worse than that of 1c \
                (95 % interval: 2.5 to 6.0 %)";
    assert_eq!(text.lines().nth(3), Some(line), "{text}");
}

#[test]
fn verdicts_in_json_have_the_same_content() {
    let must = judge(
        Claim::AtLeastPercent(0.0),
        &[result(Some(-4.0), [-6.0, -2.0], None)],
    );
    let json = serde_json::to_value(&must).unwrap();
    assert_eq!(json["holds"], false);
    assert_eq!(json["claim"]["at_least_percent"], 0.0);
    assert_eq!((&json["of"], &json["met"]), (&1.into(), &0.into()));
    assert_eq!(json["violations"][0]["statistic"], "p95");
    assert_eq!(serde_json::from_value::<MustResult>(json).unwrap(), must);
}

#[test]
fn a_rank_counts_where_the_other_pair_loses_too() {
    let pair = |improvement| result(Some(improvement), [improvement, improvement], None);
    let (mine, others) = ([pair(-3.0), pair(4.0)], [pair(-20.0), pair(-1.0)]);
    let covered: Vec<_> = mine
        .iter()
        .zip(&others)
        .map(|(result, other)| Covered {
            result,
            gain: Some(other),
        })
        .collect();
    let must = Must {
        text: "they rank alike".to_owned(),
        explanation: None,
        claim: Claim::RanksAs,
        checks: Vec::new(),
        alone: Vec::new(),
    };
    let must = MustResult::judge(&must, &covered, 8);
    assert_eq!((must.holds, must.met, must.of), (Some(false), 1, 2));
}
