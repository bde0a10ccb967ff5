//! Values of flags that have names.

use std::ffi::OsStr;
use std::sync::Arc;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command};
use marline::Profile;
use marline::settings::{Named, Registry, Word};

/// Reads the value of a flag.
type Read<T> = Arc<dyn Fn(&str) -> Result<T, String> + Send + Sync>;

/// Parses a value by its name; the help lists the names.
#[derive(Clone)]
pub(crate) struct NamedParser<T> {
    shown: Vec<PossibleValue>,
    read: Read<T>,
}

/// Parses the name of a value of `T`, which messages call `what`.
pub(crate) fn named<T: Named + Send + Sync>(what: &'static str) -> NamedParser<T> {
    NamedParser {
        shown: shown(T::WORDS),
        read: Arc::new(move |name| by_name(name).ok_or_else(|| T::refusal(what, name))),
    }
}

/// Parses the name of a profile; the help leaves out the baselines of experiments.
pub(crate) fn profile() -> NamedParser<Profile> {
    let words = Profile::WORDS.iter().zip(shown(Profile::WORDS));
    let shown = words.map(|(word, shown)| shown.hide(word.value.is_baseline()));
    NamedParser {
        shown: shown.collect(),
        ..named("profile")
    }
}

/// Parses a policy, with or without parameters.
pub(crate) fn policy<F>(registry: &'static Registry<F>) -> NamedParser<String> {
    NamedParser {
        shown: shown(&registry.words()),
        read: Arc::new(|text| registry.make(text).map(|_| text.to_owned())),
    }
}

fn shown<T>(words: &[Word<T>]) -> Vec<PossibleValue> {
    let words = words.iter();
    let shown = words.map(|word| PossibleValue::new(word.name).help(word.about));
    shown.collect()
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for NamedParser<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let text = StringValueParser::new().parse_ref(command, arg, value)?;
        (self.read)(&text).map_err(|why| {
            let arg = arg.map_or_else(String::new, |arg| format!(" for '{arg}'"));
            let message = format!("invalid value '{text}'{arg}: {why}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.shown.iter().cloned()))
    }
}

/// The value with this name.
pub(crate) fn by_name<T: Named>(name: &str) -> Option<T> {
    let mut words = T::WORDS.iter();
    words.find(|word| word.name == name).map(|word| word.value)
}
