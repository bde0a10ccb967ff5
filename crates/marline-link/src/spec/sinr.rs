//! The SINR that the client's radio reports.

use super::{LinkSpec, Radio};
use crate::lte::{Direction, LteSignal};
use crate::wifi::{Signal, Width};
use crate::{Seed, Time};

/// The SINR at the client's radio over time.
#[derive(Clone, Debug)]
pub struct Sinr(Source);

#[derive(Clone, Debug)]
enum Source {
    Lte(Box<LteSignal>),
    /// Wi-Fi, whose distance changes.
    Wifi(Signal, Width),
    /// Wi-Fi, whose modulation does not change.
    Constant(f64),
}

impl LinkSpec {
    /// The SINR at the radio of the link that [`build`](Self::build) makes with the same seed; `None` if it has no radio.
    ///
    /// Of LTE, it is that of the downlink, whose rate it follows ([`LteSignal`]). Of Wi-Fi, that of the distance, or without one the least that the modulation needs
    /// ([`Phy::least_snr_db`](crate::wifi::Phy::least_snr_db)).
    pub fn sinr(&self, seed: Seed) -> Option<Sinr> {
        match &self.radio {
            Radio::None => None,
            Radio::Lte(lte) => {
                let config = lte.config(Direction::Downlink);
                let signal = LteSignal::new(&config, Direction::Downlink, seed.of("lte"));
                Some(Sinr(Source::Lte(Box::new(signal))))
            }
            Radio::Wifi(wifi) => Some(Sinr(match wifi.signal() {
                Some(signal) => Source::Wifi(signal, wifi.phy().width),
                None => Source::Constant(wifi.phy().least_snr_db()),
            })),
        }
    }
}

impl Sinr {
    /// The SINR at `now`, in dB. The first query of a time takes as long as that time is late.
    pub fn at(&mut self, now: Time) -> f64 {
        match &mut self.0 {
            Source::Lte(signal) => signal.sinr_db(now),
            Source::Wifi(signal, width) => signal.snr_db(*width, now),
            Source::Constant(sinr_db) => *sinr_db,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn mean(link: &str) -> Option<f64> {
        let link: LinkSpec = link.parse().unwrap();
        let mut sinr = link.sinr(Seed::new(7))?;
        let times = (0..1000).map(|step| Time::ZERO + Duration::from_millis(100 * step));
        Some(times.map(|at| sinr.at(at)).sum::<f64>() / 1000.0)
    }

    #[test]
    fn a_poorer_radio_has_a_lower_sinr_and_a_wire_has_none() {
        let lte = ["lte-a-very-good", "lte-a", "lte-a-poor"].map(|link| mean(link).unwrap());
        assert!(lte.is_sorted_by(|better, worse| better > worse), "{lte:?}");
        let mcs = ["7", "3", "0"].map(|mcs| mean(&format!("model=wifi,wifi.mcs={mcs}")).unwrap());
        assert!(mcs.is_sorted_by(|better, worse| better > worse), "{mcs:?}");
        let far = ["10m", "40m"].map(|at| mean(&format!("model=wifi,wifi.distance={at}")).unwrap());
        assert!(
            (far[0] - 39.2).abs() < 0.1 && (far[1] - 18.1).abs() < 0.1,
            "{far:?}"
        );
        assert_eq!(mean("rate=10mbps"), None);
    }
}
