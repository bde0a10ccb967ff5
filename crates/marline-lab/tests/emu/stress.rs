//! Hosts with a processor that has other work.

use std::fs;

use marline_lab::emu::Emulator;
use marline_lab::scenario::{Backend, Experiment, Job, RunError};
use marline_lab::sim::Simulator;

use crate::setup;

fn job(more: &str) -> Job {
    let text = format!(
        "title = 'x'\nbackend = 'emu'\nlink = 'rate=20mbps,rtt=20ms,buffer=100kB'\nstress.client = 2\n{more}"
    );
    let experiment = Experiment::parse(&text, "stress.toml", &[]).unwrap();
    crate::job::job(&experiment.cells[0])
}

/// The threads of this process that compute.
fn computing() -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    let name = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("comm")).ok();
    threads
        .filter_map(name)
        .filter(|name| name == "stress\n")
        .count()
}

#[test]
fn transfers_complete_on_a_stressed_host_and_its_threads_end() {
    let _alone = setup::exclusive();
    let beside = "workload.measure = { after = '500ms', until = '1500ms' }\n\
                  http.connections = 0\n[[background]]\nkind = 'tcp'";
    for (workload, metric) in [
        ("workload.transfer = '300kB'", "completion_s"),
        (beside, "background_goodput_mbps"),
    ] {
        match Emulator::default().run(&job(workload)) {
            Ok(outcome) => assert!(outcome.metrics.contains_key(metric), "{outcome:?}"),
            Err(RunError::Unsupported(why)) => println!("skipped: {why}"),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(computing(), 0);
    }
}

#[test]
fn hosts_of_the_simulator_cannot_be_stressed() {
    let outcome = Simulator.run(&job("workload.transfer = '10kB'"));
    assert!(
        matches!(outcome, Err(RunError::Unsupported(_))),
        "{outcome:?}"
    );
}
