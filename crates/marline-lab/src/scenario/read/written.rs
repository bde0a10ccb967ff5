//! Converts values of a document to written settings, and errors about settings to problems with a place.

use marline::settings::{RawValue, Refused};

use super::{Item, Node, Problem, Reader, Table};

/// The error about a setting, with the place where the setting is written.
pub(super) fn placed(refused: &Refused, table: &Table, reader: &Reader<'_>) -> Problem {
    let mut place = reader.place;
    let mut table = Some(table);
    for key in &refused.path {
        let Some(node) = table.and_then(|table| table.get(key)) else {
            break;
        };
        place = &node.place;
        table = match &node.item {
            Item::Table(inner) => Some(inner),
            _ => None,
        };
    }
    Problem::new(place, &refused.text)
}

/// The same for settings in the table `node`.
pub(super) fn placed_in(refused: &Refused, reader: &Reader<'_>) -> Problem {
    placed(refused, reader.table, reader)
}

impl Node {
    /// The value as a written setting.
    pub(in crate::scenario) fn written(&self) -> RawValue {
        match &self.item {
            Item::Text(text) => RawValue::Text(text.clone()),
            Item::Integer(number) => RawValue::Integer(*number),
            Item::Float(number) => RawValue::Number(*number),
            Item::Switch(switch) => RawValue::Switch(*switch),
            Item::Date(date) => RawValue::Date(date.clone()),
            Item::List(members) => RawValue::List(members.iter().map(Self::written).collect()),
            Item::Table(table) => {
                let entries = table.0.iter();
                let entries = entries.map(|(key, node)| (key.clone(), node.written()));
                RawValue::Table(entries.collect())
            }
        }
    }
}
