//! Tables of settings: which keys a configuration has.

use std::fmt;
use std::time::Duration;

use super::domain::{Domain, Named, Shown, Value, Word, Written};
use super::words::unknown;

/// The settings of a configuration `C`.
pub type Settings<C> = &'static [&'static dyn Setting<C>];

/// A setting of a configuration `C`.
pub trait Setting<C>: Sync {
    /// Its name, in snake case.
    fn key(&self) -> &'static str;

    /// What it is, in one line.
    fn about(&self) -> &'static str;

    /// Puts what was `written` into `config`.
    ///
    /// # Errors
    /// It is not allowed; the message says what is.
    fn set(&self, config: &mut C, written: &Written) -> Result<(), Refused>;

    /// What `config` has; `None` if it does not apply there.
    fn show(&self, config: &C) -> Option<Shown>;

    /// Its rows in the reference, of which `default` has the values; `prefix` goes before its key.
    fn rows(&self, prefix: &str, default: &C) -> Vec<Row>;

    /// The values that it takes, if they are plain ones.
    fn domain(&self) -> Option<Domain> {
        None
    }

    /// Values that it takes, as they are written: what a test of it tries.
    fn samples(&self) -> Vec<Written> {
        self.domain()
            .map(|domain| domain.samples())
            .unwrap_or_default()
    }
}

/// A setting as the reference describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its key, with the tables it is in, as `multipath.max_paths`.
    pub key: String,
    /// What it is.
    pub about: &'static str,
    /// What it can be.
    pub allowed: String,
    /// The words that it can be, with what they mean; none where it is no choice.
    pub words: Vec<Word<()>>,
    /// What it is unless somebody says otherwise; empty if it does not apply then.
    pub default: String,
}

/// Why a value does not become a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The key at fault as it was written, after the tables that it is in.
    pub path: Vec<String>,
    /// What is wrong, and what is allowed.
    pub text: String,
}

impl Refused {
    pub(super) fn here(text: impl Into<String>) -> Self {
        Self {
            path: Vec::new(),
            text: text.into(),
        }
    }

    /// The same in a table with this key.
    fn within(mut self, key: &str) -> Self {
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
/// A key is unknown, or a value is not allowed. What came before it is set.
pub fn apply<C>(
    settings: Settings<C>,
    config: &mut C,
    written: &[(String, Written)],
) -> Result<(), Refused> {
    apply_but(&[], settings, config, written)
}

/// The same with keys of somebody else's, `others`, left out.
fn apply_but<C>(
    others: &[&'static str],
    settings: Settings<C>,
    config: &mut C,
    written: &[(String, Written)],
) -> Result<(), Refused> {
    let keys = || settings.iter().map(|setting| setting.key());
    for (key, _) in written {
        if !others
            .iter()
            .copied()
            .chain(keys())
            .any(|known| is_key(key, known))
        {
            let text = unknown("key", key, others.iter().copied().chain(keys()));
            return Err(Refused::here(text).within(key));
        }
        let is_same = |(other, _): &&(String, Written)| is_key(other, &key.replace('-', "_"));
        if written.iter().filter(is_same).count() > 1 {
            let text = "this key is there twice; keep one of them";
            return Err(Refused::here(text).within(key));
        }
    }
    for setting in settings {
        if let Some((key, value)) = find(written, setting.key()) {
            setting.set(config, value).map_err(|why| why.within(key))?;
        }
    }
    Ok(())
}

/// What `config` has, by key.
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

/// Whether somebody who wrote `written` means `key`.
fn is_key(written: &str, key: &str) -> bool {
    written.len() == key.len()
        && written
            .bytes()
            .zip(key.bytes())
            .all(|(a, b)| a == b || (a == b'-' && b == b'_'))
}

fn find<'a>(written: &'a [(String, Written)], key: &str) -> Option<(&'a str, &'a Written)> {
    let mut written = written.iter();
    let (key, value) = written.find(|(written, _)| is_key(written, key))?;
    Some((key, value))
}

/// One field of `C`.
pub struct Field<C, T> {
    /// Its key.
    pub key: &'static str,
    /// What it can be.
    pub domain: Domain,
    /// What it is, in one line.
    pub about: &'static str,
    /// The field. Reading goes through a copy of the configuration.
    pub field: fn(&mut C) -> &mut T,
}

impl<C, T> Field<C, T> {
    /// A row of a table.
    pub const fn new(
        key: &'static str,
        domain: Domain,
        about: &'static str,
        field: fn(&mut C) -> &mut T,
    ) -> Self {
        Self {
            key,
            domain,
            about,
            field,
        }
    }
}

impl<C: Clone, T: FieldValue> Setting<C> for Field<C, T> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn set(&self, config: &mut C, written: &Written) -> Result<(), Refused> {
        let value = self.domain.read(self.key, written).map_err(Refused::here)?;
        let wrong = || Refused::here(format!("this must be {}, not {written}", self.domain));
        *(self.field)(config) = T::from_value(&value).ok_or_else(wrong)?;
        Ok(())
    }

    fn show(&self, config: &C) -> Option<Shown> {
        let value = (self.field)(&mut config.clone()).to_value();
        Some(Shown::Value(self.domain.show(value)))
    }

    fn rows(&self, prefix: &str, default: &C) -> Vec<Row> {
        vec![row(self, &self.domain, prefix, default)]
    }

    fn domain(&self) -> Option<Domain> {
        Some(self.domain)
    }
}

/// Something in `C` that is not one field.
pub struct Derived<C> {
    /// Its key.
    pub key: &'static str,
    /// What it can be.
    pub domain: Domain,
    /// What it is, in one line.
    pub about: &'static str,
    /// What a configuration has; `None` if it does not apply there.
    pub get: fn(&C) -> Option<Value>,
    /// Puts a value of the domain into a configuration, or says what it needs there.
    pub set: fn(&mut C, &Value) -> Result<(), String>,
}

impl<C> Setting<C> for Derived<C> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn set(&self, config: &mut C, written: &Written) -> Result<(), Refused> {
        let value = self.domain.read(self.key, written).map_err(Refused::here)?;
        (self.set)(config, &value).map_err(Refused::here)
    }

    fn show(&self, config: &C) -> Option<Shown> {
        Some(Shown::Value(self.domain.show((self.get)(config)?)))
    }

    fn rows(&self, prefix: &str, default: &C) -> Vec<Row> {
        vec![row(self, &self.domain, prefix, default)]
    }

    fn domain(&self) -> Option<Domain> {
        Some(self.domain)
    }
}

/// A set of values that a table can start from.
#[derive(Clone, Copy)]
pub struct Base<D> {
    /// As it is written.
    pub name: &'static str,
    /// Makes it.
    pub make: fn() -> D,
}

/// A configuration `D` inside of `C`. Naming a key of it switches it on; `false` switches it off, if it can
/// be; the name of a base sets all of it, as the key `base` does inside.
pub struct Table<C, D: 'static> {
    /// Its key.
    pub key: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Its keys.
    pub settings: Settings<D>,
    /// What it can start from.
    pub bases: &'static [Base<D>],
    /// What it holds; `None` if it is off.
    pub get: fn(&C) -> Option<&D>,
    /// The same, switched on with its default values if it is off.
    pub open: fn(&mut C) -> &mut D,
    /// Switches it off, if it can be.
    pub off: Option<fn(&mut C)>,
}

/// The key inside a table that switches it.
const ON: &str = "on";

/// The key inside a table that names what it starts from.
const BASE: &str = "base";

impl<C, D> Table<C, D> {
    fn switch(&self, config: &mut C, on: bool, written: &Written) -> Result<(), Refused> {
        match (on, self.off) {
            (true, _) => {
                (self.open)(config);
                Ok(())
            }
            (false, Some(off)) => {
                off(config);
                Ok(())
            }
            (false, None) => Err(self.wrong(written)),
        }
    }

    fn start(&self, config: &mut C, written: &Written) -> Result<(), Refused> {
        let Written::Text(name) = written else {
            return Err(self.wrong(written));
        };
        let base = self.bases.iter().find(|base| base.name == name);
        let base = base.ok_or_else(|| {
            let names = self.bases.iter().map(|base| base.name);
            Refused::here(unknown(self.key, name, names))
        })?;
        *(self.open)(config) = (base.make)();
        Ok(())
    }

    fn wrong(&self, written: &Written) -> Refused {
        Refused::here(format!("this must be {}, not {written}", self.allowed()))
    }

    fn allowed(&self) -> String {
        let switch = self.off.map(|_| "true, false".to_owned());
        let names = self.bases.iter().map(|base| format!("\"{}\"", base.name));
        let words: Vec<_> = switch.into_iter().chain(names).collect();
        if words.is_empty() {
            "a table".to_owned()
        } else {
            format!("{} or a table", words.join(", "))
        }
    }
}

impl<C, D: Default> Setting<C> for Table<C, D> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn set(&self, config: &mut C, written: &Written) -> Result<(), Refused> {
        let entries = match written {
            Written::Switch(on) => return self.switch(config, *on, written),
            Written::Table(entries) => entries,
            other if self.bases.is_empty() => return Err(self.wrong(other)),
            other => return self.start(config, other),
        };
        let mut others = Vec::new();
        if !self.bases.is_empty() {
            others.push(BASE);
            if let Some((key, base)) = find(entries, BASE) {
                self.start(config, base).map_err(|why| why.within(key))?;
            }
        }
        others.extend(self.off.map(|_| ON));
        apply_but(&others, self.settings, (self.open)(config), entries)?;
        match find(entries, ON).filter(|_| self.off.is_some()) {
            Some((key, on)) => {
                let value = Domain::SWITCH
                    .read(ON, on)
                    .map_err(|why| Refused::here(why).within(key))?;
                self.switch(config, value == Value::Switch(true), on)
            }
            None => Ok(()),
        }
    }

    fn show(&self, config: &C) -> Option<Shown> {
        Some(match (self.get)(config) {
            Some(inner) => Shown::Table(show(self.settings, inner)),
            None => Shown::Value(Value::Switch(false)),
        })
    }

    fn rows(&self, prefix: &str, default: &C) -> Vec<Row> {
        let key = format!("{prefix}{}", self.key);
        let inside = format!("{key}.");
        let of_table = Row {
            key,
            about: self.about,
            allowed: self.allowed(),
            words: Vec::new(),
            default: match (self.get)(default) {
                Some(_) => "the table below".to_owned(),
                None => "false".to_owned(),
            },
        };
        let inner = match (self.get)(default) {
            Some(inner) => rows(self.settings, &inside, inner),
            None => rows(self.settings, &inside, &D::default()),
        };
        std::iter::once(of_table).chain(inner).collect()
    }

    fn samples(&self) -> Vec<Written> {
        let names = self.bases.iter().map(|base| base.name.into());
        std::iter::once(Written::Switch(true))
            .chain(names)
            .collect()
    }
}

fn row<C>(setting: &dyn Setting<C>, domain: &Domain, prefix: &str, default: &C) -> Row {
    Row {
        key: format!("{prefix}{}", setting.key()),
        about: setting.about(),
        allowed: domain.to_string(),
        words: domain.choices(),
        default: match setting.show(default) {
            Some(Shown::Value(value)) => domain.write(&value),
            _ => String::new(),
        },
    }
}

/// The type of a field that a setting can be.
pub trait FieldValue: Clone {
    /// The field's value.
    fn to_value(&self) -> Value;

    /// The field with this value; `None` if it cannot have it.
    fn from_value(value: &Value) -> Option<Self>;
}

impl FieldValue for bool {
    fn to_value(&self) -> Value {
        Value::Switch(*self)
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Switch(switch) => Some(*switch),
            _ => None,
        }
    }
}

impl FieldValue for u64 {
    fn to_value(&self) -> Value {
        Value::Integer(*self)
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }
}

impl FieldValue for u8 {
    fn to_value(&self) -> Value {
        Value::Integer((*self).into())
    }

    fn from_value(value: &Value) -> Option<Self> {
        u64::from_value(value)?.try_into().ok()
    }
}

impl FieldValue for u16 {
    fn to_value(&self) -> Value {
        Value::Integer((*self).into())
    }

    fn from_value(value: &Value) -> Option<Self> {
        u64::from_value(value)?.try_into().ok()
    }
}

impl FieldValue for u32 {
    fn to_value(&self) -> Value {
        Value::Integer((*self).into())
    }

    fn from_value(value: &Value) -> Option<Self> {
        u64::from_value(value)?.try_into().ok()
    }
}

impl FieldValue for usize {
    fn to_value(&self) -> Value {
        Value::Integer(*self as u64)
    }

    fn from_value(value: &Value) -> Option<Self> {
        u64::from_value(value)?.try_into().ok()
    }
}

impl FieldValue for f64 {
    fn to_value(&self) -> Value {
        Value::Number(*self)
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }
}

impl FieldValue for Duration {
    fn to_value(&self) -> Value {
        Value::Time(*self)
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Time(time) => Some(*time),
            _ => None,
        }
    }
}

impl<T: Named> FieldValue for T {
    fn to_value(&self) -> Value {
        Value::Word(self.name().to_owned())
    }

    fn from_value(value: &Value) -> Option<Self> {
        let Value::Word(name) = value else {
            return None;
        };
        let mut words = T::WORDS.iter();
        words.find(|word| word.name == name).map(|word| word.value)
    }
}

impl<T: FieldValue> FieldValue for Option<T> {
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Without, T::to_value)
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Without => Some(None),
            other => T::from_value(other).map(Some),
        }
    }
}
