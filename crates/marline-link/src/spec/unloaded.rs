//! Performance of a link without load.

use std::time::Duration;

use super::{DirectionSpec, LinkSpec, LteSpec, Radio, WifiSpec};

/// Performance of a link without queueing, losses and other traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unloaded {
    /// Round-trip time of a small packet, without transmission time.
    pub rtt: Duration,
    /// Rate from the server to the client, in bits per second; `None` if unlimited or defined by a
    /// trace.
    pub down: Option<f64>,
}

impl LinkSpec {
    /// The best performance that the link allows.
    pub fn unloaded(&self) -> Unloaded {
        let (rtt, radio) = match &self.radio {
            Radio::None => (Duration::ZERO, None),
            Radio::Lte(lte) => (lte.rtt(), Some(lte.rate as f64)),
            Radio::Wifi(wifi) => (2 * wifi.delay, Some(wifi.down())),
        };
        let wire = [self.down.rate, self.down.policer, self.down.shaper];
        let wire = wire.into_iter().flatten();
        Unloaded {
            rtt: rtt + self.up.delay + self.down.delay,
            down: radio
                .into_iter()
                .chain(wire.map(|rate| rate as f64))
                .reduce(f64::min),
        }
    }

    /// Whether [`unloaded`](Self::unloaded) says what the link allows at any time, but for rates that vary by chance around
    /// their mean: neither rate nor delay follows a trace, blockages, hand-overs or a distance.
    pub fn has_fixed_limits(&self) -> bool {
        let is_fixed = |direction: &DirectionSpec| {
            direction.trace.is_none()
                && direction.delay_trace.is_none()
                && direction.blockage.is_none()
                && direction.handover.is_none()
        };
        let walks = matches!(&self.radio, Radio::Wifi(wifi) if wifi.distance.is_some());
        !walks && is_fixed(&self.up) && is_fixed(&self.down)
    }

    /// Whether its rate from the server to the client is the same all the time, or never above that of
    /// [`unloaded`](Self::unloaded).
    pub fn has_steady_rate(&self) -> bool {
        let radio = match &self.radio {
            Radio::None => true,
            Radio::Wifi(wifi) => wifi.distance.is_none(),
            Radio::Lte(lte) => lte.std == 0,
        };
        let varies = self.down.blockage.is_some() || self.down.handover.is_some();
        radio && !varies && self.down.rate_std == 0 && self.down.trace.is_none()
    }
}

impl LteSpec {
    /// Mean round-trip time without retransmissions. Downlink: half a TTI of waiting, transmission and
    /// decoding. Uplink: half a scheduling request period, request, grant, transmission and decoding.
    fn rtt(&self) -> Duration {
        let down = Duration::from_micros(500 + 2_500);
        let up = self.sr / 2 + Duration::from_micros(8_000 + 1_500);
        2 * self.core + down + up
    }
}

impl WifiSpec {
    /// The PHY rate for the time that other traffic leaves, divided by the number of hops that share it.
    fn down(&self) -> f64 {
        let sharing = if self.shared { self.hops.max(1) } else { 1 };
        let air = self.phy().bits_per_second() * (1.0 - self.busy.as_f64()) / sharing as f64;
        self.cable.map_or(air, |rate| air.min(rate as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unloaded(link: &str) -> Unloaded {
        link.parse::<LinkSpec>().unwrap().unloaded()
    }

    #[test]
    fn unloaded_rtt_and_rate_of_wires_and_radios() {
        let wire = unloaded("rate=7mbps,rtt=50ms,loss=2%,up.rate=1mbps");
        assert_eq!(wire.rtt, Duration::from_millis(50));
        assert_eq!(wire.down, Some(7e6));
        let lte = unloaded("lte-a");
        assert_eq!(lte.rtt, Duration::from_micros(25_000 + 20_740));
        assert_eq!(lte.down, Some(65.9e6));
        let wifi =
            unloaded("model=wifi,wifi.phy=ht40,wifi.mcs=15,wifi.short-guard=on,wifi.busy=10%");
        assert!((wifi.down.unwrap() - 270e6).abs() < 1e6, "{wifi:?}");
        let mesh = |shared| unloaded(&format!("model=wifi,wifi.hops=3,wifi.shared={shared}")).down;
        assert_eq!([mesh("on"), mesh("off")], [Some(65e6 / 3.0), Some(65e6)]);
        assert_eq!(unloaded("rtt=10ms").down, None);
        for limit in ["policer", "shaper"] {
            let slower = unloaded(&format!("rate=50mbps,{limit}=10mbps"));
            assert_eq!(slower.down, Some(10e6));
        }
    }
}
