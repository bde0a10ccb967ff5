mod inputs;
mod missing;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use marline_link::Seed;
use rand::Rng;

use super::plan::Files;
use super::*;
use crate::scenario::{Experiment, Job, Outcome, RunError, Watched};
use crate::stats::sorted;

const TEXT: &str = r#"
title = "Fake"
link = "rate=12mbps, rtt=80ms"
repeats = 8
quick_repeats = 2
seed = 5
[workload]
objects = ["500kB"]
[variant.slow]
cc = "newreno"
[variant.fast]
cc = "bbr"
[sweep]
"link.loss" = ["0%", "1%", "3%"]
[[comparison]]
a = "fast"
b = "slow"
"#;

fn experiment() -> Experiment {
    Experiment::parse(TEXT, "fake.toml", &[]).unwrap()
}

/// An outcome computed from the job alone: with the same seed, `fast` takes 0.8 of the time of `slow`.
fn fake(job: &Job) -> Result<Outcome, RunError> {
    let noise = (Seed::new(job.seed).rng().next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let slow = 1.0 + noise / 3.0;
    let time = if &*job.variant == "fast" {
        slow * 0.8
    } else {
        slow
    };
    Ok(Outcome {
        metrics: BTreeMap::from([
            ("completion_s".to_owned(), time),
            ("ideal_s".to_owned(), 0.5),
        ]),
        virtual_s: time,
        packets: 10,
        invalid: None,
        series: job.watch.then(Watched::default),
    })
}

fn options(out: Option<&Path>) -> Options<'static> {
    Options {
        jobs: 2,
        out: out.map(Path::to_owned),
        ..Options::default()
    }
}

fn complete(options: &Options<'_>) -> Results {
    let finished = run(&experiment(), &fake, options, &mut |_| {}).unwrap();
    without_wall(finished.results.unwrap())
}

fn without_wall(mut results: Results) -> Results {
    (results.wall_s, results.resumed) = (0.0, 0);
    results
}

#[test]
fn results_summarize_the_metrics_of_runs() {
    let results = complete(&options(None));
    assert_eq!((results.experiment.as_str(), results.repeats), ("fake", 8));
    assert_eq!(results.packets, 10 * 48);
    assert_eq!(results.cells.len(), 6);
    assert_eq!(results.settings["variants"]["fast"]["server"]["cc"], "bbr");
    assert_eq!(results.settings["scenario"]["repeats"], 8);
    let (slow, fast) = (&results.cells[2], &results.cells[3]);
    assert_eq!(
        (slow.variant.as_str(), fast.variant.as_str()),
        ("slow", "fast")
    );
    assert_eq!(fast.parameters["link.loss"], "1%");
    let (slow_s, fast_s) = (&slow.metrics["completion_s"], &fast.metrics["completion_s"]);
    assert_eq!((slow_s.n, slow.runs), (8, 8));
    let (slow_median, fast_median) = (slow_s.median.unwrap(), fast_s.median.unwrap());
    assert!((fast_median / slow_median - 0.8).abs() < 1e-12);
    assert!((slow.ideal_ratio.unwrap() - slow_median / 0.5).abs() < 1e-12);
    let [low, high] = slow_s.ci95.unwrap();
    assert!(low < slow_median && slow_median < high);
    let comparison = &results.comparisons[1];
    assert_eq!(comparison.pairs, 8);
    assert!((comparison.improvement_percent.unwrap() - 20.0).abs() < 1e-9);
    let [low, high] = comparison.ci95.unwrap();
    assert!((low - 20.0).abs() < 1e-9 && (high - 20.0).abs() < 1e-9);
    assert_eq!(
        (comparison.published_percent, results.digest.len()),
        (None, 64)
    );
}

#[test]
fn only_a_time_is_compared_with_the_ideal() {
    let text = format!("metrics = [\"largest_window_bytes\", \"completion_s\"]\n{TEXT}");
    let windows = |job: &Job| {
        let mut outcome = fake(job)?;
        outcome
            .metrics
            .insert("largest_window_bytes".to_owned(), 1e5);
        Ok(outcome)
    };
    let experiment = Experiment::parse(&text, "fake.toml", &[]).unwrap();
    let finished = run(&experiment, &windows, &options(None), &mut |_| {}).unwrap();
    let cells = finished.results.unwrap().cells;
    assert!(cells.iter().all(|cell| cell.ideal_ratio.is_none()));
}

#[test]
fn the_worst_cells_are_those_furthest_from_the_ideal() {
    let mut results = complete(&options(None));
    for (cell, ratio) in results.cells.iter_mut().zip([2.0, 5.0, 9.0, 1.5, 4.0, 6.0]) {
        cell.ideal_ratio = Some(ratio);
    }
    let ratios = |variant: Option<&str>, count: usize| {
        let worst = results.worst(variant, count).unwrap();
        let cells = worst.cells.iter().map(|cell| cell.ideal_ratio.unwrap());
        (
            worst.variant.to_owned(),
            worst.known,
            cells.collect::<Vec<_>>(),
        )
    };
    let (slow, fast) = ("slow".to_owned(), "fast".to_owned());
    assert_eq!(
        ratios(None, 2),
        (slow.clone(), 3, vec![9.0, 4.0]),
        "the first variant"
    );
    assert_eq!(ratios(Some("slow"), 9), (slow, 3, vec![9.0, 4.0, 2.0]));
    assert_eq!(ratios(Some("fast"), 1), (fast, 3, vec![6.0]));
    assert_eq!(results.worst(Some("other"), 1), None);
}

#[test]
fn a_claim_about_a_value_holds_if_every_point_reaches_it() {
    let verdict = |value: f64| {
        let must = format!("{TEXT}[[must]]\ntext = 'short'\na = 'slow'\nreaches_value = {value}\n");
        let experiment = Experiment::parse(&must, "fake.toml", &[]).unwrap();
        let finished = run(&experiment, &fake, &options(None), &mut |_| {}).unwrap();
        let results = finished.results.unwrap();
        let slow = results.cells.iter().filter(|cell| cell.variant == "slow");
        let medians: Vec<_> = slow
            .map(|c| c.metrics["completion_s"].median.unwrap())
            .collect();
        (results.must[0].clone(), sorted(&medians))
    };
    let (must, medians) = verdict(1.4);
    // Of times, smaller ones are better, and none is above 4/3.
    assert_eq!((must.verdict, must.met, must.of), (Verdict::Holds, 3, 3));
    let (must, _) = verdict(0.9);
    assert_eq!(
        (must.verdict, must.violations.len()),
        (Verdict::DoesNotHold, 3)
    );
    let violation = &must.violations[0];
    assert_eq!(violation.b, "the claimed 0.9");
    let [low, high] = violation.ci95.unwrap();
    let worse = violation.improvement_percent.unwrap();
    assert!(
        low <= worse && worse <= high && worse < 0.0,
        "{violation:?}"
    );
    // All medians reach it, but not their intervals.
    let (must, _) = verdict(medians[2]);
    assert_eq!((must.verdict, must.met_by_value), (Verdict::Undecided, 3));
}

#[test]
fn other_statistics_than_the_median_have_intervals_of_their_own() {
    let verdict = |value: f64| {
        let must = format!(
            "{TEXT}[[must]]\ntext = 'short'\na = 'slow'\nstatistic = 'mean'\nreaches_value = {value}\n"
        );
        let experiment = Experiment::parse(&must, "fake.toml", &[]).unwrap();
        let finished = run(&experiment, &fake, &options(None), &mut |_| {}).unwrap();
        finished.results.unwrap().must.pop().unwrap().verdict
    };
    assert_eq!(verdict(1.4), Verdict::Holds);
    assert_eq!(verdict(0.9), Verdict::DoesNotHold);
}

#[test]
fn a_claim_about_the_ideal_is_about_the_median_of_the_points() {
    let verdict = |most: f64| {
        let must =
            format!("{TEXT}[[must]]\ntext = 'near'\na = 'slow'\nideal_ratio_at_most = {most}\n");
        let experiment = Experiment::parse(&must, "fake.toml", &[]).unwrap();
        let finished = run(&experiment, &fake, &options(None), &mut |_| {}).unwrap();
        let results = finished.results.unwrap();
        let slow = results.cells.iter().filter(|cell| cell.variant == "slow");
        let ratios = slow
            .map(|cell| cell.ideal_ratio.unwrap())
            .collect::<Vec<_>>();
        (results.must[0].clone(), sorted(&ratios))
    };
    // Ratios are from 2 to 8/3.
    let (must, ratios) = verdict(2.7);
    assert_eq!((must.verdict, must.needed, must.of), (Verdict::Holds, 2, 3));
    let (must, _) = verdict(1.9);
    assert_eq!(must.verdict, Verdict::DoesNotHold);
    assert_eq!(must.violations[0].b, "the ideal");
    let (must, _) = verdict(f64::midpoint(ratios[1], ratios[2]));
    assert_eq!((must.verdict, must.met_by_value), (Verdict::Undecided, 2));
    assert!(
        must.tally().contains("of 3 comparisons (2 needed)"),
        "{}",
        must.tally()
    );
}

#[test]
fn equal_variants_are_hardly_ever_told_apart() {
    let text =
        format!("{TEXT}[[must]]\ntext = 'better'\na = 'fast'\nb = 'slow'\nat_least_percent = 0\n");
    // Both variants draw from one distribution, and independently.
    let backend = |job: &Job| {
        let seed = Seed::new(job.seed).of(&job.variant);
        let noise = (seed.rng().next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let metrics = BTreeMap::from([("completion_s".to_owned(), 1.0 + noise / 3.0)]);
        Ok(Outcome {
            metrics,
            ..Outcome::default()
        })
    };
    let (mut by_value, mut decided) = (0, 0);
    for seed in 0..20 {
        let mut experiment = Experiment::parse(&text, "fake.toml", &[]).unwrap();
        experiment.seed = seed;
        experiment.points.truncate(1);
        experiment.cells.truncate(2);
        experiment.comparisons[0].points = vec![0];
        experiment.musts[0].checks.truncate(1);
        experiment.repeats = 30;
        let finished = run(&experiment, &backend, &options(None), &mut |_| {}).unwrap();
        let must = finished.results.unwrap().must.pop().unwrap();
        by_value += must.met_by_value;
        decided += usize::from(must.verdict != Verdict::Undecided);
    }
    assert!((5..=15).contains(&by_value), "{by_value}");
    assert!(decided <= 3, "{decided}");
}

#[test]
fn a_cell_without_randomness_has_no_interval() {
    let backend = |job: &Job| {
        let random = job.parameters["link.loss"] != "0%" && job.repeat.is_multiple_of(2);
        let time = if &*job.variant == "fast" { 0.8 } else { 1.0 };
        let metrics = [
            ("completion_s", time),
            ("losses", f64::from(u8::from(random))),
        ];
        let metrics = metrics.map(|(name, value)| (name.to_owned(), value));
        Ok(Outcome {
            metrics: metrics.into(),
            ..Outcome::default()
        })
    };
    let text =
        format!("{TEXT}[[must]]\ntext = 'better'\na = 'fast'\nb = 'slow'\nat_least_percent = 15\n");
    let mut experiment = Experiment::parse(&text, "fake.toml", &[]).unwrap();
    experiment.repeats = 2;
    let finished = run(&experiment, &backend, &options(None), &mut |_| {}).unwrap();
    let results = finished.results.unwrap();
    let cells = &results.cells;
    assert!(cells[0].deterministic && cells[1].deterministic);
    assert_eq!(cells[0].metrics["completion_s"].ci95, None);
    // The same times, but of runs that differ.
    assert!(!cells[2].deterministic && cells[2].metrics["completion_s"].ci95.is_some());
    let [lossless, lossy, _] = &results.comparisons[..] else {
        panic!()
    };
    assert!(lossless.deterministic && lossless.ci95.is_none());
    assert!(!lossy.deterministic);
    // Two repeats are too few where something is random.
    let must = &results.must[0];
    assert_eq!((must.met, must.open.len()), (1, 2));
}

#[test]
fn cells_without_a_known_ratio_are_named() {
    let mut results = complete(&options(None));
    let all = results.worst(Some("fast"), 3).unwrap().to_string();
    assert_eq!(all, "3 of 3 points of fast with a known ratio");
    for cell in &mut results.cells[2..] {
        cell.ideal_ratio = None;
    }
    let worst = results.worst(None, 3).unwrap();
    assert_eq!((worst.cells.len(), worst.unknown.len()), (1, 2));
    assert_eq!(
        worst.to_string(),
        "1 of 1 points of slow with a known ratio; it is not known at 2: link.loss=1%; link.loss=3%"
    );
}

#[test]
fn a_larger_rate_is_an_improvement() {
    let text = format!("{TEXT}metric = 'goodput_mbps'\n");
    let experiment = Experiment::parse(&text, "fake.toml", &[]).unwrap();
    let rates = |job: &Job| {
        let mut outcome = fake(job)?;
        let time = outcome.metrics["completion_s"];
        outcome
            .metrics
            .insert("goodput_mbps".to_owned(), 8.0 / time);
        Ok(outcome)
    };
    let finished = run(&experiment, &rates, &options(None), &mut |_| {}).unwrap();
    let comparison = &finished.results.unwrap().comparisons[0];
    assert!((comparison.improvement_percent.unwrap() - 25.0).abs() < 1e-9);
    let [low, high] = comparison.ci95.unwrap();
    assert!(low <= high && (low - 25.0).abs() < 1e-9 && (high - 25.0).abs() < 1e-9);
}

#[test]
fn results_do_not_depend_on_threads() {
    let one = complete(&Options {
        jobs: 1,
        ..options(None)
    });
    for jobs in [2, 7] {
        assert_eq!(
            complete(&Options {
                jobs,
                ..options(None)
            }),
            one
        );
    }
    let mut other = experiment();
    other.seed = 6;
    let finished = run(&other, &fake, &options(None), &mut |_| {}).unwrap();
    assert_ne!(finished.results.unwrap().digest, one.digest);
}

#[test]
fn jobs_are_in_a_fixed_order() {
    let plan = Plan::new(&experiment(), false).unwrap();
    let jobs: Vec<_> = (0..plan.runs())
        .map(|index| plan.job(&experiment(), index, &Files::default(), false))
        .collect();
    let name = |job: &Job| {
        format!(
            "{} {} {}",
            job.parameters["link.loss"], job.repeat, job.variant
        )
    };
    let names: Vec<_> = jobs.iter().take(4).map(name).collect();
    assert_eq!(
        names,
        [
            "\"0%\" 0 slow",
            "\"0%\" 0 fast",
            "\"0%\" 1 fast",
            "\"0%\" 1 slow"
        ]
    );
    assert_eq!(name(&jobs[47]), "\"3%\" 7 slow");
    // The variants of a repeat at a point have the same seed; all other runs have different ones.
    assert_eq!(jobs[0].seed, jobs[1].seed);
    assert_eq!(jobs[2].seed, jobs[3].seed);
    assert_ne!(jobs[0].seed, jobs[2].seed);
    assert_ne!(jobs[0].seed, jobs[16].seed);
    assert!(Plan::new(&experiment(), true).unwrap().runs() == 12);
    let files = Files {
        qlog: Some("q".into()),
        pcap: Some("p".into()),
        har: Some("h".into()),
    };
    let logged = plan.job(&experiment(), 1, &files, false);
    assert_eq!(logged.har.unwrap(), Path::new("h/fast-0-0.har"));
    assert_eq!(logged.qlog.unwrap(), Path::new("q/fast-0-0"));
    assert_eq!(logged.pcap.unwrap(), Path::new("p/fast-0-0.pcapng"));
}

/// The runs of a directory that have time series.
fn watched(directory: &Path) -> Vec<Record> {
    let mut records = read(directory).unwrap().records;
    records.retain(|record| record.series.is_some());
    records
}

#[test]
fn the_runs_nearest_to_the_median_have_time_series() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        watch: true,
        ..options(Some(directory.path()))
    };
    let results = complete(&options);
    assert_eq!(results, complete(&self::options(None)), "digests are equal");
    let all = read(directory.path()).unwrap().records;
    assert_eq!(all.len(), 48);
    let watched = watched(directory.path());
    assert_eq!(watched.len(), 6, "one for each cell");
    for record in watched {
        let cell = all
            .iter()
            .filter(|run| (run.point, &run.variant) == (record.point, &record.variant));
        let times: Vec<_> = cell.map(|run| run.metrics["completion_s"]).collect();
        let median = crate::stats::quantile(&crate::stats::sorted(&times), 0.5);
        let distance = (record.metrics["completion_s"] - median).abs();
        assert!(times.iter().all(|time| (time - median).abs() >= distance));
    }
    // Starting again repeats nothing.
    let none = |_: &Job| -> Result<Outcome, RunError> { panic!("a run is repeated") };
    run(&experiment(), &none, &options, &mut |_| {}).unwrap();
}

#[test]
fn the_first_repeats_of_a_shard_have_time_series() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        watch: true,
        shard: Shard::new(1, 2),
        ..options(Some(directory.path()))
    };
    run(&experiment(), &fake, &options, &mut |_| {}).unwrap();
    let repeats: Vec<_> = watched(directory.path())
        .iter()
        .map(|record| record.repeat)
        .collect();
    assert!(!repeats.is_empty() && repeats.iter().all(|repeat| *repeat < 3));
}

#[test]
fn progress_is_reported() {
    let mut reports = Vec::new();
    run(&experiment(), &fake, &options(None), &mut |progress| {
        reports.push(progress);
    })
    .unwrap();
    assert_eq!(reports.len(), 49);
    assert_eq!(
        (reports[0].done, reports[0].total, reports[0].left),
        (0, 48, None)
    );
    let last = reports[48];
    assert_eq!(
        (last.done, last.failed, last.left),
        (48, 0, Some(Duration::ZERO))
    );
}

#[test]
fn a_directory_has_one_start_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let experiment = experiment();
    let start = |progress: &mut dyn FnMut(Progress)| {
        run(
            &experiment,
            &fake,
            &options(Some(directory.path())),
            progress,
        )
    };
    let mut other = None;
    start(&mut |_| {
        other.get_or_insert_with(|| start(&mut |_| {}).err());
    })
    .unwrap();
    assert!(
        matches!(other, Some(Some(RunFailure::InUse { .. }))),
        "{other:?}"
    );
    start(&mut |_| {}).unwrap();
}

/// Runs are interrupted, the journal is truncated in the middle of a line, and the runs continue.
#[test]
fn an_interrupted_experiment_continues() {
    let whole = complete(&options(None));
    let directory = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let count = AtomicUsize::new(0);
    let stopping = |job: &Job| {
        stop.store(
            count.fetch_add(1, Ordering::Relaxed) >= 10,
            Ordering::Relaxed,
        );
        fake(job)
    };
    let interrupted = Options {
        stop: Some(&stop),
        ..options(Some(directory.path()))
    };
    let failure = run(&experiment(), &stopping, &interrupted, &mut |_| {}).unwrap_err();
    let RunFailure::Interrupted { done, total } = failure else {
        panic!("{failure}");
    };
    assert!((11..=13).contains(&done) && total == 48, "{done}");
    assert!(failure.to_string().contains("the same command continues"));
    assert!(!directory.path().join("results.json").exists());

    let runs = directory.path().join("runs.jsonl");
    let text = std::fs::read_to_string(&runs).unwrap();
    std::fs::write(&runs, &text[..text.len() - 5]).unwrap();
    let finished = run(
        &experiment(),
        &fake,
        &options(Some(directory.path())),
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(finished.resumed, done - 1);
    assert_eq!(without_wall(finished.results.unwrap()), whole);

    // All runs are done: none is repeated, and the results are the same.
    let never = |_: &Job| -> Result<Outcome, RunError> { panic!("this run was done already") };
    let again = run(
        &experiment(),
        &never,
        &options(Some(directory.path())),
        &mut |_| {},
    )
    .unwrap();
    assert_eq!((again.resumed, again.failed), (48, 0));
    assert_eq!(without_wall(again.results.unwrap()), whole);
    let rebuilt = rebuild(directory.path()).unwrap();
    assert!(rebuilt.wall_s > 0.0 && rebuilt.resumed == 48);
    assert_eq!(without_wall(rebuilt), whole);
    let written = std::fs::read(directory.path().join("results.json")).unwrap();
    assert_eq!(
        without_wall(serde_json::from_slice(&written).unwrap()),
        whole
    );
}

#[test]
fn merged_parts_equal_one_start() {
    let whole = complete(&options(None));
    let directory = tempfile::tempdir().unwrap();
    let mut parts = Vec::new();
    for number in [3, 1, 2] {
        let part = directory.path().join(format!("part{number}"));
        let sharded = Options {
            shard: Some(format!("{number}/3").parse().unwrap()),
            ..options(Some(&part))
        };
        let finished = run(&experiment(), &fake, &sharded, &mut |_| {}).unwrap();
        assert!(finished.results.is_none());
        parts.push(part);
    }
    let out = directory.path().join("whole");
    let missing = merge(&parts[1..], &out).unwrap_err().to_string();
    assert_eq!(missing, "16 of 48 runs are missing; finish them first");
    assert_eq!(merge(&parts, &out).unwrap(), whole);
    assert_eq!(rebuild(&out).unwrap(), whole);

    let mut other = experiment();
    other.seed = 9;
    let unlike = directory.path().join("unlike");
    run(&other, &fake, &options(Some(&unlike)), &mut |_| {}).unwrap();
    parts.push(unlike);
    let failure = merge(&parts, &out).unwrap_err().to_string();
    assert!(
        failure.contains("have other settings (") && failure.ends_with("; merge parts of one run"),
        "{failure}"
    );
    for wrong in ["0/3", "4/3", "3", "x/y"] {
        assert!(wrong.parse::<Shard>().unwrap_err().contains("as 3/8"));
    }
}

#[test]
fn results_say_of_what_program_and_machine_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let part = |number: usize, commit: &'static str| {
        let out = directory.path().join(commit);
        let options = Options {
            shard: Shard::new(number, 2),
            commit: Some(commit),
            ..options(Some(&out))
        };
        run(&experiment(), &fake, &options, &mut |_| {}).unwrap();
        out
    };
    let parts = [part(1, "0123abc"), part(2, "4567def")];
    let error = merge(&parts, &directory.path().join("whole")).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("commit 4567def") && error.contains("commit 0123abc"),
        "{error}"
    );

    let out = directory.path().join("one");
    let options = Options {
        commit: Some("0123abc"),
        ..options(Some(&out))
    };
    let results = run(&experiment(), &fake, &options, &mut |_| {}).unwrap();
    let results = results.results.unwrap();
    assert_eq!(results.commit.as_deref(), Some("0123abc"));
    assert_eq!(results.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(results.machine["architecture"], std::env::consts::ARCH);
    assert_eq!(Results::read(&out).unwrap().commit, results.commit);
}

#[test]
fn directories_of_other_settings_or_builds_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let quick = Options {
        quick: true,
        ..options(Some(directory.path()))
    };
    complete(&quick);
    let failure = run(
        &experiment(),
        &fake,
        &options(Some(directory.path())),
        &mut |_| {},
    );
    let failure = failure.unwrap_err().to_string();
    assert!(
        failure.contains("other settings (repeats: 2 -> 8)") && failure.contains("--fresh"),
        "{failure}"
    );
    let fresh = Options {
        fresh: true,
        ..options(Some(directory.path()))
    };
    assert_eq!(complete(&fresh), complete(&options(None)));

    let plan = directory.path().join("plan.json");
    let text = std::fs::read_to_string(&plan).unwrap();
    std::fs::write(&plan, text.replace("\"program\": \"", "\"program\": \"0")).unwrap();
    let failure = run(
        &experiment(),
        &fake,
        &options(Some(directory.path())),
        &mut |_| {},
    );
    let failure = failure.unwrap_err().to_string();
    assert!(
        failure.contains("runs of another build of this program (marline ")
            && failure.contains("; this is marline "),
        "{failure}"
    );

    let runs = directory.path().join("runs.jsonl");
    let text = std::fs::read_to_string(&runs).unwrap();
    for (damage, words) in [
        (text.replacen("\"run\"", "\"rum\"", 1), "runs.jsonl:1: "),
        (
            text.replacen("\"run\":4", "\"run\":4000", 1),
            "there is no run 4000",
        ),
    ] {
        std::fs::write(&runs, damage).unwrap();
        let failure = read(directory.path()).unwrap_err().to_string();
        assert!(
            failure.contains(words) && failure.contains("--fresh"),
            "{failure}"
        );
    }
}

#[test]
fn what_is_no_directory_of_results_is_named_with_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "text").unwrap();
    for (path, expected) in [
        (directory.path().join("no"), "it does not exist"),
        (file, "it is not a directory"),
        (directory.path().to_owned(), "it has no "),
    ] {
        let failures = [
            read(&path).unwrap_err(),
            rebuild(&path).unwrap_err(),
            compare(&path, &path).unwrap_err(),
            merge(std::slice::from_ref(&path), &directory.path().join("out")).unwrap_err(),
        ];
        for failure in failures {
            let text = failure.to_string();
            let words = format!("there are no results here: {expected}");
            assert!(
                text.contains(&words) && text.contains("marline lab run"),
                "{text}"
            );
            assert!(!text.contains("free space"), "{text}");
        }
    }
}

#[test]
fn failed_runs_are_counted_by_reason() {
    let directory = tempfile::tempdir().unwrap();
    let backend = |job: &Job| match (&*job.variant, job.repeat) {
        ("slow", 0) => Err(RunError::TimeLimit { seconds: 300.0 }),
        ("slow", 1) => panic!("out of {}", "memory"),
        ("slow", 2) => Ok(Outcome {
            metrics: BTreeMap::from([("completion_s".to_owned(), f64::NAN)]),
            ..Outcome::default()
        }),
        ("fast", 3) => Ok(Outcome {
            invalid: Some("too late".to_owned()),
            ..fake(job)?
        }),
        ("fast", 4) => Err(RunError::Stalled("no data is sent".to_owned())),
        _ => fake(job),
    };
    let out = options(Some(directory.path()));
    let finished = run(&experiment(), &backend, &out, &mut |_| {}).unwrap();
    assert_eq!(finished.failed, 12);
    let results = finished.results.unwrap();
    let (slow, fast) = (&results.cells[0], &results.cells[1]);
    let reasons: Vec<_> = slow.failed.keys().collect();
    assert_eq!(
        reasons,
        [
            "metric completion_s is NaN",
            "not done after 300 s; raise time_limit if it may take longer",
            "panicked: out of memory"
        ]
    );
    // The one that exceeded the limit counts, as longer than all others.
    let slow_s = &slow.metrics["completion_s"];
    assert_eq!((slow.runs, slow_s.n, slow_s.censored), (8, 6, 1));
    assert_eq!((slow_s.mean, slow_s.median.is_some()), (None, true));
    assert_eq!(fast.failed["stalled: no data is sent"], 1);
    assert_eq!(fast.invalid["too late"], 1);
    assert_eq!(fast.metrics["completion_s"].n, 6);
    // Repeats 1 and 2 lack one variant of the pair, 3 and 4 the other.
    assert_eq!(results.comparisons[0].pairs, 4);
    assert_eq!(read(directory.path()).unwrap().records.len(), 48);
    let table = std::fs::read_to_string(directory.path().join("runs.csv")).unwrap();
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(
        lines[0],
        "run,variant,link.loss,repeat,seed,status,reason,virtual_s,packets,completion_s,ideal_s"
    );
    assert!(lines[1].starts_with("0,slow,0%,0,"));
    assert!(lines[1].contains("timed out,not done after 300 s; raise"));
    assert!(table.contains(",invalid,too late,"));
    assert_eq!(lines.len(), 49);
}

#[test]
fn claims_that_depend_on_runs_beyond_their_time_limit_are_not_known() {
    let text = format!(
        "{TEXT}[[must]]\ntext = 'at most two seconds'\na = ['slow', 'fast']\nmetric = 'completion_s'\nreaches_value = 2\n"
    );
    let experiment = Experiment::parse(&text, "fake.toml", &[]).unwrap();
    let verdict = |exceeding: u32| {
        let backend = |job: &Job| match (&*job.variant, job.repeat < exceeding) {
            ("slow", true) => Err(RunError::TimeLimit { seconds: 1.0 }),
            _ => fake(job),
        };
        let finished = run(&experiment, &backend, &options(None), &mut |_| {}).unwrap();
        finished.results.unwrap().must.pop().unwrap().verdict
    };
    assert_eq!(verdict(0), Verdict::Holds);
    // The upper end of the median's interval is among the runs that took longer.
    assert_eq!(verdict(3), Verdict::Undecided);
    assert_eq!(verdict(5), Verdict::NotKnown);
}

#[test]
fn metrics_are_correlated_over_runs() {
    let text = format!(
        "{TEXT}[[correlation]]\nx = 'ideal_s'\n[[correlation]]\nvariant = 'fast'\nx = 'loss_ratio'\n"
    );
    let experiment = Experiment::parse(&text, "fake.toml", &["link.rtt=50ms".to_owned()]).unwrap();
    let backend = |job: &Job| {
        let mut outcome = fake(job)?;
        let time = outcome.metrics["completion_s"];
        outcome.metrics.insert("loss_ratio".to_owned(), 3.0 - time);
        Ok(outcome)
    };
    let directory = tempfile::tempdir().unwrap();
    let finished = run(
        &experiment,
        &backend,
        &options(Some(directory.path())),
        &mut |_| {},
    )
    .unwrap();
    let correlations = finished.results.unwrap().correlations;
    assert_eq!(correlations.len(), 9);
    // A constant metric has no correlation.
    assert_eq!((correlations[0].n, correlations[0].r), (8, None));
    assert!((correlations[6].r.unwrap() + 1.0).abs() < 1e-9);
    assert_eq!(correlations[8].parameters["link.loss"], "3%");
    let written = std::fs::read_to_string(directory.path().join("results.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert!(json["correlations"][0].get("r").is_none());
    assert!(json["correlations"][0]["published"].is_null());
    assert_eq!(read(directory.path()).unwrap().plan.sets, ["link.rtt=50ms"]);
}

#[test]
fn an_unsupported_variant_ends_the_experiment() {
    let backend = |job: &Job| match &*job.variant {
        "fast" => Err(RunError::Unsupported("no kernel here".to_owned())),
        _ => fake(job),
    };
    let failure = run(&experiment(), &backend, &options(None), &mut |_| {}).unwrap_err();
    assert_eq!(failure.to_string(), "variant fast: no kernel here");
}

#[test]
fn settings_that_differ_are_named_with_their_variants() {
    let directory = tempfile::tempdir().unwrap();
    let runs = |name: &str, experiment: &Experiment| {
        let out = directory.path().join(name);
        run(experiment, &fake, &options(Some(&out)), &mut |_| {}).unwrap();
        out
    };
    let a = runs("a", &experiment());
    let text = TEXT.replace("cc = \"bbr\"", "cc = \"cubic\"");
    let mut other = Experiment::parse(&text, "fake.toml", &["link.rtt=70ms".to_owned()]).unwrap();
    other.seed = 7;
    let changes = compare(&a, &runs("b", &other)).unwrap();
    let text = changes.to_string();
    assert!(text.contains("seed: 5 -> 7\n"), "{text}");
    let line = |words: [&str; 2]| {
        let mut lines = text.lines();
        let found = lines.find(|line| words.iter().all(|word| line.contains(word)));
        found.unwrap_or_else(|| panic!("{words:?} in {text}"))
    };
    assert!(line(["bbr", "cubic"]).ends_with("(in fast)"), "{text}");
    assert!(
        line(["rtt=80ms", "rtt=70ms"]).ends_with("loss=0%"),
        "{text}"
    );
    assert!(!text.contains("newreno"), "{text}");
    assert!(compare(&a, &a).unwrap().settings.is_empty());
}

#[test]
fn a_comparison_of_single_runs_says_that_they_are_too_few() {
    let directory = tempfile::tempdir().unwrap();
    let single = |name: &str, seed: u64| {
        let out = directory.path().join(name);
        let mut experiment = experiment();
        experiment.seed = seed;
        experiment.repeats = 1;
        run(&experiment, &fake, &options(Some(&out)), &mut |_| {}).unwrap();
        out
    };
    let changes = compare(&single("a", 1), &single("b", 2)).unwrap();
    let text = changes.to_string();
    assert!(text.contains("too few runs"), "{text}");
    assert!(!text.contains("none of"), "{text}");
}

#[test]
fn a_directory_of_another_experiment_is_refused_with_its_name() {
    let directory = tempfile::tempdir().unwrap();
    complete(&options(Some(directory.path())));
    let other = Experiment::parse(TEXT, "other.toml", &[]).unwrap();
    let failure = run(&other, &fake, &options(Some(directory.path())), &mut |_| {}).unwrap_err();
    let text = failure.to_string();
    assert!(
        text.contains("experiment fake;") && text.contains("--out") && text.contains("--fresh"),
        "{text}"
    );
    std::fs::remove_file(directory.path().join("plan.json")).unwrap();
    std::fs::remove_file(directory.path().join("runs.jsonl")).unwrap();
    let failure = run(&other, &fake, &options(Some(directory.path())), &mut |_| {}).unwrap_err();
    assert!(failure.to_string().contains("--fresh"), "results are kept");
}

#[test]
fn significant_changes_are_marked() {
    let directory = tempfile::tempdir().unwrap();
    let (a, b) = (directory.path().join("a"), directory.path().join("b"));
    complete(&options(Some(&a)));
    let mut other = experiment();
    other.cells.truncate(4);
    other.points.truncate(2);
    let slower = |job: &Job| {
        let mut outcome = fake(job)?;
        if &*job.variant == "fast" {
            outcome.metrics.insert("completion_s".to_owned(), 2.0);
        }
        Ok(outcome)
    };
    run(&other, &slower, &options(Some(&b)), &mut |_| {}).unwrap();
    let changes = compare(&a, &b).unwrap();
    assert!(!changes.identical);
    assert_eq!(
        changes.only_in_a,
        ["slow link.loss=3%", "fast link.loss=3%"]
    );
    assert!(changes.only_in_b.is_empty());
    let apart: Vec<_> = changes
        .changes
        .iter()
        .filter(|change| change.apart)
        .collect();
    assert_eq!(apart.len(), 2);
    assert_eq!(apart[0].variant, "fast");
    assert!(apart[0].change_percent.unwrap() > 50.0);
    let text = changes.to_string();
    assert!(
        text.contains("fast link.loss=0%") && text.contains("  2 [2, 2]  +"),
        "{text}"
    );
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("2 of 8 medians changed (their 95 % confidence intervals do not overlap), the most completion_s of fast "),
        "{text}"
    );
    assert!(text.contains("*: changed, the intervals do not overlap\n"));
    assert!(text.contains("only in the first"));
    assert!(
        serde_json::to_string(&changes)
            .unwrap()
            .contains("\"apart\":true")
    );
    let same = compare(&a, &a).unwrap();
    assert_eq!(same.to_string(), "fake: every run is the same\n");
    let failure = compare(&a, directory.path()).unwrap_err().to_string();
    assert!(failure.contains("it has no results.json"), "{failure}");
}

#[test]
fn results_of_different_experiments_without_a_common_median_are_not_compared() {
    let directory = tempfile::tempdir().unwrap();
    let (a, b) = (directory.path().join("a"), directory.path().join("b"));
    complete(&options(Some(&a)));
    let text = TEXT.replace("slow", "other").replace("fast", "others");
    let other = Experiment::parse(&text, "other.toml", &[]).unwrap();
    run(&other, &fake, &options(Some(&b)), &mut |_| {}).unwrap();
    let failure = compare(&a, &b).unwrap_err().to_string();
    let begin = "these are results of different experiments: fake and other; ";
    assert!(failure.starts_with(begin), "{failure}");
    // Copies of an experiment can be compared.
    let copy = Experiment::parse(TEXT, "copy.toml", &[]).unwrap();
    let c = directory.path().join("c");
    run(&copy, &fake, &options(Some(&c)), &mut |_| {}).unwrap();
    assert_eq!(compare(&a, &c).unwrap().experiment, "fake, copy");
}

#[test]
fn the_largest_change_named_is_one_of_the_main_metric() {
    let directory = tempfile::tempdir().unwrap();
    let (a, b) = (directory.path().join("a"), directory.path().join("b"));
    complete(&options(Some(&a)));
    let slower = |job: &Job| {
        let mut outcome = fake(job)?;
        for (metric, factor) in [("completion_s", 2.0), ("ideal_s", 2469.134)] {
            if let Some(value) = outcome.metrics.get_mut(metric) {
                *value *= factor;
            }
        }
        Ok(outcome)
    };
    run(&experiment(), &slower, &options(Some(&b)), &mut |_| {}).unwrap();
    let text = compare(&a, &b).unwrap().to_string();
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("12 of 12 medians changed (")
            && first.contains(", the most completion_s of ")
            && first.ends_with(": +100 %"),
        "{text}"
    );
    assert!(
        text.contains("  1235 [1235, 1235]  +246800 %  *\n"),
        "four digits: {text}"
    );
}
