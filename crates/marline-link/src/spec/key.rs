//! The keys of a part of a link: how each is read and written.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use super::Problem;
use super::units::{self, Share};

/// A key of a `T`.
pub(super) struct Key<T> {
    pub(super) name: &'static str,
    /// What it takes and means, for help.
    pub(super) help: &'static str,
    pub(super) set: fn(&mut T, &str) -> Result<(), Problem>,
    /// The value as it would be written.
    pub(super) show: fn(&T) -> String,
}

impl<T: 'static> Key<T> {
    pub(super) fn find(keys: &'static [Self], name: &str) -> Option<&'static Self> {
        keys.iter().find(|key| key.name == name)
    }
}

/// A value as it is written.
pub(super) trait Value: Sized {
    fn read(text: &str) -> Result<Self, Problem>;
    fn write(&self) -> String;
}

impl Value for Share {
    fn read(text: &str) -> Result<Self, Problem> {
        units::share(text)
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Value for Duration {
    fn read(text: &str) -> Result<Self, Problem> {
        units::time(text)
    }

    fn write(&self) -> String {
        units::show_time(*self)
    }
}

impl Value for bool {
    fn read(text: &str) -> Result<Self, Problem> {
        named(text, &[("on", true), ("off", false)])
    }

    fn write(&self) -> String {
        if *self { "on" } else { "off" }.to_owned()
    }
}

/// A count, which has no unit.
impl Value for u64 {
    fn read(text: &str) -> Result<Self, Problem> {
        text.parse().map_err(|_| Problem::not_a_number(text))
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Value for NonZeroU64 {
    fn read(text: &str) -> Result<Self, Problem> {
        Self::new(u64::read(text)?).ok_or_else(|| Problem::out_of_range(text, "1 or more"))
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Value for String {
    fn read(text: &str) -> Result<Self, Problem> {
        Ok(text.to_owned())
    }

    fn write(&self) -> String {
        self.clone()
    }
}

/// Bits per second.
#[derive(Clone, Copy)]
pub(super) struct Rate(pub(super) u64);

impl Value for Rate {
    fn read(text: &str) -> Result<Self, Problem> {
        units::rate(text).map(Self)
    }

    fn write(&self) -> String {
        units::show_rate(self.0)
    }
}

/// Bytes.
#[derive(Clone, Copy)]
pub(super) struct Size(pub(super) u64);

impl Value for Size {
    fn read(text: &str) -> Result<Self, Problem> {
        units::size(text).map(Self)
    }

    fn write(&self) -> String {
        units::show_size(self.0)
    }
}

/// What is there, or `none`.
impl<V: Value> Value for Option<V> {
    fn read(text: &str) -> Result<Self, Problem> {
        if text == "none" {
            Ok(None)
        } else {
            V::read(text).map(Some)
        }
    }

    fn write(&self) -> String {
        match self {
            Some(value) => value.write(),
            None => "none".to_owned(),
        }
    }
}

/// Several, joined by `+`; `none` for no one.
impl<V: Value> Value for Vec<V> {
    fn read(text: &str) -> Result<Self, Problem> {
        if text == "none" {
            return Ok(Self::new());
        }
        text.split('+').map(|word| V::read(word.trim())).collect()
    }

    fn write(&self) -> String {
        if self.is_empty() {
            return "none".to_owned();
        }
        let words: Vec<_> = self.iter().map(V::write).collect();
        words.join("+")
    }
}

/// One of several names.
pub(super) fn named<T: Clone>(text: &str, names: &[(&'static str, T)]) -> Result<T, Problem> {
    match names.iter().find(|(name, _)| *name == text) {
        Some((_, value)) => Ok(value.clone()),
        None => Err(Problem::UnknownName {
            value: text.to_owned(),
            known: names.iter().map(|(name, _)| *name).collect(),
        }),
    }
}

/// The name of one of several values.
pub(super) fn name_of<T: PartialEq>(value: &T, names: &[(&'static str, T)]) -> String {
    let known = names.iter().find(|(_, other)| other == value);
    known.map_or_else(String::new, |(name, _)| (*name).to_owned())
}

/// Writes `key=value` of what differs from the defaults, a comma before each but the first.
pub(super) struct Words<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    first: bool,
}

impl<'a, 'f> Words<'a, 'f> {
    pub(super) const fn new(f: &'a mut fmt::Formatter<'f>) -> Self {
        Self { f, first: true }
    }

    pub(super) fn word(&mut self, prefix: &str, key: &str, value: &str) -> fmt::Result {
        let comma = if self.first { "" } else { "," };
        self.first = false;
        write!(self.f, "{comma}{prefix}{key}={value}")
    }

    pub(super) fn part<T: Default>(
        &mut self,
        prefix: &str,
        part: &T,
        keys: &[Key<T>],
    ) -> fmt::Result {
        let default = T::default();
        for key in keys {
            let value = (key.show)(part);
            if value != (key.show)(&default) {
                self.word(prefix, key.name, &value)?;
            }
        }
        Ok(())
    }
}
