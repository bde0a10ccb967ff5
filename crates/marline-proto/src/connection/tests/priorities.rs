//! Priorities of streams (RFC 9218).

use super::*;
use crate::priority::Priority;

/// The outcome of concurrent downloads.
struct Competition {
    /// Bytes that had arrived on each stream when the first was complete.
    arrived: Vec<usize>,
    /// The streams in the order in which they completed.
    order: Vec<usize>,
}

/// Downloads streams of 300 KB with these priorities over 10 Mbit/s.
fn compete(priorities: &[Priority]) -> Competition {
    let mut pair = Pair::new();
    pair.network.set(Conditions {
        rate: Some(1_250_000),
        // Nothing is dropped: while lost data of one stream is retransmitted, others make progress.
        queue: 1_000_000,
        ..Conditions::default()
    });
    let ends = pair.establish();
    let data = pattern(300_000);
    let mut transfers: Vec<Transfer> = priorities
        .iter()
        .map(|&priority| {
            let transfer = Transfer::down(&mut pair, ends, &data);
            pair.server(ends.server).set_priority(transfer.id, priority);
            transfer
        })
        .collect();
    let mut order = Vec::new();
    let mut arrived = Vec::new();
    let done = pair.drive_until(TIMEOUT, |pair| {
        for (number, transfer) in transfers.iter_mut().enumerate() {
            if !order.contains(&number) && transfer.advance(pair) {
                order.push(number);
            }
        }
        if arrived.is_empty() && !order.is_empty() {
            arrived = transfers.iter().map(Transfer::received).collect();
        }
        order.len() == transfers.len()
    });
    assert!(done, "only {order:?} arrived");
    Competition { arrived, order }
}

#[test]
fn the_most_urgent_stream_completes_first_though_it_was_opened_last() {
    let usual = Priority::default();
    let Competition { arrived, order } = compete(&[usual, usual, Priority::new(0, false)]);
    assert_eq!(order, [2, 0, 1]);
    assert!(arrived[0] < 2_000 && arrived[1] == 0, "{arrived:?}");
}

#[test]
fn sequential_streams_of_one_urgency_complete_one_after_another() {
    let Competition { arrived, order } = compete(&[Priority::default(); 3]);
    assert_eq!(order, [0, 1, 2]);
    assert!(arrived[1] < 2_000 && arrived[2] == 0, "{arrived:?}");
}

#[test]
fn incremental_streams_of_one_urgency_progress_together() {
    let arrived = compete(&[Priority::new(3, true); 3]).arrived;
    assert!(arrived.iter().all(|&bytes| bytes > 280_000), "{arrived:?}");
}

#[test]
fn a_stream_that_is_made_urgent_overtakes_an_earlier_one() {
    let mut pair = Pair::new();
    pair.network.set(Conditions {
        rate: Some(1_250_000),
        queue: 50_000,
        ..Conditions::default()
    });
    let ends = pair.establish();
    let data = pattern(500_000);
    let mut first = Transfer::down(&mut pair, ends, &data);
    let mut second = Transfer::down(&mut pair, ends, &data);
    pair.drive_until(Duration::from_millis(200), |pair| {
        first.advance(pair);
        second.advance(pair)
    });
    assert_eq!(second.received(), 0);
    let id = second.id;
    pair.server(ends.server)
        .set_priority(id, Priority::new(1, false));
    let done = pair.drive_until(TIMEOUT, |pair| {
        assert!(!first.advance(pair), "the less urgent stream was first");
        second.advance(pair)
    });
    assert!(done);
    first.complete(&mut pair);
}
