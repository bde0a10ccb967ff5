//! Features of transfers in the simulator.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod medians;

use std::collections::BTreeMap;

use self::medians::medians;

/// The metrics of a transfer over `link` with hybrid slow start; both ends have `more`.
fn metrics(link: &str, more: &str) -> BTreeMap<String, f64> {
    let text = format!(
        "title = 'x'\nrepeats = 1\nlink = '{link}'\nprofile = 'gquic'\n{more}\n\
         [workload]\ntransfer = '3MB'\nfeatures = true\n"
    );
    medians(&text)
}

#[test]
fn a_clean_link_has_its_delay_and_no_losses() {
    let metrics = metrics("rate=50mbps, rtt=40ms, buffer=2MB", "cc = 'newreno'");
    let metric = |name: &str| metrics[name];
    assert_eq!(
        [
            metric("loss_probability"),
            metric("out_of_order_probability")
        ],
        [0.0, 0.0]
    );
    assert!(
        (20_000.0..100_000.0).contains(&metric("mean_delay_us")),
        "{metrics:?}"
    );
    // 1,500 bytes at 50 Mb/s take 0.24 ms.
    assert!(
        (200.0..400.0).contains(&metric("client_mean_ipt_us")),
        "{metrics:?}"
    );
    assert!(
        (0.3..0.7).contains(&metric("ack_freq")),
        "an ACK for two packets: {metrics:?}"
    );
    let phases = [
        "slow_start",
        "congestion_avoidance",
        "app_limited",
        "recovery",
    ];
    let percent = phases.map(|phase| metric(&format!("{phase}_freq_percent")));
    assert!(
        (percent.iter().sum::<f64>() - 100.0).abs() < 1e-6,
        "{percent:?}"
    );
    assert_eq!(metric("declared_lost"), 0.0);
}

#[test]
fn delay_of_a_full_queue_is_no_reason_to_call_an_exit_spurious() {
    let metrics = metrics("rate=10mbps, rtt=40ms, buffer=2MB", "cc = 'newreno'");
    assert_eq!(metrics["slow_start_exits"], 1.0);
    assert_eq!(metrics["spurious_slow_start_exits"], 0.0);
}

#[test]
fn delay_that_varies_without_a_queue_makes_spurious_exits_and_losses() {
    let link = "rate=500mbps, rtt=40ms, buffer=2MB, down.jitter=8ms, jitter-batch=15ms";
    let metrics = metrics(&format!("{link}, reorder=on"), "cc = 'newreno'");
    assert_eq!(metrics["loss_probability"], 0.0);
    assert_eq!(metrics["spurious_slow_start_exits"], 1.0);
    assert!(metrics["spurious_losses"] > 0.0, "{metrics:?}");
    assert_eq!(metrics["spurious_losses"], metrics["declared_lost"]);
}
