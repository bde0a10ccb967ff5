use proptest::prelude::*;

use super::*;
use crate::testing::{arrivals, ms, run, satisfies_contract};

const TEXT: &str = "# time delay\n0 10\n100, 50.5\n\n150\t20\n200 90\n";

fn trace() -> DelayTrace {
    DelayTrace::parse(TEXT).unwrap()
}

/// Delays in ms of packets sent at these times in ms.
fn delays(mut link: TracedDelay<u64>, sent: &[u64]) -> Vec<f64> {
    let packets = sent.iter().map(|at| (ms(*at), Packet::new(100, *at)));
    let exits = run(&mut link, &packets.collect::<Vec<_>>(), Time::MAX);
    let delay = |exit: &Exit<u64>| exit.at.since(ms(exit.packet.body)).as_nanos() as f64 / 1e6;
    exits.iter().map(delay).collect()
}

#[test]
fn delays_follow_the_trace_and_repeat() {
    let sent = [0, 99, 100, 149, 199, 200, 300, 1100];
    let found = delays(TracedDelay::new(trace(), true), &sent);
    // In order of arrival: the packet sent at 200 overtakes that sent at 199.
    assert_eq!(found, [10.0, 10.0, 50.5, 50.5, 10.0, 20.0, 50.5, 50.5]);
    assert_eq!(trace().period(), Duration::from_millis(200));
    // (100 ms of 10 ms, 50 of 50.5, 50 of 20) / 200 ms.
    assert_eq!(trace().mean(), Duration::from_micros(22_625));
}

#[test]
fn the_last_delay_lasts_when_the_trace_is_played_once() {
    let sent = [0, 200, 900];
    let found = delays(TracedDelay::new(trace(), true).once(), &sent);
    assert_eq!(found, [10.0, 90.0, 90.0]);
    let found = delays(
        TracedDelay::new(trace(), true).starting_at(Duration::from_millis(150)),
        &sent,
    );
    assert_eq!(found, [20.0, 20.0, 10.0]);
}

#[test]
fn packets_keep_their_order_unless_they_may_overtake() {
    // A packet sent at 149 arrives at 199.5, one sent at 150 would at 170.
    assert_eq!(
        delays(TracedDelay::new(trace(), false), &[149, 150]),
        [50.5, 49.5]
    );
    assert_eq!(
        delays(TracedDelay::new(trace(), true), &[149, 150]),
        [20.0, 50.5]
    );
}

#[test]
fn errors_name_the_line() {
    for (text, message) in [
        (
            "",
            "fewer than two lines; the time of the last is the end of the trace",
        ),
        (
            "0 1",
            "fewer than two lines; the time of the last is the end of the trace",
        ),
        (
            "0 1\n5",
            "line 2: not a time and a delay in milliseconds, as `1500 32.5`",
        ),
        (
            "0 1\n5 -2",
            "line 2: not a time and a delay in milliseconds, as `1500 32.5`",
        ),
        (
            "0 1\n5 nan",
            "line 2: not a time and a delay in milliseconds, as `1500 32.5`",
        ),
        (
            "0 1\n5 1e30",
            "line 2: not a time and a delay in milliseconds, as `1500 32.5`",
        ),
        ("# a\n1 1\n5 2", "line 2: the first time must be 0"),
        (
            "0 1\n5 2\n5 3",
            "line 3: its time is not later than that of the previous line",
        ),
    ] {
        assert_eq!(
            DelayTrace::parse(text).unwrap_err().to_string(),
            message,
            "{text}"
        );
    }
}

proptest! {
    #[test]
    fn traced_delays_satisfy_the_contract(arrivals in arrivals(1500, Duration::from_millis(90)), once: bool) {
        let link = || {
            let link = TracedDelay::new(trace(), false);
            if once { link.once() } else { link }
        };
        satisfies_contract(link, &arrivals)?;
    }

    #[test]
    fn arbitrary_text_is_a_trace_or_an_error(text in "[0-9 .,#\n-]{0,60}") {
        if let Ok(trace) = DelayTrace::parse(&text) {
            prop_assert!(!trace.period().is_zero());
        }
    }
}
