//! Sources of the radio's quality.

#[cfg(target_os = "linux")]
mod lines;
#[cfg(target_os = "linux")]
mod live;
#[cfg(all(target_os = "linux", feature = "radio"))]
mod modem;
#[cfg(all(target_os = "linux", feature = "radio"))]
mod polled;
mod trace;
#[cfg(all(target_os = "linux", feature = "radio"))]
mod wifi;

use std::fmt;

use marline::Instant;

#[cfg(target_os = "linux")]
pub use self::lines::LineSource;
#[cfg(target_os = "linux")]
pub use self::live::{LiveSignal, SignalHost, SignalNotice};
#[cfg(all(target_os = "linux", feature = "radio"))]
pub use self::modem::ModemSource;
#[cfg(all(target_os = "linux", feature = "radio"))]
pub use self::polled::RadioError;
pub use self::trace::{SignalError, SignalTrace};
#[cfg(all(target_os = "linux", feature = "radio"))]
pub use self::wifi::{ASSUMED_NOISE_DBM, WifiSource};

/// The quality of the radio at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RadioSample {
    /// Signal to interference and noise ratio in dB.
    pub sinr_db: Option<f64>,
    /// Received power in dBm: of the reference signal (RSRP) for LTE and 5G, of frames for Wi-Fi.
    pub power_dbm: Option<f64>,
}

impl RadioSample {
    /// A sample of which only the SINR in dB is known.
    pub const fn of_sinr(sinr_db: f64) -> Self {
        Self {
            sinr_db: Some(sinr_db),
            power_dbm: None,
        }
    }
}

/// For people: `SINR 12.5 dB, -95.0 dBm`.
impl fmt::Display for RadioSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sinr_db {
            Some(sinr) => write!(f, "SINR {sinr:.1} dB")?,
            None => f.write_str("SINR unknown")?,
        }
        match self.power_dbm {
            Some(power) => write!(f, ", {power:.1} dBm"),
            None => Ok(()),
        }
    }
}

/// A source of the radio's quality.
pub trait RadioSignal: fmt::Debug + Send + Sync {
    /// The quality at `now`, if it is known. It does not block.
    fn sample(&self, now: Instant) -> Option<RadioSample>;
}

/// No radio, or none whose quality is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSignal;

impl RadioSignal for NoSignal {
    fn sample(&self, _now: Instant) -> Option<RadioSample> {
        None
    }
}
