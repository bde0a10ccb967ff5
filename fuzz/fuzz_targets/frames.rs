//! Any payload: frames are read without a panic, and never more of them than bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_wire::frame::{Ack, PathAck};
use marline_wire::{Frame, Frames};

fuzz_target!(|payload: &[u8]| {
    let mut count = 0;
    for frame in Frames::new(payload) {
        count += 1;
        match frame {
            Ok(Frame::Ack(ack) | Frame::PathAck(PathAck { ack, .. })) => check_ranges(&ack),
            Ok(frame) => {
                let _ = (frame.is_ack_eliciting(), frame.is_probing());
            }
            Err(_) => break,
        }
    }
    assert!(count <= payload.len());
});

fn check_ranges(ack: &Ack<'_>) {
    let mut below = None;
    for range in ack.ranges() {
        assert!(range.start() <= range.end());
        assert!(below.is_none_or(|below| *range.end() + 1 < below));
        below = Some(*range.start());
    }
}
