use super::{Reorder, WINDOW};
use crate::Packet;
use crate::wifi::entry::Entry;

/// A receiver, what it passed on, and what came late.
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

    /// An MPDU of several packets.
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
fn those_behind_a_gap_wait_until_it_is_filled() {
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
fn packets_of_one_mpdu_share_a_number() {
    let mut harness = Harness::new(Some(100));
    for seq in [0, 2, 1, 3] {
        harness.accept_several(0, seq, 2);
    }
    assert_eq!(harness.out, [0, 0, 1, 1, 2, 2, 3, 3]);
}

#[test]
fn a_gap_does_not_last_forever() {
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
fn a_window_further_on_ends_the_gap() {
    let mut harness = Harness::new(Some(100));
    harness.accept(0, 1);
    harness.accept(0, WINDOW - 1);
    assert_eq!(harness.out, []);
    harness.accept(0, WINDOW);
    assert_eq!(harness.out, [1]);
}

#[test]
fn a_receiver_may_pass_on_what_comes() {
    let mut harness = Harness::new(None);
    for seq in [1, 0, 2] {
        harness.accept(0, seq);
    }
    assert_eq!(harness.out, [1, 0, 2]);
    assert_eq!(harness.reorder.deadline(), None);
}

#[test]
fn a_packet_that_waited_too_long_takes_those_before_it_along() {
    let mut harness = Harness::new(Some(100));
    harness.accept(0, 5);
    harness.accept(50, 3);
    harness.accept(60, 7);
    assert_eq!(harness.reorder.deadline(), Some(100));
    harness.expire(100);
    assert_eq!(harness.out, [3, 5]);
    assert_eq!(harness.reorder.deadline(), Some(160));
}
