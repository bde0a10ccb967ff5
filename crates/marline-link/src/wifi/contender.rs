//! Other transmitters on the channel, which only use airtime.

use std::time::Duration;

use super::backoff::Edca;

/// Another transmitter on the channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contender {
    /// A saturated station: it contends, collides and backs off as other stations do.
    Saturated {
        /// EDCA parameters.
        edca: Edca,
        /// Number of MPDUs per PPDU, within the limits of the medium.
        mpdus: u32,
        /// Size of each packet in bytes, including the IP header.
        packet_bytes: u32,
    },
    /// Interference by other transmitters, which occupy the medium as soon as it is idle, without
    /// contention or collisions.
    OnOff {
        /// Mean duration of an occupation; exponentially distributed.
        busy: Duration,
        /// Share of time occupied on an otherwise idle medium, below 1; idle times are exponential too.
        duty: f64,
    },
}

impl Contender {
    /// A saturated uploader of packets of 1,500 bytes.
    pub const SATURATED: Self = Self::Saturated {
        edca: Edca::BEST_EFFORT,
        mpdus: 64,
        packet_bytes: 1500,
    };

    /// The contender's EDCA parameters, if it contends.
    pub(super) fn edca(&self) -> Option<Edca> {
        match self {
            Self::Saturated { edca, .. } => Some(*edca),
            Self::OnOff { .. } => None,
        }
    }

    pub(super) fn is_valid(&self) -> bool {
        match self {
            Self::Saturated {
                mpdus,
                packet_bytes,
                ..
            } => *mpdus > 0 && *packet_bytes <= 11_000,
            Self::OnOff { busy, duty } => {
                *busy >= Duration::from_micros(1) && *duty > 0.0 && *duty < 1.0
            }
        }
    }
}
