//! Claims, and errors in them.

use super::*;
use crate::scenario::Experiment;

const HEAD: &str = r#"title = "Bundles"
link = "rate=1mbps, rtt=20ms"
workload.objects = "1MB"
[variant.1c]
[variant.3c]
[variant.bundle]
[sweep]
location.near = { cc = "bbr" }
location.far = { cc = "bbr" }
[sweep.content_kb]
500 = {}
2400 = {}
6000 = {}
"#;

const GAINS: &str = "location,content_kb,median,p95\nnear,500,0,0\nnear,2400,10,20\nnear,6000,12,22\n\
                     far,500,0,-2\nfar,2400,0,5\n";

const COMPARISONS: &str = r#"
[[comparison]]
a = "bundle"
b = "1c"
published = { file = "gain.csv", value = "median" }
[[comparison]]
a = "bundle"
b = "1c"
statistic = "p95"
published = { file = "gain.csv", value = "p95" }
[[comparison]]
a = "bundle"
b = "3c"
"#;

fn read(musts: &str) -> Result<Vec<Must>, String> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("gain.csv"), GAINS).unwrap();
    let path = directory.path().join("bundle.toml");
    std::fs::write(&path, format!("{HEAD}{COMPARISONS}{musts}")).unwrap();
    match Experiment::load(&path, "bundle", &[]) {
        Ok(experiment) => Ok(experiment.musts),
        Err(error) => Err(error.to_string()),
    }
}

fn one(must: &str) -> Must {
    let text = format!("[[must]]\ntext = 'better'\na = 'bundle'\n{must}");
    read(&text).unwrap().remove(0)
}

/// Comparison and point of each check.
fn checks(must: &Must) -> Vec<(usize, usize)> {
    let checks = must.checks.iter();
    checks.map(|one| (one.comparison, one.point)).collect()
}

#[test]
fn claims_cover_the_selected_comparisons() {
    let must = one("b = '1c'\nat_least_percent = 0");
    assert_eq!(
        (must.text.as_str(), must.claim),
        ("better", Claim::AtLeastPercent(0.0))
    );
    assert_eq!(checks(&must), [0, 1, 2, 3, 4, 5].map(|point| (0, point)));

    let must = one(
        "b = '1c'\nstatistic = ['median', 'p95']\nwhere = { content_kb = [2400, 6000] }\n\
         published_above_percent = 0\nat_least_percent = 0",
    );
    assert_eq!(checks(&must), [(0, 1), (0, 2), (1, 1), (1, 2), (1, 4)]);

    let must = one("b = '1c'\npublished_at_least_percent = 0\nat_least_percent = 1.5");
    assert_eq!(checks(&must), [0, 1, 2, 3, 4].map(|point| (0, point)));
    assert_eq!(must.claim, Claim::AtLeastPercent(1.5));

    // Where nothing was published, there is nothing to reach.
    let must = one("b = '1c'\nstatistic = 'p95'\nreaches_published_in = 0.5");
    assert_eq!(checks(&must), [0, 1, 2, 3, 4].map(|point| (1, point)));

    let must = one(
        "b = '3c'\nwhere = { location = 'far', content_kb = 500 }\nnever_worse_than_percent = 3",
    );
    assert_eq!(checks(&must), [(2, 3)]);
}

#[test]
fn several_variants_are_paired() {
    let text = "[[must]]\ntext = 'x'\na = ['bundle', 'bundle']\nb = ['1c', '3c']\n\
                where = { location = 'near', content_kb = 500 }\nat_least_percent = 0";
    assert_eq!(checks(&read(text).unwrap()[0]), [(0, 0), (2, 0)]);
    let one_b = text.replace("['1c', '3c']", "'3c'");
    assert_eq!(checks(&read(&one_b).unwrap()[0]), [(2, 0), (2, 0)]);
}

#[test]
fn checks_prefer_comparisons_with_a_published_value() {
    let twice = "[[comparison]]\na = 'bundle'\nb = '3c'\n\
                 published = { file = 'gain.csv', value = 'median', where = { location = 'near', content_kb = 500 } }\n\
                 [[must]]\ntext = 'x'\na = 'bundle'\nb = '3c'\nwhere = { content_kb = 6000 }\nat_least_percent = 0";
    assert_eq!(checks(&read(twice).unwrap()[0]), [(3, 2), (3, 5)]);
    let none = twice.replace("where = { location = 'near', content_kb = 500 } }", "}");
    assert_eq!(checks(&read(&none).unwrap()[0]), [(3, 2), (2, 5)]);
}

#[test]
fn claims_apply_to_measured_improvements() {
    let better = Claim::AtLeastPercent(0.0);
    assert!(better.is_met(0.1, None) && !better.is_met(0.0, None) && !better.is_met(-0.1, None));
    let much = Claim::AtLeastPercent(5.0);
    assert!(much.is_met(5.0, None) && !much.is_met(4.9, None));
    let median = Claim::MedianAtLeastPercent(5.0);
    assert!(median.is_met(5.0, None) && !median.is_met(4.9, None));
    assert_eq!((median.needed(31), much.needed(31)), (16, 31));
    let near = Claim::NeverWorseThanPercent(3.0);
    assert!(near.is_met(-3.0, None) && !near.is_met(-3.1, None));
    let most = Claim::BetterIn(0.7);
    assert!(most.is_met(0.1, None) && !most.is_met(0.0, Some(-1.0)));
    assert_eq!(
        (most.needed(210), most.needed(0), most.needed(1)),
        (147, 0, 1)
    );

    let half = Claim::ReachesPublishedIn(0.5);
    assert!(half.is_met(7.5, Some(7.5)) && !half.is_met(7.4, Some(7.5)) && !half.is_met(9.0, None));
    assert_eq!((half.needed(8), half.needed(7), half.needed(1)), (4, 4, 1));
    assert_eq!(Claim::ReachesPublishedIn(0.07).needed(100), 7);
    assert_eq!(Claim::ReachesPublishedIn(1.0).needed(3), 3);
    assert_eq!(near.needed(3), 3);
}

#[test]
fn the_gain_of_another_variant_is_that_over_the_same_baseline() {
    let keeps = "[[comparison]]\na = '3c'\nb = '1c'\n\
                 [[must]]\ntext = 'x'\na = 'bundle'\nb = '1c'\nwhere = { content_kb = 500 }\n\
                 keeps_part_of_gain = 0.5\ngain_of = '3c'";
    let must = read(keeps).unwrap().remove(0);
    assert_eq!(must.claim, Claim::KeepsPartOfGain(0.5));
    assert_eq!(checks(&must), [(0, 0), (0, 3)]);
    assert!(must.checks.iter().all(|check| check.gain == Some(3)));
    // Nothing is to be kept where the other variant is not compared.
    let elsewhere = keeps.replace(
        "b = '1c'\n[[must]]",
        "b = '1c'\nwhere = { location = 'far' }\n[[must]]",
    );
    assert_eq!(checks(&read(&elsewhere).unwrap()[0]), [(0, 3)]);
    for (from, to, expected) in [
        ("gain_of = '3c'", "", "gain_of is missing; add gain_of ="),
        (
            "'3c'\nb = '1c'",
            "'3c'\nb = 'bundle'",
            "3c is not compared with 1c in the median",
        ),
        (
            "gain_of = '3c'",
            "gain_of = '2c'",
            "gain_of: unknown variant \"2c\"",
        ),
        (
            "keeps_part_of_gain = 0.5",
            "better_in = 0.5",
            "gain_of: this is for keeps_part_of_gain",
        ),
        ("_gain = 0.5", "_gain = 0", "above 0 and at most 1"),
    ] {
        let error = read(&keeps.replace(from, to)).unwrap_err();
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
}

#[test]
fn pairs_rank_as_other_pairs_do() {
    let ranks = "[[comparison]]\na = '3c'\nb = '1c'\n\
                 [[must]]\ntext = 'x'\na = 'bundle'\nb = '1c'\nwhere = { content_kb = 500 }\n\
                 ranks_as = [['3c', '1c']]";
    let must = read(ranks).unwrap().remove(0);
    assert_eq!(must.claim, Claim::RanksAs);
    assert_eq!(checks(&must), [(0, 0), (0, 3)]);
    assert!(must.checks.iter().all(|check| check.gain == Some(3)));
    assert_eq!(must.claim.needed(3), 3);
    for (improvement, other, same) in [(1.0, 9.0, true), (-1.0, -9.0, true), (-1.0, 1.0, false)] {
        assert_eq!(must.claim.is_met(improvement, Some(other)), same);
    }
    for (from, to, expected) in [
        (
            "[['3c', '1c']]",
            "['3c', '1c']",
            "this must be 1 pairs of variants",
        ),
        ("[['3c', '1c']]", "[['3c']]", "this must be 1 pairs"),
        ("[['3c',", "[['2c',", "unknown variant \"2c\""),
        (
            "'3c'\nb = '1c'",
            "'3c'\nb = 'bundle'",
            "3c is not compared with 1c in the median",
        ),
    ] {
        let error = read(&ranks.replace(from, to)).unwrap_err();
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
}

#[test]
fn variants_are_near_the_ideal_without_another_one() {
    let near = "[[must]]\ntext = 'near'\na = ['bundle', '1c']\nwhere = { content_kb = 500 }\n\
                ideal_ratio_at_most = 1.15";
    let must = read(near).unwrap().remove(0);
    assert_eq!(must.claim, Claim::IdealRatioAtMost(1.15));
    let alone = must.alone.iter();
    let cells: Vec<_> = alone
        .map(|near| (near.variant.as_str(), near.point))
        .collect();
    assert_eq!(cells, [("bundle", 0), ("bundle", 3), ("1c", 0), ("1c", 3)]);
    assert!(must.checks.is_empty());
    assert!(must.claim.is_met(-15.0, None) && !must.claim.is_met(-15.1, None));
    assert_eq!((must.claim.needed(31), must.claim.needed(4)), (16, 2));
    for (from, to, expected) in [
        ("1.15", "0.9", "this must be 1 or more"),
        (
            "a = ['bundle', '1c']",
            "a = 'bundle'\nb = '1c'",
            "b: ideal_ratio_at_most compares",
        ),
        ("a = ['bundle', '1c']\n", "", "a is missing"),
        ("['bundle', '1c']", "[]", "a is empty"),
    ] {
        let error = read(&near.replace(from, to)).unwrap_err();
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
}

#[test]
fn variants_reach_a_value_without_another_one() {
    let reaches = "[[must]]\ntext = 'even'\na = ['bundle', '1c']\nmetric = 'goodput_mbps'\n\
                   statistic = ['median', 'mean']\nwhere = { content_kb = 500 }\nreaches_value = 0.95";
    let must = read(reaches).unwrap().remove(0);
    assert_eq!(must.claim, Claim::ReachesValue(0.95));
    assert!(must.checks.is_empty());
    assert_eq!(must.alone.len(), 2 * 2 * 2);
    assert_eq!(must.alone[0].metric, "goodput_mbps");
    assert!(must.claim.is_met(0.0, None) && !must.claim.is_met(-0.1, None));
    assert_eq!(must.claim.needed(8), 8);
    for (from, to, expected) in [
        ("0.95", "0", "this must be above 0"),
        (
            "['bundle', '1c']",
            "'bundle'\nb = '1c'",
            "b: reaches_value compares",
        ),
        ("['bundle', '1c']", "[]", "a is empty"),
    ] {
        let error = read(&reaches.replace(from, to)).unwrap_err();
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
}

#[test]
fn mistakes_are_explained() {
    let good = "[[must]]\ntext = 'x'\na = 'bundle'\nb = '1c'\nat_least_percent = 0\n";
    assert_eq!(read(good).unwrap().len(), 1);
    for (from, to, expected) in [
        ("text = 'x'\n", "", "text is missing; add text ="),
        ("b = '1c'\n", "", "b is missing; add b ="),
        (
            "'1c'",
            "'2c'",
            "bundle.toml:30: [must] b: unknown variant \"2c\"",
        ),
        ("'1c'", "['1c', '3c']", "a has 1 variants, this has 2"),
        ("a = 'bundle'", "a = []", "a is empty; name a variant"),
        (
            "at_least_percent = 0",
            "",
            "it claims nothing; add one of at_least_percent",
        ),
        (
            "at_least_percent = 0",
            "at_least_percent = 0\nreaches_published_in = 0.5",
            "bundle.toml:32: [must] reaches_published_in: there is another claim already",
        ),
        (
            "_percent = 0",
            "_percent = -3",
            "never_worse_than_percent allows a loss",
        ),
        (
            "at_least_percent = 0",
            "reaches_published_in = 1.5",
            "above 0 and at most 1",
        ),
        (
            "at_least_percent = 0",
            "never_worse_than_percent = -1",
            "must not be below 0",
        ),
        (
            "at_least_percent = 0",
            "at_least = 0",
            "[must] at_least: unknown key \"at_least\"; did you mean at_least_percent, median_at_least_percent or published_at_least_percent?",
        ),
        (
            "'1c'",
            "'1c'\nstatistic = 'mean'",
            "bundle is not compared with 1c in the mean of completion_s; add [[comparison]]",
        ),
        (
            "'1c'",
            "'1c'\nwhere = { content_mb = 6 }",
            "unknown parameter \"content_mb\"",
        ),
        (
            "'1c'",
            "'1c'\nwhere = { location = 'near', content_kb = [500, 2500] }",
            "bundle.toml:31: [must.where] content_kb: no point has content_kb = 2500; its values, nearest first: \
             2400, 500, 6000",
        ),
        (
            "'1c'",
            "'1c'\nwhere = { location = 'fra' }",
            "bundle.toml:31: [must.where] location: no point has location = fra; its values, nearest first: far, near",
        ),
        (
            "'1c'",
            "'1c'\nwhere = { content_kb = [] }",
            "bundle.toml:31: [must] where: no point of the sweep has these values together",
        ),
        (
            "'1c'",
            "'1c'\npublished_above_percent = 50",
            "bundle.toml:31: [must] published_above_percent: no published improvement is so large",
        ),
        (
            "'1c'",
            "'1c'\npublished_above_percent = 5\npublished_at_least_percent = 5",
            "there is published_above_percent too",
        ),
        (
            "'1c'\nat_least_percent = 0",
            "'3c'\nreaches_published_in = 0.5",
            "nothing",
        ),
    ] {
        let expected = match expected {
            "nothing" => "there is no published improvement to reach",
            other => other,
        };
        let text = good.replace(from, to);
        assert_ne!(text, good, "{from}");
        let error = read(&text).unwrap_err();
        assert!(error.contains(expected), "\n{error}\nis not\n{expected}");
    }
    let error = read(&good.repeat(2)).unwrap_err();
    assert!(
        error.contains("another [[must]] has the same text"),
        "{error}"
    );
}

#[test]
fn claims_at_points_without_a_comparison_are_refused() {
    let claim = "[[comparison]]\na = '3c'\nb = '1c'\nwhere = { content_kb = 500 }\n\
                 [[must]]\ntext = 'x'\na = '3c'\nb = '1c'\nat_least_percent = 0\n";
    assert_eq!(checks(&read(claim).unwrap()[0]), [(3, 0), (3, 3)]);
    let elsewhere = format!("{claim}where = {{ content_kb = 2400 }}\n");
    let error = read(&elsewhere).unwrap_err();
    assert!(
        error.contains("bundle.toml:36: [must] where: no comparison has any of these points"),
        "{error}"
    );
}

#[test]
fn conditions_may_have_values_that_an_override_took_from_the_sweep() {
    let text = format!(
        "{HEAD}[[comparison]]\na = 'bundle'\nb = '1c'\n\
         [[must]]\ntext = 'x'\na = 'bundle'\nb = '1c'\nat_least_percent = 0\n\
         where = {{ content_kb = [2400, 6000] }}\n"
    );
    let read = |set: &str| Experiment::parse(&text, "bundle.toml", &[set.to_owned()]);
    let fewer = read("sweep.content_kb={ 2400 = {} }").unwrap();
    assert_eq!(checks(&fewer.musts[0]), [(0, 0), (0, 1)]);
    let error = read("sweep.content_kb={ 500 = {} }")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no point of the sweep has these values together"),
        "{error}"
    );
}
