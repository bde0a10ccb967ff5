//! Background TCP flows of the kernel, by iperf3.

use std::fs;

use marline_lab::emu::Emulator;
use marline_lab::scenario::{Backend, BackendKind, Experiment, Job, Outcome, RunError};

use crate::setup;

/// Payload can take 19.3 Mbit/s of the link. On a busy machine 20.03 was seen without a loss: a sample may be taken after its
/// time.
const MOST_MBPS: f64 = 20.5;

/// A job with background TCP flows; `more` is the rest of their table.
fn job(workload: &str, more: &str) -> Job {
    let text = format!(
        "title = 'x'\nlink = 'rate=20mbps,rtt=20ms,buffer=100kB'\n{workload}\n\
         [[background]]\nkind = 'tcp'\n{more}"
    );
    let mut experiment = Experiment::parse(&text, "beside.toml", &[]).unwrap();
    experiment.run_in(BackendKind::Emu);
    crate::job::job(&experiment.cells[0])
}

/// The outcome of a job; `None` if it is invalid, or if this machine cannot run it.
fn run(job: &Job) -> Option<Outcome> {
    let _alone = setup::exclusive();
    let outcome = match Emulator::default().run(job) {
        Ok(outcome) => outcome,
        Err(RunError::Unsupported(why)) => {
            println!("skipped: {why}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    println!("{outcome:?}");
    assert_eq!(children(), Vec::<String>::new(), "all processes have ended");
    if let Some(why) = &outcome.invalid {
        println!("note: this machine is too busy to compare iperf3: {why}");
        return None;
    }
    Some(outcome)
}

/// The children of this process that are iperf3.
fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let stat = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("stat")).ok();
    let is_child = |stat: &String| {
        // The name stands in parentheses, then state and parent.
        let (name, rest) = stat.rsplit_once(')').unwrap_or_default();
        name.ends_with("(iperf3") && rest.split_whitespace().nth(1) == Some(&own)
    };
    processes.filter_map(stat).filter(is_child).collect()
}

#[test]
fn tcp_flows_transfer_bytes_and_their_processes_end() {
    let measure = "workload.measure = { after = '500ms', until = '2500ms' }";
    let Some(outcome) = run(&job(measure, "count = 2")) else {
        return;
    };
    let metrics = &outcome.metrics;
    let (own, flow) = (metrics["goodput_mbps"], metrics["background_goodput_mbps"]);
    assert!(flow > 1.0, "{metrics:?}");
    assert!(
        (13.0..MOST_MBPS).contains(&(own + 2.0 * flow)),
        "{metrics:?}"
    );
}

#[test]
fn tcp_flows_are_measured_around_visits() {
    let visits = "workload.visits = [{ size = '200kB', times = 2, pause = '300ms' }, \
                  { size = '500kB', pause = '1s' }]\nworkload.afterwards = '1s'";
    let Some(outcome) = run(&job(visits, "cc = 'reno'")) else {
        return;
    };
    let metrics = &outcome.metrics;
    let [before, during, after] =
        ["before", "during", "after"].map(|when| metrics[&format!("background_{when}_mbps")]);
    assert!((10.0..MOST_MBPS).contains(&before), "{metrics:?}");
    assert!(during < before && after > 5.0, "{metrics:?}");
    assert!(metrics["background_during_loss_ratio"] < 0.5, "{metrics:?}");
    assert!(metrics.contains_key("background_missing_bytes"));
}

#[test]
fn tcp_flows_send_upwards_from_their_start_time() {
    let measure = "workload.measure = { after = '500ms', until = '1500ms' }";
    let Some(outcome) = run(&job(measure, "direction = 'up'\ncc = 'bbr'")) else {
        return;
    };
    assert!(outcome.metrics["background_goodput_mbps"] > 5.0);
    let Some(outcome) = run(&job(measure, "start = '1min'")) else {
        return;
    };
    assert_eq!(outcome.metrics["background_goodput_mbps"], 0.0);
}
