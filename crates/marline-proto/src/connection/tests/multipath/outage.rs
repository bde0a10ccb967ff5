use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Continues a transfer until `received` bytes have arrived; panics if that takes longer than `time`.
fn reach(several: &mut Several, transfer: &mut Transfer, received: usize, time: Duration) {
    let done = several.pair.drive_until(time, |pair| {
        transfer.advance(pair) || transfer.received() >= received
    });
    assert!(done, "{} of {received} bytes", transfer.received());
}

/// A bottleneck with a one-way delay of `delay` milliseconds and a queue of `queue` bytes.
fn link(delay: u64, queue: u64) -> Conditions {
    Conditions {
        delay: Duration::from_millis(delay),
        queue,
        ..narrow()
    }
}

/// Two paths over these links, validated.
fn two_links(config: TransportConfig, links: [Conditions; 2]) -> Several {
    let mut pair = both(config);
    pair.network.set(links[0]);
    pair.network.set_link(address(1), links[1]);
    let mut several = Several::with(pair);
    several.pair.drive(Duration::from_secs(1));
    assert_eq!(several.open(1), Ok(ONE));
    several.pair.drive(Duration::from_secs(1));
    assert!(several.is_validated(ONE));
    several
}

fn set(several: &mut Several, path: PathId, conditions: Conditions) {
    match path {
        PathId::INITIAL => several.pair.network.set(conditions),
        _ => several.pair.network.set_link(address(1), conditions),
    }
}

fn begin(several: &mut Several, from: Side, data: &Bytes) -> Transfer {
    let ends = several.ends;
    match from {
        Side::Server => Transfer::down(&mut several.pair, ends, data),
        Side::Client => Transfer::up(&mut several.pair, ends, data),
    }
}

/// Advances the time by `time`; returns the longest time in which the receiving application received no data.
fn longest_gap(several: &mut Several, transfer: &mut Transfer, time: Duration) -> Duration {
    let (mut progress_at, mut received) = (several.pair.now, transfer.received());
    let mut longest = Duration::ZERO;
    let mut done = false;
    several.pair.drive_until(time, |pair| {
        done = done || transfer.advance(pair);
        if transfer.received() > received {
            (progress_at, received) = (pair.now, transfer.received());
        } else if !done {
            longest = longest.max(pair.now - progress_at);
        }
        done
    });
    longest
}

/// The longest time without data after an outage begins (docs/multipath-results.md).
fn longest_allowed(several: &mut Several, from: Side, dead: PathId) -> Duration {
    let sender = several.end(from);
    let live = sender.paths.iter().find(|path| path.id != dead);
    let rtt = live.map_or(Duration::ZERO, |path| path.recovery.rtt().smoothed());
    (rtt * 3).max(Duration::from_millis(200))
}

/// Asserts that a transfer continues soon after the outage of a path, completes, and uses the path again when it
/// works.
fn survives(mut several: Several, from: Side, dead: PathId, usual: Conditions) {
    let data = pattern(4_500_000);
    let mut transfer = begin(&mut several, from, &data);
    reach(&mut several, &mut transfer, 1_500_000, TIMEOUT);
    let allowed = longest_allowed(&mut several, from, dead);
    set(&mut several, dead, DEAD);
    let gap = longest_gap(&mut several, &mut transfer, Duration::from_millis(1000));
    assert!(gap <= allowed, "{gap:?} without data, {allowed:?} allowed");

    set(&mut several, dead, usual);
    let before = several.sent(from, dead);
    transfer.complete(&mut several.pair);
    let again = several.sent(from, dead) - before;
    assert!(
        again > 50_000,
        "{again} bytes on path {dead} after its outage"
    );
}

#[test]
fn a_transfer_survives_an_outage_of_either_path() {
    let near_and_far = [(10, 10, 60_000), (10, 80, 60_000), (80, 10, 60_000)];
    let deep_queues = [(10, 10, 500_000), (10, 80, 500_000)];
    for (first, second, queue) in near_and_far.into_iter().chain(deep_queues) {
        let links = [link(first, queue), link(second, queue)];
        // Deep queues take long to simulate.
        let both = [Side::Server, Side::Client];
        let senders = if queue > 60_000 { &both[..1] } else { &both };
        for &from in senders {
            for dead in [PathId::INITIAL, ONE] {
                let several = two_links(several(), links);
                survives(several, from, dead, links[dead.0 as usize]);
            }
        }
    }
}

#[test]
fn every_scheduler_survives_an_outage_of_either_path() {
    for scheduler in SCHEDULERS.defaults() {
        for dead in [PathId::INITIAL, ONE] {
            let links = [link(10, 200_000), link(40, 200_000)];
            for reinjection in [None, Some(ReinjectionConfig::default())] {
                let several = two_links(reinjecting(scheduler.value.clone(), reinjection), links);
                survives(several, Side::Server, dead, links[dead.0 as usize]);
            }
        }
    }
}

#[test]
fn a_transfer_survives_an_outage_of_the_path_of_its_acknowledgments() {
    let mut several = Several::two(narrow());
    let ends = several.ends;
    let data = pattern(4_000_000);
    // Only packets to the server are lost, and only on path 1.
    let mut transfer = Transfer::down(&mut several.pair, ends, &data);
    reach(&mut several, &mut transfer, 1_000_000, TIMEOUT);
    several
        .pair
        .network
        .link(address(1), Direction::ToServer)
        .down = true;
    transfer.complete(&mut several.pair);
}

#[test]
fn a_transfer_survives_an_outage_of_all_paths() {
    let mut several = Several::two(narrow());
    let ends = several.ends;
    let data = pattern(2_000_000);
    let mut transfer = Transfer::down(&mut several.pair, ends, &data);
    reach(&mut several, &mut transfer, 500_000, TIMEOUT);
    several.pair.network.set(DEAD);
    several.pair.network.set_link(address(1), DEAD);
    several.pair.drive(Duration::from_secs(3));
    several.pair.network.set(narrow());
    several.pair.network.set_link(address(1), narrow());
    transfer.complete(&mut several.pair);
}

#[test]
fn a_new_path_that_does_not_answer_is_abandoned() {
    let mut several = Several::new();
    several.pair.network.set_link(address(1), DEAD);
    assert_eq!(several.open(1), Ok(ONE));
    several.pair.drive(Duration::from_secs(10));
    assert_eq!(
        several.closed(Side::Client, ONE),
        Some(ErrorCode::PATH_UNSTABLE_OR_POOR)
    );
    assert_eq!(several.paths(Side::Client), [0]);
    assert_eq!(several.paths(Side::Server), [0]);
    let ends = several.ends;
    download(&mut several.pair, ends, &pattern(300_000));
}

#[test]
fn data_queued_on_a_path_that_fails_is_sent_on_another() {
    // This scheduler queues data on paths whose windows are full.
    let mut several = Several::two_of(scheduled(scheduler("hbes")), narrow());
    let ends = several.ends;
    let data = pattern(8_000_000);
    let mut transfer = Transfer::down(&mut several.pair, ends, &data);
    let queued = |several: &mut Several| {
        let server = several.server();
        let at = server.paths.by_id(ONE).expect("the path is there");
        server.paths[at].queue.bytes()
    };
    let has_queue = several.pair.drive_until(TIMEOUT, |pair| {
        transfer.advance(pair);
        let server = pair.server(ends.server);
        let at = server.paths.by_id(ONE).expect("the path is there");
        transfer.received() > 500_000 && server.paths[at].queue.bytes() > 5_000
    });
    assert!(has_queue);
    several.pair.network.set_link(address(1), DEAD);
    let stuck_at = transfer.received();
    let time = Duration::from_millis(400);
    reach(&mut several, &mut transfer, stuck_at + 200_000, time);
    let queued = queued(&mut several);
    // At most the rest of a probe.
    assert!(queued < 1200, "{queued} bytes");
    transfer.complete(&mut several.pair);
}

/// Drops the `nth` datagram with data that an end sends over the first link; the flag is set once it was dropped.
fn lose(several: &mut Several, from: Side, nth: usize) -> Arc<AtomicBool> {
    let lost = Arc::new(AtomicBool::new(false));
    let near = several.pair.client.address;
    let mut seen = 0;
    let flag = Arc::clone(&lost);
    several.pair.network.filter = Some(Box::new(move |direction, datagram| {
        let (sender, client) = match direction {
            Direction::ToServer => (Side::Client, datagram.source),
            Direction::ToClient => (Side::Server, datagram.destination),
        };
        // Packets with acknowledgments only are smaller.
        if sender != from || client != near || datagram.bytes.len() < 200 {
            return false;
        }
        seen += 1;
        let is_it = seen == nth;
        flag.fetch_or(is_it, Ordering::Relaxed);
        is_it
    }));
    lost
}

#[test]
fn a_loss_in_a_short_transfer_is_repaired_without_waiting_for_the_longer_path() {
    let far = Duration::from_millis(150);
    let links = [5, 150].map(|delay| Conditions {
        delay: Duration::from_millis(delay),
        ..Conditions::default()
    });
    let data = pattern(6_000);
    let without_reinjection = reinjecting(MultipathConfig::default().scheduler, None);
    for config in [several(), without_reinjection] {
        for from in [Side::Server, Side::Client] {
            let mut nth = 0;
            loop {
                nth += 1;
                let mut several = two_links(config.clone(), links);
                let lost = lose(&mut several, from, nth);
                let took = begin(&mut several, from, &data).complete(&mut several.pair);
                if !lost.load(Ordering::Relaxed) {
                    break;
                }
                assert!(took < far, "{took:?} without packet {nth} of the {from:?}");
            }
            assert!(nth > 5, "{nth} packets are too few");
        }
    }
}
