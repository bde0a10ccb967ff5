//! Tables of keys: how each value is parsed and printed.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use super::Problem;
use super::units::{self, Share};

/// A key of a specification of type `T`.
pub(super) struct Key<T> {
    pub(super) name: &'static str,
    /// Values and meaning, for help texts.
    pub(super) help: &'static str,
    pub(super) set: fn(&mut T, &str) -> Result<(), Problem>,
    /// The value as text.
    pub(super) show: fn(&T) -> String,
}

impl<T: 'static> Key<T> {
    pub(super) fn find(keys: &'static [Self], name: &str) -> Option<&'static Self> {
        keys.iter().find(|key| key.name == name)
    }
}

/// A value in its textual form.
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

/// A count, without a unit.
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

/// A value, or `none`.
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

/// A list joined by `+`, or `none` if empty.
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

/// Parses one of several names.
pub(super) fn named<T: Clone>(text: &str, names: &[(&'static str, T)]) -> Result<T, Problem> {
    match names.iter().find(|(name, _)| *name == text) {
        Some((_, value)) => Ok(value.clone()),
        None => Err(Problem::UnknownName {
            value: text.to_owned(),
            known: names.iter().map(|(name, _)| *name).collect(),
        }),
    }
}

/// The name of a value.
pub(super) fn name_of<T: PartialEq>(value: &T, names: &[(&'static str, T)]) -> String {
    let known = names.iter().find(|(_, other)| other == value);
    known.map_or_else(String::new, |(name, _)| (*name).to_owned())
}

/// Writes pairs of `key=value` separated by commas.
pub(super) struct PairWriter<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    first: bool,
}

impl<'a, 'f> PairWriter<'a, 'f> {
    pub(super) const fn new(f: &'a mut fmt::Formatter<'f>) -> Self {
        Self { f, first: true }
    }

    pub(super) fn pair(&mut self, prefix: &str, key: &str, value: &str) -> fmt::Result {
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
                self.pair(prefix, key.name, &value)?;
            }
        }
        Ok(())
    }
}
