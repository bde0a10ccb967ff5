//! The names of metrics are checked before the first run.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::metrics;
use super::*;

const CALL: &str = "title = 'x'\nlink = 'rate=1mbps, rtt=20ms'\nworkload.call = { rate = '100kbps', length = '2s' }\n";

#[test]
fn an_unknown_metric_is_named_with_its_place_and_the_nearest_one() {
    for (more, place) in [
        ("metrics = ['call_frames', 'call_lte_ratio']", "4: metrics"),
        (
            "[variant.a]\n[variant.b]\n[[must]]\ntext = 'x'\na = 'a'\nb = 'b'\nbetter_in = 1\nmetric = 'call_lte_ratio'",
            "11: [must] metric",
        ),
        (
            "[variant.a]\n[variant.b]\n[[comparison]]\na = 'a'\nb = 'b'\nmetric = 'call_lte_ratio'",
            "9: [comparison] metric",
        ),
        (
            "[[correlation]]\nx = 'call_lte_ratio'",
            "5: [correlation] x",
        ),
        (
            "[[correlation]]\nx = 'call_frames'\ny = 'call_lte_ratio'",
            "6: [correlation] y",
        ),
    ] {
        let error = error(&format!("{CALL}{more}"));
        let expected = format!(
            "train.toml:{place}: unknown metric of this workload \"call_lte_ratio\"; did you mean call_late_ratio?"
        );
        assert!(error.starts_with(&expected), "{error}");
    }
    let error = read_with(CALL, &["metrics=call_lte_ratio"]).unwrap_err();
    assert!(
        error.starts_with("--set metrics=call_lte_ratio: unknown metric"),
        "{error}"
    );
}

#[test]
fn metrics_are_those_of_a_workload_that_some_variant_has() {
    let refused = error(&with("metrics = ['call_late_ratio']"));
    assert!(
        refused.contains("unknown metric of this workload"),
        "{refused}"
    );
    let mixed = "title = 'x'\nlink = 'lte-a'\nmetrics = ['completion_s', 'call_late_ratio']\n\
                 [variant.fetch]\nworkload.objects = '1MB'\n\
                 [variant.call]\nworkload.call = { rate = '100kbps', length = '2s' }\n";
    assert_eq!(read(mixed).metrics.len(), 2);
}

/// Parts of names are those of this scenario.
#[test]
fn groups_streams_paths_loads_and_background_are_known_by_name() {
    let streams = "title = 'x'\npaths = ['rate=10mbps', 'rate=5mbps']\nmultipath = true\nworkload.streams = \
                   [{ id = 1, size = '1kB', group = 'small' }, { id = 4, size = '5kB' }]\n\
                   [[background]]\nkind = 'poisson'\nrate = '1mbps'\nmetrics = true\n";
    let page = "title = 'x'\nlink = 'lte-a'\nworkload = { page = 'today/small', loads = 12 }\n";
    for (scenario, known, unknown, nearest) in [
        (
            streams,
            "streams_small_mean_s",
            "streams_smal_mean_s",
            "streams_small_mean_s",
        ),
        (
            streams,
            "stream_4_last_byte_s",
            "stream_3_last_byte_s",
            "stream_1_last_byte_s",
        ),
        (
            streams,
            "path_2_percent",
            "path_3_percent",
            "path_1_percent",
        ),
        (
            streams,
            "background_1_mbps",
            "background_2_mbps",
            "background_1_mbps",
        ),
        (page, "page_load_s 012", "page_load_s 013", "page_load_s 01"),
    ] {
        let set = |metric| read_with(scenario, &[&format!("metrics=['{metric}']")]);
        assert_eq!(set(known).unwrap().metrics, [known]);
        let error = set(unknown).unwrap_err();
        assert!(
            error.contains("did you mean") && error.contains(nearest),
            "{error}"
        );
    }
}

#[test]
fn the_default_metrics_are_those_of_the_workload() {
    for (workload, first) in [
        (
            "call = { rate = '1mbps', length = '2s' }",
            "call_late_ratio",
        ),
        (
            "video = { ladder = ['1mbps'], length = '8s' }",
            "video_quality_mbps",
        ),
        (
            "devices = { page = 'today/small', count = 2 }",
            "page_load_mean_s",
        ),
        ("measure = { until = '2s' }", "goodput_mbps"),
        ("transfer = '1MB'", "completion_s"),
        ("visits = [{ size = '1kB' }]", "completion_s"),
    ] {
        let experiment = read(&format!(
            "title = 'x'\nlink = 'lte-a'\nworkload.{workload}\n"
        ));
        assert_eq!(experiment.metrics[0], first);
        let known = metrics::of(&experiment.cells[0].settings);
        let missing = experiment
            .metrics
            .iter()
            .find(|name| !known.contains(*name));
        assert_eq!(missing, None, "{workload}");
    }
    let error = error(
        "title = 'x'\nlink = 'lte-a'\n[variant.a]\nworkload.call = { rate = '1mbps', length = '2s' }\n",
    );
    assert!(
        error.contains("metrics are missing; name them, as the default is an unknown metric"),
        "{error}"
    );
}

/// The page and the check know the same metrics.
#[test]
fn documented_metrics_are_known() {
    let scenarios = [
        "workload.files = 'x'",
        "workload.page = 'today/small'",
        "workload.devices = { page = 'today/small', count = 2 }",
        "workload.visits = [{ size = '1kB' }]",
        "workload.measure = { until = '2s' }",
        "workload.video = { ladder = ['1mbps'], length = '8s' }",
        "workload.call = { rate = '1mbps', length = '2s' }",
        "workload = { transfer = '1MB', features = true }",
        "workload.streams = [{ id = 1, size = '1kB' }]\nmultipath = true",
    ];
    let mut known = BTreeSet::new();
    for scenario in scenarios {
        let experiment = read(&format!("title = 'x'\nlink = 'lte-a'\n{scenario}\n"));
        known.extend(metrics::of(&experiment.cells[0].settings));
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results-files.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, page) = page.split_once("## Metrics").unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap());
    let documented: BTreeSet<_> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    // The others have a part from the scenario in their names.
    let fixed = documented
        .iter()
        .filter(|name| !name.contains(char::is_uppercase));
    let unknown: Vec<_> = fixed.filter(|name| !known.contains(**name)).collect();
    assert!(unknown.is_empty(), "documented, but unknown: {unknown:?}");
    let of_scenario = |name: &&String| {
        name.contains(|c: char| c.is_ascii_digit()) && !name.contains("5s") && !name.contains("p9")
            || name.contains("_on_")
    };
    let undocumented: Vec<_> = known
        .iter()
        .filter(|name| !of_scenario(name) && !documented.contains(name.as_str()))
        .collect();
    assert!(
        undocumented.is_empty(),
        "known, but not documented: {undocumented:?}"
    );
}
