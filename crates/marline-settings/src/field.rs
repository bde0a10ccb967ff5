//! Rows that have a plain value: one field, or what is made of several.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::domain::{Domain, Named, Shown, Value, Written};
use crate::table::{Refused, Row, Setting};

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

macro_rules! integer_fields {
    ($($integer:ty),+) => {$(
        impl FieldValue for $integer {
            fn to_value(&self) -> Value {
                // None of them has more bits.
                Value::Integer(*self as u64)
            }

            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Integer(number) => (*number).try_into().ok(),
                    _ => None,
                }
            }
        }
    )+};
}

integer_fields!(u8, u16, u32, u64, usize);

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

macro_rules! text_fields {
    ($($text:ty),+) => {$(
        impl FieldValue for $text {
            fn to_value(&self) -> Value {
                Value::Word(self.to_string())
            }

            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Word(text) => text.parse().ok(),
                    _ => None,
                }
            }
        }
    )+};
}

text_fields!(String, SocketAddr);

impl FieldValue for PathBuf {
    fn to_value(&self) -> Value {
        Value::Word(self.display().to_string())
    }

    fn from_value(value: &Value) -> Option<Self> {
        String::from_value(value).map(Self::from)
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
