//! Arbitrary payloads. Checks that decoding does not panic, yields at most one frame per byte, and that
//! an encoded frame decodes to the same frame.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_wire::frame::{Ack, PathAck};
use marline_wire::{Frame, Frames};

fuzz_target!(|payload: &[u8]| {
    let mut count = 0;
    for frame in Frames::new(payload) {
        count += 1;
        let Ok(frame) = frame else { break };
        if let Frame::Ack(ack) | Frame::PathAck(PathAck { ack, .. }) = frame {
            check_ranges(&ack);
        }
        let _ = (frame.is_ack_eliciting(), frame.is_probing());
        check_writing(&frame);
    }
    assert!(count <= payload.len());
});

/// Decoding accepts integers that are not in their shortest form; encoding does not write them.
fn check_writing(frame: &Frame<'_>) {
    let written = encoded(frame);
    let mut frames = Frames::new(&written);
    let again = frames.next().expect("a frame").expect("a valid frame");
    assert!(frames.next().is_none());
    assert_eq!(again.frame_type(), frame.frame_type());
    assert_eq!(encoded(&again), written);
}

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut written = Vec::new();
    frame.encode(&mut written);
    written
}

fn check_ranges(ack: &Ack<'_>) {
    let mut below = None;
    for range in ack.ranges() {
        assert!(range.start() <= range.end());
        assert!(below.is_none_or(|below| *range.end() + 1 < below));
        below = Some(*range.start());
    }
}
