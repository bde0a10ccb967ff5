//! The values that a setting takes.

use std::borrow::Cow;
use std::fmt;
use std::ops::Bound;
use std::time::Duration;

use crate::names::{quote, unknown};

use crate::units::{
    Share, read_bytes, read_rate, read_share, read_time, write_bytes, write_rate, write_time,
};

/// A value as written on a command line or in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum RawValue {
    /// `true` or `false`.
    Switch(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Number(f64),
    /// Text.
    Text(String),
    /// A date or a time of day, which no setting takes.
    Date(String),
    /// A list of values.
    List(Vec<Self>),
    /// Keys, each with its value as written.
    Table(Vec<(String, Self)>),
}

impl RawValue {
    /// Reads a plain value of a command line: anything other than a switch (`true`, `false`, `on`, `off`) or a number is text.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let switch = match text {
            "on" | "true" => Some(true),
            "off" | "false" => Some(false),
            _ => None,
        };
        if let Some(switch) = switch {
            Self::Switch(switch)
        } else if let Ok(integer) = text.parse() {
            Self::Integer(integer)
        } else {
            match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Self::Number(number),
                _ => Self::Text(text.to_owned()),
            }
        }
    }
}

impl From<&str> for RawValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The value as quoted in messages.
impl fmt::Display for RawValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(switch) => switch.fmt(f),
            Self::Integer(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => write!(f, "\"{}\"", quote(text)),
            Self::Date(date) => write!(f, "the date or time {date}"),
            Self::List(_) => f.write_str("a list"),
            Self::Table(_) => f.write_str("a table"),
        }
    }
}

/// A value that a [`Domain`] contains.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value, written as a word of the domain.
    Without,
    /// On or off.
    Switch(bool),
    /// A count, or bytes.
    Integer(u64),
    /// A ratio, or a part of something.
    Number(f64),
    /// A length of time.
    Time(Duration),
    /// A share of packets or of time.
    Share(Share),
    /// One of several words, a policy, or any text.
    Word(String),
}

/// A setting as results have it.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// Its value. [`Value::Without`] does not occur: it is shown as its word.
    Value(Value),
    /// The settings inside it, by key.
    Table(Vec<(&'static str, Self)>),
}

/// A name in settings, and its meaning: a value of an enum, or a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<T> {
    /// The name as written.
    pub name: &'static str,
    /// Its meaning, in one line.
    pub about: &'static str,
    /// The value.
    pub value: T,
}

impl<T> Word<T> {
    /// `value` with its name and a one-line description.
    pub const fn new(name: &'static str, about: &'static str, value: T) -> Self {
        Self { name, about, value }
    }
}

/// A name of an earlier version. It is read as the present one, or refused with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormerName {
    /// The former name; `{}` stands for a word.
    pub name: &'static str,
    /// The present name with the same meaning, in which `{}` is that word.
    pub now: &'static str,
    is_refused: bool,
}

impl FormerName {
    /// `name`, which still means `now`.
    pub const fn read(name: &'static str, now: &'static str) -> Self {
        Self {
            name,
            now,
            is_refused: false,
        }
    }

    /// `name`, which meant `now`, and is refused.
    pub const fn refused(name: &'static str, now: &'static str) -> Self {
        Self {
            name,
            now,
            is_refused: true,
        }
    }

    /// The present name, if `text` is this one.
    fn present(&self, text: &str) -> Option<String> {
        let Some((before, after)) = self.name.split_once("{}") else {
            return (self.name == text).then(|| self.now.to_owned());
        };
        let word = text.strip_prefix(before)?.strip_suffix(after)?.trim();
        (!word.is_empty()).then(|| self.now.replace("{}", word))
    }
}

/// `text`, or the present name in place of one of `former` that is still read.
pub(crate) fn present<'a>(former: &[FormerName], text: &'a str) -> Cow<'a, str> {
    let mut read = former.iter().filter(|former| !former.is_refused);
    let now = read.find_map(|former| former.present(text));
    now.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// An enum whose values have names in settings.
pub trait Named: Copy + PartialEq + 'static {
    /// Every value.
    const WORDS: &'static [Word<Self>];

    /// Names that values had before.
    const FORMER: &'static [FormerName] = &[];

    /// The message for `word`, which names no value of `what`.
    fn refusal(what: &str, word: &str) -> String {
        refusal(
            what,
            word,
            Self::WORDS.iter().map(|word| word.name),
            Self::FORMER,
        )
    }

    /// The name of this value.
    fn name(self) -> &'static str {
        let mut words = Self::WORDS.iter();
        let word = words.find(|word| word.value == self);
        word.map_or("", |word| word.name)
    }
}

/// The values that a setting takes, and their notation.
#[derive(Clone, Copy, Debug)]
pub struct Domain {
    kind: Kind,
    without: Option<&'static str>,
    yes: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Switch,
    SwitchOr(&'static str),
    Integer {
        least: u64,
        most: u64,
    },
    Bytes {
        least: u64,
        most: u64,
    },
    Number {
        least: Bound<f64>,
        most: Bound<f64>,
    },
    Time {
        least: Duration,
        most: Duration,
    },
    Rate {
        most: u64,
    },
    Share,
    Words {
        words: fn() -> Vec<Word<()>>,
        former: &'static [FormerName],
    },
    Text(&'static str),
}

impl Domain {
    /// `true` or `false`.
    pub const SWITCH: Self = Self::of(Kind::Switch);

    /// `true`, `false` or `word`.
    pub const fn switch_or(word: &'static str) -> Self {
        Self::of(Kind::SwitchOr(word))
    }

    /// A part of something: above 0 and below 1.
    pub const PART: Self = Self::of(Kind::Number {
        least: Bound::Excluded(0.0),
        most: Bound::Excluded(1.0),
    });

    /// A weight: above 0, and 1 at most.
    pub const WEIGHT: Self = Self::of(Kind::Number {
        least: Bound::Excluded(0.0),
        most: Bound::Included(1.0),
    });

    /// A lifetime of learnt data: up to a year, or unlimited.
    pub const LIFETIME: Self = Self::time(
        Duration::from_millis(1),
        Duration::from_secs(365 * 24 * 3600),
    )
    .or("none");

    /// A share of packets or of time, in percent.
    pub const SHARE: Self = Self::of(Kind::Share);

    /// Any size.
    pub const SIZE: Self = Self::bytes(0, u64::MAX);

    /// Any time.
    pub const TIME: Self = Self::time(Duration::ZERO, Duration::MAX);

    const fn of(kind: Kind) -> Self {
        Self {
            kind,
            without: None,
            yes: None,
        }
    }

    /// Whole numbers from `least` to `most`.
    pub const fn integer(least: u64, most: u64) -> Self {
        Self::of(Kind::Integer { least, most })
    }

    /// Whole numbers from `least` on.
    pub const fn count(least: u64) -> Self {
        Self::integer(least, i64::MAX as u64)
    }

    /// Rates in bits per second up to `most`.
    pub const fn rate(most: u64) -> Self {
        Self::of(Kind::Rate { most })
    }

    /// Bytes from `least` to `most`: a whole number, or text with a unit, as `64kB`.
    pub const fn bytes(least: u64, most: u64) -> Self {
        Self::of(Kind::Bytes { least, most })
    }

    /// Numbers from `least` to `most`, of which shares may also be written in percent.
    pub const fn number(least: f64, most: f64) -> Self {
        Self::of(Kind::Number {
            least: Bound::Included(least),
            most: Bound::Included(most),
        })
    }

    /// Times from `least` to `most`, as text with a unit.
    pub const fn time(least: Duration, most: Duration) -> Self {
        Self::of(Kind::Time { least, most })
    }

    /// The names of `T`'s values.
    pub const fn words<T: Named>() -> Self {
        Self::of(Kind::Words {
            words: names::<T>,
            former: T::FORMER,
        })
    }

    /// Text described by `what`, as "a path"; the type of the field validates it.
    pub const fn text(what: &'static str) -> Self {
        Self::of(Kind::Text(what))
    }

    /// The same domain, plus `word` for no value, also written `false`.
    pub const fn or(self, word: &'static str) -> Self {
        Self {
            without: Some(word),
            ..self
        }
    }

    /// The same domain, plus `true` for `number`.
    pub const fn or_true(self, number: f64) -> Self {
        Self {
            yes: Some(number),
            ..self
        }
    }

    /// Reads the value `written` for `what`.
    ///
    /// # Errors
    /// It is not in the domain; the message says what is.
    pub fn read(&self, what: &str, written: &RawValue) -> Result<Value, String> {
        match written {
            RawValue::Text(text) if self.without == Some(text) => return Ok(Value::Without),
            RawValue::Switch(false) if self.without.is_some() => return Ok(Value::Without),
            RawValue::Switch(true) => {
                if let Some(yes) = self.yes {
                    return Ok(Value::Number(yes));
                }
            }
            _ => {}
        }
        let wrong = || format!("this must be {self}, not {written}");
        let explained = |why| format!("{}: {why}", wrong());
        match (self.kind, written) {
            (Kind::Switch | Kind::SwitchOr(_), RawValue::Switch(switch)) => {
                Ok(Value::Switch(*switch))
            }
            (Kind::SwitchOr(word), RawValue::Text(text)) if word == text => {
                Ok(Value::Word(text.clone()))
            }
            (Kind::Integer { least, most }, RawValue::Integer(number)) => {
                integer(*number, least, most).ok_or_else(wrong)
            }
            (Kind::Bytes { least, most }, RawValue::Integer(number)) => {
                integer(*number, least, most).ok_or_else(wrong)
            }
            (Kind::Bytes { least, most }, RawValue::Text(text)) => {
                let bytes = read_bytes(text).map_err(explained)?;
                let is_within = (least..=most).contains(&bytes);
                is_within.then_some(Value::Integer(bytes)).ok_or_else(wrong)
            }
            (Kind::Number { least, most }, RawValue::Number(number)) => {
                real(*number, least, most).ok_or_else(wrong)
            }
            (Kind::Number { least, most }, RawValue::Integer(number)) => {
                real(*number as f64, least, most).ok_or_else(wrong)
            }
            (Kind::Number { least, most }, RawValue::Text(text)) if text.ends_with('%') => {
                let share = read_share(text).map_err(explained)?;
                real(share.as_f64(), least, most).ok_or_else(wrong)
            }
            (
                Kind::Time { least, most },
                RawValue::Text(_) | RawValue::Integer(_) | RawValue::Number(_),
            ) => {
                let time = read_time(&text_of(written)).map_err(explained)?;
                let is_within = (least..=most).contains(&time);
                is_within.then_some(Value::Time(time)).ok_or_else(wrong)
            }
            (
                Kind::Rate { most },
                RawValue::Text(_) | RawValue::Integer(_) | RawValue::Number(_),
            ) => {
                let rate = read_rate(&text_of(written)).map_err(explained)?;
                (rate <= most)
                    .then_some(Value::Integer(rate))
                    .ok_or_else(wrong)
            }
            (Kind::Share, RawValue::Text(_) | RawValue::Integer(_) | RawValue::Number(_)) => {
                let share = read_share(&text_of(written)).map_err(explained)?;
                Ok(Value::Share(share))
            }
            (Kind::Text(_), RawValue::Text(text)) => Ok(Value::Word(text.clone())),
            // A version, as 1.3, may stand without quotes.
            (Kind::Words { words, .. }, RawValue::Number(_) | RawValue::Integer(_)) => {
                let text = written.to_string();
                let is_word = words().iter().any(|word| word.name == text);
                is_word.then_some(Value::Word(text)).ok_or_else(wrong)
            }
            (Kind::Words { words, former }, RawValue::Text(text)) => {
                let words = words();
                let names = words.iter().map(|word| word.name).chain(self.without);
                let present = present(former, text);
                match names.clone().find(|name| *name == present) {
                    Some(name) => Ok(Value::Word(name.to_owned())),
                    None => Err(refusal(what, text, names, former)),
                }
            }
            _ => Err(wrong()),
        }
    }

    /// Reads `text` from a command line or a link for this domain: in a text domain, text that looks like a number or a switch
    /// stays text.
    pub fn parse(&self, text: &str) -> RawValue {
        match self.kind {
            Kind::Text(_) => RawValue::from(text.trim()),
            _ => RawValue::parse(text),
        }
    }

    /// The notation of `value`.
    pub fn write(&self, value: &Value) -> String {
        match (self.kind, value) {
            (_, Value::Without) => self.without.unwrap_or("none").to_owned(),
            (Kind::Bytes { .. }, Value::Integer(bytes)) => write_bytes(*bytes),
            (Kind::Rate { .. }, Value::Integer(rate)) => write_rate(*rate),
            (_, Value::Share(share)) => share.to_string(),
            (_, Value::Switch(switch)) => switch.to_string(),
            (_, Value::Integer(number)) => number.to_string(),
            (_, Value::Number(number)) => number.to_string(),
            (_, Value::Time(time)) => write_time(*time),
            (_, Value::Word(word)) => word.clone(),
        }
    }

    /// `value`, with no value shown as its word; `None` if there is neither.
    pub(crate) fn show(&self, value: Value) -> Option<Shown> {
        let value = match value {
            Value::Without => Value::Word(self.without?.to_owned()),
            other => other,
        };
        Some(Shown::Value(value))
    }

    /// Values at the edges of the domain, as written, for tests of a setting. Text has none.
    pub fn samples(&self) -> Vec<RawValue> {
        let text = |text: String| RawValue::Text(text);
        let mut samples = match self.kind {
            Kind::Switch => vec![RawValue::Switch(false), RawValue::Switch(true)],
            Kind::SwitchOr(word) => vec![
                RawValue::Switch(false),
                RawValue::Switch(true),
                RawValue::from(word),
            ],
            Kind::Integer { least, most } => {
                vec![
                    RawValue::Integer(least as i64),
                    RawValue::Integer(most as i64),
                ]
            }
            Kind::Bytes { least, most } => {
                vec![text(write_bytes(least)), RawValue::Integer(most as i64)]
            }
            Kind::Number { least, most } => {
                let inside = |bound, inwards| match bound {
                    Bound::Included(number) => number,
                    Bound::Excluded(number) => number + inwards,
                    Bound::Unbounded => inwards,
                };
                vec![
                    RawValue::Number(inside(least, 0.25)),
                    RawValue::Number(inside(most, -0.25)),
                ]
            }
            Kind::Time { least, most } => vec![text(write_time(least)), text(write_time(most))],
            Kind::Rate { most } => vec![text(write_rate(1)), text(write_rate(most))],
            Kind::Share => vec![text(Share::NONE.to_string()), text(Share::ALL.to_string())],
            Kind::Words { words, .. } => {
                let words = words().into_iter();
                words.map(|word| text(word.name.to_owned())).collect()
            }
            Kind::Text(_) => Vec::new(),
        };
        samples.extend(self.without.map(RawValue::from));
        samples
    }

    /// The words of the domain, with their meanings; empty if it is not a choice.
    pub fn choices(&self) -> Vec<Word<()>> {
        match self.kind {
            Kind::Words { words, .. } => words(),
            _ => Vec::new(),
        }
    }
}

/// The allowed values, for messages and the reference.
impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let without = self.without;
        let yes = self.yes.map(|_| "true");
        match self.kind {
            Kind::Switch => f.write_str("true or false")?,
            Kind::SwitchOr(word) => write!(f, "true, false or \"{word}\"")?,
            Kind::Integer { least, most } if most == i64::MAX as u64 => {
                write!(f, "an integer from {least}")?;
            }
            Kind::Integer { least, most } => write!(f, "an integer from {least} to {most}")?,
            Kind::Bytes {
                least: 0,
                most: u64::MAX,
            } => f.write_str("a size")?,
            Kind::Bytes { least, most } => {
                let (least, most) = (write_bytes(least), write_bytes(most));
                write!(f, "a size from {least} to {most}")?;
            }
            Kind::Number { least, most } => {
                let (low, high) = match (least, most) {
                    (Bound::Included(low), Bound::Included(high)) => {
                        (format!("from {low}"), format!(" to {high}"))
                    }
                    (least, most) => (edge(least, "above"), edge(most, " and below")),
                };
                write!(f, "a number {low}{high}")?;
            }
            Kind::Time {
                least: Duration::ZERO,
                most: Duration::MAX,
            } => f.write_str("a time")?,
            Kind::Rate { most } => write!(f, "a rate up to {}", write_rate(most))?,
            Kind::Share => f.write_str("a share in percent")?,
            Kind::Time { least, most } => {
                let (least, most) = (write_time(least), write_time(most));
                write!(f, "a time from {least} to {most}")?;
            }
            Kind::Words { words, .. } => {
                let words = words();
                let names: Vec<_> = words.iter().map(|word| word.name).collect();
                write!(f, "one of {}", names.join(", "))?;
            }
            Kind::Text(what) => f.write_str(what)?,
        }
        match (yes, without) {
            (Some(_), Some(word)) => write!(f, ", true, false or \"{word}\""),
            (None, Some(word)) => write!(f, ", or \"{word}\""),
            (Some(_), None) => f.write_str(", or true"),
            (None, None) => Ok(()),
        }
    }
}

/// A quantity, with or without a unit.
fn text_of(written: &RawValue) -> String {
    match written {
        RawValue::Text(text) => text.clone(),
        other => other.to_string(),
    }
}

fn edge(bound: Bound<f64>, word: &str) -> String {
    match bound {
        Bound::Excluded(number) => format!("{word} {number}"),
        Bound::Included(number) => format!("{} {number}", word.replace("below", "at most")),
        Bound::Unbounded => String::new(),
    }
}

fn integer(number: i64, least: u64, most: u64) -> Option<Value> {
    let number = u64::try_from(number).ok()?;
    (least..=most)
        .contains(&number)
        .then_some(Value::Integer(number))
}

fn real(number: f64, least: Bound<f64>, most: Bound<f64>) -> Option<Value> {
    use std::ops::RangeBounds;
    (least, most)
        .contains(&number)
        .then_some(Value::Number(number))
}

fn refusal<'a>(
    what: &str,
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
    former: &[FormerName],
) -> String {
    match former.iter().find(|former| former.name == word) {
        Some(former) => format!("the {what} {word} has a new name: {}", former.now),
        None => unknown(what, word, names),
    }
}

fn names<T: Named>() -> Vec<Word<()>> {
    let words = T::WORDS.iter();
    words
        .map(|word| Word {
            name: word.name,
            about: word.about,
            value: (),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_has_two_words_for_each_switch() {
        for (text, switch) in [
            ("on", true),
            ("true", true),
            ("off", false),
            (" false", false),
        ] {
            assert_eq!(RawValue::parse(text), RawValue::Switch(switch), "{text}");
        }
        assert_eq!(RawValue::parse("On"), RawValue::from("On"));
    }

    #[test]
    fn a_former_name_is_read_or_refused_with_the_present_one() {
        #[derive(Clone, Copy, Debug, PartialEq)]
        struct Ewma;
        impl Named for Ewma {
            const WORDS: &'static [Word<Self>] = &[Word::new("ewma", "an average", Self)];
            const FORMER: &'static [FormerName] = &[
                FormerName::read("moving", "ewma"),
                FormerName::refused("mean", "ewma"),
            ];
        }
        let read = |text| Domain::words::<Ewma>().read("average", &RawValue::from(text));
        assert_eq!(read("moving"), Ok(Value::Word("ewma".to_owned())));
        let why = read("mean").unwrap_err();
        assert_eq!(why, "the average mean has a new name: ewma");
        let former = [FormerName::read("every {}", "peer_requested(packets={})")];
        for (text, now) in [
            ("every 10", "peer_requested(packets=10)"),
            ("every ", "every "),
            ("ten", "ten"),
        ] {
            assert_eq!(present(&former, text), now);
        }
    }

    #[test]
    fn a_number_may_be_written_in_percent() {
        let read = |text| Domain::WEIGHT.read("weight", &RawValue::parse(text));
        assert_eq!(read("12.5%"), Ok(Value::Number(0.125)));
        assert_eq!(read("12.5%"), read("0.125"));
        let why = read("0%").unwrap_err();
        assert_eq!(
            why,
            "this must be a number above 0 and at most 1, not \"0%\""
        );
        assert!(read("101%").unwrap_err().contains("above 100%"));
    }
}
