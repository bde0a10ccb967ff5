//! Workloads of video and calls.

use std::time::Duration;

use serde::Serialize;

use super::Direction;
use super::model::seconds;

/// An adaptive video: segments of equal length, each at one of several bit rates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VideoDef {
    /// The bit rates, in bits per second, the lowest first.
    pub ladder: Vec<u64>,
    /// The number of segments.
    pub segments: usize,
    /// The length of a segment.
    #[serde(serialize_with = "seconds")]
    pub segment: Duration,
    /// The content that the player holds at most.
    #[serde(serialize_with = "seconds")]
    pub buffer: Duration,
    /// How it chooses bit rates.
    pub choice: VideoChoice,
}

impl VideoDef {
    /// Bytes of a segment at `rate` bits per second, at least 1.
    pub fn segment_bytes(&self, rate: u64) -> u64 {
        let bits = u128::from(rate) * self.segment.as_nanos() / 1_000_000_000;
        u64::try_from(bits / 8).unwrap_or(u64::MAX).max(1)
    }
}

/// How a player chooses bit rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VideoChoice {
    /// By the content in its buffer: BBA-0 (Huang et al., SIGCOMM 2014).
    #[default]
    Buffer,
    /// By the harmonic mean of the throughput of five segments (FESTIVE, CoNEXT 2012), less a tenth.
    Throughput,
}

impl VideoChoice {
    /// Every choice, with its name in scenarios.
    pub const NAMES: [(&'static str, Self); 2] =
        [("buffer", Self::Buffer), ("throughput", Self::Throughput)];
}

/// A real-time call in one direction: frames of equal size at equal intervals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallDef {
    /// Bits per second.
    pub rate: u64,
    /// Frames per second, at least 1.
    pub frames_per_second: u32,
    /// The length of the call.
    #[serde(serialize_with = "seconds")]
    pub length: Duration,
    /// The delay after which a frame is late.
    #[serde(serialize_with = "seconds")]
    pub deadline: Duration,
    /// The carrier of frames.
    pub over: Carrier,
    /// The direction of the frames.
    pub direction: Direction,
}

impl CallDef {
    /// The time between frames.
    pub fn interval(&self) -> Duration {
        Duration::from_secs(1) / self.frames_per_second.max(1)
    }

    /// The number of frames.
    pub fn frames(&self) -> u64 {
        let frames = self.length.as_nanos() * u128::from(self.frames_per_second) / 1_000_000_000;
        u64::try_from(frames).unwrap_or(u64::MAX)
    }

    /// Bytes of a frame, at least 1.
    pub fn frame_bytes(&self) -> u64 {
        (self.rate / 8 / u64::from(self.frames_per_second.max(1))).max(1)
    }
}

/// The carrier of the frames of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// DATAGRAM frames (RFC 9221): lost parts stay lost.
    #[default]
    Datagrams,
    /// A stream for each frame.
    Streams,
}

impl Carrier {
    /// Every carrier, with its name in scenarios.
    pub const NAMES: [(&'static str, Self); 2] =
        [("datagrams", Self::Datagrams), ("streams", Self::Streams)];
}
