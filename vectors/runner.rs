//! Runs the shared test vectors through the functions that the stack calls; `tests/vectors.rs` of each
//! crate that owns an operation includes this file.
//!
//! `MARLINE_VECTORS` names the directory; without it, the project's own copy is used. Each crate runs
//! what `vectors/owners.json` gives it, and says how many cases it saw; `tools/vectors.sh` adds up and
//! finds what nobody ran. What a package of Python owns, with a crate or alone, its own runner checks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

type Error = Box<dyn std::error::Error>;

/// What the code under test says to an operation and its input; `None` if it cannot read them.
type Answer = fn(&str, &Value) -> Option<Value>;

/// Runs what `owner`, a crate, owns, and prints a line a failure and a sum.
pub(crate) fn main(owner: &str, answer: Answer) -> ExitCode {
    match run(owner, answer) {
        Ok(tally) => {
            println!("{owner}: later: {}", tally.names());
            println!(
                "{owner}: {} passed, {} failed, {} later, {} in all",
                tally.passed,
                tally.failed,
                tally.later.values().sum::<usize>(),
                tally.seen
            );
            ExitCode::from(u8::from(tally.failed > 0 || tally.unowned))
        }
        Err(error) => {
            println!("{owner}: {error}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Tally {
    /// Cases of all owners.
    seen: usize,
    passed: usize,
    failed: usize,
    /// Cases that no code runs yet, by what brings it.
    later: BTreeMap<String, usize>,
    /// Whether some case is nobody's.
    unowned: bool,
}

impl Tally {
    fn names(&self) -> String {
        let names: Vec<_> = self.later.keys().map(String::as_str).collect();
        names.join(", ")
    }
}

fn run(owner: &str, answer: Answer) -> Result<Tally, Error> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let owners = read(&own.join("owners.json"))?;
    let directory = std::env::var_os("MARLINE_VECTORS")
        .filter(|dir| !dir.is_empty())
        .map_or(own, PathBuf::from);
    let mut files = std::fs::read_dir(&directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<BTreeSet<_>, Error>>()?;
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
            && path.file_name().is_none_or(|name| name != "owners.json")
    });

    let mut tally = Tally::default();
    for file in files {
        let set = read(&file)?;
        let tolerance = set["relative_tolerance"].as_f64().unwrap_or(1e-9);
        for case in set["cases"].as_array().into_iter().flatten() {
            tally.seen += 1;
            let op = case["op"].as_str().unwrap_or_default();
            let entry = &owners[op];
            if let Some(later) = entry["later"].as_str() {
                *tally.later.entry(later.to_owned()).or_default() += 1;
            } else if entry["crate"] == owner {
                check(case, op, tolerance, answer, &mut tally);
            } else if entry["crate"].as_str().is_none() && entry["package"].as_str().is_none() {
                println!("{}: nobody owns `{op}`", name(case));
                tally.unowned = true;
            }
        }
    }
    Ok(tally)
}

fn read(path: &Path) -> Result<Value, Error> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?)
}

fn name(case: &Value) -> &str {
    case["id"].as_str().unwrap_or("?")
}

fn check(case: &Value, op: &str, tolerance: f64, answer: Answer, tally: &mut Tally) {
    let failure = match answer(op, &case["input"]) {
        Some(actual) if agrees(&actual, &case["expected"], tolerance) => None,
        Some(actual) => Some(format!("expected {}, is {actual}", case["expected"])),
        None => Some("input not understood".to_owned()),
    };
    match failure {
        None => tally.passed += 1,
        Some(failure) => {
            tally.failed += 1;
            println!("{}: {failure}", name(case));
        }
    }
}

/// Whether two values are the same, numbers up to `tolerance` of the larger.
fn agrees(a: &Value, b: &Value, tolerance: f64) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= tolerance * a.abs().max(b.abs()),
            _ => a == b,
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agrees(a, b, tolerance))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| agrees(a, b, tolerance)))
        }
        _ => a == b,
    }
}
