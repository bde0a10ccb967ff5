//! Pages that Chromium loads in the client's namespace.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use marline_lab::emu::Emulator;
use marline_lab::scenario::{Backend, Experiment, Job, Outcome, RunError};
use serde_json::Value;

use crate::setup;

/// A job in which Chromium loads a small page; `more` are settings.
fn job(more: &str) -> Job {
    let text = format!(
        "title = 'x'\nbackend = 'emu'\ncc = 'cubic'\ntime_limit = '60s'\n\
         link = 'rate=20mbps,rtt=20ms,buffer=100kB'\n\
         workload = {{ page = 'cloned/reddit', readable = true }}\nhttp.client = 'chromium'\n{more}"
    );
    let experiment = Experiment::parse(&text, "page.toml", &[]).unwrap();
    crate::job::job(&experiment.cells[0])
}

/// The result of a job; `None` if this machine cannot run it.
fn run(job: &Job) -> Option<Result<Outcome, RunError>> {
    match Emulator::default().run(job) {
        Err(RunError::Unsupported(why)) => {
            println!("skipped: {why}");
            None
        }
        result => Some(result),
    }
}

/// The profiles of browsers of this process, and the processes that name one.
fn left() -> (usize, usize) {
    let prefix = format!("marline-chromium-{}-", std::process::id());
    let profiles = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let profiles =
        profiles.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    let commands = fs::read_dir("/proc").unwrap().flatten();
    let commands = commands.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let named = |command: &Vec<u8>| String::from_utf8_lossy(command).contains(&prefix);
    (profiles.count(), commands.filter(named).count())
}

fn archive(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[test]
fn chromium_loads_a_page_over_the_version_asked_for_and_leaves_nothing() {
    let _alone = setup::exclusive();
    let directory = tempfile::tempdir().unwrap();
    for (version, protocol, connections) in [
        ("1.1", "http/1.1", 6.0),
        ("1.1c", "http/1.1", 6.0),
        ("2", "h2", 1.0),
        ("3", "h3", 1.0),
    ] {
        let file = directory.path().join(format!("{version}.har"));
        let job = Job {
            har: Some(file.clone()),
            watch: true,
            ..job(&format!("http.version = '{version}'"))
        };
        let Some(outcome) = run(&job) else { return };
        let outcome = outcome.unwrap();
        let metrics = &outcome.metrics;
        println!("{version}: {metrics:?}");
        // 470 kB take 0.19 s at least.
        assert!(metrics["page_load_s"] > 0.19, "{version}: {metrics:?}");
        assert!(metrics["load_event_s"] <= metrics["page_load_s"]);
        assert!(metrics["first_byte_s"] < metrics["first_render_s"]);
        assert!(metrics["connections"] <= connections, "{version}");
        assert!(metrics["connections"] >= connections.min(2.0), "{version}");
        assert_eq!(outcome.series.unwrap().objects.len(), 39);
        let archive = archive(&file);
        let entries = archive["log"]["entries"].as_array().unwrap();
        assert_eq!(entries.len(), 39, "{version}");
        for entry in entries {
            assert_eq!(entry["response"]["httpVersion"], protocol);
            assert_eq!(entry["response"]["status"], 200);
        }
        let browser = archive["log"]["browser"]["name"].as_str().unwrap();
        assert!(browser.contains("Chrome"), "{browser}");
        assert_eq!(left(), (0, 0), "{version}");
    }
}

#[test]
fn a_browser_loads_a_page_through_the_pipes_of_a_gateway() {
    let _alone = setup::exclusive();
    let job = job("http.gateway = true\nhttp.pipes = 'rr(pipes=3)'");
    let Some(outcome) = run(&job) else { return };
    let metrics = outcome.unwrap().metrics;
    println!("{metrics:?}");
    assert_eq!(metrics["pipes"], 3.0, "{metrics:?}");
    let bytes = (0..3).map(|pipe| metrics[&format!("pipe_{pipe}_bytes")]);
    assert_eq!(bytes.sum::<f64>(), 470_000.0, "{metrics:?}");
    assert_eq!(left(), (0, 0));
}

#[test]
fn a_browser_over_the_time_limit_leaves_nothing() {
    let _alone = setup::exclusive();
    // It takes longer to start; to load 470 kB.
    for (limit, rate) in [(100, "20mbps"), (5000, "100kbps")] {
        let mut job = job(&format!("[sweep]\n'link.rate' = ['{rate}']"));
        Arc::make_mut(&mut job.settings).time_limit = Duration::from_millis(limit);
        let Some(result) = run(&job) else { return };
        let is_over = matches!(result, Err(RunError::TimeLimit { .. }));
        assert!(is_over, "{result:?}");
        assert_eq!(left(), (0, 0), "{limit} ms");
    }
}
