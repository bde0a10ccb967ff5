mod answer;
mod close_ups;

use std::collections::BTreeMap;
use std::path::Path;

use marline_link::Seed;
use rand::Rng;

use super::*;
use crate::run::{Options, Results, compare, rebuild, run};
use crate::scenario::{BackendKind, Experiment, Job, Outcome, RunError, Watched, WatchedObject};

const TRAIN: &str = r#"
title = "A download on the train"
shows = "Whether <one> controller is enough."
link = "rate=12mbps, rtt=80ms, buffer=200kB"
repeats = 8
seed = 5
metrics = ["completion_s", "loss_ratio"]
[workload]
objects = ["500kB"]
[variant.slow]
cc = "newreno"
[variant.fast]
cc = "bbr"
[sweep.content_kb]
500 = { "workload.objects" = ["500kB"] }
2400 = { "workload.objects" = ["2400kB"] }
[[comparison]]
a = "fast"
b = "slow"
published = { file = "gain.csv", value = "gain_percent", source = "table 6" }
[[published]]
file = "times.csv"
where = { cca = "{variant}" }
value = "completion_s"
source = "table 2"
[[published]]
variant = "slow"
statistic = "cov"
file = "times.csv"
where = { cca = "{variant}" }
value = "cov"
[[correlation]]
where = { content_kb = 2400 }
x = "first_fluctuation_packets"
published = { file = "r.csv", where = { cca = "{variant}" }, value = "r", source = "figure 2" }
"#;

const GAINS: &str = "content_kb,gain_percent\n500,12.5\n2400,21\n";
const TIMES: &str =
    "cca,content_kb,completion_s,cov\nslow,500,0.55,0.4\nslow,2400,9,0.3\nfast,2400,1.9,\n";

/// One value for both sizes.
const ALL: &str = "all_percent\n43\n";

const COEFFICIENTS: &str = "cca,content_kb,r\nslow,2400,-0.85\n";

/// A scenario of two variants, without published values.
const PLAIN: &str = r#"
title = "Plain"
link = "rate=12mbps, rtt=80ms"
repeats = 1
[workload]
objects = ["500kB"]
[variant.slow]
cc = "newreno"
[variant.fast]
cc = "bbr"
"#;

/// An outcome computed from the job alone.
fn fake(job: &Job) -> Result<Outcome, RunError> {
    let mut rng = Seed::new(job.seed).rng();
    let mut noise = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let size = job.parameters.get("content_kb").map_or(500.0, |value| {
        value
            .as_f64()
            .or_else(|| value.as_str()?.parse().ok())
            .unwrap_or(500.0)
    });
    let fluctuation = noise();
    let slow = size / 1000.0 * (1.4 - 0.5 * fluctuation + 0.2 * noise());
    let time = if &*job.variant == "fast" {
        slow * 0.8
    } else {
        slow
    };
    let metrics = [
        ("completion_s", time),
        ("loss_ratio", 0.02 * noise()),
        ("ideal_s", size / 1500.0),
        ("first_fluctuation_packets", 1000.0 * fluctuation),
    ];
    Ok(Outcome {
        metrics: metrics.map(|(name, value)| (name.to_owned(), value)).into(),
        virtual_s: time,
        packets: (size * 0.8) as u64,
        invalid: None,
        series: job.watch.then(|| watched(time)),
    })
}

/// Sawtooth series.
fn watched(end: f64) -> Watched {
    let steps = || (-10..200).map(|step| f64::from(step) * end / 200.0);
    let window = |at: f64| 3e4 + 2e5 * (at / end * 3.0).fract().abs();
    let series = [
        ("window_bytes", steps().map(|at| (at, window(at))).collect()),
        (
            "in_flight_bytes",
            steps().map(|at| (at, 0.8 * window(at))).collect(),
        ),
        (
            "rtt_s",
            steps().map(|at| (at, 0.08 + window(at) / 2e6)).collect(),
        ),
        (
            "queue_bytes link from server",
            steps().map(|at| (at, window(at) / 2.0)).collect(),
        ),
        ("odd", vec![(0.0, 1.0)]),
    ];
    Watched {
        start_s: 1.0,
        series: series
            .map(|(name, points): (_, Vec<_>)| (name.to_owned(), points))
            .into(),
        moments: BTreeMap::from([("lost".to_owned(), vec![end / 3.0, end * 2.0 / 3.0])]),
        objects: Vec::new(),
    }
}

/// A directory with published tables, a scenario, and results.
struct ResultsDirectory(tempfile::TempDir);

impl ResultsDirectory {
    fn of(text: &str, backend: fn(&Job) -> Result<Outcome, RunError>) -> Self {
        let directory = Self(tempfile::tempdir().unwrap());
        let write =
            |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("gain.csv", GAINS);
        write("times.csv", TIMES);
        write("r.csv", COEFFICIENTS);
        write("all.csv", ALL);
        write("train.toml", text);
        let experiment =
            Experiment::load(&directory.path().join("train.toml"), "train", &[]).unwrap();
        let options = Options {
            jobs: 1,
            out: Some(directory.out()),
            watch: true,
            ..Options::default()
        };
        run(&experiment, &backend, &options, &mut |_| {}).unwrap();
        directory
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn out(&self) -> PathBuf {
        self.path().join("out")
    }

    fn html(&self) -> String {
        let path = write(&self.out()).unwrap();
        let html = std::fs::read_to_string(path).unwrap();
        assert_self_contained(&html);
        html
    }
}

/// Checks that the page is self-contained and has finite numbers only.
fn assert_self_contained(html: &str) {
    for odd in [
        "http://", "https://", "<script", "<link", "src=", "NaN", "inf ", "infinity",
    ] {
        assert!(!html.contains(odd), "{odd}");
    }
}

/// The titles of the sections.
fn sections(html: &str) -> Vec<&str> {
    let titles = html.split("<h2 ").skip(1);
    titles
        .map(|rest| rest.split(['>', '<']).nth(1).unwrap())
        .collect()
}

#[test]
fn a_report_has_measured_and_published_values() {
    let html = ResultsDirectory::of(TRAIN, fake).html();
    assert_eq!(
        sections(&html),
        [
            "Comparison with published values",
            "Completion time",
            "Comparisons",
            "Correlations",
            "Single runs over time",
            "Statistics and settings",
            "Counters"
        ]
    );
    for text in [
        // The overview.
        "<h1>A download on the train</h1>",
        "Whether &lt;one&gt; controller is enough.",
        "<dt>runs</dt><dd>32</dd>",
        "<dt>repeats</dt><dd>8</dd>",
        "Fewer than 30 repeats",
        // Published values and distances.
        "8 published values: ",
        "The largest distance is ",
        ">9\u{a0}s<",
        ">12.5\u{a0}%<",
        ">table\u{a0}2<",
        ">table\u{a0}6<",
        "variation of completion time",
        "improvement of median completion time",
        // Names of points and parameters.
        "Completion time by content size",
        ">2.4\u{a0}MB<",
        // Charts.
        "published 9 s",
        "Times the physical limit",
        ">nearest to the limit<",
        "Improvement of median completion time, measured and published",
        "fast\u{a0}over\u{a0}slow: 500\u{a0}kB, 2",
        "diamonds: table 6.",
        "fast against slow, median completion time: better with 95 % confidence at 2 of 2 points",
        "Completion time and packets sent before the first fluctuation, 2.4\u{a0}MB",
        "r = \u{2212}0.9",
        "(published \u{2212}0.85)",
        "figure\u{a0}2",
        "<figcaption>slow, 2.4\u{a0}MB: repeat ",
        "link from server",
        // Folded parts.
        "<summary>Other metrics</summary>",
        "<summary>The scenario</summary>",
        "server.cc",
        "marline lab run train.toml --seed 5 --repeats 8<",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert!(!html.contains("Claims"));
    // No claims were made, so there are no verdicts.
    assert!(!html.to_lowercase().contains(">pass"));
    assert!(!html.contains("Failed and invalid runs"));
}

#[test]
fn a_report_of_a_single_run_has_no_statistics_sections() {
    let html = ResultsDirectory::of(PLAIN, fake).html();
    assert_eq!(
        sections(&html),
        [
            "Completion time",
            "Single runs over time",
            "Statistics and settings",
            "Counters"
        ]
    );
    assert!(!html.contains("</svg>published"));
    assert!(html.contains("<figcaption>fast</figcaption>"));
}

#[test]
fn failed_runs_are_reported() {
    let some = |job: &Job| match (&*job.variant, job.repeat) {
        ("slow", 0) => Err(RunError::TimeLimit { seconds: 300.0 }),
        ("slow", 1) => Ok(Outcome {
            invalid: Some("too late <by> 3 ms".to_owned()),
            ..fake(job)?
        }),
        _ => fake(job),
    };
    let html = ResultsDirectory::of(TRAIN, some).html();
    for text in [
        "Failed and invalid runs",
        "not done after 300 s",
        "too late &lt;by&gt; 3 ms",
        "<p>2 of 32 runs exceeded their time limit: they count as longer than all others, and are in no chart.</p>",
        "<p>2 of 32 runs are invalid, and do not count.</p>",
    ] {
        assert!(html.contains(text), "{text}");
    }

    let none = |_: &Job| Err(RunError::Stalled("no data is sent".to_owned()));
    let html = ResultsDirectory::of(TRAIN, none).html();
    assert!(html.contains("8 published values: 8 not measured."));
    let html = ResultsDirectory::of(PLAIN, none).html();
    assert!(html.contains("stalled: no data is sent"));
}

#[test]
fn two_factors_are_shown_as_a_heat_map() {
    let sweep = "[sweep]\n\"link.loss\" = [\"0%\", \"1%\", \"3%\"]\n\"link.rtt\" = [\"20ms\", \"50ms\", \"90ms\"]\n";
    let html = ResultsDirectory::of(&format!("{PLAIN}{sweep}"), fake).html();
    assert!(sections(&html).contains(&"Loss and round-trip time"));
    assert!(html.contains("<figcaption>slow</figcaption>"));
    assert!(html.contains("1\u{a0}%, 50\u{a0}ms"));
    let compared = format!("{PLAIN}{sweep}[[comparison]]\na = 'fast'\nb = 'slow'\n");
    let html = ResultsDirectory::of(&compared, fake).html();
    assert!(html.contains("<figcaption>fast\u{a0}over\u{a0}slow</figcaption>"));
}

#[test]
fn many_points_are_shown_as_distributions() {
    let losses: Vec<_> = (0..40).map(|loss| format!("\"0.{loss:02}%\"")).collect();
    let sweep = format!("[sweep]\n\"link.loss\" = [{}]\n", losses.join(", "));
    let text = format!("{PLAIN}{sweep}[[comparison]]\na = 'fast'\nb = 'slow'\n");
    let html = ResultsDirectory::of(&text, fake).html();
    assert!(html.contains("Median completion time over 40 points"));
    assert!(html.contains("share of points"));
    assert!(html.contains("Where slow is furthest from the limit"));
    assert!(html.contains("10 of 40 points of fast with a known ratio."));
    assert!(html.len() < 1_500_000, "{}", html.len());
}

#[test]
fn a_report_without_results_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let error = write(directory.path()).unwrap_err().to_string();
    assert!(error.contains("there are no results here"), "{error}");
}

#[test]
fn each_connection_has_its_own_series() {
    let two = |job: &Job| {
        let mut outcome = fake(job)?;
        let Some(watched) = &mut outcome.series else {
            return Ok(outcome);
        };
        for what in ["window_bytes", "in_flight_bytes", "rtt_s"] {
            let points = watched.series.remove(what).unwrap_or_default();
            for number in 0..2 {
                watched
                    .series
                    .insert(format!("{what} {number}"), points.clone());
            }
        }
        let empty = vec![(0.0, 0.0), (0.1, 10.0), (0.2, 0.0)];
        watched
            .series
            .insert("queue_bytes link from client".to_owned(), empty);
        let losses = watched.moments.remove("lost").unwrap_or_default();
        watched.moments.insert("lost 1".to_owned(), losses);
        watched
            .moments
            .insert("synchronized".to_owned(), vec![-0.5, 0.1]);
        watched.moments.insert("exited".to_owned(), vec![-0.4]);
        Ok(outcome)
    };
    let html = ResultsDirectory::of(PLAIN, two).html();
    for text in [
        ">sum<",
        "synced: windows and slow start",
        "<b>Congestion window</b>",
        "<b>In flight</b>",
        ">connection 1<",
        "lost #1",
        "link from server",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert!(!html.contains("link from client"));
    assert!(
        !html.contains("exited:"),
        "it is before the start of the clock"
    );
}

#[test]
fn page_objects_are_shown_as_a_waterfall() {
    let page = |job: &Job| {
        let mut outcome = fake(job)?;
        outcome.metrics.insert("page_load_s".to_owned(), 0.9);
        let Some(watched) = &mut outcome.series else {
            return Ok(outcome);
        };
        watched.objects = vec![WatchedObject {
            name: "<style>.css".to_owned(),
            discovered_s: 0.1,
            requested_s: 0.12,
            connected_s: Some(0.2),
            first_byte_s: Some(0.3),
            finished_s: None,
        }];
        Ok(outcome)
    };
    let html = ResultsDirectory::of(PLAIN, page).html();
    for text in [
        "slow, object by object",
        "&lt;style&gt;.css",
        "connecting",
        "loaded",
    ] {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn the_command_to_repeat_runs_has_all_settings() {
    let directory = tempfile::tempdir().unwrap();
    let set = ["time_limit=\"9s\"".to_owned()];
    let mut experiment = Experiment::parse(PLAIN, "train.toml", &set).unwrap();
    experiment.id = "suite/train".to_owned();
    experiment.run_in(BackendKind::Emu);
    let options = Options {
        jobs: 1,
        out: Some(directory.path().to_owned()),
        ..Options::default()
    };
    run(&experiment, &fake, &options, &mut |_| {}).unwrap();
    let html = page(directory.path()).unwrap().render();
    let command = "marline lab run suite/train --backend emu --seed 1 --repeats 1 --set &#39;time_limit=&quot;9s&quot;&#39;";
    assert!(html.contains(command), "{}", &html[html.len() - 500..]);
    assert!(html.contains("<dt>time on the links</dt>"));
}

#[test]
fn runs_of_another_command_are_repeated_by_that_command() {
    let directory = tempfile::tempdir().unwrap();
    let mut experiment = Experiment::parse(PLAIN, "train.toml", &[]).unwrap();
    experiment.command = Some("marline demo --quick".to_owned());
    let options = Options {
        jobs: 1,
        out: Some(directory.path().to_owned()),
        ..Options::default()
    };
    run(&experiment, &fake, &options, &mut |_| {}).unwrap();
    let html = page(directory.path()).unwrap().render();
    assert!(html.contains("<code>marline demo --quick</code>"));
    assert!(!html.contains("marline lab run"));
}

const MUSTS: &str = r#"
[[must]]
text = "fast beats slow wherever the paper reports it."
explanation = "It does."
a = "fast"
b = "slow"
published_above_percent = 0
at_least_percent = 0
[[must]]
text = "fast gains at least as much as in <the paper>"
explanation = """
The paper's
slow is slower."""
a = "fast"
b = "slow"
reaches_published_in = 1
"#;

/// `fast` takes 0.8 of the time of `slow`: enough for one published gain, not for the other.
#[test]
fn each_claim_has_a_verdict_and_its_counts() {
    let directory = ResultsDirectory::of(&format!("{TRAIN}{MUSTS}"), fake);
    let html = directory.html();
    assert_eq!(
        sections(&html)[..2],
        ["Claims", "Comparison with published values"]
    );
    for text in [
        "</span> Holds.</strong> fast beats slow wherever the paper reports it: met in 2 of 2 comparisons, \
         not met in 0, undecided in 0 (by value alone, met in 2); better with 95 % confidence in 2, worse in 0, where \
         chance alone would give 0.1 of each; corrected for 2 comparisons it holds: met in 2",
        "</span> Does not hold.</strong> fast gains at least as much as in &lt;the paper&gt;: met in 1 of \
         2 comparisons, not met in 1",
        "<p>The paper&#39;s slow is slower.</p>",
        "Comparisons that do not meet the claim (1):",
        ">21\u{a0}%</td>",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert!(
        !html.contains("<p>It does.</p>"),
        "explanations are for claims that do not hold"
    );
    // Verdicts are derived again from the runs alone.
    let path = directory.out().join("results.json");
    let old = Results::read(&directory.out()).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(rebuild(&directory.out()).unwrap().must, old.must);
    assert_eq!(old.must[1].violations[0].parameters["content_kb"], 2400);

    let same = compare(&directory.out(), &directory.out()).unwrap();
    let text = same.to_string();
    assert!(
        text.contains("as much as in <the paper>: does not hold (1 of 2), as before"),
        "{text}"
    );
    let without = ResultsDirectory::of(TRAIN, fake);
    let text = compare(&without.out(), &directory.out())
        .unwrap()
        .to_string();
    assert!(
        text.contains("reports it.: no such claim before, holds (2 of 2) now"),
        "{text}"
    );

    let none = |_: &Job| Err(RunError::Stalled("no data is sent".to_owned()));
    let html = ResultsDirectory::of(&format!("{TRAIN}{MUSTS}"), none).html();
    assert!(html.contains("Not known.</strong> fast beats slow"));
    assert!(html.contains("not measured in 2; runs are missing in 2."));
}

#[test]
fn a_published_value_for_all_points_has_one_row() {
    let text = TRAIN.replace(
        "gain.csv\", value = \"gain_percent\"",
        "all.csv\", value = \"all_percent\"",
    );
    assert_ne!(text, TRAIN);
    let html = ResultsDirectory::of(&text, fake).html();
    let count = html.matches("one value for several points").count();
    assert_eq!(count, 1, "{html}");
    assert!(html.contains("every content size"));
}

#[test]
fn with_many_points_only_published_ones_have_rows() {
    let losses: Vec<_> = (0..40).map(|loss| format!("\"0.{loss:02}%\"")).collect();
    let sweep = format!(
        "\"link.loss\" = [{}]\n[sweep.content_kb]",
        losses.join(", ")
    );
    let text = TRAIN.replace("[sweep.content_kb]", &format!("[sweep]\n{sweep}"));
    let text = text.replace("repeats = 8", "repeats = 2");
    // No value is published for this size.
    let text = text.replace("[[comparison]]", "6000 = {}\n[[comparison]]");
    let html = ResultsDirectory::of(&text, fake).html();
    let (_, picture) = html
        .split_once("Improvement of median completion time, measured")
        .unwrap();
    let (picture, _) = picture.split_once("</figure>").unwrap();
    // One more is in the legend.
    assert_eq!(picture.matches("class=\"ours\"").count(), 81);
    assert_eq!(picture.matches("class=\"published open\"").count(), 81);
    assert!(html.contains("<h3>Times the physical limit</h3>"));
}
