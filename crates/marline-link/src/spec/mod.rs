//! How links are written: `rate=7mbps,rtt=50ms,loss=2%,buffer=45kB`.
//!
//! The same words make a link on the command line, in a scenario, and of a preset. A link is pairs of
//! `key=value`, a comma between them; a [preset]'s name may stand first, and what follows
//! changes it: `lte-a,loss=1%`. Numbers have units, shares are in percent. A key is for both directions,
//! or for one: `up.rate=1mbps` is from the client to the server, `down.rate=8mbps` from the server to
//! the client. `rtt` is the delay of both, half each.
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
//! assert_eq!(error.to_string(), "los: unknown key; did you mean `loss`?");
//! # Ok::<(), marline_link::spec::SpecError>(())
//! ```
//!
//! From the client's end, a link is its radio, if it has one, and then a wire. In each direction of the
//! wire a packet first has to fit, then waits for its turn at the rate, then may meet an outage, be lost,
//! corrupted or duplicated, and then takes its delay. So the buffer holds what waits and nothing else,
//! and what is lost has taken its share of the rate.

mod build;
mod direction;
mod error;
mod key;
mod lte;
mod units;
mod unloaded;
mod values;
mod wifi;

#[cfg(test)]
mod tests;

pub use direction::Way;
pub use error::{Problem, SpecError};
pub use lte::LteSpec;
pub use units::Share;
pub use unloaded::Unloaded;
pub use values::{Buffer, Burst, LawName, QueueKind, Window};
pub use wifi::{PhyName, Scan, WifiSpec};

use std::fmt;
use std::str::FromStr;

use crate::preset::{self, Preset};
use error::nearest;
use key::{Key, Words, named};

/// A link between a client and a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSpec {
    /// The radio at the client's end.
    pub radio: Radio,
    /// The wire behind it, from the client to the server.
    pub up: Way,
    /// The wire, from the server to the client.
    pub down: Way,
}

/// A radio.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Radio {
    /// None: the wire is all.
    #[default]
    None,
    /// A cell of LTE.
    Lte(LteSpec),
    /// A channel of 802.11.
    Wifi(WifiSpec),
}

/// Keys that are no field of their own.
const SPECIAL: [(&str, &str); 3] = [
    ("preset", "the link to begin with, by its name"),
    ("model", "the radio at the client's end: none, lte or wifi"),
    ("rtt", "delay of both directions, half each"),
];

/// All keys, and what each takes and means.
pub fn keys() -> impl Iterator<Item = (&'static str, &'static str)> {
    let way = direction::KEYS.iter().map(|key| (key.name, key.help));
    let lte = lte::KEYS.iter().map(|key| (key.name, key.help));
    let wifi = wifi::KEYS.iter().map(|key| (key.name, key.help));
    SPECIAL.into_iter().chain(way).chain(lte).chain(wifi)
}

impl LinkSpec {
    /// The link of these keys and values, in any order; what is for one direction wins over what
    /// is for both.
    ///
    /// # Errors
    ///
    /// What is wrong with which key.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, SpecError> {
        Self::default().changed(pairs)
    }

    /// The link with a key changed, as if the pair were added to its text.
    ///
    /// # Errors
    ///
    /// What is wrong with the key.
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
        for (index, (key, value)) in pairs.iter().enumerate() {
            if value.is_empty() {
                return Err(Problem::NoValue.at(*key));
            }
            if pairs[..index].iter().any(|other| other.0 == *key) {
                return Err(Problem::Twice.at(*key));
            }
        }
        let has = |name: &str| {
            pairs
                .iter()
                .any(|(key, _)| direction(key).map_or(*key, |(_, key)| key) == name)
        };
        if has("rtt") && has("delay") {
            return Err(Problem::Conflict { with: "delay" }.at("rtt"));
        }
        // What others build on comes first, what is for one direction last.
        pairs.sort_by_key(|(key, _)| match *key {
            "preset" => 0,
            "model" => 1,
            key if direction(key).is_none() => 2,
            _ => 3,
        });
        for (key, value) in pairs {
            self.set(key, value).map_err(|problem| problem.at(key))?;
        }
        self.check()?;
        Ok(self)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Problem> {
        if let Some((up, name)) = direction(key) {
            let Some(key) = Key::find(direction::KEYS, name) else {
                return Err(match keys().any(|key| key.0 == name) {
                    true => Problem::BothDirections,
                    false => unknown(key),
                });
            };
            return (key.set)(if up { &mut self.up } else { &mut self.down }, value);
        }
        match key {
            "preset" => {
                *self = Preset::find(value)
                    .ok_or_else(|| Problem::UnknownPreset {
                        nearest: nearest(value, preset::PRESETS.iter().map(|preset| preset.name)),
                    })?
                    .link();
                Ok(())
            }
            "model" => {
                self.radio = named(
                    value,
                    &[
                        ("none", Radio::None),
                        ("lte", Radio::Lte(LteSpec::default())),
                        ("wifi", Radio::Wifi(WifiSpec::default())),
                    ],
                )?;
                Ok(())
            }
            "rtt" => {
                let rtt = units::time(value)?;
                self.up.delay = rtt / 2;
                self.down.delay = rtt - self.up.delay;
                Ok(())
            }
            _ => self.set_field(key, value),
        }
    }

    fn set_field(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        if let Some(key) = Key::find(lte::KEYS, name) {
            return match &mut self.radio {
                Radio::Lte(lte) => (key.set)(lte, value),
                _ => Err(Problem::Needs { key: "model=lte" }),
            };
        }
        if let Some(key) = Key::find(wifi::KEYS, name) {
            return match &mut self.radio {
                Radio::Wifi(wifi) => (key.set)(wifi, value),
                _ => Err(Problem::Needs { key: "model=wifi" }),
            };
        }
        let key = Key::find(direction::KEYS, name).ok_or_else(|| unknown(name))?;
        (key.set)(&mut self.up, value)?;
        (key.set)(&mut self.down, value)
    }

    /// Whether the parts go together.
    ///
    /// # Errors
    ///
    /// The first key that does not.
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

/// Whether a key is for one direction, up or not, and the key without that.
fn direction(key: &str) -> Option<(bool, &str)> {
    let up = key.strip_prefix("up.").map(|key| (true, key));
    up.or_else(|| key.strip_prefix("down.").map(|key| (false, key)))
}

fn unknown(name: &str) -> Problem {
    let nearest = match direction(name) {
        Some((_, key)) => {
            let prefix = &name[..name.len() - key.len()];
            nearest(key, direction::KEYS.iter().map(|key| key.name))
                .map(|key| format!("{prefix}{key}"))
        }
        None => nearest(name, keys().map(|key| key.0)).map(str::to_owned),
    };
    Problem::UnknownKey { nearest }
}

impl FromStr for LinkSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let words = text.split(',').map(str::trim).enumerate();
        let pairs: Vec<_> = words
            .map(|(index, word)| match word.split_once('=') {
                Some(pair) => Ok(pair),
                None if index == 0 => Ok(("preset", word)),
                None => Err(Problem::NoValue.at(word)),
            })
            .collect::<Result<_, _>>()?;
        Self::from_pairs(pairs)
    }
}

/// What differs from a wire that does nothing; parsing it gives the same link.
impl fmt::Display for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Words::new(f);
        match &self.radio {
            Radio::None => {}
            Radio::Lte(lte) => {
                words.word("", "model", "lte")?;
                words.part("", lte, lte::KEYS)?;
            }
            Radio::Wifi(wifi) => {
                words.word("", "model", "wifi")?;
                words.part("", wifi, wifi::KEYS)?;
            }
        }
        let default = Way::default();
        for key in direction::KEYS {
            let [up, down, default] = [&self.up, &self.down, &default].map(key.show);
            if up == down {
                if key.name == "delay" && up != default {
                    words.word("", "rtt", &units::show_time(self.up.delay * 2))?;
                } else if up != default {
                    words.word("", key.name, &up)?;
                }
                continue;
            }
            for (prefix, value) in [("up.", up), ("down.", down)] {
                if value != default {
                    words.word(prefix, key.name, &value)?;
                }
            }
        }
        Ok(())
    }
}
