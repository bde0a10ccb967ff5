//! The signal between two stations, by their distance.

use std::sync::Arc;
use std::time::Duration;

use super::phy::Width;
use crate::Time;

/// The signal between two stations whose distance changes.
///
/// Path loss is that of the TGn channel models (IEEE 802.11-03/940r4): as in free space up to a breakpoint, then with the
/// distance to the power of 3.5. Shadowing and fading are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// The distances by time, between which they change at a constant speed; the last one stays.
    path: Arc<[Waypoint]>,
    power_dbm: f64,
    breakpoint_m: f64,
}

/// A distance at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waypoint {
    /// Time since the epoch.
    pub at: Duration,
    /// Distance in meters.
    pub meters: f64,
}

/// Path loss of free space at one meter and 5.2 GHz, in dB: 20 log10(4 pi f / c).
const AT_ONE_METER_DB: f64 = 46.8;

/// Exponent of the distance beyond the breakpoint.
const EXPONENT: f64 = 3.5;

/// Thermal noise in 20 MHz, in dBm.
const NOISE_DBM: f64 = -101.0;

/// Noise figure of receivers, in dB.
const NOISE_FIGURE_DB: f64 = 10.0;

impl Signal {
    /// A station that moves along `path`, in order of time, transmits with `power_dbm`, antenna gains included, and is in a
    /// room or hall with this breakpoint: 5 m in the models of homes and small offices (A to C), 10 m in a typical office (D),
    /// 20 m in a large one (E). Distances below 1 m count as 1 m.
    pub fn new(path: Vec<Waypoint>, power_dbm: f64, breakpoint_m: f64) -> Self {
        Self {
            path: path.into(),
            power_dbm,
            breakpoint_m: breakpoint_m.max(1.0),
        }
    }

    /// Distance at `now`, in meters.
    pub fn meters(&self, now: Time) -> f64 {
        let time = now.since(Time::ZERO);
        let next = self.path.partition_point(|point| point.at <= time);
        let before = next.checked_sub(1).and_then(|index| self.path.get(index));
        match (before, self.path.get(next)) {
            (Some(from), Some(to)) => {
                let part = (time - from.at).as_secs_f64() / (to.at - from.at).as_secs_f64();
                from.meters + (to.meters - from.meters) * part
            }
            (Some(only), None) | (None, Some(only)) => only.meters,
            (None, None) => 1.0,
        }
    }

    /// Signal-to-noise ratio at `now` in a channel of this width, in dB.
    pub fn snr_db(&self, width: Width, now: Time) -> f64 {
        let widening = match width {
            Width::Ht20 => 0.0,
            Width::Ht40 => 3.0,
            Width::Vht80 => 6.0,
        };
        let noise = NOISE_DBM + NOISE_FIGURE_DB + widening;
        self.power_dbm - self.path_loss_db(self.meters(now)) - noise
    }

    fn path_loss_db(&self, meters: f64) -> f64 {
        let meters = meters.max(1.0);
        let near = meters.min(self.breakpoint_m);
        AT_ONE_METER_DB + 20.0 * libm::log10(near) + 10.0 * EXPONENT * libm::log10(meters / near)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk() -> Signal {
        let path = [(0, 10.0), (10, 60.0), (20, 20.0)];
        let path = path.map(|(at, meters)| Waypoint {
            at: Duration::from_secs(at),
            meters,
        });
        Signal::new(path.to_vec(), 15.0, 10.0)
    }

    #[test]
    fn distances_are_interpolated() {
        let meters = |seconds| walk().meters(Time::ZERO + Duration::from_secs(seconds));
        assert_eq!(
            [0, 5, 10, 15, 20, 99].map(meters),
            [10.0, 35.0, 60.0, 40.0, 20.0, 20.0]
        );
    }

    #[test]
    fn path_loss_is_that_of_the_model() {
        // 46.8 + 20 log10(10), and 35 log10(4) more at 40 m.
        let loss = |meters| walk().path_loss_db(meters);
        assert!((loss(10.0) - 66.8).abs() < 0.01, "{}", loss(10.0));
        assert!((loss(40.0) - 87.87).abs() < 0.01, "{}", loss(40.0));
        assert_eq!(loss(0.1), loss(1.0));
        // 15 dBm - 87.87 dB + 91 dBm, and 3 dB less for each doubling of the width.
        let at = Time::ZERO + Duration::from_secs(15);
        let snr = [Width::Ht20, Width::Ht40].map(|width| walk().snr_db(width, at));
        assert!((snr[0] - 18.13).abs() < 0.01, "{snr:?}");
        assert!((snr[0] - snr[1] - 3.0).abs() < 1e-9);
    }
}
