//! A key whose value is a policy.

use crate::domain::{RawValue, Shown, Value};
use crate::policy::{Registry, Spec};
use crate::table::{Refused, Row, Setting};

/// A policy in `C`, one of a registry of `F`.
pub struct Choice<C, F: 'static> {
    /// Its key.
    pub key: &'static str,
    /// The decision that the policy makes, in one line.
    pub about: &'static str,
    /// The available policies.
    pub registry: &'static Registry<F>,
    /// Returns the policy of a configuration.
    pub get: fn(&C) -> Spec,
    /// Returns the field.
    pub field: fn(&mut C) -> &mut F,
}

impl<C, F> Setting<C> for Choice<C, F> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn set(&self, config: &mut C, written: &RawValue) -> Result<(), Refused> {
        *(self.field)(config) = self.registry.read(written).map_err(Refused::here)?;
        Ok(())
    }

    fn show(&self, config: &C) -> Option<Shown> {
        Some(Shown::Value(Value::Word((self.get)(config).to_string())))
    }

    fn rows(&self, prefix: &str, default: &C) -> Vec<Row> {
        vec![Row {
            key: format!("{prefix}{}", self.key),
            about: self.about,
            allowed: "a policy".to_owned(),
            words: self.registry.words(),
            default: (self.get)(default).to_string(),
        }]
    }

    fn key_of_policy(&self, policy: &str) -> Option<String> {
        let is_there = self.registry.names().contains(&policy);
        is_there.then(|| self.key.to_owned())
    }

    fn samples(&self) -> Vec<RawValue> {
        self.registry
            .names()
            .into_iter()
            .map(RawValue::from)
            .collect()
    }
}
