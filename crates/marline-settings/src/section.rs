//! Rows that are a table themselves: a configuration inside another one.

use crate::names::unknown;

use crate::domain::{Domain, RawValue, Shown, Value};
use crate::table::{Refused, Row, Setting, Settings, apply_but, find, rows, show};

/// A set of values that a table can start from.
#[derive(Clone, Copy)]
pub struct Base<D> {
    /// The name as written.
    pub name: &'static str,
    /// Makes it.
    pub make: fn() -> D,
}

/// A configuration `D` inside `C`. Setting one of its keys switches it on; `false` switches it off, if it
/// can be; the name of a base sets all of it, as the key `base` does inside.
pub struct Table<C, D: 'static> {
    /// Its key.
    pub key: &'static str,
    /// Its meaning, in one line.
    pub about: &'static str,
    /// Its keys.
    pub settings: Settings<D>,
    /// The bases that it can start from.
    pub bases: &'static [Base<D>],
    /// Returns its configuration; `None` if it is off.
    pub get: fn(&C) -> Option<&D>,
    /// Returns its configuration, switched on with the default values if it was off.
    pub open: fn(&mut C) -> &mut D,
    /// Switches it off, if it can be.
    pub off: Option<fn(&mut C)>,
}

/// The key inside a table that switches it.
const ON: &str = "on";

/// The key inside a table that names its base.
const BASE: &str = "base";

impl<C, D> Table<C, D> {
    fn switch(&self, config: &mut C, on: bool, written: &RawValue) -> Result<(), Refused> {
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

    fn start(&self, config: &mut C, written: &RawValue) -> Result<(), Refused> {
        let RawValue::Text(name) = written else {
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

    fn wrong(&self, written: &RawValue) -> Refused {
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

    fn set(&self, config: &mut C, written: &RawValue) -> Result<(), Refused> {
        let entries = match written {
            RawValue::Switch(on) => return self.switch(config, *on, written),
            RawValue::Table(entries) => entries,
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

    fn key_of_policy(&self, policy: &str) -> Option<String> {
        let mut settings = self.settings.iter();
        let inner = settings.find_map(|setting| setting.key_of_policy(policy))?;
        Some(format!("{}.{inner}", self.key))
    }

    fn samples(&self) -> Vec<RawValue> {
        let names = self.bases.iter().map(|base| base.name.into());
        std::iter::once(RawValue::Switch(true))
            .chain(names)
            .collect()
    }
}
