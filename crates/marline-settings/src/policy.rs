//! Policies by name, with their parameters.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use crate::names::{quote, unknown};

use crate::domain::{FormerName, RawValue, Shown, Word, present};
use crate::table::{Refused, Row, Settings, apply, call, is_key, rows};

/// A policy that can be named: its name, one line about it, its parameters and how to make an `F` of it.
///
/// `F` is what a configuration holds of the policy, `C` the parameters. Each implementation has its entry in its
/// own file, and the [`Registry`] of its trait lists it.
pub struct Entry<F, C: 'static> {
    /// The name as written, in snake case.
    pub name: &'static str,
    /// Its behaviour, in one line.
    pub about: &'static str,
    /// Its parameters.
    pub parameters: Settings<C>,
    /// Their default values.
    pub default: fn() -> C,
    /// Makes the policy.
    pub make: fn(C) -> F,
}

impl<F> Entry<F, ()> {
    /// A policy without parameters.
    pub const fn plain(name: &'static str, about: &'static str, make: fn(()) -> F) -> Self {
        Self {
            name,
            about,
            parameters: &[],
            default: || (),
            make,
        }
    }
}

impl<F, C> Entry<F, C> {
    /// The notation of the policy with these parameters: those with their default values are omitted.
    pub fn spec(&self, parameters: &C) -> Spec {
        let default = (self.default)();
        let settings = self.parameters.iter();
        let differing = settings.filter_map(|setting| {
            let is = setting.show(parameters)?;
            if setting.show(&default).as_ref() == Some(&is) {
                return None;
            }
            let (Shown::Value(value), Some(domain)) = (is, setting.domain()) else {
                return None;
            };
            Some((setting.key(), domain.write(&value)))
        });
        Spec {
            name: self.name,
            parameters: differing.collect(),
        }
    }
}

/// An [`Entry`], whatever its parameters are.
pub trait Policy<F>: Sync {
    /// The name as written.
    fn name(&self) -> &'static str;

    /// Its behaviour, in one line.
    fn about(&self) -> &'static str;

    /// Its parameters and their defaults.
    fn parameters(&self) -> Vec<Row>;

    /// Values of each parameter for tests to try.
    fn samples(&self) -> Vec<(&'static str, RawValue)>;

    /// Makes one with the default parameters.
    fn make_default(&self) -> F;

    /// Makes one with these parameters, and the default ones for the rest.
    ///
    /// # Errors
    /// A parameter is unknown, or its value is not allowed.
    fn make(&self, parameters: &[(String, RawValue)]) -> Result<F, Refused>;
}

impl<F, C> Policy<F> for Entry<F, C> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn parameters(&self) -> Vec<Row> {
        rows(self.parameters, "", &(self.default)())
    }

    fn samples(&self) -> Vec<(&'static str, RawValue)> {
        let settings = self.parameters.iter();
        settings
            .flat_map(|setting| {
                let samples = setting.samples().into_iter();
                samples.map(|sample| (setting.key(), sample))
            })
            .collect()
    }

    fn make_default(&self) -> F {
        (self.make)((self.default)())
    }

    fn make(&self, parameters: &[(String, RawValue)]) -> Result<F, Refused> {
        let mut config = (self.default)();
        apply(self.parameters, &mut config, parameters)?;
        Ok((self.make)(config))
    }
}

/// A policy as written: a name, and the parameters that differ from the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    name: &'static str,
    parameters: Vec<(&'static str, String)>,
}

impl Spec {
    /// One without parameters.
    pub const fn named(name: &'static str) -> Self {
        Self {
            name,
            parameters: Vec::new(),
        }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        for (index, (key, value)) in self.parameters.iter().enumerate() {
            let before = if index == 0 { "(" } else { ", " };
            write!(f, "{before}{key}={value}")?;
        }
        if self.parameters.is_empty() {
            Ok(())
        } else {
            f.write_str(")")
        }
    }
}

/// The policies that a program adds to a [`Registry`], for as long as it runs.
pub struct Added<F: 'static>(RwLock<Vec<&'static dyn Policy<F>>>);

impl<F> Added<F> {
    /// None.
    pub const fn new() -> Self {
        Self(RwLock::new(Vec::new()))
    }

    fn entries(&self) -> Vec<&'static dyn Policy<F>> {
        let added = self.0.read();
        added.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<F> Default for Added<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F> fmt::Debug for Added<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries();
        let names = entries.iter().map(|entry| entry.name());
        f.debug_list().entries(names).finish()
    }
}

/// The policies of one trait.
pub struct Registry<F: 'static> {
    what: &'static str,
    entries: &'static [&'static dyn Policy<F>],
    former: &'static [FormerName],
    added: Option<fn() -> &'static Added<F>>,
}

impl<F> Registry<F> {
    /// A registry of `entries`, in the order of the reference; `what` names their kind in messages.
    pub const fn new(what: &'static str, entries: &'static [&'static dyn Policy<F>]) -> Self {
        Self {
            what,
            entries,
            former: &[],
            added: None,
        }
    }

    /// The same registry, to which programs can [add](Self::add) policies of their own.
    pub const fn open_to(self, added: fn() -> &'static Added<F>) -> Self {
        Self {
            added: Some(added),
            ..self
        }
    }

    /// Adds a policy for as long as this program runs. It is best done before any settings are read, as those
    /// read earlier do not know it.
    ///
    /// # Errors
    /// The name is taken, or is not lower-case letters, digits and `_`; or the registry is not open.
    pub fn add(&self, entry: &'static dyn Policy<F>) -> Result<(), String> {
        let (what, name) = (self.what, entry.name());
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_word) {
            return Err(format!(
                "\"{}\" is not a name of a {what}; write lower-case letters, digits and _",
                quote(name)
            ));
        }
        let Some(added) = self.added else {
            return Err(format!("no {what} can be added by programs"));
        };
        let mut added = added().0.write().unwrap_or_else(PoisonError::into_inner);
        let mut known = self.entries.iter().chain(added.iter());
        if known.any(|known| known.name() == name) {
            return Err(format!(
                "there is a {what} {name} already; choose another name"
            ));
        }
        added.push(entry);
        Ok(())
    }

    /// The same registry, with former names of policies.
    pub const fn with_former(self, former: &'static [FormerName]) -> Self {
        Self { former, ..self }
    }

    /// The kind of policies, for messages.
    pub const fn what(&self) -> &'static str {
        self.what
    }

    /// All of them, those that the program added last.
    pub fn entries(&self) -> Vec<&'static dyn Policy<F>> {
        let added = self.added.map(|added| added().entries());
        [self.entries, &added.unwrap_or_default()].concat()
    }

    /// Their names.
    pub fn names(&self) -> Vec<&'static str> {
        self.entries().iter().map(|entry| entry.name()).collect()
    }

    /// All of them, each with its default parameters.
    pub fn defaults(&self) -> Vec<Word<F>> {
        let entries = self.entries();
        let entries = entries.iter();
        entries
            .map(|entry| Word {
                name: entry.name(),
                about: entry.about(),
                value: entry.make_default(),
            })
            .collect()
    }

    /// Calls `check` with each policy: with its default parameters, and with each parameter at the edges of its
    /// domain. Prints the policy, for when `check` fails.
    #[cfg(feature = "testing")]
    pub fn check_each(&self, check: impl Fn(&F)) {
        for entry in self.entries() {
            let name = entry.name();
            println!("{name}");
            check(&entry.make_default());
            for (key, sample) in entry.samples() {
                println!("{name}({key}={sample})");
                match entry.make(&[(key.to_owned(), sample)]) {
                    Ok(made) => check(&made),
                    Err(why) => panic!("{why}"),
                }
            }
        }
    }

    /// Their names and behaviours.
    pub fn words(&self) -> Vec<Word<()>> {
        let entries = self.entries();
        let entries = entries.iter();
        entries
            .map(|entry| Word {
                name: entry.name(),
                about: entry.about(),
                value: (),
            })
            .collect()
    }

    /// Makes the policy in `text`, as `hybrid(factor=0.25)`.
    ///
    /// # Errors
    /// The policy is unknown, or has no such parameter or value; the message names the known ones.
    pub fn make(&self, text: &str) -> Result<F, String> {
        let text = present(self.former, text.trim());
        let call = Call::read(&text)?;
        let mut entries = self.entries().into_iter();
        let entry = entries.find(|entry| entry.name() == call.name);
        let entry = entry.ok_or_else(|| unknown(self.what, call.name, self.names()))?;
        entry
            .make(&call.parameters)
            .map_err(|why| format!("{}: {why}", call.name))
    }

    /// As [`make`](Self::make), from a file.
    pub(crate) fn read(&self, written: &RawValue) -> Result<F, String> {
        match written {
            RawValue::Text(text) => self.make(text),
            other => Err(format!(
                "this must be a policy, as \"{}\", not {other}",
                self.example(other)
            )),
        }
    }

    /// A policy with the parameters in `written`, if that is a table of some; or the first one.
    fn example(&self, written: &RawValue) -> String {
        if let RawValue::Table(parameters) = written {
            let mut entries = self.entries().into_iter();
            let entry = entries.find(|entry| {
                let rows = entry.parameters();
                let has = |key: &str| rows.iter().any(|row| is_key(key, &row.key));
                !parameters.is_empty() && parameters.iter().all(|(key, _)| has(key))
            });
            if let Some(entry) = entry {
                return call(entry.name(), parameters);
            }
        }
        let first = self.names().first().copied();
        first.unwrap_or_default().to_owned()
    }
}

/// `name`, or `name(key=value, ..)`.
struct Call<'a> {
    name: &'a str,
    parameters: Vec<(String, RawValue)>,
}

impl<'a> Call<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let text = text.trim();
        let Some((name, rest)) = text.split_once('(') else {
            return Ok(Self {
                name: text,
                parameters: Vec::new(),
            });
        };
        let wrong = || {
            format!(
                "\"{}\" is not a policy; write it as name(key=value, key=value)",
                quote(text)
            )
        };
        let inside = rest.strip_suffix(')').ok_or_else(wrong)?;
        // `name()` has no parameters.
        let written = inside.split(',').filter(|_| !inside.trim().is_empty());
        let parameters = written.map(|part| {
            let (key, value) = part.split_once('=').ok_or_else(wrong)?;
            let (key, value) = (key.trim(), value.trim());
            if key.is_empty() || value.is_empty() {
                return Err(wrong());
            }
            Ok((key.to_owned(), RawValue::parse(value)))
        });
        Ok(Self {
            name: name.trim(),
            parameters: parameters.collect::<Result<_, String>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added() -> &'static Added<u32> {
        static ADDED: Added<u32> = Added::new();
        &ADDED
    }

    const ONE: Entry<u32, ()> = Entry::plain("one", "The first", |()| 1);
    static TWO: Entry<u32, ()> = Entry::plain("two", "Of a program", |()| 2);
    static SAME: Entry<u32, ()> = Entry::plain("one", "Of a program", |()| 3);
    static ODD: Entry<u32, ()> = Entry::plain("Not a name", "Of a program", |()| 4);
    const OPEN: Registry<u32> = Registry::new("number", &[&ONE]).open_to(added);

    #[test]
    fn programs_add_policies_under_names_of_their_own() {
        assert!(OPEN.make("two").unwrap_err().contains("number"));
        OPEN.add(&TWO).unwrap();
        assert_eq!(
            (OPEN.make("two"), OPEN.names()),
            (Ok(2), vec!["one", "two"])
        );
        assert_eq!(OPEN.defaults().len(), 2);
        for (entry, why) in [(&SAME, "already"), (&TWO, "already"), (&ODD, "lower-case")] {
            let error = OPEN.add(entry).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let closed: Registry<u32> = Registry::new("number", &[&ONE]);
        assert!(closed.add(&TWO).is_err());
        assert_eq!(OPEN.make("one"), Ok(1), "the built-in one stays");
    }
}
