//! Textual specifications of links: `rate=7mbps,rtt=50ms,loss=2%,buffer=45kB`.
//!
//! The same syntax describes links on the command line, in scenarios and in presets. A specification is
//! a list of `key=value` pairs separated by commas. The name of a [preset] may come first, and the pairs
//! after it override it: `lte-a,loss=1%`. Numbers have units, shares are in percent. A key applies to
//! both directions, or to one: `up.rate=1mbps` is from the client to the server, `down.rate=8mbps` from
//! the server to the client. `rtt` sets the delay of both directions to one half each.
//!
//! ```
//! use marline_link::spec::LinkSpec;
//! use std::time::Duration;
//!
//! let link: LinkSpec = "rate=7mbps,rtt=50ms,loss=2%,buffer=45kB,up.rate=1mbps".parse()?;
//! assert_eq!(link.down.rate, Some(7_000_000));
//! assert_eq!(link.up.rate, Some(1_000_000));
//! assert_eq!(link.up.delay, Duration::from_millis(25));
//! assert_eq!(link.to_string().parse(), Ok(link));
//!
//! let error = "rate=7mbps,los=2%".parse::<LinkSpec>().unwrap_err();
//! assert_eq!(error.to_string(), "los: unknown key; did you mean loss?");
//! # Ok::<(), marline_link::spec::SpecError>(())
//! ```
//!
//! From the client, a link consists of an optional radio followed by a wire. In each direction of the
//! wire a packet is checked against the MTU and a policer, shaped, queued and transmitted at the rate, then possibly dropped
//! in an outage, lost, corrupted or duplicated, and finally delayed. So the buffer holds only queued
//! packets, and lost packets have taken their share of the rate.

mod build;
mod channel;
mod direction;
mod error;
mod lte;
mod sinr;
mod unloaded;
mod values;
mod wifi;

#[cfg(test)]
mod tests;

pub use channel::ChannelSpec;
pub use direction::DirectionSpec;
pub use error::SpecError;
pub use lte::LteSpec;
pub use marline_settings::Share;
pub use sinr::Sinr;
pub use unloaded::Unloaded;
pub use values::{
    Alternation, Buffer, Burst, DelayRange, DistributionName, QueueKind, ShareRange, Walk, Window,
};
pub use wifi::{PhyName, Scan, WifiSpec};

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use marline_settings::{
    Domain, Setting, Settings, Shown, Value, advice, is_key, read_time, setting, unknown,
    write_time,
};

use crate::preset::{self, Preset};

/// Rates of links: larger ones are mistakes.
const RATE: Domain = Domain::rate(1_000_000_000_000);

/// A link between a client and a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSpec {
    /// The radio at the client.
    pub radio: Radio,
    /// The wire behind it, from the client to the server.
    pub up: DirectionSpec,
    /// The wire, from the server to the client.
    pub down: DirectionSpec,
    /// How long the mappings of a NAT at the client live without packets from it; `None` for no NAT. It translates ports,
    /// so that the packets of a link that is built must have some: [`build`](Self::build) leaves it out.
    pub nat: Option<Duration>,
}

/// The radio of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Radio {
    /// No radio: the link is only a wire.
    #[default]
    None,
    /// An LTE cell.
    Lte(LteSpec),
    /// An 802.11 channel.
    Wifi(WifiSpec),
}

/// A medium that a radio consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RadioPart {
    /// The cable from the client to its station.
    Cable,
    /// A channel, with its number, from 1 at the client, if there are several.
    Channel(Option<usize>),
}

impl Radio {
    /// The media of the radio, starting at the client.
    pub fn parts(&self) -> Vec<RadioPart> {
        let (cable, channels) = match self {
            Self::None => (None, 0),
            Self::Lte(_) => (None, 1),
            Self::Wifi(wifi) => (wifi.cable, wifi.channels()),
        };
        let number = |channel| (channels > 1).then_some(channel);
        let cable = cable.map(|_| RadioPart::Cable).into_iter();
        let channels = (1..=channels).map(|channel| RadioPart::Channel(number(channel)));
        cable.chain(channels).collect()
    }
}

/// Keys that do not correspond to one field.
const SPECIAL: [(&str, &str); 4] = [
    ("preset", "the preset that other keys override"),
    ("model", "the radio at the client: none, lte or wifi"),
    ("rtt", "delay of both directions, half each"),
    (
        "nat",
        "how long mappings of a NAT at the client live without packets from it, or none",
    ),
];

/// All keys with their help texts.
pub fn keys() -> impl Iterator<Item = (&'static str, String)> {
    let special = SPECIAL
        .iter()
        .map(|(name, about)| (*name, (*about).to_owned()));
    let way = direction::KEYS.iter().map(|key| help(*key));
    let lte = lte::KEYS.iter().map(|key| help(*key));
    let wifi = wifi::KEYS.iter().map(|key| help(*key));
    special.chain(way).chain(lte).chain(wifi)
}

/// A key, and its meaning and values.
fn help<C>(key: &dyn Setting<C>) -> (&'static str, String) {
    let allowed = key
        .domain()
        .map_or_else(String::new, |domain| domain.to_string());
    (key.key(), format!("{}: {allowed}", key.about()))
}

/// Puts the `text` of a value into `spec`.
fn put<C>(key: &dyn Setting<C>, spec: &mut C, text: &str) -> Result<(), String> {
    let written = key.domain().map(|domain| domain.parse(text));
    let written = written.unwrap_or_else(|| text.into());
    key.set(spec, &written).map_err(|why| why.text)
}

/// The text of the value that `spec` has.
fn shown<C>(key: &dyn Setting<C>, spec: &C) -> String {
    match (key.show(spec), key.domain()) {
        (Some(Shown::Value(Value::Switch(switch))), _) => {
            if switch { "on" } else { "off" }.to_owned()
        }
        (Some(Shown::Value(value)), Some(domain)) => domain.write(&value),
        _ => String::new(),
    }
}

/// Checks that each of `pairs` has a value and that no key is repeated.
fn refuse_malformed(pairs: &[(&str, &str)]) -> Result<(), SpecError> {
    for (index, (key, value)) in pairs.iter().enumerate() {
        if value.is_empty() {
            return Err(SpecError::new(*key, NO_VALUE));
        }
        if pairs[..index].iter().any(|(other, _)| is_key(other, key)) {
            return Err(SpecError::new(*key, "is set more than once"));
        }
    }
    Ok(())
}

/// The problem of a key without a value.
const NO_VALUE: &str = "no value; keys are written `key=value`, a preset's name comes first";

impl LinkSpec {
    /// The link with these keys and values, in any order. Keys for one direction override keys for
    /// both.
    ///
    /// # Errors
    ///
    /// Names the invalid key and its problem.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, SpecError> {
        Self::default().changed(pairs)
    }

    /// The link with one key changed, as if the pair were appended to its text.
    ///
    /// # Errors
    ///
    /// The problem with the key.
    pub fn with(&self, key: &str, value: &str) -> Result<Self, SpecError> {
        self.clone().changed([(key, value)])
    }

    fn changed<'a>(
        mut self,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, SpecError> {
        let mut pairs: Vec<_> = pairs
            .into_iter()
            .map(|(key, value)| (key.trim(), value.trim()))
            .collect();
        refuse_malformed(&pairs)?;
        let has = |name: &str| {
            pairs
                .iter()
                .any(|(key, _)| directional(key).map_or(*key, |key| key.name) == name)
        };
        if has("rtt") && has("delay") {
            return Err(SpecError::conflict("rtt", "delay"));
        }
        // Keys that others modify come first, keys for one direction last.
        pairs.sort_by_key(|(key, _)| match *key {
            "preset" => 0,
            "model" => 1,
            key if directional(key).is_none() => 2,
            _ => 3,
        });
        for (key, value) in pairs {
            self.set(key, value)
                .map_err(|why| SpecError::new(key, why))?;
        }
        self.check()?;
        Ok(self)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        if let Some(Directional { up, name }) = directional(key) {
            let Some(key) = setting(direction::KEYS, name) else {
                return Err(match keys().any(|(key, _)| is_key(name, key)) {
                    true => "cannot be set per direction".to_owned(),
                    false => unknown_key(key),
                });
            };
            return put(key, if up { &mut self.up } else { &mut self.down }, value);
        }
        match key {
            "preset" => {
                *self = Preset::find(value)
                    .ok_or_else(|| {
                        let names = preset::PRESETS.iter().map(|preset| preset.name);
                        unknown("preset", value, names)
                    })?
                    .link();
                Ok(())
            }
            "model" => {
                self.radio = match value {
                    "none" => Radio::None,
                    "lte" => Radio::Lte(LteSpec::default()),
                    "wifi" => Radio::Wifi(WifiSpec::default()),
                    _ => return Err(unknown("radio", value, ["none", "lte", "wifi"])),
                };
                Ok(())
            }
            "nat" => {
                self.nat = match value {
                    "none" => None,
                    _ => Some(read_time(value)?),
                };
                Ok(())
            }
            "rtt" => {
                let rtt = read_time(value)?;
                self.up.delay = rtt / 2;
                self.down.delay = rtt - self.up.delay;
                Ok(())
            }
            _ => self.set_field(key, value),
        }
    }

    fn set_field(&mut self, name: &str, value: &str) -> Result<(), String> {
        if let Some(key) = setting(lte::KEYS, name) {
            return match &mut self.radio {
                Radio::Lte(lte) => put(key, lte, value),
                _ => Err("requires `model=lte`".to_owned()),
            };
        }
        if let Some(key) = setting(wifi::KEYS, name) {
            return match &mut self.radio {
                Radio::Wifi(wifi) => put(key, wifi, value),
                _ => Err("requires `model=wifi`".to_owned()),
            };
        }
        let key = setting(direction::KEYS, name).ok_or_else(|| unknown_key(name))?;
        put(key, &mut self.up, value)?;
        put(key, &mut self.down, value)
    }

    /// Checks that the keys are consistent.
    ///
    /// # Errors
    ///
    /// Names the first inconsistent key.
    pub fn check(&self) -> Result<(), SpecError> {
        match &self.radio {
            Radio::None => {}
            Radio::Lte(lte) => lte.check()?,
            Radio::Wifi(wifi) => wifi.check()?,
        }
        self.up.check()?;
        self.down.check()
    }
}

/// A key with a prefix that selects a direction.
struct Directional<'a> {
    /// Whether the direction is from the client to the server.
    up: bool,
    /// The key without its prefix.
    name: &'a str,
}

fn directional(key: &str) -> Option<Directional<'_>> {
    let of = |prefix, up| {
        let name = key.strip_prefix(prefix)?;
        Some(Directional { up, name })
    };
    of("up.", true).or_else(|| of("down.", false))
}

fn unknown_key(name: &str) -> String {
    let advice = match directional(name) {
        Some(Directional { name: key, .. }) => {
            let prefix = &name[..name.len() - key.len()];
            let known = direction::KEYS.iter();
            let known: Vec<_> = known.map(|key| format!("{prefix}{}", key.key())).collect();
            advice(name, known.iter().map(String::as_str))
        }
        None => advice(name, keys().map(|(key, _)| key)),
    };
    format!("unknown key; {advice}")
}

impl FromStr for LinkSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_pairs(pairs(text)?)
    }
}

/// The parts of `text` between commas, except those in parentheses.
pub fn words(text: &str) -> Vec<&str> {
    let (mut words, mut begin, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                words.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    words.push(&text[begin..]);
    words
}

/// The keys and values of `text`; a first word without a value is a preset.
fn pairs(text: &str) -> Result<Vec<(&str, &str)>, SpecError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let words = words(text).into_iter().map(str::trim).enumerate();
    words
        .map(|(index, word)| match word.split_once('=') {
            Some((key, value)) => Ok((key.trim(), value.trim())),
            None if index == 0 => Ok(("preset", word)),
            None => Err(SpecError::new(word, NO_VALUE)),
        })
        .collect()
}

/// Writes the keys that differ from their defaults; parsing the text gives the same link.
impl fmt::Display for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pairs = match &self.radio {
            Radio::None => Vec::new(),
            Radio::Lte(lte) => differing("lte", lte, lte::KEYS),
            Radio::Wifi(wifi) => differing("wifi", wifi, wifi::KEYS),
        };
        let default = DirectionSpec::default();
        for key in direction::KEYS {
            let name = key.key();
            let [up, down, default] =
                [&self.up, &self.down, &default].map(|direction| shown(*key, direction));
            if up != down {
                let ways = [("up", up), ("down", down)].into_iter();
                let ways = ways.filter(|(_, value)| *value != default);
                pairs.extend(ways.map(|(way, value)| format!("{way}.{name}={value}")));
            } else if up != default && name == "delay" {
                pairs.push(format!("rtt={}", write_time(self.up.delay * 2)));
            } else if up != default {
                pairs.push(format!("{name}={up}"));
            }
        }
        let nat = self
            .nat
            .map(|timeout| format!("nat={}", write_time(timeout)));
        pairs.extend(nat);
        f.write_str(&pairs.join(","))
    }
}

/// The radio `model`, and the keys of `radio` that differ from their defaults.
fn differing<C: Default>(model: &str, radio: &C, keys: Settings<C>) -> Vec<String> {
    let default = C::default();
    let keys = keys.iter().filter_map(|key| {
        let value = shown(*key, radio);
        (value != shown(*key, &default)).then(|| format!("{}={value}", key.key()))
    });
    std::iter::once(format!("model={model}"))
        .chain(keys)
        .collect()
}
