//! The JSON Schema of everything that the laboratory writes as JSON: `docs/reference/schemas`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;

use boon::{Compiler, Schemas};
use marline_lab::run::{self, Changes, Options, Plan, Record, Results};
use marline_lab::scenario::Experiment;
use marline_lab::sim::Simulator;
use marline_lab::verify::verify;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use super::list::Listed;
use super::presets::Known;
use super::verify::Answer;

/// How to write the committed files again.
const REGENERATE: &str = "REGENERATE=1 cargo test -p marline-cli --all-features --lib schemas";

/// A committed schema.
struct Committed {
    name: &'static str,
    schema: Schema,
}

/// Every schema by the name of its file.
fn all() -> Vec<Committed> {
    vec![
        committed::<Plan>("plan"),
        committed::<Record>("run"),
        committed::<Results>("results"),
        committed::<Changes>("compare"),
        committed::<Vec<Listed>>("list"),
        committed::<Known>("presets"),
        committed::<Answer>("verify"),
    ]
}

fn committed<T: JsonSchema>(name: &'static str) -> Committed {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(PlainDescriptions);
    Committed {
        name,
        schema: settings.into_generator().into_root_schema_for::<T>(),
    }
}

/// Descriptions without the links of rustdoc, on one line.
#[derive(Clone, Debug)]
struct PlainDescriptions;

impl Transform for PlainDescriptions {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = plain(text);
        }
        transform_subschemas(self, schema);
    }
}

/// `[text](target)` and `[text]` as `text`.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[')
        && let Some((inside, after)) = after.split_once(']')
    {
        plain += before;
        plain += inside;
        let target = after.strip_prefix('(').and_then(|at| at.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    plain += rest;
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Committed {
    fn text(&self) -> String {
        serde_json::to_string_pretty(&self.schema).unwrap() + "\n"
    }
}

/// With `REGENERATE`, writes the committed schemas, once and before any test reads them.
fn regenerate() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if std::env::var_os("REGENERATE").is_some() {
            fs::create_dir_all(directory()).unwrap();
            for schema in all() {
                fs::write(path(schema.name), schema.text()).unwrap();
            }
        }
    });
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas")
}

fn path(name: &str) -> PathBuf {
    directory().join(format!("{name}.schema.json"))
}

/// The places in which `document` contradicts the committed schema, as text.
fn contradictions(name: &str, document: &Value) -> Option<String> {
    regenerate();
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    let location = path(name).to_string_lossy().into_owned();
    let index = compiler.compile(&location, &mut schemas).unwrap();
    let checked = schemas.validate(document, index);
    checked.err().map(|error| format!("{name}: {error:#}"))
}

fn check(name: &str, document: &Value) {
    assert_eq!(contradictions(name, document), None);
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

#[test]
fn committed_schemas_are_those_of_the_types() {
    regenerate();
    for schema in all() {
        let found = fs::read_to_string(path(schema.name)).unwrap_or_default();
        assert!(
            found == schema.text(),
            "docs/reference/schemas/{}.schema.json is stale; run: {REGENERATE}",
            schema.name
        );
    }
}

/// Claims, published values, correlations, failures and time series: every optional part of the files.
const SCENARIO: &str = r#"
title = "All that results can hold"
link = "rate=12mbps, rtt=40ms, loss=1%, buffer=60kB"
repeats = 3
time_limit = "2s"
workload.objects = ["300kB"]

[variant.reno]
cc = "newreno"

[variant.bbr]
cc = "bbr"

[sweep]
"link.rate" = ["12mbps", "1mbps"]

[[comparison]]
a = "bbr"
b = "reno"

[[correlation]]
variant = "reno"
x = "first_fluctuation_s"

[[must]]
text = "BBR is faster"
a = "bbr"
b = "reno"
at_least_percent = 0
explanation = "The link is short."
"#;

/// Runs the scenario with `seed` into `out`.
fn run_scenario(seed: u64, out: &Path) {
    let scenario = out.join("everything.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    let mut experiment = Experiment::load(&scenario, "everything", &[]).unwrap();
    experiment.seed = seed;
    let options = Options {
        quick: true,
        out: Some(out.to_owned()),
        watch: true,
        ..Options::default()
    };
    run::run(&experiment, &Simulator, &options, &mut |_| {}).unwrap();
}

#[test]
fn results_match_their_schemas() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run_scenario(1, first.path());
    run_scenario(2, second.path());

    check("plan", &read(&first.path().join("plan.json")));
    check("results", &read(&first.path().join("results.json")));
    let runs = fs::read_to_string(first.path().join("runs.jsonl")).unwrap();
    let runs: Vec<Value> = runs
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(runs.iter().any(|run| run.get("series").is_some()));
    assert!(runs.iter().any(|run| run.get("failed").is_some()));
    for run in &runs {
        check("run", run);
    }
    let changes = run::compare(first.path(), second.path()).unwrap();
    check("compare", &json(&changes));
}

#[test]
fn listings_match_their_schemas() {
    let scenario = tempfile::tempdir().unwrap();
    let file = scenario.path().join("everything.toml");
    fs::write(&file, SCENARIO).unwrap();
    let experiment = Experiment::load(&file, "everything", &[]).unwrap();
    check("list", &json(&[Listed::of(experiment)]));
    check("presets", &json(&Known::all()));
    let checks = verify(&["wifi-7".to_owned()], 1, &mut |_| {}).unwrap();
    check("verify", &json(&Answer::new(1, checks)));
}

/// The results that the tests of the Python package read are in the present format.
#[test]
fn the_example_of_the_python_package_matches() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests/data/train");
    check("plan", &read(&example.join("plan.json")));
    check("results", &read(&example.join("results.json")));
    let runs = fs::read_to_string(example.join("runs.jsonl")).unwrap();
    for line in runs.lines() {
        check("run", &serde_json::from_str(line).unwrap());
    }
}

#[test]
fn a_result_without_its_keys_does_not_match() {
    let document = serde_json::json!({ "experiment": "x" });
    assert!(contradictions("results", &document).is_some());
}
