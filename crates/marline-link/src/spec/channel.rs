//! A Wi-Fi channel specified by its stations and the links among them.

use marline_settings::{advice, setting};

use super::{SpecError, WifiSpec, pairs, put, refuse_malformed, wifi};
use crate::Station;

/// A Wi-Fi channel that several links share: its stations, and which of them send to each other.
///
/// All stations defer to each other. A packet goes over one link; stations in the middle of a route forward it as
/// routers do.
///
/// ```
/// use marline_link::spec::ChannelSpec;
///
/// let mut channel = ChannelSpec::new("wifi.phy=ht40, wifi.mcs=15")?;
/// let gateway = channel.add_station("")?;
/// let near = channel.add_station("wifi.acks=8")?;
/// let far = channel.add_station("")?;
/// channel.add_link([gateway, near], "")?;
/// channel.add_link([gateway, far], "wifi.mcs=1, wifi.error=5%")?;
/// assert_eq!(channel.config().stations.len(), 3);
/// # Ok::<(), marline_link::spec::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelSpec {
    /// The settings of the channel, and of stations and links without their own.
    pub(super) wifi: WifiSpec,
    pub(super) stations: Vec<WifiSpec>,
    pub(super) links: Vec<ChannelLink>,
}

/// A link of a channel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ChannelLink {
    pub(super) between: [Station; 2],
    pub(super) wifi: WifiSpec,
}

/// A part of a channel, and the keys that it may set.
struct Part {
    name: &'static str,
    sets: fn(&str) -> bool,
}

const CHANNEL: Part = Part {
    name: "a channel",
    sets: |key| {
        !matches!(
            key,
            "wifi.cable" | "wifi.hops" | "wifi.shared" | "wifi.scan"
        )
    },
};
const STATION: Part = Part {
    name: "a station",
    sets: |key| {
        matches!(
            key,
            "wifi.aggregation" | "wifi.acks" | "wifi.queue" | "wifi.scan"
        )
    },
};
const LINK: Part = Part {
    name: "a link of a channel",
    sets: |key| {
        matches!(
            key,
            "wifi.mcs"
                | "wifi.short-guard"
                | "wifi.error"
                | "wifi.distance"
                | "wifi.power"
                | "wifi.breakpoint"
        )
    },
};

impl ChannelSpec {
    /// A channel without stations. `text` has keys of [`LinkSpec`](super::LinkSpec) that begin with `wifi.`, and
    /// applies to all stations and links: all but `wifi.cable`,
    /// `wifi.hops`, `wifi.shared` and `wifi.scan`.
    ///
    /// # Errors
    ///
    /// Names the invalid key and its problem.
    pub fn new(text: &str) -> Result<Self, SpecError> {
        Ok(Self {
            wifi: amended(&WifiSpec::default(), text, &CHANNEL)?,
            stations: Vec::new(),
            links: Vec::new(),
        })
    }

    /// Adds a station, and returns its number. `text` may set `wifi.aggregation`, `wifi.acks`, `wifi.queue` and
    /// `wifi.scan`.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn add_station(&mut self, text: &str) -> Result<Station, SpecError> {
        self.stations.push(amended(&self.wifi, text, &STATION)?);
        Ok(self.stations.len() - 1)
    }

    /// Adds a link. `text` may set `wifi.mcs`, `wifi.short-guard`, `wifi.error`, `wifi.distance`, `wifi.power` and
    /// `wifi.breakpoint`, for both directions.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn add_link(&mut self, between: [Station; 2], text: &str) -> Result<(), SpecError> {
        let wifi = amended(&self.wifi, text, &LINK)?;
        self.links.push(ChannelLink { between, wifi });
        Ok(())
    }

    /// Whether the rates of its links do not follow a distance.
    pub fn has_fixed_limits(&self) -> bool {
        self.links.iter().all(|link| link.wifi.distance.is_none())
    }

    /// Rates of its links in bits per second, each as if it had the channel alone: the share of the PHY rate that
    /// other traffic leaves, without errors and contention.
    pub fn unloaded_rates(&self) -> impl Iterator<Item = f64> {
        let left = 1.0 - self.wifi.busy.as_f64();
        let rate = move |link: &ChannelLink| link.wifi.phy().bits_per_second() * left;
        self.links.iter().map(rate)
    }
}

/// `base` with the keys of `text`, which must be keys of `part`.
fn amended(base: &WifiSpec, text: &str, part: &Part) -> Result<WifiSpec, SpecError> {
    let mut spec = base.clone();
    let pairs = pairs(text)?;
    refuse_malformed(&pairs)?;
    for (name, value) in pairs {
        let known = wifi::KEYS.iter().map(|key| key.key());
        let known = known.filter(|name| (part.sets)(name));
        match setting(wifi::KEYS, name) {
            Some(key) if (part.sets)(key.key()) => put(key, &mut spec, value),
            Some(_) => {
                let known: Vec<_> = known.collect();
                let known = known.join(", ");
                Err(format!("not a key of {}; known: {known}", part.name))
            }
            None => Err(format!(
                "not a key of {}; {}",
                part.name,
                advice(name, known)
            )),
        }
        .map_err(|why| SpecError::new(name, why))?;
    }
    spec.check()?;
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(result: Result<impl std::fmt::Debug, SpecError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn parts_of_a_channel_inherit_its_settings_and_replace_some() {
        let mut channel = ChannelSpec::new("wifi.phy=ht40, wifi.mcs=15, wifi.acks=8").unwrap();
        let stations = ["", "wifi.acks=none, wifi.aggregation=off", ""]
            .map(|text| channel.add_station(text).unwrap());
        assert_eq!(stations, [0, 1, 2]);
        channel.add_link([0, 1], "").unwrap();
        channel.add_link([1, 2], "wifi.mcs=3").unwrap();
        let config = channel.config();
        let acks: Vec<_> = config.stations.iter().map(|s| s.ack_aggregation).collect();
        assert_eq!(acks, [Some(8), None, Some(8)]);
        assert!(config.stations[0].aggregation && !config.stations[1].aggregation);
        let rates: Vec<_> = config
            .hops
            .iter()
            .map(|hop| hop.phy.bits_per_second())
            .collect();
        assert_eq!(rates, [270e6, 54e6]);
        assert!(channel.unloaded_rates().eq(rates));
    }

    #[test]
    fn errors_name_the_key_and_the_keys_of_the_part() {
        assert_eq!(
            problem(ChannelSpec::new("wifi.hops=2")),
            "wifi.hops: not a key of a channel; known: wifi.phy, wifi.mcs, wifi.short-guard, wifi.aggregation, \
             wifi.acks, wifi.error, wifi.rate-control, wifi.distance, wifi.power, wifi.breakpoint, wifi.busy, wifi.busy-time, wifi.contenders, wifi.reorder, wifi.queue, wifi.delay"
        );
        let mut channel = ChannelSpec::new("").unwrap();
        assert_eq!(
            problem(channel.add_station("wifi.ack=2")),
            "wifi.ack: not a key of a station; did you mean wifi.acks? known: wifi.aggregation, wifi.acks, \
             wifi.queue, wifi.scan"
        );
        assert_eq!(
            problem(channel.add_link([0, 1], "wifi.mcs=16")),
            "wifi.mcs: this must be an integer from 0 to 15, not 16"
        );
        assert_eq!(
            problem(channel.add_link([0, 1], "wifi.mcs=1, wifi.mcs=2")),
            "wifi.mcs: is set more than once"
        );
        assert_eq!(
            problem(ChannelSpec::new("wifi.phy=vht80, wifi.mcs=12")),
            "wifi.mcs: 12 is out of range: 0 to 9 with vht80"
        );
    }
}
