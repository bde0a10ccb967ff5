//! A TOML file whose keys are the names of flags, which override it: that of a tunnel.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, Command, ValueEnum};
use marline::settings::{RawValue, advice, quote, unknown};
use marline_http::read_regular_file;

use super::written::WrittenTable;
use crate::failure::Failure;
use crate::transport::TransportFlags;

/// More than any configuration has, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The key of the argument without a name.
const SERVER: &str = "server";

/// The flag that names the file.
const CONFIG: &str = "config";

/// The settings of a file.
pub(crate) struct FlagsFile {
    written: WrittenTable,
}

/// The names of the flags of a verb, and of its argument without one.
fn names<A: Args>() -> Vec<String> {
    let command = A::augment_args(Command::new("verb"));
    let arguments = command.get_arguments();
    let names = arguments.map(|argument| argument.get_long().unwrap_or(SERVER).replace('-', "_"));
    names.collect()
}

/// The keys of a file of a verb: its flags but those of QUIC.
pub(crate) fn flag_keys<A: Args>() -> Vec<String> {
    let of_transport = names::<TransportFlags>();
    let mut keys = names::<A>();
    keys.retain(|name| name != CONFIG && !of_transport.contains(name));
    keys
}

impl FlagsFile {
    /// Reads a file for the verb with these arguments.
    ///
    /// # Errors
    /// It cannot be read, or has a key that is no flag: with file, line and key.
    pub(crate) fn read<A: Args>(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        let text = read_regular_file(path, MAX_FILE)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other))
            .map_err(|error| Failure::Failed(format!("cannot read {name}: {error}")))?;
        Self::parse::<A>(&name.to_string(), &text).map_err(Failure::Usage)
    }

    fn parse<A: Args>(name: &str, text: &str) -> Result<Self, String> {
        let written = WrittenTable::read(name, text)?;
        let known = flag_keys::<A>();
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        let Some((key, _)) = written.first_unknown(&known) else {
            return Ok(Self { written });
        };
        let place = written.place(&[key]);
        let flag = key.replace('_', "-");
        Err(match names::<A>().contains(&key.replace('-', "_")) {
            true => format!("{place}: {key}: this is no key of a file; give the flag --{flag}"),
            false => format!("{place}: {}", unknown("key", key, known)),
        })
    }

    /// Those of a table with the keys of the verb with these arguments, and `others`.
    ///
    /// # Errors
    /// A key is unknown: with file, line and key.
    pub(crate) fn of_table<A: Args>(
        written: WrittenTable,
        others: &[&str],
    ) -> Result<Self, Failure> {
        let known = flag_keys::<A>();
        let known = known
            .iter()
            .map(String::as_str)
            .chain(others.iter().copied());
        let refused = written.refuse_unknown(&known.collect::<Vec<_>>());
        refused.map_err(Failure::Usage)?;
        Ok(Self { written })
    }

    /// Reads the value of a key as that of its flag, unless that is given.
    ///
    /// # Errors
    /// It is no text, or the flag refuses it: with file, line and key.
    pub(crate) fn one<T, E: Display>(
        &self,
        key: &str,
        flag: &mut Option<T>,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<(), Failure> {
        if let (None, Some(written)) = (&flag, self.written.value(&[key])) {
            *flag = Some(self.value(key, written, &read)?);
        }
        Ok(())
    }

    /// Reads the name of a file, unless the flag is given.
    ///
    /// # Errors
    /// It is no text: with file, line and key.
    pub(crate) fn file(&self, key: &str, flag: &mut Option<PathBuf>) -> Result<(), Failure> {
        self.one(key, flag, PathBuf::from_str)
    }

    /// Reads the values of a key, one or a list, as those of its flag, unless that is given.
    ///
    /// # Errors
    /// One is no text, or the flag refuses it: with file, line and key.
    pub(crate) fn several<T, E: Display>(
        &self,
        key: &str,
        flag: &mut Vec<T>,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<(), Failure> {
        if let (true, Some(written)) = (flag.is_empty(), self.written.value(&[key])) {
            let written = match written {
                RawValue::List(members) => members,
                one => std::slice::from_ref(one),
            };
            let values = written.iter().map(|one| self.value(key, one, &read));
            *flag = values.collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// Reads a number, unless the flag is given.
    ///
    /// # Errors
    /// It is none, or too small or too large: with file, line and key.
    pub(crate) fn number(
        &self,
        key: &str,
        flag: &mut Option<u16>,
        least: u16,
    ) -> Result<(), Failure> {
        let (None, Some(written)) = (&flag, self.written.value(&[key])) else {
            return Ok(());
        };
        let number = match written {
            RawValue::Integer(number) => u16::try_from(*number).ok(),
            _ => None,
        };
        let wrong = || {
            let most = u16::MAX;
            self.wrong(
                key,
                &format!("this must be a number from {least} to {most}, not {written}"),
            )
        };
        *flag = Some(number.filter(|number| *number >= least).ok_or_else(wrong)?);
        Ok(())
    }

    /// Reads whether a flag without a value is given.
    ///
    /// # Errors
    /// It is neither true nor false: with file, line and key.
    pub(crate) fn switch(&self, key: &str, flag: &mut bool) -> Result<(), Failure> {
        match self.written.value(&[key]) {
            None => {}
            Some(RawValue::Switch(is_on)) => *flag |= is_on,
            Some(written) => {
                return Err(self.wrong(key, &format!("this must be true or false, not {written}")));
            }
        }
        Ok(())
    }

    fn value<T, E: Display>(
        &self,
        key: &str,
        written: &RawValue,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, Failure> {
        let RawValue::Text(text) = written else {
            return Err(self.wrong(key, &format!("this must be text in quotes, not {written}")));
        };
        read(text).map_err(|why| self.wrong(key, &format!("\"{}\": {why}", quote(text))))
    }

    /// The error for a value.
    pub(crate) fn wrong(&self, key: &str, why: &str) -> Failure {
        // One that is missing is missing in the table.
        let place = match self.written.has(&[key]) {
            true => self.written.place(&[key]),
            false => self.written.place(&[]),
        };
        Failure::Usage(format!("{place}: {}: {why}", self.written.name(key)))
    }
}

/// One of the words that a flag takes.
///
/// # Errors
/// It is none of them, which the message lists.
pub(crate) fn choice<T: ValueEnum>(text: &str) -> Result<T, String> {
    T::from_str(text, false).map_err(|_| {
        let words = T::value_variants().iter();
        let words: Vec<_> = words.filter_map(ValueEnum::to_possible_value).collect();
        advice(text, words.iter().map(|word| word.get_name()))
    })
}

/// Checks of how `--config` completes the arguments of a verb.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// The message about a file of this content.
    pub(crate) fn refused<A: Args>(
        text: &str,
        complete: impl Fn(&FlagsFile) -> Result<(), Failure>,
    ) -> String {
        let file = FlagsFile::parse::<A>("t.toml", text);
        match file.map(|file| complete(&file)) {
            Err(message) | Ok(Err(Failure::Usage(message))) => message,
            Ok(other) => panic!("{text}: {other:?}"),
        }
    }

    /// The keys of the verb that change nothing in its arguments, with the values that `value` has for them.
    pub(crate) fn ignored<A: Args>(
        value: impl Fn(&str) -> &'static str,
        complete: impl Fn(&FlagsFile) -> String,
    ) -> Vec<String> {
        let read = |text: &str| complete(&FlagsFile::parse::<A>("t.toml", text).ok().unwrap());
        let without = read("");
        let mut keys = flag_keys::<A>();
        keys.retain(|key| read(&format!("{key} = {}", value(key))) == without);
        keys
    }
}
