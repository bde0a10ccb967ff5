//! Reads values of a document as their required types.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use marline::TransportConfig;
use marline::settings::{is_key, misplaced_policy, read_bytes, read_rate, read_time};

use super::Value;
use super::document::{Item, Node, Table};
use super::error::{Place, Problem, unknown};

/// Reads the entries of a table by name.
pub(super) struct Reader<'a> {
    pub(super) table: &'a Table,
    pub(super) place: &'a Place,
    requested: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(table: &'a Table, place: &'a Place) -> Self {
        Self {
            table,
            place,
            requested: Vec::new(),
        }
    }

    /// Reads the table in `node`.
    pub(super) fn of(node: &'a Node) -> Result<Self, Problem> {
        match &node.item {
            Item::Table(table) => Ok(Self::new(table, &node.place)),
            _ => Err(node.problem(format_args!("{} is not a table", node.kind()))),
        }
    }

    pub(super) fn get(&mut self, key: &'static str) -> Option<&'a Node> {
        self.requested.push(key);
        self.table.get(key)
    }

    /// Reads `key` if it is present.
    pub(super) fn optional<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&'a Node) -> Result<T, Problem>,
    ) -> Result<Option<T>, Problem> {
        self.get(key).map(read).transpose()
    }

    /// Reads `key`, which must be present; `example` is for the error.
    pub(super) fn required<T>(
        &mut self,
        key: &'static str,
        example: &str,
        read: impl FnOnce(&'a Node) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        match self.get(key) {
            Some(node) => read(node),
            None => Err(self.problem(format_args!("{key} is missing; add {example}"))),
        }
    }

    pub(super) fn problem(&self, text: impl fmt::Display) -> Problem {
        Problem::new(self.place, text)
    }

    /// Checks that all keys have been read: others are unknown. A key may occur once, with `-` or with `_`.
    pub(super) fn finish(self) -> Result<(), Problem> {
        #[cfg(test)]
        known::record(&self.requested);
        let mut seen: HashMap<&str, &Place> = HashMap::new();
        for (key, node) in &self.table.0 {
            let Some(known) = self.requested.iter().find(|known| is_key(key, known)) else {
                let settings = TransportConfig::SETTINGS;
                let text = misplaced_policy(settings, key, &node.written())
                    .unwrap_or_else(|| unknown("key", key, self.requested));
                return Err(node.problem(text));
            };
            if let Some(first) = seen.insert(known, &node.place) {
                return Err(node.problem(first.twice()));
            }
        }
        Ok(())
    }
}

impl Node {
    pub(super) fn text(&self) -> Result<String, Problem> {
        match &self.item {
            Item::Text(text) => Ok(text.clone()),
            _ => Err(self.problem(format_args!(
                "{} is not text; write it in quotes",
                self.kind()
            ))),
        }
    }

    pub(super) fn switch(&self) -> Result<bool, Problem> {
        match self.item {
            Item::Switch(switch) => Ok(switch),
            _ => Err(self.problem(format_args!("{} is not true or false", self.kind()))),
        }
    }

    pub(super) fn within(&self, range: RangeInclusive<u64>) -> Result<u64, Problem> {
        match self.item {
            Item::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        }
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            let (low, high) = range.into_inner();
            // TOML has no larger ones.
            let high = high.min(i64::MAX.unsigned_abs());
            self.problem(format_args!("this must be an integer from {low} to {high}"))
        })
    }

    pub(super) fn number(&self) -> Result<f64, Problem> {
        match self.item {
            Item::Float(number) if number.is_finite() => Ok(number),
            Item::Integer(number) => Ok(number as f64),
            _ => Err(self.problem(format_args!("{} is not a number", self.kind()))),
        }
    }

    pub(super) fn size(&self) -> Result<u64, Problem> {
        read_bytes(&self.words()?).map_err(|text| self.problem(text))
    }

    pub(super) fn time(&self) -> Result<Duration, Problem> {
        read_time(&self.words()?).map_err(|text| self.problem(text))
    }

    pub(super) fn rate(&self) -> Result<u64, Problem> {
        read_rate(&self.words()?).map_err(|text| self.problem(text))
    }

    /// A value by its name.
    pub(super) fn named<T: Copy>(&self, what: &str, names: &[(&str, T)]) -> Result<T, Problem> {
        let word = self.words()?;
        let found = names.iter().find(|(name, _)| *name == word);
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| self.problem(unknown(what, &word, names.iter().map(|(name, _)| *name))))
    }

    /// The members of a list; any other value counts as the only member.
    pub(super) fn members(&self) -> &[Self] {
        match &self.item {
            Item::List(nodes) => nodes,
            _ => std::slice::from_ref(self),
        }
    }

    pub(super) fn texts(&self) -> Result<Vec<String>, Problem> {
        self.members().iter().map(Self::text).collect()
    }

    /// The entries of a table.
    pub(super) fn entries(&self) -> Result<&[(String, Self)], Problem> {
        Ok(&Reader::of(self)?.table.0)
    }

    /// A table of plain values.
    pub(super) fn values(&self) -> Result<BTreeMap<String, Value>, Problem> {
        let entries = self.entries()?.iter();
        Ok(entries
            .map(|(key, node)| (key.clone(), node.value()))
            .collect())
    }
}

/// The keys that tables may have, for the test of their documentation.
#[cfg(test)]
pub(super) mod known {
    use std::cell::RefCell;

    thread_local! {
        static TABLES: RefCell<Vec<Vec<String>>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn record(keys: &[&str]) {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        TABLES.with_borrow_mut(|tables| tables.push(keys));
    }

    /// The keys of each table that this thread has read since the last call.
    pub(in crate::scenario) fn take() -> Vec<Vec<String>> {
        TABLES.take()
    }
}
