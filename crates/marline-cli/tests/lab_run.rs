//! `marline lab run`, and the verbs that use its results.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const SCENARIO: &str = "title = \"small\"\nlink = \"rate=10mbps, rtt=20ms, loss=1%\"\nrepeats = 4\n\
    [workload]\nobjects = [\"50kB\"]\n[variant.a]\ncc = \"bbr\"\n[variant.b]\ncc = \"newreno\"\n\
    [[comparison]]\na = \"a\"\nb = \"b\"\n";

fn lab(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marline"));
    command.arg("lab").args(arguments).current_dir(directory);
    command.output().unwrap()
}

/// The standard output of a command that must succeed.
#[track_caller]
fn printed(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The results of a run of the scenario, as JSON.
fn results(directory: &Path, arguments: &[&str]) -> Value {
    let all = [&["run", "small.toml", "--json"], arguments].concat();
    serde_json::from_str(&printed(&lab(directory, &all))).unwrap()
}

fn scenario() -> TempDir {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("small.toml"), SCENARIO).unwrap();
    directory
}

#[test]
fn results_have_the_documented_json_keys() {
    let directory = scenario();
    let here = directory.path();
    let whole = results(here, &["--out", "whole"]);
    assert_eq!(whole["experiment"], "small");
    assert_eq!(whole["backend"], "sim");
    assert_eq!((&whole["seed"], &whole["repeats"]), (&1.into(), &4.into()));
    let cell = &whole["cells"][0];
    assert_eq!(cell["variant"], "a");
    let completion = &cell["metrics"]["completion_s"];
    for key in ["n", "median", "p95", "mean", "std", "cov", "min", "max"] {
        assert!(completion[key].is_number(), "{key}: {completion}");
    }
    assert_eq!(completion["ci95"].as_array().unwrap().len(), 2);
    assert!(cell["ideal_ratio"].as_f64().unwrap() > 1.0);
    let comparison = &whole["comparisons"][0];
    assert!(comparison["improvement_percent"].is_number());
    assert!(comparison["published_percent"].is_null());
    for file in ["results.json", "runs.csv", "report.html"] {
        assert!(here.join("whole").join(file).is_file(), "{file}");
    }

    let one = results(here, &["--out", "one", "--jobs", "1"]);
    assert_eq!(one["digest"], whole["digest"]);
    let other = results(here, &["--out", "other", "--seed", "2"]);
    assert_ne!(other["digest"], whole["digest"]);

    for part in ["1/2", "2/2"] {
        let out = format!("part{}", &part[..1]);
        printed(&lab(
            here,
            &["run", "small.toml", "--shard", part, "--out", &out],
        ));
    }
    let merged = printed(&lab(
        here,
        &["merge", "part1", "part2", "--out", "merged", "--json"],
    ));
    let merged: Value = serde_json::from_str(&merged).unwrap();
    assert_eq!(merged["digest"], whole["digest"]);
    let same = printed(&lab(here, &["compare", "whole", "merged"]));
    assert!(same.contains("every run is the same"), "{same}");
    printed(&lab(here, &["report", "merged"]));
}

/// `contrib/slurm/lab.sh`, as the tasks of an array job run it.
#[test]
fn parts_of_an_array_job_merge_to_the_whole() {
    let directory = scenario();
    let here = directory.path();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/slurm/lab.sh");
    for task in ["2", "3", "1"] {
        assert!(!here.join("parts/whole").exists());
        let mut command = Command::new("sh");
        command.arg(&script).args(["small.toml", "parts"]);
        command.env("MARLINE", env!("CARGO_BIN_EXE_marline"));
        command.envs([
            ("SLURM_ARRAY_TASK_ID", task),
            ("SLURM_ARRAY_TASK_COUNT", "3"),
        ]);
        printed(&command.current_dir(here).output().unwrap());
    }
    let whole = results(here, &["--out", "whole"]);
    let merged = std::fs::read_to_string(here.join("parts/whole/results.json")).unwrap();
    let merged: Value = serde_json::from_str(&merged).unwrap();
    assert_eq!(merged["digest"], whole["digest"]);
}

#[test]
fn results_of_different_experiments_are_not_compared() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    std::fs::write(here.join("small.toml"), SCENARIO).unwrap();
    let renamed = SCENARIO.replace("[variant.", "[variant.other_");
    let other = renamed.replace("= \"a\"", "= \"other_a\"");
    let other = other.replace("= \"b\"", "= \"other_b\"");
    std::fs::write(here.join("other.toml"), other).unwrap();
    for name in ["small", "other"] {
        let file = format!("{name}.toml");
        printed(&lab(here, &["run", &file, "--out", name]));
    }
    let output = lab(here, &["compare", "small", "other"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let words = "these are results of different experiments: small and other; ";
    assert!(errors.contains(words), "{errors}");
}

#[test]
fn a_claim_that_does_not_hold_is_reported_and_no_error() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    let must = "[[must]]\ntext = \"a is a hundred times as fast\"\na = \"a\"\nb = \"b\"\nat_least_percent = 99\n";
    std::fs::write(here.join("small.toml"), format!("{SCENARIO}{must}")).unwrap();
    let output = lab(
        here,
        &[
            "run",
            "small.toml",
            "--repeats",
            "8",
            "--json",
            "--out",
            "whole",
        ],
    );
    let results: Value = serde_json::from_str(&printed(&output)).unwrap();
    let verdict = &results["must"][0];
    assert_eq!(verdict["holds"], false);
    assert_eq!(verdict["verdict"], "does not hold");
    assert_eq!((&verdict["of"], &verdict["met"]), (&1.into(), &0.into()));
    assert_eq!(verdict["violations"][0]["b"], "b");
    let words = "does not hold: a is a hundred times as fast";
    let errors = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors(&output).contains(words), "{}", errors(&output));

    let table = printed(&lab(
        here,
        &["run", "small.toml", "--repeats", "8", "--out", "whole"],
    ));
    assert!(table.contains(words), "{table}");
    assert!(
        table.contains(" to "),
        "the intervals of eight repeats: {table}"
    );
    let few = printed(&lab(
        here,
        &["run", "small.toml", "--repeats", "4", "--out", "few"],
    ));
    assert!(!few.contains(" to "), "four have none: {few}");
    let caution = "Fewer than 30 repeats: the intervals are approximate.\n";
    assert!(table.contains(caution), "{table}");
    let report = lab(here, &["report", "whole"]);
    assert!(errors(&report).contains(words) && report.status.success());
    let merged = lab(here, &["merge", "whole", "--out", "merged"]);
    assert!(printed(&merged).contains(words) && errors(&merged).contains(words));
    let same = printed(&lab(here, &["compare", "whole", "merged"]));
    assert!(
        same.contains("a is a hundred times as fast: does not hold (0 of 1), as before"),
        "{same}"
    );
}

#[test]
fn the_program_has_the_experiments_with_it() {
    let directory = TempDir::new().unwrap();
    let listed = printed(&lab(directory.path(), &["list"]));
    assert!(
        listed.lines().any(|line| line.starts_with("bundle/plain ")),
        "{listed}"
    );
    std::fs::create_dir(directory.path().join("experiments")).unwrap();
    std::fs::write(directory.path().join("experiments/small.toml"), SCENARIO).unwrap();
    let listed = printed(&lab(directory.path(), &["list"]));
    assert_eq!(listed.lines().count(), 1, "{listed}");
}

#[test]
fn the_points_furthest_from_the_ideal_are_printed() {
    let directory = scenario();
    let here = directory.path();
    let sweep = "[sweep]\n\"link.loss\" = [\"0%\", \"5%\"]\n";
    std::fs::write(here.join("small.toml"), format!("{SCENARIO}{sweep}")).unwrap();
    let text = printed(&lab(here, &["run", "small.toml", "--worst", "1"]));
    let lines: Vec<_> = text.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.starts_with("where a is furthest"));
    let at = at.expect(&text);
    assert!(
        lines[at + 1].starts_with("times the ideal  median"),
        "{text}"
    );
    assert!(lines[at + 2].ends_with("link.loss=5%"), "{text}");
    assert_eq!(lines[at + 3], "1 of 2 points of a with a known ratio");
    let of = ["run", "small.toml", "--worst", "9", "--worst-of"];
    let text = printed(&lab(here, &[&of[..], &["b"]].concat()));
    assert!(
        text.contains("2 of 2 points of b with a known ratio"),
        "{text}"
    );
    let wrong = lab(here, &[&of[..], &["c"]].concat());
    assert_eq!(wrong.status.code(), Some(2));
    let error = String::from_utf8(wrong.stderr).unwrap();
    assert!(
        error.contains("there is no variant \"c\"; there are a, b"),
        "{error}"
    );
}

#[test]
fn a_directory_of_another_run_is_refused_with_advice() {
    let directory = scenario();
    let here = directory.path();
    results(here, &["--out", "out"]);
    std::fs::copy(here.join("small.toml"), here.join("other.toml")).unwrap();
    for arguments in [
        &["run", "small.toml", "--seed", "2"][..],
        &["run", "other.toml"],
    ] {
        let output = lab(here, &[arguments, &["--out", "out"]].concat());
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        for word in ["out has runs", "--out", "--fresh"] {
            assert!(printed.contains(word), "`{word}` in {printed}");
        }
    }
}

#[test]
fn errors_name_the_invalid_argument() {
    let directory = scenario();
    let here = directory.path();
    for (from, to, words) in [
        ("loss=1%", "loss=150%", "small.toml:2"),
        ("loss=1%", "loss=1", "unit"),
        ("loss=1%", "los=1%", "did you mean"),
        ("cc = \"bbr\"", "cc = \"bbrr\"", "small.toml:7"),
        ("repeats", "repeat", "repeats"),
    ] {
        let wrong = SCENARIO.replacen(from, to, 1);
        std::fs::write(here.join("small.toml"), wrong).unwrap();
        let output = lab(here, &["run", "small.toml"]);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert_eq!(printed.lines().count(), 1, "{printed}");
        assert!(printed.contains(words), "`{words}` in {printed}");
        assert!(!here.join("lab-results").exists(), "no file remains");
    }
}

#[test]
fn a_kernel_that_is_not_built_is_named_with_the_remedy() {
    let directory = scenario();
    for arguments in [
        &["run", "small.toml", "--backend", "kernel"][..],
        &[
            "link",
            "--backend",
            "kernel",
            "--link",
            "rtt=1ms",
            "--",
            "true",
        ],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_marline"));
        command.arg("lab").args(arguments).current_dir(&directory);
        let output = command.env("MARLINE_KERNEL", "/nowhere").output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(
            errors.contains("/nowhere") && errors.contains("make kernel"),
            "{errors}"
        );
    }
}

#[test]
fn verbs_of_a_virtual_machine_do_nothing_elsewhere() {
    let directory = scenario();
    let output = lab(directory.path(), &["virtual-init"]);
    assert_eq!(output.status.code(), Some(2));
    let help = printed(&lab(directory.path(), &["--help"]));
    assert!(!help.contains("virtual-"), "{help}");
}

#[test]
fn published_means_stand_beside_means_and_values_of_all_points_once() {
    let directory = scenario();
    let here = directory.path();
    let published = "[[published]]\nvariant = \"a\"\nstatistic = \"mean\"\nfile = \"p.csv\"\nwhere = { loss = \"{link.loss}\" }\n\
        value = \"mean_s\"\n[[published]]\nvariant = \"a\"\nmetric = \"loss_ratio\"\nfile = \"p.csv\"\nwhere = { loss = \"{link.loss}\" }\n\
        value = \"lost\"\n[sweep]\n\"link.loss\" = [\"0%\", \"2%\"]\n";
    let comparison = SCENARIO.replace(
        "b = \"b\"\n",
        "b = \"b\"\npublished = { file = \"all.csv\", value = \"gain\" }\n",
    );
    std::fs::write(here.join("small.toml"), comparison + published).unwrap();
    let rows = "loss,mean_s,lost\n0%,0.25,0.125\n2%,0.75,0.375\n";
    std::fs::write(here.join("p.csv"), rows).unwrap();
    std::fs::write(here.join("all.csv"), "gain\n43\n").unwrap();
    let text = printed(&lab(here, &["run", "small.toml", "--out", "out"]));
    let line = |with: &str| {
        let found: Vec<_> = text.lines().filter(|line| line.contains(with)).collect();
        assert_eq!(found.len(), 1, "{with}: {text}");
        found[0].to_owned()
    };
    let head: Vec<_> = text
        .lines()
        .nth(1)
        .unwrap()
        .split("  ")
        .map(str::trim)
        .collect();
    assert!(head.contains(&"mean"), "{text}");
    assert!(head.ends_with(&["published"]), "{text}");
    assert!(line("mean 0.25").contains("link.loss=0%"));
    assert!(line("0.375").contains("median of loss_ratio"));
    assert!(line("43.0 %").ends_with("every link.loss"));
}
