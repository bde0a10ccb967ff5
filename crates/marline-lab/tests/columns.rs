//! `docs/results-files.md` names every column of `runs.csv` with its unit.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use marline_lab::run::{self, Options};
use marline_lab::scenario::Experiment;
use marline_lab::sim::Simulator;
use serde_json::Value;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The names in the first cells of the page's tables of columns, which have a column for the unit.
fn documented() -> Vec<String> {
    let page = fs::read_to_string(docs().join("results-files.md")).unwrap();
    let (_, columns) = page.split_once("## Columns of runs.csv").unwrap();
    let rows = columns.lines().filter(|line| line.starts_with("| `"));
    let names = rows.flat_map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').collect();
        assert_eq!(cells.len(), 3, "{row}: name, unit and description");
        let quoted = cells[0].split('`').skip(1).step_by(2);
        quoted.map(str::to_owned).collect::<Vec<_>>()
    });
    names.collect()
}

/// Whether `pattern`, in which `N` stands for a number and `NAME` for a name, is `column`.
fn is_it(pattern: &str, column: &str) -> bool {
    let Some(at) = pattern.find(|c: char| c.is_ascii_uppercase()) else {
        return pattern == column;
    };
    let (before, rest) = pattern.split_at(at);
    let Some(column) = column.strip_prefix(before) else {
        return false;
    };
    let (is_number, rest) = match rest.strip_prefix("NAME") {
        Some(rest) => (false, rest),
        None => (true, rest.strip_prefix('N').unwrap()),
    };
    let ends = (1..=column.len()).filter(|&end| column.is_char_boundary(end));
    ends.map(|end| column.split_at(end))
        .filter(|(taken, _)| !is_number || taken.bytes().all(|byte| byte.is_ascii_digit()))
        .any(|(_, left)| is_it(rest, left))
}

fn undocumented<'a>(columns: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let known = documented();
    let columns = columns.into_iter();
    columns
        .filter(|column| !known.iter().any(|pattern| is_it(pattern, column)))
        .collect()
}

const LINK: &str = "link = \"rate=20mbps, rtt=20ms, loss=1%, buffer=60kB\"\n";
const FLOW: &str = "[[background]]\nkind = \"flows\"\ncount = 1\n";

/// The columns of `runs.csv` of a scenario that runs once, and those that are parameters.
fn columns(name: &str, scenario: &str) -> BTreeSet<String> {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("scenario.toml");
    fs::write(
        &file,
        format!("title = \"{name}\"\nrepeats = 1\n{scenario}"),
    )
    .unwrap();
    let experiment = Experiment::load(&file, name, &[]).unwrap();
    let options = Options {
        out: Some(out.path().to_owned()),
        quick: true,
        ..Options::default()
    };
    run::run(&experiment, &Simulator, &options, &mut |_| {}).unwrap();
    let table = fs::read_to_string(out.path().join("runs.csv")).unwrap();
    assert!(table.contains(",ok,"), "{name}: {table}");
    let head = table.lines().next().unwrap();
    head.split(',').map(str::to_owned).collect()
}

#[test]
fn columns_of_every_workload_are_documented() {
    let scenarios = [
        ("objects", format!("{LINK}workload.objects = [\"100kB\", \"100kB\"]\nbundle = \"default\"\n[http]\nbundle = true\nconnections = 2\n")),
        ("page", format!("{LINK}[workload]\npage = \"today/small\"\nwindows = \"1s\"\n")),
        ("pipes", format!("{LINK}workload.page = \"today/small\"\nhttp.pipes = \"rr\"\n")),
        ("devices", format!("{LINK}[workload]\ndevices = {{ page = \"today/small\", count = 2, apart = \"100ms\" }}\n")),
        ("transfer", format!("{LINK}[workload]\ntransfer = \"500kB\"\nfeatures = true\n")),
        ("measure", format!("{LINK}[workload]\nmeasure = {{ after = \"1s\", until = \"3s\" }}\n{FLOW}")),
        ("visits", format!("{LINK}initial_window = \"careful\"\n[workload]\nvisits = [{{ size = \"200kB\" }}, {{ size = \"200kB\" }}]\nafterwards = \"2s\"\n{FLOW}")),
        ("video", format!("{LINK}workload.video = {{ ladder = [\"1mbps\", \"5mbps\"], length = \"8s\" }}\n")),
        ("call", format!("{LINK}workload.call = {{ rate = \"1mbps\", length = \"2s\" }}\n[[background]]\nkind = \"poisson\"\nrate = \"1mbps\"\nmetrics = true\n")),
        ("streams", "paths = [\"rate=10mbps, rtt=20ms\", \"rate=5mbps, rtt=80ms\"]\nmultipath.on = true\n[workload]\nstreams = [{ id = 1, size = \"20kB\", group = \"small\" }, { id = 2, size = \"50kB\" }]\n".to_owned()),
    ];
    for (name, scenario) in scenarios {
        let columns = columns(name, &scenario);
        let missing = undocumented(columns.iter().map(String::as_str));
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
}

/// Experiments on the kernel and in browsers, too, without running them.
#[test]
fn metrics_of_published_results_are_documented() {
    let mut metrics = BTreeSet::new();
    let mut directories = vec![docs().join("results")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let excerpt: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
            let variants = excerpt["values"].as_object().into_iter().flatten();
            let keys = variants.flat_map(|(_, values)| values.as_object().unwrap().keys());
            metrics.extend(keys.filter_map(|key| Some(key.rsplit_once(' ')?.0.to_owned())));
        }
    }
    assert!(metrics.contains("completion_s"), "{metrics:?}");
    let missing = undocumented(metrics.iter().map(String::as_str));
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn patterns_match_numbers_and_names() {
    assert!(is_it(
        "device_N_of_N_goodput_mbps",
        "device_12_of_3_goodput_mbps"
    ));
    assert!(!is_it("path_N_bytes", "path_x_bytes"));
    assert!(is_it("bytes_on_NAME", "bytes_on_upper.left"));
    assert!(!is_it("packets", "packets_sent"));
}
