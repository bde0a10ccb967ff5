//! What a link would do for one packet alone, and for many at its full rate.

use std::time::Duration;

use super::{LinkSpec, LteSpec, Radio, WifiSpec};

/// A link without queues, losses and others on the channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unloaded {
    /// Round-trip time of a small packet, transmission at the rate left out.
    pub rtt: Duration,
    /// From the server to the client, in bits per second; none if it is not limited, or known only to
    /// a trace.
    pub down: Option<f64>,
}

impl LinkSpec {
    /// What would be the best to hope for.
    pub fn unloaded(&self) -> Unloaded {
        let (rtt, radio) = match &self.radio {
            Radio::None => (Duration::ZERO, None),
            Radio::Lte(lte) => (lte.rtt(), Some(lte.rate as f64)),
            Radio::Wifi(wifi) => (2 * wifi.delay, Some(wifi.down())),
        };
        let wire = self.down.rate.map(|rate| rate as f64);
        Unloaded {
            rtt: rtt + self.up.delay + self.down.delay,
            down: [radio, wire].into_iter().flatten().reduce(f64::min),
        }
    }
}

impl LteSpec {
    /// On average and without retransmissions: half a TTI until the block begins, the block and its
    /// decoding downwards; half a period until the request, then request, grant, block and decoding
    /// upwards.
    fn rtt(&self) -> Duration {
        let down = Duration::from_micros(500 + 2_500);
        let up = self.sr / 2 + Duration::from_micros(8_000 + 1_500);
        2 * self.core + down + up
    }
}

impl WifiSpec {
    /// The rate of the modulation, over all hops, for the time that others leave.
    fn down(&self) -> f64 {
        let phy = self.config().phy;
        phy.bits_per_second() * (1.0 - self.busy.as_f64()) / self.hops.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unloaded(link: &str) -> Unloaded {
        link.parse::<LinkSpec>().unwrap().unloaded()
    }

    #[test]
    fn wires_radios_and_both() {
        let wire = unloaded("rate=7mbps,rtt=50ms,loss=2%,up.rate=1mbps");
        assert_eq!(wire.rtt, Duration::from_millis(50));
        assert_eq!(wire.down, Some(7e6));
        let lte = unloaded("lte-a");
        assert_eq!(lte.rtt, Duration::from_micros(25_000 + 20_740));
        assert_eq!(lte.down, Some(65.9e6));
        let wifi =
            unloaded("model=wifi,wifi.phy=ht40,wifi.mcs=15,wifi.short-guard=on,wifi.busy=10%");
        assert!((wifi.down.unwrap() - 270e6).abs() < 1e6, "{wifi:?}");
        assert_eq!(unloaded("rtt=10ms").down, None);
    }
}
