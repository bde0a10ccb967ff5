//! Reinjection: a fast path carries copies of data in flight on a slow one.

use super::*;
use crate::scheduling::path::ReinjectionOrder;

/// A budget of as many copied bytes as are sent.
const EAGER: ReinjectionConfig = ReinjectionConfig {
    budget: 1.0,
    order: ReinjectionOrder::Ends,
};

/// Two paths: 10 Mbit/s and 20 ms, 5 Mbit/s and 160 ms.
fn fast_and_slow(transport: TransportConfig) -> Several {
    let mut several = Several::with(both(transport));
    several.pair.network.set(Conditions {
        rate: Some(1_250_000),
        queue: 50_000,
        ..Conditions::default()
    });
    let slow = Conditions {
        delay: Duration::from_millis(80),
        rate: Some(625_000),
        queue: 100_000,
        ..Conditions::default()
    };
    several.pair.network.set_link(address(1), slow);
    assert_eq!(several.open(1), Ok(ONE));
    several.pair.drive(Duration::from_secs(1));
    assert!(several.is_validated(ONE));
    several
}

/// Stream bytes that the server sent as copies.
fn copied(several: &mut Several) -> u64 {
    let server = several.server();
    let paths = server.paths.iter();
    paths.map(|path| path.counters.stream_bytes_copied).sum()
}

/// Times of downloads of 100, 300 and 600 kB, each over its own connection.
fn times(name: &str, reinjection: Option<ReinjectionConfig>) -> [Duration; 3] {
    [100_000, 300_000, 600_000].map(|size| {
        let mut several = fast_and_slow(reinjecting(scheduler(name), reinjection));
        let ends = several.ends;
        download(&mut several.pair, ends, &pattern(size))
    })
}

#[test]
fn reinjection_shortens_transfers_over_a_slow_and_a_fast_path() {
    for name in ["lrf", "rr"] {
        let without = times(name, None);
        for order in [ReinjectionOrder::Oldest, ReinjectionOrder::Ends] {
            let config = ReinjectionConfig {
                order,
                ..ReinjectionConfig::default()
            };
            let with = times(name, Some(config));
            // Of 100 kB, the slow path carries so little that copies on the fast path replace it immediately.
            assert!(with[0] * 2 < without[0], "{with:?} {without:?}");
            let sum = |times: [Duration; 3]| times.iter().sum::<Duration>();
            assert!(sum(with) * 10 < sum(without) * 8, "{with:?} {without:?}");
        }
    }
}

#[test]
fn reinjection_shortens_transfers_limited_by_flow_control() {
    let run = |reinjection| {
        let transport = TransportConfig {
            stream_receive_window: Some(60_000),
            max_stream_receive_window: 60_000,
            ..reinjecting(scheduler("rr"), reinjection)
        };
        let mut several = fast_and_slow(transport);
        let ends = several.ends;
        download(&mut several.pair, ends, &pattern(1_000_000))
    };
    let (without, with) = (run(None), run(Some(ReinjectionConfig::default())));
    assert!(with * 10 < without * 8, "{with:?} {without:?}");
}

#[test]
fn copies_stay_within_the_budget() {
    for budget in [0.0, 0.02] {
        let reinjection = ReinjectionConfig { budget, ..EAGER };
        let mut several = fast_and_slow(reinjecting(scheduler("rr"), Some(reinjection)));
        let ends = several.ends;
        for _ in 0..8 {
            download(&mut several.pair, ends, &pattern(100_000));
        }
        let sent = several.server().stats().streams.bytes_sent;
        let most = (sent as f64 * budget) as u64 + 9600;
        let copied = copied(&mut several);
        assert!((most / 2..=most).contains(&copied), "{copied} of {most}");
    }
}

#[test]
fn lost_data_with_a_copy_is_not_retransmitted() {
    let mut several = fast_and_slow(reinjecting(scheduler("lrf"), Some(EAGER)));
    let ends = several.ends;
    // All data on the slow path is lost.
    let slow = several.pair.network.link(address(1), Direction::ToClient);
    slow.down = true;
    let took = download(&mut several.pair, ends, &pattern(60_000));
    assert!(took < Duration::from_millis(150), "{took:?}");
    several.pair.drive(Duration::from_secs(3));
    let copied = copied(&mut several);
    let streams = several.server().stats().streams;
    assert!(copied > 5_000, "{copied}");
    assert_eq!((streams.bytes_retransmitted, streams.bytes_held), (0, 0));
}

#[test]
fn transfers_with_copies_complete_over_lossy_links() {
    let mut any = 0;
    for scheduler in SCHEDULERS.defaults() {
        let mut several = fast_and_slow(reinjecting(scheduler.value, Some(EAGER)));
        for n in 0..2 {
            let bad = Conditions {
                loss: 0.05,
                jitter: Duration::from_millis(20),
                delay: Duration::from_millis(10 + 60 * u64::from(n)),
                ..narrow()
            };
            match n {
                0 => several.pair.network.set(bad),
                n => several.pair.network.set_link(address(n), bad),
            }
        }
        let ends = several.ends;
        for size in [0, 1, 5_000, 100_000, 300_000] {
            download(&mut several.pair, ends, &pattern(size));
            upload(&mut several.pair, ends, &pattern(size / 2));
        }
        any += copied(&mut several);
        several.pair.drive(Duration::from_secs(3));
        assert_eq!(several.server().stats().streams.bytes_held, 0);
    }
    assert!(any > 10_000, "{any} bytes copied");
}

#[test]
fn reinjection_changes_nothing_on_a_single_path() {
    let run = |reinjection| {
        let transport = reinjecting(scheduler("lrf"), reinjection);
        let mut several = Several::with(both(transport));
        several.pair.network.set(narrow());
        let ends = several.ends;
        let took = download(&mut several.pair, ends, &pattern(1_000_000));
        (took, several.server().stats())
    };
    assert_eq!(run(None), run(Some(EAGER)));
}

/// The time of a download of eight packets over two paths that lose the server's datagrams whose numbers, from 1, are in `lost`.
fn eight_packets_without(lost: &'static [u64], tail_duplication: bool) -> Duration {
    let mut transport = TransportConfig {
        tail_duplication,
        ..reinjecting(scheduler("lrf"), None)
    };
    transport.mtu.discover = false;
    let mut several = Several::two_of(transport, Conditions::GOOD);
    let mut number = 0;
    several.pair.network.filter = Some(Box::new(move |direction, _| {
        number += u64::from(direction == Direction::ToClient);
        direction == Direction::ToClient && lost.contains(&number)
    }));
    let ends = several.ends;
    download(&mut several.pair, ends, &pattern(8 * 1150))
}

#[test]
fn the_loss_of_a_repeat_at_the_end_costs_no_time_with_two_paths_either() {
    let once = eight_packets_without(&[2], true);
    assert_eq!(eight_packets_without(&[2, 9], true), once);
    assert!(eight_packets_without(&[2, 9], false) > once);
}
