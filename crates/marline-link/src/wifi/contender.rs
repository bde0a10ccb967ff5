//! Stations whose packets nobody follows: they only occupy the air.

use std::time::Duration;

use super::backoff::Edca;

/// Somebody else on the channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contender {
    /// A station that always has something to say: it contends, collides, and backs off as others do.
    Saturated {
        /// How eagerly.
        edca: Edca,
        /// MPDUs of each of its PPDUs, within the limits of the medium.
        mpdus: u32,
        /// Bytes of each of its packets, IP header included.
        packet_bytes: u32,
    },
    /// Others, of this cell or of another, who take the medium as soon as it is free and keep it for a while; never
    /// in step with anybody, so that they collide with nobody.
    OnOff {
        /// The mean time for which they keep it, which is exponential.
        busy: Duration,
        /// The share of time they take from a medium that is otherwise idle, below 1; idle times are exponential too.
        duty: f64,
    },
}

impl Contender {
    /// Uploads packets of 1,500 bytes without end.
    pub const SATURATED: Self = Self::Saturated {
        edca: Edca::BEST_EFFORT,
        mpdus: 64,
        packet_bytes: 1500,
    };

    /// How eagerly it contends, if it does.
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
