//! The Wi-Fi at the client's end.

use std::time::Duration;

use super::key::{Key, Size, Value, name_of, named};
use super::units::Share;
use super::{Problem, SpecError};

/// A Wi-Fi channel that client, access point and others share.
#[derive(Clone, Debug, PartialEq)]
pub struct WifiSpec {
    /// The kind of channel.
    pub phy: PhyName,
    /// The modulation and coding scheme: 0 to 7 of one stream, 8 to 15 of two (802.11n), or 0 to 9 of
    /// two (802.11ac).
    pub mcs: u8,
    /// Whether the guard interval is the short one, of 0.4 us.
    pub short_guard: bool,
    /// Whether stations join packets to A-MPDUs.
    pub aggregation: bool,
    /// How many acknowledgments, or other small packets, the client joins; none for no limit.
    pub acks: Option<u64>,
    /// MPDUs that noise destroys.
    pub error: Share,
    /// Which share of the time others use the channel.
    pub busy: Share,
    /// How long others use it at a time, on average.
    pub busy_time: Duration,
    /// How many hops there are from the client to the wire.
    pub hops: u64,
    /// Whether the receiver puts packets in order.
    pub reorder: bool,
    /// What may wait at each station, in bytes.
    pub queue: u64,
    /// Added to every packet that arrives, in both directions.
    pub delay: Duration,
    /// When the client looks for other channels; it keeps what comes.
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
            hops: 1,
            reorder: true,
            queue: 1_000_000,
            delay: Duration::ZERO,
            scan: None,
        }
    }
}

/// A kind of channel.
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

/// How often a radio looks for other channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scan {
    /// For how long.
    pub length: Duration,
    /// From one to the next, and to the first.
    pub every: Duration,
}

impl Value for Scan {
    fn read(text: &str) -> Result<Self, Problem> {
        const FORM: &str =
            "written `150ms/3s`: for how long, and from one to the next, which is longer";
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
    key!("wifi.aggregation", aggregation, "off: one packet at a time"),
    Key {
        name: "wifi.acks",
        help: "how many acknowledgments the client joins; none for no limit",
        set: |wifi, text| {
            wifi.acks = Option::<u64>::read(text)?;
            if wifi.acks == Some(0) {
                return Err(Problem::out_of_range(text, "1 or more, or none"));
            }
            Ok(())
        },
        show: |wifi| wifi.acks.write(),
    },
    key!("wifi.error", error, "frames that noise destroys"),
    key!(
        "wifi.busy",
        busy,
        "share of the time that others use the channel"
    ),
    key!(
        "wifi.busy-time",
        busy_time,
        "how long others use it at a time"
    ),
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
        "wifi.reorder",
        reorder,
        "off: the receiver passes packets on as they come"
    ),
    Key {
        name: "wifi.queue",
        help: "what may wait at each station",
        set: |wifi, text| {
            wifi.queue = Size::read(text)?.0;
            Ok(())
        },
        show: |wifi| Size(wifi.queue).write(),
    },
    key!("wifi.delay", delay, "added to what arrives, each way"),
    key!(
        "wifi.scan",
        scan,
        "how long, and how often, the client looks for other channels: 150ms/3s"
    ),
];
