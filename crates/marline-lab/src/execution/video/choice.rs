//! The choice of a segment's bit rate.

use std::collections::VecDeque;
use std::time::Duration;

use crate::scenario::{VideoChoice, VideoDef};

/// The share of the buffer up to which the lowest bit rate is chosen: 90 s of 240 s (Huang et al., "A Buffer-Based Approach to
/// Rate Adaptation", SIGCOMM 2014, section 4).
const RESERVOIR: f64 = 0.375;

/// The share of the buffer over which the bit rate then grows, up to 216 s of 240 s.
const CUSHION: f64 = 0.525;

/// The share of the throughput that a bit rate may have, as in dash.js.
const SAFETY: f64 = 0.9;

/// The rung for the next segment, with `level` in the buffer, after `last`.
pub(super) fn choose(
    video: &VideoDef,
    level: Duration,
    last: Option<usize>,
    recent: &VecDeque<f64>,
) -> usize {
    match video.choice {
        VideoChoice::Buffer => by_buffer(video, level, last.unwrap_or(0)),
        VideoChoice::Throughput => by_throughput(video, recent),
    }
}

/// BBA-0: the bit rate changes when the map of the buffer crosses the next higher or lower one.
fn by_buffer(video: &VideoDef, level: Duration, last: usize) -> usize {
    let ladder = &video.ladder;
    let top = ladder.len().saturating_sub(1);
    let [lowest, highest] = [ladder[0], ladder[top]].map(|rate| rate as f64);
    // A segment is chosen when there is room for it, so that the buffer is never fuller than this.
    let most = video.buffer.saturating_sub(video.segment);
    let share = level.as_secs_f64() / most.as_secs_f64();
    let part = ((share - RESERVOIR) / CUSHION).clamp(0.0, 1.0);
    if part <= 0.0 {
        return 0;
    }
    if part >= 1.0 {
        return top;
    }
    let mapped = lowest + part * (highest - lowest);
    let (up, down) = ((last + 1).min(top), last.saturating_sub(1));
    if mapped >= ladder[up] as f64 {
        let below = ladder.iter().rposition(|rate| (*rate as f64) < mapped);
        below.unwrap_or(0)
    } else if mapped <= ladder[down] as f64 {
        let above = ladder.iter().position(|rate| *rate as f64 > mapped);
        above.unwrap_or(top)
    } else {
        last
    }
}

/// The highest bit rate below the harmonic mean of recent throughput (Jiang et al., FESTIVE, CoNEXT 2012), less a margin.
fn by_throughput(video: &VideoDef, recent: &VecDeque<f64>) -> usize {
    if recent.is_empty() {
        return 0;
    }
    let inverse: f64 = recent.iter().map(|rate| 1.0 / rate).sum();
    let expected = SAFETY * recent.len() as f64 / inverse;
    let below = video
        .ladder
        .iter()
        .rposition(|rate| *rate as f64 <= expected);
    below.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn video(choice: VideoChoice) -> VideoDef {
        VideoDef {
            ladder: vec![1_000_000, 2_000_000, 4_000_000, 8_000_000],
            segments: 10,
            segment: Duration::from_secs(4),
            buffer: Duration::from_secs(40),
            choice,
        }
    }

    #[test]
    fn the_buffer_decides_with_a_reservoir_and_hysteresis() {
        // Of 36 s, the map is 1 Mb/s up to 13.5 s and 8 Mb/s from 32.4 s on.
        let by = |seconds, last| {
            let level = Duration::from_secs(seconds);
            by_buffer(&video(VideoChoice::Buffer), level, last)
        };
        assert_eq!([0, 13, 33, 36].map(|level| by(level, 2)), [0, 0, 3, 3]);
        // 3 Mb/s at 19 s: above the next from 1, below the next from 2.
        assert_eq!([by(19, 0), by(19, 1), by(19, 2), by(19, 3)], [1, 1, 2, 2]);
    }

    #[test]
    fn throughput_is_the_harmonic_mean_less_a_margin() {
        let by = |recent: &[f64]| {
            by_throughput(&video(VideoChoice::Throughput), &recent.to_vec().into())
        };
        assert_eq!(by(&[]), 0);
        assert_eq!([by(&[4.4e6]), by(&[4.5e6])], [1, 2]);
        // Harmonic mean of 3 and 9: 4.5.
        assert_eq!(by(&[3e6, 9e6]), 2);
    }
}
