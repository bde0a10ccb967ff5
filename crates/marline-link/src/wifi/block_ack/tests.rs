use super::{Reorder, WINDOW};
use crate::Packet;
use crate::wifi::entry::Entry;

/// A reorder buffer, with the sequence numbers it delivered and those that were late.
struct Harness {
    reorder: Reorder<()>,
    out: Vec<u64>,
    late: Vec<u64>,
}

impl Harness {
    fn new(timeout: Option<u64>) -> Self {
        Self {
            reorder: Reorder::new(timeout),
            out: Vec::new(),
            late: Vec::new(),
        }
    }

    fn accept(&mut self, now: u64, seq: u64) {
        self.accept_several(now, seq, 1);
    }

    /// Receives an MPDU of several packets.
    fn accept_several(&mut self, now: u64, seq: u64, packets: usize) {
        let (mut out, mut late) = (Vec::new(), Vec::new());
        for _ in 0..packets {
            let mut entry = Entry::new(0, 1, Packet::new(100, ()));
            entry.seq = seq;
            self.reorder.accept(now, entry, &mut out, &mut late);
        }
        self.reorder.release(&mut out);
        self.out.extend(out.iter().map(|entry| entry.seq));
        self.late.extend(late.iter().map(|entry| entry.seq));
    }

    fn expire(&mut self, now: u64) {
        let mut out = Vec::new();
        self.reorder.expire(now, &mut out);
        self.out.extend(out.iter().map(|entry| entry.seq));
    }
}

#[test]
fn packets_behind_a_gap_are_held_until_it_is_filled() {
    let mut harness = Harness::new(Some(100));
    for seq in [0, 2, 4, 3] {
        harness.accept(0, seq);
    }
    assert_eq!(harness.out, [0]);
    harness.accept(9, 1);
    assert_eq!(harness.out, [0, 1, 2, 3, 4]);
    assert_eq!(harness.reorder.deadline(), None);
}

#[test]
fn packets_of_an_amsdu_share_a_sequence_number() {
    let mut harness = Harness::new(Some(100));
    for seq in [0, 2, 1, 3] {
        harness.accept_several(0, seq, 2);
    }
    assert_eq!(harness.out, [0, 0, 1, 1, 2, 2, 3, 3]);
}

#[test]
fn a_gap_is_skipped_when_the_hold_time_expires() {
    let mut harness = Harness::new(Some(100));
    harness.accept(5, 1);
    harness.accept(6, 2);
    harness.accept(7, 4);
    assert_eq!(harness.reorder.deadline(), Some(105));
    harness.expire(105);
    assert_eq!(harness.out, [1, 2]);
    assert_eq!(harness.reorder.deadline(), Some(107));
    harness.accept(106, 0);
    assert_eq!(harness.late, [0]);
    harness.accept(106, 3);
    assert_eq!(harness.out, [1, 2, 3, 4]);
}

#[test]
fn a_gap_is_skipped_when_the_window_advances() {
    let mut harness = Harness::new(Some(100));
    harness.accept(0, 1);
    harness.accept(0, WINDOW - 1);
    assert_eq!(harness.out, []);
    harness.accept(0, WINDOW);
    assert_eq!(harness.out, [1]);
}

#[test]
fn without_reordering_packets_are_delivered_as_received() {
    let mut harness = Harness::new(None);
    for seq in [1, 0, 2] {
        harness.accept(0, seq);
    }
    assert_eq!(harness.out, [1, 0, 2]);
    assert_eq!(harness.reorder.deadline(), None);
}

#[test]
fn expiry_of_a_packet_releases_all_before_it() {
    let mut harness = Harness::new(Some(100));
    harness.accept(0, 5);
    harness.accept(50, 3);
    harness.accept(60, 7);
    assert_eq!(harness.reorder.deadline(), Some(100));
    harness.expire(100);
    assert_eq!(harness.out, [3, 5]);
    assert_eq!(harness.reorder.deadline(), Some(160));
}
