use std::collections::BTreeMap;
use std::path::Path;

use marline_link::Seed;
use rand::Rng;

use super::*;
use crate::run::{Options, run};
use crate::scenario::{Experiment, Job, Outcome, RunError, Watched};

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
"#;

const GAINS: &str = "content_kb,gain_percent\n500,12.5\n2400,21\n";
const TIMES: &str =
    "cca,content_kb,completion_s,cov\nslow,500,0.55,0.4\nslow,2400,9,0.3\nfast,2400,1.9,\n";

/// Numbers from nothing but the job.
fn fake(job: &Job) -> Result<Outcome, RunError> {
    let mut rng = Seed::new(job.seed).rng();
    let mut luck = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let size = job.parameters.get("content_kb").map_or(500.0, |value| {
        value
            .as_f64()
            .or_else(|| value.as_str()?.parse().ok())
            .unwrap_or(500.0)
    });
    let fluctuation = luck();
    let slow = size / 1000.0 * (1.4 - 0.5 * fluctuation + 0.2 * luck());
    let time = if &*job.variant == "fast" {
        slow * 0.8
    } else {
        slow
    };
    let metrics = [
        ("completion_s", time),
        ("loss_ratio", 0.02 * luck()),
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

/// A saw.
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
    }
}

/// A directory with the tables of others, the scenario, and results.
struct Scene(tempfile::TempDir);

impl Scene {
    fn of(text: &str, backend: fn(&Job) -> Result<Outcome, RunError>) -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        let write = |name: &str, text: &str| std::fs::write(scene.path().join(name), text).unwrap();
        write("gain.csv", GAINS);
        write("times.csv", TIMES);
        write("train.toml", text);
        let experiment = Experiment::load(&scene.path().join("train.toml"), "train", &[]).unwrap();
        let options = Options {
            jobs: 1,
            out: Some(scene.out()),
            watch: true,
            ..Options::default()
        };
        run(&experiment, &backend, &options, &mut |_| {}).unwrap();
        scene
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
        assert_sound(&html);
        html
    }
}

/// Fails unless the page needs nothing else, and shows numbers only.
fn assert_sound(html: &str) {
    for odd in [
        "http://", "https://", "<script", "<link", "src=", "NaN", "inf ", "infinity",
    ] {
        assert!(!html.contains(odd), "{odd}: {html}");
    }
}

/// Titles of sections.
fn sections(html: &str) -> Vec<&str> {
    let titles = html.split("<h2 ").skip(1);
    titles
        .map(|rest| rest.split(['>', '<']).nth(1).unwrap())
        .collect()
}

#[test]
fn a_page_says_what_was_found_and_what_was_published() {
    let html = Scene::of(TRAIN, fake).html();
    if let Ok(path) = std::env::var("MARLINE_PAGE") {
        std::fs::write(path, &html).unwrap();
    }
    assert_eq!(
        sections(&html),
        [
            "Beside the paper",
            "Completion time",
            "Comparisons",
            "One run, seen closely",
            "Numbers and settings"
        ]
    );
}
