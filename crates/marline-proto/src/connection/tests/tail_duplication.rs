//! Tail duplication: retransmissions are sent twice if no other data waits. Round trips take 20 ms.

use super::*;

/// The cost of a transfer from the server to the client.
#[derive(Debug, PartialEq, Eq)]
struct Took {
    time: Duration,
    /// Datagrams that the server sent.
    datagrams: u64,
}

/// `packets` packets of data, over a connection that loses the datagrams whose numbers, from 1, are in `lost`.
fn take(tail_duplication: bool, packets: usize, lost: &'static [u64]) -> Took {
    let mut transport = TransportConfig {
        tail_duplication,
        ..TransportConfig::default()
    };
    transport.mtu.discover = false;
    let mut pair = both(transport);
    let ends = pair.establish();
    pair.drive(TIMEOUT / 100);
    let before = pair.network.counts(Direction::ToClient).sent;
    let mut number = 0;
    pair.network.filter = Some(Box::new(move |direction, _| {
        number += u64::from(direction == Direction::ToClient);
        direction == Direction::ToClient && lost.contains(&number)
    }));
    let time = download(&mut pair, ends, &pattern(packets * 1150));
    pair.drive(TIMEOUT / 100);
    let datagrams = pair.network.counts(Direction::ToClient).sent - before;
    Took { time, datagrams }
}

#[test]
fn the_loss_of_a_repeat_at_the_end_costs_no_time() {
    let once = take(true, 8, &[2]);
    let twice = take(true, 8, &[2, 9]);
    assert_eq!(once.time, twice.time);
    assert!(take(false, 8, &[2, 9]).time > twice.time);
}

/// The number of additional datagrams that the server sends because retransmissions are duplicated.
fn more(packets: usize, lost: &'static [u64]) -> u64 {
    take(true, packets, lost).datagrams - take(false, packets, lost).datagrams
}

#[test]
fn a_repeat_costs_one_datagram_more_and_nothing_lost_none() {
    assert_eq!(more(8, &[]), 0);
    assert_eq!(more(8, &[2]), 1);
    assert_eq!(more(8, &[1, 2, 3, 4]), 4);
}

#[test]
fn no_more_than_four_repeats_leave_twice() {
    let more = more(12, &[1, 2, 3, 4, 5, 6]);
    assert!((1..=4).contains(&more), "{more}");
}

#[test]
fn repeats_leave_once_while_other_data_waits() {
    assert_eq!(more(400, &[2]), 0);
}

/// Probes after a timeout retransmit data of which no loss is known, and there are two of them.
#[test]
fn probes_leave_no_copies() {
    assert_eq!(more(1, &[1]), 0);
}
