//! The table `[history]`: what the server remembers of paths, and what it makes of it.

use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use marline::coordination::history::{
    Average, HistoryConfig, HistoryPolicy, MAX_WINDOW_SAMPLES, PathScope, StoreLimits, ZeroRtt,
};
use serde::Deserialize;
use toml::Spanned;

use super::set;
use crate::failure::Failure;
use crate::history::{History, Place};

/// Under which name servers share what they learn, unless they say otherwise.
const NAMESPACE: &str = "marline";

/// Samples that count for the average of the latest ones.
const SAMPLES: usize = 8;

/// The weight of the latest sample of a moving average.
const WEIGHT: f64 = 0.125;

/// The longest lifetime, in seconds: a year, as long as a server keeps records.
const LONGEST_S: u64 = 365 * 24 * 3600;

/// The table as it is written. It switches history on, whatever the profile is; what is left out stays as it
/// is by default.
#[derive(Debug, Default, Deserialize)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "the table [history]"
)]
pub(crate) struct Table {
    policy: Option<Policy>,
    file: Option<Spanned<PathBuf>>,
    server: Option<Spanned<String>>,
    namespace: Option<Spanned<String>>,
    average: Option<AverageKind>,
    weight: Option<Spanned<f64>>,
    window: Option<Spanned<i64>>,
    scope: Option<Whose>,
    v4_prefix: Option<Spanned<i64>>,
    v6_prefix: Option<Spanned<i64>>,
    per_server_name: Option<bool>,
    zero_rtt: Option<Resumed>,
    tokens: Option<Spanned<bool>>,
    cap: Option<Spanned<Cap>>,
    raise_only_when_limited: Option<bool>,
    lifetime: Option<Spanned<String>>,
    records: Option<Spanned<i64>>,
    records_per_network: Option<Spanned<i64>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Policy {
    Average,
    Careful,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AverageKind {
    Mean,
    Moving,
    Window,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Whose {
    Prefix,
    Address,
    Global,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Resumed {
    Carry,
    History,
    Default,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "`cap` is a number of bytes, or \"none\"")]
enum Cap {
    Bytes(i64),
    Word(String),
}

/// Something in the table that cannot be: where, and what.
type Problem = (Range<usize>, String);

fn problem<T>(at: &Spanned<T>, what: impl Display) -> Problem {
    (at.span(), what.to_string())
}

impl Table {
    /// The settings that the table stands for. It is in a file called `name` with this `text`; relative
    /// paths start at `base`.
    ///
    /// # Errors
    /// A value is out of its range, or two keys do not go together.
    pub(super) fn settings(&self, name: &str, text: &str, base: &Path) -> Result<History, Failure> {
        let place = |at: usize| format!("{name}:{}", super::line(text, at));
        self.read(base, &place)
            .map_err(|(at, what)| Failure::Usage(format!("{}: {what}", place(at.start))))
    }

    fn read(&self, base: &Path, place: &dyn Fn(usize) -> String) -> Result<History, Problem> {
        let mut config = HistoryConfig::default();
        let mut limits = StoreLimits::default();
        config.average = self.average()?;
        config.scope = self.scope()?;
        set(&mut config.per_server_name, self.per_server_name);
        let zero_rtt = self.zero_rtt.map(|resumed| match resumed {
            Resumed::Carry => ZeroRtt::Carry,
            Resumed::History => ZeroRtt::History,
            Resumed::Default => ZeroRtt::Default,
        });
        set(&mut config.zero_rtt, zero_rtt);
        set(
            &mut config.raise_only_when_limited,
            self.raise_only_when_limited,
        );
        if let Some(written) = &self.lifetime {
            config.lifetime = lifetime(written)?;
            limits.lifetime = config.lifetime;
        }
        let cap = self.cap.as_ref().map(cap).transpose()?;
        set(&mut config.cap, cap);
        let whole = |key, written: &Option<Spanned<i64>>| {
            let count = written.as_ref().map(|n| within(key, n, 1, 100_000_000));
            count.transpose()
        };
        set(&mut limits.records, whole("records", &self.records)?);
        set(
            &mut limits.of_one_network,
            whole("records-per-network", &self.records_per_network)?,
        );
        let policy = match self.policy {
            None => HistoryPolicy::default(),
            Some(Policy::Average) => HistoryPolicy::Average,
            Some(Policy::Careful) => HistoryPolicy::Careful,
        };
        let tokens = self.tokens.as_ref().is_some_and(|tokens| *tokens.get_ref());
        if let (Some(tokens), true, HistoryPolicy::Average) = (&self.tokens, tokens, policy) {
            return Err(problem(
                tokens,
                "`tokens` is for `policy = \"careful\"`; leave one of them out",
            ));
        }
        Ok(History {
            policy,
            tokens,
            config,
            limits,
            max_jump: cap.flatten(),
            place: self.place(base, place)?,
        })
    }

    fn place(&self, base: &Path, place: &dyn Fn(usize) -> String) -> Result<Place, Problem> {
        match (&self.file, &self.server, &self.namespace) {
            (Some(file), Some(server), _) => Err(problem(
                server,
                format_args!(
                    "`server` and `file` (at {}) are two places; leave one of them out",
                    place(file.span().start)
                ),
            )),
            (_, None, Some(namespace)) => Err(problem(
                namespace,
                "`namespace` is a part of a `server`; name one, or leave it out",
            )),
            (None, Some(server), namespace) => {
                let at = namespace.as_ref().map_or(server.span(), Spanned::span);
                let namespace = namespace.as_ref().map(|name| name.get_ref().clone());
                Ok(Place::Server {
                    url: server.get_ref().clone(),
                    namespace: namespace.unwrap_or_else(|| NAMESPACE.to_owned()),
                    named_at: [place(server.span().start), place(at.start)],
                })
            }
            (Some(file), None, None) if file.get_ref().as_os_str().is_empty() => Err(problem(
                file,
                "`file` has no name; give it one, or leave it out",
            )),
            (Some(file), None, None) => Ok(Place::File(base.join(file.get_ref()))),
            (None, None, None) => Ok(Place::Memory),
        }
    }

    fn average(&self) -> Result<Average, Problem> {
        let kind = self.average.unwrap_or(AverageKind::Moving);
        match (&self.weight, &self.window) {
            (Some(weight), _) if kind != AverageKind::Moving => {
                return Err(problem(weight, "`weight` needs `average = \"moving\"`"));
            }
            (_, Some(window)) if kind != AverageKind::Window => {
                return Err(problem(window, "`window` needs `average = \"window\"`"));
            }
            _ => {}
        }
        Ok(match kind {
            AverageKind::Mean => Average::Mean,
            AverageKind::Moving => Average::Ewma {
                weight: match &self.weight {
                    None => WEIGHT,
                    Some(weight) if *weight.get_ref() > 0.0 && *weight.get_ref() <= 1.0 => {
                        *weight.get_ref()
                    }
                    Some(weight) => {
                        let what = weight.get_ref();
                        let range = format!("`weight` is above 0 and at most 1, not {what}");
                        return Err(problem(weight, range));
                    }
                },
            },
            AverageKind::Window => Average::Window(match &self.window {
                None => SAMPLES,
                Some(window) => within("window", window, 1, MAX_WINDOW_SAMPLES)?,
            }),
        })
    }

    fn scope(&self) -> Result<PathScope, Problem> {
        let whose = self.scope.unwrap_or(Whose::Prefix);
        let (PathScope::Prefix { mut v4, mut v6 }, Whose::Prefix) = (PathScope::default(), whose)
        else {
            if let Some(bits) = self.v4_prefix.as_ref().or(self.v6_prefix.as_ref()) {
                let what = "a length of prefixes needs `scope = \"prefix\"`";
                return Err(problem(bits, what));
            }
            return Ok(match whose {
                Whose::Prefix => PathScope::default(),
                Whose::Address => PathScope::Address,
                Whose::Global => PathScope::Global,
            });
        };
        if let Some(bits) = &self.v4_prefix {
            v4 = within("v4-prefix", bits, 1, 32)?;
        }
        if let Some(bits) = &self.v6_prefix {
            v6 = within("v6-prefix", bits, 1, 128)?;
        }
        Ok(PathScope::Prefix { v4, v6 })
    }
}

/// The number in `written`, if it is one from `least` to `most`.
fn within<T>(key: &str, written: &Spanned<i64>, least: i64, most: usize) -> Result<T, Problem>
where
    T: TryFrom<i64>,
{
    let number = *written.get_ref();
    let is_within = number >= least && usize::try_from(number).is_ok_and(|n| n <= most);
    T::try_from(number)
        .ok()
        .filter(|_| is_within)
        .ok_or_else(|| {
            let what = format_args!("`{key}` is from {least} to {most}, not {number}").to_string();
            problem(written, what)
        })
}

/// The most bytes, or no limit.
fn cap(written: &Spanned<Cap>) -> Result<Option<u64>, Problem> {
    let wrong = |what: &dyn Display| {
        let range = format!("`cap` is a number of bytes, 1 at least, or \"none\", not {what}");
        problem(written, range)
    };
    match written.get_ref() {
        Cap::Word(word) if word == "none" => Ok(None),
        Cap::Word(word) => Err(wrong(word)),
        Cap::Bytes(bytes) => match u64::try_from(*bytes) {
            Ok(bytes) if bytes > 0 => Ok(Some(bytes)),
            _ => Err(wrong(bytes)),
        },
    }
}

/// A time such as `90s`, `15min`, `1h`, `7d`.
fn lifetime(written: &Spanned<String>) -> Result<Duration, Problem> {
    let text = written.get_ref().trim();
    let digits = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let seconds = match unit.trim() {
        "s" => Some(1),
        "min" => Some(60),
        "h" => Some(3600),
        "d" => Some(24 * 3600),
        _ => None,
    };
    let number = number.parse::<u64>().ok();
    let lifetime = number
        .zip(seconds)
        .and_then(|(number, unit)| number.checked_mul(unit));
    match lifetime {
        Some(seconds) if (1..=LONGEST_S).contains(&seconds) => Ok(Duration::from_secs(seconds)),
        _ => Err(problem(
            written,
            format_args!(
                "`lifetime` is a time from 1s to 365d, such as \"90s\", \"15min\", \"1h\", \"7d\", not \"{text}\""
            ),
        )),
    }
}

#[cfg(test)]
mod tests;
