//! Tables of settings: the keys of a configuration.

use std::fmt;

use crate::names::{quote, unknown};

use crate::domain::{Domain, RawValue, Shown, Word};

/// The settings of a configuration `C`.
pub type Settings<C> = &'static [&'static dyn Setting<C>];

/// A setting of a configuration `C`.
pub trait Setting<C>: Sync {
    /// Its name, in snake case.
    fn key(&self) -> &'static str;

    /// Its name in earlier releases, which is read as well.
    fn former_key(&self) -> Option<&'static str> {
        None
    }

    /// Its meaning, in one line.
    fn about(&self) -> &'static str;

    /// Puts the value `written` into `config`.
    ///
    /// # Errors
    /// It is not allowed; the message says what is.
    fn set(&self, config: &mut C, written: &RawValue) -> Result<(), Refused>;

    /// The value in `config`; `None` if it does not apply there.
    fn show(&self, config: &C) -> Option<Shown>;

    /// Its rows in the reference, with the values of `default`; `prefix` precedes its key.
    fn rows(&self, prefix: &str, default: &C) -> Vec<Row>;

    /// The domain of its values, if they are plain ones.
    fn domain(&self) -> Option<Domain> {
        None
    }

    /// The dotted key that takes a policy of this name.
    fn key_of_policy(&self, _policy: &str) -> Option<String> {
        None
    }

    /// Values that it takes, as written, for tests to try.
    fn samples(&self) -> Vec<RawValue> {
        self.domain()
            .map(|domain| domain.samples())
            .unwrap_or_default()
    }
}

/// A setting as described in the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its key, after those of its tables, as `multipath.max_paths`.
    pub key: String,
    /// Its meaning.
    pub about: &'static str,
    /// Its allowed values.
    pub allowed: String,
    /// The words it takes, with their meanings; empty if it is not a choice.
    pub words: Vec<Word<()>>,
    /// Its default value; empty if it does not apply by default.
    pub default: String,
}

/// The reason why a value is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The key at fault as written, after those of its tables.
    pub path: Vec<String>,
    /// The problem, and the allowed values.
    pub text: String,
}

impl Refused {
    pub(crate) fn here(text: impl Into<String>) -> Self {
        Self {
            path: Vec::new(),
            text: text.into(),
        }
    }

    /// The same refusal, in a table with this key.
    pub(crate) fn within(mut self, key: &str) -> Self {
        self.path.insert(0, key.to_owned());
        self
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path.join("."))?;
        }
        f.write_str(&self.text)
    }
}

/// Puts everything `written` into `config`, in the order of the table.
///
/// # Errors
/// A key is unknown, or a value is not allowed. Earlier values are already set.
pub fn apply<C>(
    settings: Settings<C>,
    config: &mut C,
    written: &[(String, RawValue)],
) -> Result<(), Refused> {
    apply_but(&[], settings, config, written)
}

/// As [`apply`], without the keys of `others`.
pub(crate) fn apply_but<C>(
    others: &[&'static str],
    settings: Settings<C>,
    config: &mut C,
    written: &[(String, RawValue)],
) -> Result<(), Refused> {
    let present_keys = || settings.iter().map(|setting| setting.key());
    for (key, value) in written {
        if !others.iter().copied().any(|known| is_key(key, known))
            && setting(settings, key).is_none()
        {
            let text = misplaced_policy(settings, key, value).unwrap_or_else(|| {
                unknown("key", key, others.iter().copied().chain(present_keys()))
            });
            return Err(Refused::here(text).within(key));
        }
        let present = |key: &str| setting(settings, key).map(Setting::key);
        let of_key = present(key);
        let is_same = |(other, _): &&(String, RawValue)| {
            is_key(other, key) || (of_key.is_some() && present(other) == of_key)
        };
        if written.iter().filter(is_same).count() > 1 {
            let text = "this key is there twice; keep one of them";
            return Err(Refused::here(text).within(key));
        }
    }
    for setting in settings {
        let former = setting.former_key();
        let found = find(written, setting.key()).or_else(|| find(written, former?));
        if let Some((key, value)) = found {
            setting.set(config, value).map_err(|why| why.within(key))?;
        }
    }
    Ok(())
}

/// Advice on the notation if `key` is not a key of `settings` but a policy that one of them takes, as in
/// `hybrid.factor = 0.5`.
pub fn misplaced_policy<C>(settings: Settings<C>, key: &str, written: &RawValue) -> Option<String> {
    let policy = key.replace('-', "_");
    let mut settings = settings.iter();
    let place = settings.find_map(|setting| setting.key_of_policy(&policy))?;
    let example = match written {
        RawValue::Table(parameters) => call(&policy, parameters),
        _ => policy,
    };
    Some(format!(
        "\"{key}\" is not a key but a value of {place}; write {place}=\"{example}\""
    ))
}

/// `name` with the plain values of `parameters`, in the notation of a policy.
pub(crate) fn call(name: &str, parameters: &[(String, RawValue)]) -> String {
    let parameters: Vec<_> = parameters
        .iter()
        .filter_map(|(key, written)| match written {
            RawValue::Text(text) => Some(format!("{key}={}", quote(text))),
            RawValue::Switch(_) | RawValue::Integer(_) | RawValue::Number(_) => {
                Some(format!("{key}={written}"))
            }
            RawValue::Date(_) | RawValue::List(_) | RawValue::Table(_) => None,
        })
        .collect();
    if parameters.is_empty() {
        name.to_owned()
    } else {
        format!("{name}({})", parameters.join(", "))
    }
}

/// The values in `config`, by key.
pub fn show<C>(settings: Settings<C>, config: &C) -> Vec<(&'static str, Shown)> {
    let settings = settings.iter();
    settings
        .filter_map(|setting| Some((setting.key(), setting.show(config)?)))
        .collect()
}

/// The rows of the reference, with the values of `default`.
pub fn rows<C>(settings: Settings<C>, prefix: &str, default: &C) -> Vec<Row> {
    let settings = settings.iter();
    settings
        .flat_map(|setting| setting.rows(prefix, default))
        .collect()
}

/// The keys that are read: those of `settings`, and their former ones.
pub fn keys<C>(settings: Settings<C>) -> impl Iterator<Item = &'static str> {
    let keys = |setting: &&'static dyn Setting<C>| {
        std::iter::once(setting.key()).chain(setting.former_key())
    };
    settings.iter().flat_map(keys)
}

/// Whether `written` means `key`: `-` and `_` are equivalent.
pub fn is_key(written: &str, key: &str) -> bool {
    let is_joint = |byte| matches!(byte, b'-' | b'_');
    let mut pairs = written.bytes().zip(key.bytes());
    written.len() == key.len() && pairs.all(|(a, b)| a == b || (is_joint(a) && is_joint(b)))
}

/// The setting with the key `key`, or with this former key.
pub fn setting<C>(settings: Settings<C>, key: &str) -> Option<&'static dyn Setting<C>> {
    let mut settings = settings.iter().copied();
    settings.find(|setting| {
        let former = setting.former_key();
        is_key(key, setting.key()) || former.is_some_and(|former| is_key(key, former))
    })
}

pub(crate) fn find<'a>(
    written: &'a [(String, RawValue)],
    key: &str,
) -> Option<(&'a str, &'a RawValue)> {
    let mut written = written.iter();
    let (key, value) = written.find(|(written, _)| is_key(written, key))?;
    Some((key, value))
}
