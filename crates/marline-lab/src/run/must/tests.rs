//! Verdicts and their texts.

use marline_link::Seed;

use super::*;
use crate::stats::{Statistic, Summary, ratio_interval};

/// A comparison of eight pairs: the measured improvement with its interval, and the published one.
fn result(measured: Option<f64>, interval: [f64; 2], published: Option<f64>) -> ComparisonResult {
    ComparisonResult {
        parameters: BTreeMap::from([("content_kb".to_owned(), 2400.into())]),
        metric: "completion_s".to_owned(),
        a: "bundle".to_owned(),
        b: "1c".to_owned(),
        statistic: Statistic::Median,
        pairs: 8,
        improvement_percent: measured,
        ci95: measured.map(|_| interval),
        deterministic: false,
        published_percent: published,
        source: None,
    }
}

fn judge(claim: Claim, results: &[ComparisonResult]) -> MustResult {
    let covered = results.iter().map(|result| Covered { result, gain: None });
    let covered: Vec<_> = covered.collect();
    MustResult::judge(&must(claim), &covered, 8)
}

fn must(claim: Claim) -> Must {
    Must {
        text: "bundle wins".to_owned(),
        explanation: Some("the link was too good".to_owned()),
        claim,
        margin_percent: 0.0,
        checks: Vec::new(),
        alone: Vec::new(),
    }
}

#[test]
fn verdicts_follow_from_intervals_and_not_from_values() {
    let sure = result(Some(20.0), [15.0, 25.0], Some(30.0));
    let unsure = result(Some(1.0), [-5.0, 6.0], Some(0.5));
    let worse = result(Some(-4.0), [-6.0, -2.0], Some(3.0));
    let better = Claim::AtLeastPercent(0.0);

    let must = judge(better, &[sure.clone(), unsure.clone()]);
    assert_eq!(must.verdict, Verdict::Undecided);
    assert_eq!((must.holds, must.met, must.met_by_value), (false, 1, 2));
    assert_eq!(must.open, std::slice::from_ref(&unsure));
    let must = judge(better, &[sure.clone(), unsure.clone(), worse.clone()]);
    assert_eq!(must.verdict, Verdict::DoesNotHold);
    assert_eq!((must.better, must.worse), (1, 1));
    assert_eq!(must.violations, std::slice::from_ref(&worse));
    let must = judge(better, std::slice::from_ref(&sure));
    assert_eq!((must.verdict, must.holds), (Verdict::Holds, true));

    // A half: two of three.
    let half = Claim::BetterIn(0.5);
    let verdict = |results: &[ComparisonResult]| judge(half, results).verdict;
    let [sure, unsure, worse] = [&sure, &unsure, &worse].map(|result| vec![result.clone()]);
    assert_eq!(
        verdict(&[sure.clone(), sure.clone(), unsure.clone()].concat()),
        Verdict::Holds
    );
    assert_eq!(
        verdict(&[sure.clone(), unsure, worse.clone()].concat()),
        Verdict::Undecided
    );
    assert_eq!(
        verdict(&[sure, worse.clone(), worse].concat()),
        Verdict::DoesNotHold
    );
}

#[test]
fn variants_that_are_equal_in_truth_are_undecided() {
    // Values of both signs, whose intervals have zero inside, as those of two equal variants.
    let equal = |value: f64| result(Some(value), [value - 3.0, value + 3.0], None);
    let results: Vec<_> = (-10..=10)
        .map(|step| equal(f64::from(step) / 5.0))
        .collect();
    for result in &results {
        let must = judge(Claim::AtLeastPercent(0.0), std::slice::from_ref(result));
        assert_eq!(must.verdict, Verdict::Undecided, "{result:?}");
    }
    let must = judge(Claim::BetterIn(0.5), &results);
    assert_eq!((must.verdict, must.met_by_value), (Verdict::Undecided, 10));
    assert_eq!(must.corrected.verdict, Verdict::Undecided);
    // Within a margin of 6 %, each is as good.
    let must = judge(Claim::NeverWorseThanPercent(6.0), &results);
    assert_eq!(must.verdict, Verdict::Holds);
}

#[test]
fn a_margin_moves_the_condition_and_not_the_interval() {
    let claim = |margin_percent| {
        let must = Must {
            margin_percent,
            ..must(Claim::AtLeastPercent(5.0))
        };
        let one = result(Some(6.0), [3.0, 9.0], None);
        let covered = Covered {
            result: &one,
            gain: None,
        };
        MustResult::judge(&must, &[covered], 8)
    };
    assert_eq!(claim(0.0).verdict, Verdict::Undecided);
    assert_eq!(claim(2.5).verdict, Verdict::Holds);
}

#[test]
fn few_pairs_decide_only_what_is_deterministic() {
    let mut few = result(Some(4.0), [3.0, 5.0], None);
    few.pairs = 5;
    let better = Claim::AtLeastPercent(0.0);
    assert_eq!(
        judge(better, std::slice::from_ref(&few)).verdict,
        Verdict::Undecided
    );
    few.deterministic = true;
    few.ci95 = None;
    assert_eq!(
        judge(better, std::slice::from_ref(&few)).verdict,
        Verdict::Holds
    );
    few.improvement_percent = Some(0.0);
    assert_eq!(
        judge(better, std::slice::from_ref(&few)).verdict,
        Verdict::DoesNotHold
    );
    let never = Claim::NeverWorseThanPercent(0.0);
    let must = judge(never, &[few]);
    assert_eq!(must.verdict, Verdict::Holds);
    assert!(!must.to_string().contains("interval"), "{must}");
}

#[test]
fn unmeasured_comparisons_leave_a_verdict_open_only_if_they_could_decide_it() {
    let sure = result(Some(20.0), [15.0, 25.0], None);
    let worse = result(Some(-4.0), [-6.0, -2.0], None);
    let unknown = result(None, [0.0, 0.0], None);
    let better = Claim::AtLeastPercent(0.0);
    let must = judge(better, &[sure.clone(), worse.clone(), unknown.clone()]);
    assert_eq!((must.verdict, must.unmeasured), (Verdict::DoesNotHold, 1));
    let must = judge(better, &[sure.clone(), unknown.clone()]);
    assert_eq!(must.verdict, Verdict::NotKnown);
    assert_eq!(judge(better, &[]).verdict, Verdict::NotKnown);
    let half = judge(Claim::BetterIn(0.5), &[sure, unknown]);
    assert_eq!(half.verdict, Verdict::Holds);
    let never = judge(
        Claim::NeverWorseThanPercent(7.0),
        std::slice::from_ref(&worse),
    );
    assert_eq!(never.verdict, Verdict::Holds);
}

#[test]
fn the_correction_takes_the_number_of_comparisons_into_account() {
    // 200 points, of which as many are worse by chance as 95 % intervals allow.
    let equal = |value: f64| result(Some(value), [value - 3.0, value + 3.0], None);
    let mut results = vec![equal(0.0); 195];
    results.extend(vec![equal(-3.1); 5]);
    let never = Claim::NeverWorseThanPercent(0.0);
    let must = judge(never, &results);
    assert_eq!((must.verdict, must.worse), (Verdict::DoesNotHold, 5));
    assert_eq!(must.by_chance, 5.0);
    assert_eq!(must.corrected.verdict, Verdict::Undecided);
    assert_eq!(must.corrected.not_met, 0);
    // Points that are far worse remain.
    results.push(equal(-20.0));
    let must = judge(never, &results);
    assert_eq!(must.corrected.verdict, Verdict::DoesNotHold);
    assert_eq!(must.corrected.not_met, 1);
}

#[test]
fn a_part_of_a_gain_is_kept_where_there_is_one() {
    let gains = |gain: &ComparisonResult, kept: &ComparisonResult| {
        let covered = Covered {
            result: kept,
            gain: Some(gain),
        };
        let must = MustResult::judge(&must(Claim::KeepsPartOfGain(0.5)), &[covered], 8);
        (must.verdict, must.of)
    };
    let gain = result(Some(40.0), [36.0, 44.0], None);
    let most = result(Some(25.0), [22.0, 28.0], None);
    let half = result(Some(20.0), [17.0, 23.0], None);
    let less = result(Some(10.0), [7.0, 13.0], None);
    assert_eq!(gains(&gain, &most), (Verdict::Holds, 1));
    assert_eq!(gains(&gain, &half), (Verdict::Undecided, 1));
    assert_eq!(gains(&gain, &less), (Verdict::DoesNotHold, 1));
    // Both intervals count: 25 against half of 40, each with 3 %.
    let vague = result(Some(40.0), [28.0, 52.0], None);
    assert_eq!(gains(&vague, &most), (Verdict::Undecided, 1));
    let unsure = result(Some(40.0), [-1.0, 60.0], None);
    assert_eq!(
        gains(&unsure, &less),
        (Verdict::NotKnown, 0),
        "no gain is certain"
    );
    let unknown = result(None, [0.0, 0.0], None);
    assert_eq!(gains(&unknown, &half), (Verdict::NotKnown, 1));
    assert_eq!(gains(&gain, &unknown), (Verdict::NotKnown, 1));
}

#[test]
fn displayed_verdicts_list_the_first_comparisons_of_each_kind() {
    let mut short = result(Some(3.12), [-2.0, 6.0], Some(37.9));
    short.pairs = 7;
    let open = result(Some(39.0), [30.0, 50.0], Some(37.9));
    let met = result(Some(45.0), [40.0, 50.0], Some(37.9));
    let mut results = vec![short; 14];
    results.extend([open, met]);
    let must = judge(Claim::ReachesPublishedIn(0.5), &results);
    let text = must.to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3 + SHOWN + 2);
    assert_eq!(lines[0], "does not hold: bundle wins");
    assert_eq!(
        lines[1],
        "  met in 1 of 16 comparisons (8 needed), not met in 14, undecided in 1 (by value alone, met in 2); \
         better with 95 % confidence in 2, worse in 0, where chance alone would give 0.4 of each; corrected for 16 \
         comparisons it does not hold: met in 0, not met in 14, better in 2, worse in 0; runs are missing in 14"
    );
    assert_eq!(
        lines[3],
        "  not met by bundle at content_kb=2400: the median of completion_s is 3.1 % better than that of 1c \
         (95 % interval: -2.0 to 6.0 %; published: 37.9 % better)"
    );
    assert_eq!(lines[2], "  the link was too good");
    assert_eq!(lines[15], "  and not met in 2 more comparisons");
    assert!(
        lines[16].starts_with("  undecided for bundle at content_kb=2400"),
        "{text}"
    );
}

#[test]
fn what_is_worse_is_displayed_as_such() {
    let worse = result(Some(-4.0), [-6.0, -2.5], None);
    let text = judge(Claim::AtLeastPercent(0.0), &[worse]).to_string();
    let line = "  not met by bundle at content_kb=2400: the median of completion_s is 4.0 % worse than that of 1c \
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
    assert_eq!(
        (&json["holds"], &json["verdict"]),
        (&false.into(), &"does not hold".into())
    );
    assert_eq!(json["claim"]["at_least_percent"], 0.0);
    assert_eq!((&json["of"], &json["met"]), (&1.into(), &0.into()));
    assert_eq!(json["violations"][0]["statistic"], "median");
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
    let must = MustResult::judge(&self::must(Claim::RanksAs), &covered, 8);
    assert_eq!(
        (must.verdict, must.met, must.of),
        (Verdict::DoesNotHold, 1, 2)
    );
    // The order of a pair that is not sure of its own is not known.
    let unsure = result(Some(-3.0), [-7.0, 1.0], None);
    let covered = Covered {
        result: &unsure,
        gain: Some(&others[0]),
    };
    let must = MustResult::judge(&self::must(Claim::RanksAs), &[covered], 8);
    assert_eq!(must.verdict, Verdict::Undecided);
}

/// Values of runs whose variants are equal in distribution, but have losses of their own.
#[derive(Clone, Copy, Debug)]
enum Noise {
    Normal,
    /// A second, and a wait of exponential length.
    Waits,
    /// Transfers of 50 packets, each loss of which (1 %) costs a round trip.
    Losses,
}

/// A number from 0 to below 1.
fn uniform(rng: &mut impl rand::Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number with an exponential distribution of mean 1.
fn exponential(rng: &mut impl rand::Rng) -> f64 {
    -libm::log(1.0 - uniform(rng))
}

impl Noise {
    fn draw(self, rng: &mut impl rand::Rng) -> f64 {
        match self {
            Self::Normal => {
                let radius = (2.0 * exponential(rng)).sqrt();
                1.0 + 0.1 * radius * libm::cos(std::f64::consts::TAU * uniform(rng))
            }
            Self::Waits => 1.0 + 0.3 * exponential(rng),
            Self::Losses => {
                let lost = (0..50).filter(|_| uniform(rng) < 0.01).count();
                1.0 + 0.3 * lost as f64 + 0.01 * exponential(rng)
            }
        }
    }
}

/// The comparison of two variants that are equal in truth.
fn equal_variants(
    noise: Noise,
    statistic: Statistic,
    pairs: usize,
    seed: Seed,
) -> ComparisonResult {
    let mut rng = seed.of("values").rng();
    let mut sample = || (0..pairs).map(|_| noise.draw(&mut rng)).collect::<Vec<_>>();
    let (a, b) = (sample(), sample());
    let of = |values: &[f64]| {
        statistic
            .of(&Summary::of(values, 0, seed).unwrap())
            .unwrap()
    };
    let percent = |ratio: f64| 100.0 * (1.0 - ratio);
    let interval = ratio_interval(&a, &b, statistic, 1000, seed);
    ComparisonResult {
        statistic,
        pairs,
        ci95: interval.map(|[low, high]| [percent(high), percent(low)]),
        ..result(Some(percent(of(&a) / of(&b))), [0.0; 2], None)
    }
}

/// The promise of docs/verdicts.md about equal variants.
#[test]
fn chance_decides_as_rarely_as_the_page_on_verdicts_says() {
    const TRIALS: u64 = 1000;
    for (statistic, pairs, most_percent) in [
        (Statistic::Median, 6, 2.5),
        (Statistic::Median, 30, 2.5),
        (Statistic::P95, 20, 4.0),
        (Statistic::Mean, 6, 5.0),
        (Statistic::Mean, 20, 4.0),
    ] {
        for noise in [Noise::Normal, Noise::Waits, Noise::Losses] {
            let (mut better, mut worse) = (0, 0);
            for trial in 0..TRIALS {
                let one = equal_variants(noise, statistic, pairs, Seed::new(trial));
                match judge(Claim::AtLeastPercent(0.0), &[one]).verdict {
                    Verdict::Holds => better += 1,
                    Verdict::DoesNotHold => worse += 1,
                    Verdict::Undecided => {}
                    Verdict::NotKnown => panic!("every value is known"),
                }
            }
            let percent = |count: u32| 100.0 * f64::from(count) / TRIALS as f64;
            let [better, worse] = [better, worse].map(percent);
            println!("{statistic} of {pairs}, {noise:?}: better {better} %, worse {worse} %");
            // Three standard errors of a count of so many.
            let chance = 3.0 * (most_percent * (100.0 - most_percent) / TRIALS as f64).sqrt();
            assert!(better.max(worse) <= most_percent + chance);
        }
    }
}

#[test]
fn few_pairs_say_nothing_about_the_95th_percentile() {
    let one = |pairs| equal_variants(Noise::Normal, Statistic::P95, pairs, Seed::new(1));
    assert_eq!(one(19).sure_interval(), None);
    assert!(one(20).sure_interval().is_some());
}

/// Of 100 comparisons of equal variants, the corrected verdict takes one for an effect in few experiments.
#[test]
fn the_correction_leaves_few_experiments_with_an_effect_by_chance() {
    const EXPERIMENTS: u64 = 100;
    for (statistic, pairs) in [(Statistic::Median, 10), (Statistic::Mean, 10)] {
        let (mut plain, mut corrected) = (0, 0);
        for experiment in 0..EXPERIMENTS {
            let seed = Seed::new(experiment);
            let all: Vec<_> = (0..100)
                .map(|number| equal_variants(Noise::Normal, statistic, pairs, seed.nth(number)))
                .collect();
            let must = judge(Claim::BetterIn(0.5), &all);
            assert_eq!(must.verdict, Verdict::Undecided);
            plain += u32::from(must.better + must.worse > 0);
            corrected += u32::from(must.corrected.better + must.corrected.worse > 0);
        }
        println!("{statistic}: plain in {plain}, corrected in {corrected} of {EXPERIMENTS}");
        assert!(plain > 70, "chance decides some of many");
        // 2.5 % for each side.
        assert!(corrected <= 10, "{corrected}");
    }
}
