//! Rows with a plain value: one field, or a value derived from several.

use std::fmt::Display;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::Share;
use crate::domain::{Domain, Named, RawValue, Shown, Value};
use crate::names::quote;
use crate::table::{Refused, Row, Setting};

/// One field of `C`.
pub struct Field<C, T> {
    /// Its key.
    pub key: &'static str,
    /// Its key in earlier releases, which is read as well.
    pub former_key: Option<&'static str>,
    /// Its allowed values.
    pub domain: Domain,
    /// Its meaning, in one line.
    pub about: &'static str,
    /// Returns the field. Reading uses a copy of the configuration.
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
            former_key: None,
            domain,
            about,
            field,
        }
    }

    /// The same row, read by the key of earlier releases as well.
    #[must_use]
    pub const fn formerly(self, key: &'static str) -> Self {
        Self {
            former_key: Some(key),
            ..self
        }
    }
}

/// The row of a field whose key is its name, in a table of `Self`: `field!(name: DOMAIN, "What it is")`, or
/// `field!(outer.name: DOMAIN, "What it is")` for a field of a struct in a field; `name (formerly "key")` reads the key of
/// earlier releases as well.
#[macro_export]
macro_rules! field {
    ($field:ident: $domain:expr, $about:expr) => {
        &$crate::Field::new(stringify!($field), $domain, $about, |config: &mut Self| {
            &mut config.$field
        })
    };
    ($field:ident (formerly $former:literal): $domain:expr, $about:expr) => {
        &$crate::Field::new(stringify!($field), $domain, $about, |config: &mut Self| {
            &mut config.$field
        })
        .formerly($former)
    };
    ($outer:ident.$field:ident: $domain:expr, $about:expr) => {
        &$crate::Field::new(stringify!($field), $domain, $about, |config: &mut Self| {
            &mut config.$outer.$field
        })
    };
}

impl<C: Clone, T: FieldValue> Setting<C> for Field<C, T> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn former_key(&self) -> Option<&'static str> {
        self.former_key
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn set(&self, config: &mut C, written: &RawValue) -> Result<(), Refused> {
        let value = self.domain.read(self.key, written).map_err(Refused::here)?;
        *(self.field)(config) = T::read(&value).map_err(Refused::here)?;
        Ok(())
    }

    fn show(&self, config: &C) -> Option<Shown> {
        self.domain
            .show((self.field)(&mut config.clone()).to_value())
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
    /// Its allowed values.
    pub domain: Domain,
    /// Its meaning, in one line.
    pub about: &'static str,
    /// The value in a configuration; `None` if it does not apply there.
    pub get: fn(&C) -> Option<Value>,
    /// Puts a value of the domain into a configuration, or reports what it requires there.
    pub set: fn(&mut C, &Value) -> Result<(), String>,
}

impl<C> Setting<C> for Derived<C> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn set(&self, config: &mut C, written: &RawValue) -> Result<(), Refused> {
        let value = self.domain.read(self.key, written).map_err(Refused::here)?;
        (self.set)(config, &value).map_err(Refused::here)
    }

    fn show(&self, config: &C) -> Option<Shown> {
        self.domain.show((self.get)(config)?)
    }

    fn rows(&self, prefix: &str, default: &C) -> Vec<Row> {
        vec![row(self, &self.domain, prefix, default)]
    }

    fn domain(&self) -> Option<Domain> {
        Some(self.domain)
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

/// A type of field that can be a setting.
pub trait FieldValue: Clone {
    /// The field's value.
    fn to_value(&self) -> Value;

    /// The field with this value.
    ///
    /// # Errors
    /// It cannot have the value; the message says why.
    fn read(value: &Value) -> Result<Self, String>;

    /// The field with this value; `None` if it cannot have it.
    fn from_value(value: &Value) -> Option<Self> {
        Self::read(value).ok()
    }
}

/// Implements [`FieldValue`] for types whose value is text, by their `Display` and their `FromStr`, whose errors are
/// shown unchanged.
#[macro_export]
macro_rules! text_values {
    ($($text:ty),+ $(,)?) => {$(
        impl $crate::FieldValue for $text {
            fn to_value(&self) -> $crate::Value {
                $crate::Value::Word(self.to_string())
            }

            fn read(value: &$crate::Value) -> Result<Self, String> {
                match value {
                    $crate::Value::Word(text) => text.parse::<Self>().map_err(|why| why.to_string()),
                    _ => Err("it is not text".to_owned()),
                }
            }
        }
    )+};
}

text_values!(String);

impl FieldValue for SocketAddr {
    fn to_value(&self) -> Value {
        Value::Word(self.to_string())
    }

    fn read(value: &Value) -> Result<Self, String> {
        let text = String::read(value)?;
        let wrong = |_| {
            format!(
                "\"{}\" is not an address with a port, as 192.0.2.1:443",
                quote(&text)
            )
        };
        text.parse().map_err(wrong)
    }
}

macro_rules! plain_values {
    ($($field:ty: $value:ident),+) => {$(
        impl FieldValue for $field {
            fn to_value(&self) -> Value {
                Value::$value(*self)
            }

            fn read(value: &Value) -> Result<Self, String> {
                match value {
                    Value::$value(value) => Ok(*value),
                    _ => Err("it is another kind of value".to_owned()),
                }
            }
        }
    )+};
}

plain_values!(bool: Switch, f64: Number, Duration: Time, Share: Share);

macro_rules! integer_values {
    ($($integer:ty),+) => {$(
        impl FieldValue for $integer {
            fn to_value(&self) -> Value {
                // None of them has more bits.
                Value::Integer(u64::try_from(*self).unwrap_or(u64::MAX))
            }

            fn read(value: &Value) -> Result<Self, String> {
                match value {
                    Value::Integer(number) => {
                        (*number).try_into().map_err(|_| "it is out of range".to_owned())
                    }
                    _ => Err("it is not a whole number".to_owned()),
                }
            }
        }
    )+};
}

integer_values!(u8, u16, u32, u64, usize, NonZeroU64);

impl FieldValue for PathBuf {
    fn to_value(&self) -> Value {
        Value::Word(self.display().to_string())
    }

    fn read(value: &Value) -> Result<Self, String> {
        String::read(value).map(Self::from)
    }
}

impl<T: Named> FieldValue for T {
    fn to_value(&self) -> Value {
        Value::Word(self.name().to_owned())
    }

    fn read(value: &Value) -> Result<Self, String> {
        let named = match value {
            Value::Word(name) => T::WORDS.iter().find(|word| word.name == name),
            _ => None,
        };
        named
            .map(|word| word.value)
            .ok_or_else(|| "it is not a name".to_owned())
    }
}

impl<T: FieldValue> FieldValue for Option<T> {
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Without, T::to_value)
    }

    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Without => Ok(None),
            other => T::read(other).map(Some),
        }
    }
}

/// Members joined by `+`.
impl<T: Clone + Display + FromStr<Err: Display>> FieldValue for Vec<T> {
    fn to_value(&self) -> Value {
        let members: Vec<_> = self.iter().map(T::to_string).collect();
        match members.is_empty() {
            true => Value::Without,
            false => Value::Word(members.join("+")),
        }
    }

    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Word(text) => {
                let members = text.split('+').map(|member| member.trim().parse());
                members
                    .collect::<Result<_, T::Err>>()
                    .map_err(|why| why.to_string())
            }
            _ => Ok(Self::new()),
        }
    }
}
