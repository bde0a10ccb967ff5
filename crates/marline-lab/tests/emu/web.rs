//! Pages over every version of HTTP, with the kernel's TCP and Multipath TCP.

use marline_lab::emu::Emulator;
use marline_lab::scenario::{Backend, BackendKind, Experiment, Job, Outcome, RunError};

use crate::setup;

/// A job that loads a small page; `more` are settings.
fn job(more: &str) -> Job {
    let text = format!(
        "title = 'x'\ncc = 'cubic'\ntime_limit = '60s'\n\
         workload = {{ page = 'cloned/reddit', windows = '5s' }}\n{more}"
    );
    let mut experiment = Experiment::parse(&text, "page.toml", &[]).unwrap();
    experiment.run_in(BackendKind::Emu);
    crate::job::job(&experiment.cells[0])
}

/// The outcome of a job; `None` if this machine cannot run it.
fn run(job: &Job) -> Option<Outcome> {
    let _alone = setup::exclusive();
    match Emulator::default().run(job) {
        Ok(outcome) => Some(outcome),
        Err(RunError::Unsupported(why)) => {
            println!("skipped: {why}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

const LINK: &str = "link = 'rate=20mbps,rtt=20ms,buffer=100kB'";

#[test]
fn pages_load_over_every_version_of_http() {
    for (version, connections) in [
        ("1.1", 6.0),
        ("1.1c", 6.0),
        ("2", 1.0),
        ("2-parallel", 2.0),
        ("3", 1.0),
    ] {
        let Some(outcome) = run(&job(&format!("{LINK}\nhttp.version = '{version}'"))) else {
            return;
        };
        let metrics = &outcome.metrics;
        assert_eq!(metrics["connections"], connections, "{version}");
        // 470 kB take 0.19 s at least.
        assert!(metrics["page_load_s"] > 0.19, "{version}: {metrics:?}");
        assert!(metrics["first_byte_s"] < metrics["page_load_s"]);
        assert!(
            metrics["mean_window_bytes"] > 1000.0,
            "{version}: {metrics:?}"
        );
    }
}

#[test]
fn a_connection_of_multipath_tcp_has_two_subflows() {
    let Some(outcome) = run(&job(&format!("{LINK}\nhttp.version = '2-mptcp'"))) else {
        return;
    };
    let metrics = &outcome.metrics;
    assert_eq!(metrics["connections"], 1.0);
    assert_eq!(metrics["mptcp_connections"], 1.0, "{metrics:?}");
    assert_eq!(metrics["mptcp_joins"], 1.0, "{metrics:?}");
    assert_eq!(metrics["mptcp_subflows"], 2.0, "{metrics:?}");
}

#[test]
fn an_archive_and_time_series_of_a_load_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("new/page.har");
    let watched = Job {
        har: Some(file.clone()),
        watch: true,
        ..job(&format!("{LINK}\nhttp.version = '1.1'"))
    };
    let Some(outcome) = run(&watched) else { return };
    let archive: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(archive["log"]["entries"].as_array().unwrap().len(), 39);
    let series = outcome.series.unwrap().series;
    assert!(!series["window_bytes sum"].is_empty(), "{series:?}");
    assert!(series.contains_key("window_bytes 5"), "{series:?}");
}

#[test]
fn a_run_counts_which_link_each_connection_takes() {
    let paths = "routers = ['near', 'far', 'a', 'b']\n\
        [links.access]\nbetween = ['client', 'near']\nspec = 'rate=20mbps,rtt=10ms'\n\
        [links.a1]\nbetween = ['near', 'a']\nspec = 'rtt=5ms'\n\
        [links.a2]\nbetween = ['a', 'far']\nspec = 'rtt=5ms'\n\
        [links.b1]\nbetween = ['near', 'b']\nspec = 'rtt=5ms'\n\
        [links.b2]\nbetween = ['b', 'far']\nspec = 'rtt=5ms'\n\
        [links.core]\nbetween = ['far', 'server']\nspec = 'rtt=5ms'\n";
    let Some(outcome) = run(&job(&format!("http.version = '1.1'\n{paths}"))) else {
        return;
    };
    let metrics = &outcome.metrics;
    let on = |link: &str| metrics[&format!("connections_on_{link}")];
    assert_eq!(on("a2") + on("b2"), 6.0, "{metrics:?}");
    assert_eq!((on("a1"), on("b1")), (on("a2"), on("b2")));
    let bytes = metrics["bytes_on_a1"] + metrics["bytes_on_b1"];
    assert!(bytes > 470_000.0, "{metrics:?}");
    assert!(!metrics.contains_key("bytes_on_access"), "{metrics:?}");
}
