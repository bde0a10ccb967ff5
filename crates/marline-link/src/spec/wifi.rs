//! The Wi-Fi at the client.

use std::time::Duration;

use super::key::{Key, Rate, Size, Value, name_of, named};
use super::units::Share;
use super::{Problem, SpecError};

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
    /// MPDU error rate.
    pub error: Share,
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

const PHYS: &[(&str, PhyName)] = &[
    ("ht20", PhyName::Ht20),
    ("ht40", PhyName::Ht40),
    ("vht80", PhyName::Vht80),
];

/// Length and interval of a radio's scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scan {
    /// Length of a scan.
    pub length: Duration,
    /// Interval from one scan to the next, and to the first.
    pub every: Duration,
}

impl Value for Scan {
    fn read(text: &str) -> Result<Self, Problem> {
        const FORM: &str = "written `150ms/3s`: length and interval, which must be longer";
        let malformed = || Problem::out_of_range(text, FORM);
        let (length, every) = text.split_once('/').ok_or_else(malformed)?;
        let [length, every] = [length, every].map(|time| Duration::read(time.trim()));
        let (length, every) = (length?, every?);
        if length.is_zero() || length >= every {
            return Err(malformed());
        }
        Ok(Self { length, every })
    }

    fn write(&self) -> String {
        format!("{}/{}", self.length.write(), self.every.write())
    }
}

impl WifiSpec {
    /// The number of channels that it is built as.
    pub(super) const fn channels(&self) -> usize {
        if self.shared { 1 } else { self.hops as usize }
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        let range = |key, value: String, range| Err(Problem::OutOfRange { value, range }.at(key));
        if self.phy == PhyName::Vht80 && self.mcs > 9 {
            return range("wifi.mcs", self.mcs.to_string(), "0 to 9 with vht80");
        }
        if self.busy == Share::ALL {
            return range("wifi.busy", self.busy.to_string(), "below 100%");
        }
        if self.busy_time < Duration::from_micros(1) {
            return range("wifi.busy-time", self.busy_time.write(), "1us or more");
        }
        Ok(())
    }
}

macro_rules! key {
    ($name:literal, $field:ident, $help:literal) => {
        Key {
            name: $name,
            help: $help,
            set: |wifi: &mut WifiSpec, text| {
                wifi.$field = Value::read(text)?;
                Ok(())
            },
            show: |wifi| wifi.$field.write(),
        }
    };
}

pub(super) const KEYS: &[Key<WifiSpec>] = &[
    Key {
        name: "wifi.phy",
        help: "ht20, ht40 or vht80",
        set: |wifi, text| {
            wifi.phy = named(text, PHYS)?;
            Ok(())
        },
        show: |wifi| name_of(&wifi.phy, PHYS),
    },
    Key {
        name: "wifi.mcs",
        help: "modulation and coding: 0 to 15; 0 to 9 with vht80",
        set: |wifi, text| {
            wifi.mcs = u8::try_from(u64::read(text)?)
                .ok()
                .filter(|mcs| *mcs <= 15)
                .ok_or_else(|| Problem::out_of_range(text, "0 to 15"))?;
            Ok(())
        },
        show: |wifi| wifi.mcs.to_string(),
    },
    key!(
        "wifi.short-guard",
        short_guard,
        "on: the short guard interval"
    ),
    key!(
        "wifi.aggregation",
        aggregation,
        "off: one packet per transmission"
    ),
    Key {
        name: "wifi.acks",
        help: "most acknowledgments in an A-MPDU of the client; none for no limit",
        set: |wifi, text| {
            wifi.acks = Option::<u64>::read(text)?;
            if wifi.acks == Some(0) {
                return Err(Problem::out_of_range(text, "1 or more, or none"));
            }
            Ok(())
        },
        show: |wifi| wifi.acks.write(),
    },
    key!("wifi.error", error, "MPDU error rate"),
    key!(
        "wifi.busy",
        busy,
        "share of time in which other traffic occupies the channel"
    ),
    key!(
        "wifi.busy-time",
        busy_time,
        "mean duration of occupation by other traffic"
    ),
    Key {
        name: "wifi.contenders",
        help: "other stations that always have packets to send, 0 to 16",
        set: |wifi, text| {
            wifi.contenders = u64::read(text)?;
            if wifi.contenders > 16 {
                return Err(Problem::out_of_range(text, "0 to 16"));
            }
            Ok(())
        },
        show: |wifi| wifi.contenders.to_string(),
    },
    Key {
        name: "wifi.cable",
        help: "rate of the cable between the client and its station; none if the client is the station",
        set: |wifi, text| {
            wifi.cable = Option::<Rate>::read(text)?.map(|rate| rate.0);
            Ok(())
        },
        show: |wifi| wifi.cable.map(Rate).write(),
    },
    Key {
        name: "wifi.hops",
        help: "hops of a mesh, 1 to 16",
        set: |wifi, text| {
            wifi.hops = u64::read(text)?;
            if !(1..=16).contains(&wifi.hops) {
                return Err(Problem::out_of_range(text, "1 to 16"));
            }
            Ok(())
        },
        show: |wifi| wifi.hops.to_string(),
    },
    key!(
        "wifi.shared",
        shared,
        "off: each hop of a mesh has a channel of its own"
    ),
    key!(
        "wifi.reorder",
        reorder,
        "off: receivers deliver packets out of order"
    ),
    Key {
        name: "wifi.queue",
        help: "queue limit of each station",
        set: |wifi, text| {
            wifi.queue = Size::read(text)?.0;
            Ok(())
        },
        show: |wifi| Size(wifi.queue).write(),
    },
    key!(
        "wifi.delay",
        delay,
        "delay added to every packet, in each direction"
    ),
    key!(
        "wifi.scan",
        scan,
        "length and interval of the client's scans: 150ms/3s"
    ),
];
