//! The Wi-Fi at the client.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use marline_settings::{
    Domain, Field, Named, Settings, Share, Word, read_time, text_values, write_time,
};

use super::values::Walk;
use super::{RATE, SpecError};
use crate::wifi::RateControl;

text_values!(Scan);

/// A Wi-Fi channel shared by the client, the access point and other stations.
#[derive(Clone, Debug, PartialEq)]
pub struct WifiSpec {
    /// Channel type.
    pub phy: PhyName,
    /// Modulation and coding scheme: 0 to 7 with one stream, 8 to 15 with two (802.11n), or 0 to 9 with
    /// two (802.11ac).
    pub mcs: u8,
    /// Whether the short guard interval of 0.4 us is used.
    pub short_guard: bool,
    /// Whether stations aggregate packets into A-MPDUs.
    pub aggregation: bool,
    /// Most acknowledgments, or other small packets, in an A-MPDU of the client; `None` for no limit.
    pub acks: Option<u64>,
    /// MPDU error rate, beside errors by the signal.
    pub error: Share,
    /// How stations choose their modulation; `fixed` is [`mcs`](Self::mcs).
    pub rate_control: RateControl,
    /// Distances between stations over time, by which errors follow from the signal; `None` for no such errors.
    pub distance: Option<Walk>,
    /// Transmit power with antenna gains, in dBm.
    pub power: u64,
    /// Distance up to which path loss is that of free space, in meters.
    pub breakpoint: u64,
    /// Share of the time in which other traffic occupies the channel.
    pub busy: Share,
    /// Mean duration for which other traffic occupies it at a time.
    pub busy_time: Duration,
    /// Number of other stations that always have packets to send.
    pub contenders: u64,
    /// Rate of the cable between the client and its station, in bits per second; `None` if the client is the
    /// station.
    pub cable: Option<u64>,
    /// Number of hops from the client to the wire.
    pub hops: u64,
    /// Whether all hops share a channel; otherwise each has its own, with the same other traffic.
    pub shared: bool,
    /// Whether receivers deliver packets in order.
    pub reorder: bool,
    /// Queue limit of each station, in bytes.
    pub queue: u64,
    /// Delay added to every packet that arrives, in both directions.
    pub delay: Duration,
    /// Periodic scans of the client for other channels, which hold packets back.
    pub scan: Option<Scan>,
}

impl Default for WifiSpec {
    fn default() -> Self {
        Self {
            phy: PhyName::Ht20,
            mcs: 7,
            short_guard: false,
            aggregation: true,
            acks: None,
            error: Share::NONE,
            rate_control: RateControl::Fixed,
            distance: None,
            power: 15,
            breakpoint: 10,
            busy: Share::NONE,
            busy_time: Duration::from_millis(10),
            contenders: 0,
            cable: None,
            hops: 1,
            shared: true,
            reorder: true,
            queue: 1_000_000,
            delay: Duration::ZERO,
            scan: None,
        }
    }
}

/// A channel type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PhyName {
    /// 802.11n, 20 MHz.
    #[default]
    Ht20,
    /// 802.11n, 40 MHz.
    Ht40,
    /// 802.11ac, 80 MHz, two streams.
    Vht80,
}

impl Named for PhyName {
    const WORDS: &'static [Word<Self>] = &[
        Word::new("ht20", "802.11n, 20 MHz", Self::Ht20),
        Word::new("ht40", "802.11n, 40 MHz", Self::Ht40),
        Word::new("vht80", "802.11ac, 80 MHz, two streams", Self::Vht80),
    ];
}

/// Length and interval of a radio's scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scan {
    /// Length of a scan.
    pub length: Duration,
    /// Interval from one scan to the next, and to the first.
    pub every: Duration,
}

impl FromStr for Scan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = || {
            format!("\"{text}\" is not written 150ms/3s: length and interval, which must be longer")
        };
        let (length, every) = text.split_once('/').ok_or_else(malformed)?;
        let (length, every) = (read_time(length)?, read_time(every)?);
        let is_valid = !length.is_zero() && length < every;
        is_valid
            .then_some(Self { length, every })
            .ok_or_else(malformed)
    }
}

impl fmt::Display for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", write_time(self.length), write_time(self.every))
    }
}

impl WifiSpec {
    /// The number of channels that it is built as.
    pub(super) const fn channels(&self) -> usize {
        if self.shared { 1 } else { self.hops as usize }
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        let range = |key, value: String, range| Err(SpecError::out_of_range(key, &value, range));
        if self.phy == PhyName::Vht80 && self.mcs > 9 {
            return range("wifi.mcs", self.mcs.to_string(), "0 to 9 with vht80");
        }
        if self.busy == Share::ALL {
            return range("wifi.busy", self.busy.to_string(), "below 100%");
        }
        for (is_set, key) in [
            (self.power != 15, "wifi.power"),
            (self.breakpoint != 10, "wifi.breakpoint"),
        ] {
            SpecError::unless(!is_set || self.distance.is_some(), key, "wifi.distance")?;
        }
        if self.busy_time < Duration::from_micros(1) {
            return range("wifi.busy-time", write_time(self.busy_time), "1us or more");
        }
        Ok(())
    }
}

macro_rules! key {
    ($name:literal, $field:ident: $domain:expr, $about:literal) => {
        &Field::new($name, $domain, $about, |wifi: &mut WifiSpec| {
            &mut wifi.$field
        })
    };
}

pub(super) const KEYS: Settings<WifiSpec> = &[
    key!("wifi.phy", phy: Domain::words::<PhyName>(), "channel type"),
    key!("wifi.mcs", mcs: Domain::integer(0, 15), "modulation and coding; 0 to 9 with vht80"),
    key!("wifi.short-guard", short_guard: Domain::SWITCH, "the short guard interval"),
    key!("wifi.aggregation", aggregation: Domain::SWITCH, "off: one packet per transmission"),
    key!("wifi.acks", acks: Domain::count(1).or("none"), "most acknowledgments in an A-MPDU of the client; none for no limit"),
    key!("wifi.error", error: Domain::SHARE, "MPDU error rate"),
    key!("wifi.rate-control", rate_control: Domain::words::<RateControl>(), "how stations choose their modulation"),
    key!(
        "wifi.distance",
        distance: Domain::text("a distance, as 10m, or a walk, as 10m@0s+60m@20s").or("none"),
        "the distance of stations, from which their signal and its errors follow"
    ),
    key!("wifi.power", power: Domain::integer(0, 40), "transmit power with antenna gains, in dBm"),
    key!("wifi.breakpoint", breakpoint: Domain::integer(1, 1000), "distance in meters up to which path loss is that of free space"),
    key!("wifi.busy", busy: Domain::SHARE, "share of time in which other traffic occupies the channel"),
    key!("wifi.busy-time", busy_time: Domain::TIME, "mean duration of occupation by other traffic"),
    key!("wifi.contenders", contenders: Domain::integer(0, 16), "other stations that always have packets to send"),
    key!("wifi.cable", cable: RATE.or("none"), "rate of the cable between the client and its station; none if the client is the station"),
    key!("wifi.hops", hops: Domain::integer(1, 16), "hops of a mesh"),
    key!("wifi.shared", shared: Domain::SWITCH, "off: each hop of a mesh has a channel of its own"),
    key!("wifi.reorder", reorder: Domain::SWITCH, "off: receivers deliver packets out of order"),
    key!("wifi.queue", queue: Domain::SIZE, "queue limit of each station"),
    key!("wifi.delay", delay: Domain::TIME, "delay added to every packet, in each direction"),
    key!("wifi.scan", scan: Domain::text("scans, as 150ms/3s (length/interval)").or("none"), "the client's scans for other channels"),
];
