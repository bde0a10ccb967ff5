//! Results of the analysis of schedulers by HBES (Xing et al., 2022, section IV).

use std::time::Duration;

/// Packets that a receiver buffers until those of the slower path arrive, if both paths are filled in turn:
/// those that the faster path sends in half a round trip of the slower one.
///
/// `window` is the faster path's, in packets, and `fast` and `slow` are the round-trip times.
pub fn reorder_buffer_rr(window: f64, fast: Duration, slow: Duration) -> f64 {
    window * half_ratio(fast, slow)
}

/// As [`reorder_buffer_rr`], if the faster path is filled first: its initial window arrives in order. Zero if
/// the slower path is less than twice as slow.
pub fn reorder_buffer_lrf(window: f64, fast: Duration, slow: Duration) -> f64 {
    (window * (half_ratio(fast, slow) - 1.0)).max(0.0)
}

/// Packets of other streams that a stream waits for on average, if it is at a random place among `streams`
/// whose turns are `turn` packets long.
pub fn expected_wait(turn: f64, streams: f64) -> f64 {
    turn * (streams - 1.0) / 2.0
}

fn half_ratio(fast: Duration, slow: Duration) -> f64 {
    slow.as_secs_f64() / (2.0 * fast.as_secs_f64())
}
