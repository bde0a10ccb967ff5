//! Values that several flags have.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use marline::settings::Named;

/// Parses the name of a value; the help lists them.
pub(crate) fn named<T: Named + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let words = T::WORDS.iter();
    let shown = words.map(|word| PossibleValue::new(word.name).help(word.about));
    PossibleValuesParser::new(shown).try_map(|name| by_name(&name).ok_or("it has no value"))
}

/// The value with this name.
pub(crate) fn by_name<T: Named>(name: &str) -> Option<T> {
    let mut words = T::WORDS.iter();
    words.find(|word| word.name == name).map(|word| word.value)
}
