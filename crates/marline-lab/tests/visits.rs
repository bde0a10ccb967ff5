//! Repeated visits, in the simulator.

mod job;

use std::collections::BTreeMap;
use std::error::Error;

use marline_lab::scenario::{Backend, Experiment, Outcome};
use marline_lab::sim::Simulator;

use self::job::job;

fn visit(more: &str) -> Result<Outcome, Box<dyn Error>> {
    let text = format!(
        "title = 'x'\nprofile = 'gquic'\nlink = 'rate=20mbps,rtt=50ms,buffer=1bdp'\n\
         workload.visits = [{{ size = '300kB', times = 4 }}, {{ size = '300kB', pause = '3s' }}]\n\
         workload.afterwards = '4s'\n{more}"
    );
    let experiment = Experiment::parse(&text, "visits.toml", &[])?;
    let first = job(&experiment.cells[0]);
    let outcome = Simulator.run(&first)?;
    assert_eq!(Simulator.run(&first)?, outcome);
    Ok(outcome)
}

#[test]
fn only_the_last_visit_is_measured() {
    let plain = visit("initial_window = 10").unwrap().metrics;
    assert_eq!(plain["careful_jumps"], 0.0);
    assert!((12_000.0..16_000.0).contains(&plain["initial_window_bytes"]));
    let handshake = plain["completion_s"] - plain["latency_s"];
    assert!((0.049..0.12).contains(&handshake), "{handshake}");
    // 300 kB take 0.12 s at 20 Mb/s; four round trips more from ten packets on.
    assert!((0.25..0.6).contains(&plain["latency_s"]), "{plain:?}");
    assert!(
        plain["packets_sent"] < 300.0,
        "only of the last visit: {plain:?}"
    );
    assert!(plain.contains_key("ideal_s"));
}

#[test]
fn history_of_earlier_visits_reduces_latency() {
    let plain = visit("initial_window = 10").unwrap().metrics;
    let published = visit("initial_window = { history = 'published', fallback = 10 }")
        .unwrap()
        .metrics;
    let learnt = published["initial_window_bytes"];
    assert!(
        learnt > 2.0 * plain["initial_window_bytes"],
        "{published:?}"
    );
    assert!(published["latency_s"] < plain["latency_s"], "{published:?}");
    let capped = visit("initial_window = { history = 'published', cap = '60kB' }")
        .unwrap()
        .metrics;
    assert_eq!(capped["initial_window_bytes"], 60_000.0);
    let careful = visit("initial_window = { careful = 'default', fallback = 10 }")
        .unwrap()
        .metrics;
    assert_eq!(
        careful["initial_window_bytes"],
        plain["initial_window_bytes"]
    );
    assert_eq!(
        (careful["careful_jumps"], careful["careful_retreats"]),
        (1.0, 0.0)
    );
    assert!(careful["careful_s"] > 0.0);
    assert!(careful["latency_s"] < plain["latency_s"], "{careful:?}");
    let carried = visit("initial_window = { careful = 'tokens', fallback = 10 }")
        .unwrap()
        .metrics;
    assert_eq!(
        (carried["careful_jumps"], carried["careful_retreats"]),
        (1.0, 0.0)
    );
    assert!(carried["latency_s"] < plain["latency_s"], "{carried:?}");
}

/// The last of `visits`.
fn last_of(visits: &str, more: &str) -> Result<BTreeMap<String, f64>, Box<dyn Error>> {
    let text = format!(
        "title = 'x'\nprofile = 'gquic'\nlink = 'rate=20mbps,rtt=50ms,buffer=1bdp'\n\
         workload.visits = [{visits}]\n{more}"
    );
    let experiment = Experiment::parse(&text, "visits.toml", &[])?;
    Ok(Simulator.run(&job(&experiment.cells[0]))?.metrics)
}

#[test]
fn a_visit_over_0_rtt_begins_with_the_window_of_an_open_connection() {
    let carry = "initial_window = { history = 'published', fallback = 10 }";
    let [open, closed] = ["open = true", "open = false"].map(|how| {
        format!(
            "{{ size = '100kB', times = 2 }}, {{ size = '2MB', {how} }}, {{ size = '300kB', early = true }}"
        )
    });
    let beside_open = last_of(&open, carry).unwrap();
    let after_closed = last_of(&closed, carry).unwrap();
    let first = |metrics: &BTreeMap<String, f64>| metrics["initial_window_bytes"];
    assert_eq!(beside_open["early_data_accepted"], 1.0);
    assert_eq!(
        beside_open["completion_s"], beside_open["latency_s"],
        "no round trip is spent on a handshake"
    );
    // The mean of three windows is less than the last and largest of them.
    assert!(
        first(&beside_open) > 1.5 * first(&after_closed),
        "{beside_open:?}\n{after_closed:?}"
    );
    assert!(first(&after_closed) > 15_000.0, "{after_closed:?}");
    let like_others =
        "initial_window = { history = 'published', zero_rtt = 'history', fallback = 10 }";
    let averaged = last_of(&open, like_others).unwrap();
    assert!(first(&averaged) < first(&beside_open), "{averaged:?}");
}

#[test]
fn a_visit_without_a_session_waits_for_the_handshake() {
    let outcome = last_of("{ size = '300kB', early = true }", "").unwrap();
    assert_eq!(outcome["early_data_accepted"], 0.0);
    assert!(outcome["completion_s"] - outcome["latency_s"] > 0.049);
}

#[test]
fn links_change_between_visits() {
    let before = visit("initial_window = 10").unwrap().metrics;
    let change = "initial_window = 10\n[[change]]\nbefore_visit = 2\nlink.rate = '2mbps'";
    let after = visit(change).unwrap().metrics;
    assert!(after["latency_s"] > 1.2, "{after:?}");
    assert!(!after.contains_key("ideal_s"), "the links change");
    // An equal change at a set time before the visit has the same effect.
    let change = "initial_window = 10\n[[change]]\nat = '5s'\nlink.rate = '2mbps'";
    assert_eq!(
        visit(change).unwrap().metrics["latency_s"],
        after["latency_s"]
    );
    let change = "initial_window = 10\n[[change]]\nat = '200s'\nlink.rate = '2mbps'";
    assert_eq!(
        visit(change).unwrap().metrics["latency_s"],
        before["latency_s"]
    );
}

#[test]
fn background_flows_are_measured_around_visits() {
    let beside = "[[background]]\nkind = 'flows'\ncount = 2\nprofile = 'rfc'\ncc = 'cubic'";
    let outcome = visit(beside).unwrap();
    let tcp = "[[background]]\nkind = 'tcp'\ncount = 2\ncc = 'cubic'";
    assert_eq!(visit(tcp).unwrap(), outcome, "QUIC flows stand in for TCP");
    let metrics = outcome.metrics;
    let [before, during, after] =
        ["before", "during", "after"].map(|when| metrics[&format!("background_{when}_mbps")]);
    assert!((10.0..20.0).contains(&before), "{metrics:?}");
    assert!(during < before, "{metrics:?}");
    assert!((10.0..20.0).contains(&after), "{metrics:?}");
    assert!(
        (0.0..=4.1).contains(&metrics["background_recovery_s"]),
        "{metrics:?}"
    );
    assert!(
        metrics.contains_key("background_after_loss_ratio"),
        "{metrics:?}"
    );
}
