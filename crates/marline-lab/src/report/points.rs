//! The points of a sweep, with names for people.

use std::collections::BTreeMap;

use marline_report::html::Table;

use crate::scenario::Value;

use super::names;

/// With more points than this, distributions over the points are shown.
const FEW: usize = 24;

/// The points of a sweep.
pub(super) struct Points {
    parameters: Vec<BTreeMap<String, Value>>,
    names: Vec<String>,
    /// The parameters that vary.
    pub(super) factors: Vec<Factor>,
}

/// The name of a point in a list with sections.
#[derive(Default)]
pub(super) struct PointLabel {
    /// The values of all other factors.
    pub(super) section: String,
    /// The value of the factor that varies within a section.
    pub(super) row: String,
}

/// A parameter that varies.
pub(super) struct Factor {
    /// Its name for people.
    pub(super) name: String,
    /// The names of its values, in the order in which they first occur.
    pub(super) values: Vec<String>,
    /// The index of each point's value.
    pub(super) at: Vec<usize>,
}

impl Points {
    pub(super) fn of(parameters: &[BTreeMap<String, Value>]) -> Self {
        let mut keys: Vec<&String> = parameters.iter().flat_map(BTreeMap::keys).collect();
        keys.sort();
        keys.dedup();
        let factors: Vec<_> = keys
            .into_iter()
            .map(|key| Factor::of(key, parameters))
            .filter(|factor| factor.values.len() > 1)
            .collect();
        let name = |point: usize| {
            let values = factors.iter().map(|factor| factor.value(point));
            values.collect::<Vec<_>>().join(", ")
        };
        Self {
            names: (0..parameters.len()).map(name).collect(),
            parameters: parameters.to_vec(),
            factors,
        }
    }

    /// The index and the name of each point; the name is empty if nothing varies.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &str)> {
        self.names.iter().map(String::as_str).enumerate()
    }

    pub(super) const fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether a chart can show each point.
    pub(super) const fn are_few(&self) -> bool {
        self.len() <= FEW
    }

    /// The names of the parameters that vary, such as `content size, loss`; empty if nothing varies.
    pub(super) fn title(&self) -> String {
        let names = self.factors.iter().map(|factor| factor.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    }

    /// A table with a column for the point, unless there is only one.
    pub(super) fn table(&self, first: &str) -> Table {
        let table = Table::new().column(first);
        match self.factors.is_empty() {
            true => table,
            false => table.column(&self.title()),
        }
    }

    /// A row of such a table.
    pub(super) fn row<const N: usize>(
        &self,
        first: &str,
        point: &str,
        rest: [String; N],
    ) -> Vec<String> {
        let point = (!self.factors.is_empty()).then(|| point.to_owned());
        let row = std::iter::once(first.to_owned()).chain(point);
        row.chain(rest).collect()
    }

    /// `what`, followed by the parameters that vary.
    pub(super) fn by(&self, what: &str) -> String {
        match self.factors.is_empty() {
            true => what.to_owned(),
            false => format!("{what} by {}", self.title()),
        }
    }

    /// `what`, followed by the name of a point.
    pub(super) fn at(&self, what: &str, point: usize) -> String {
        match self.name(point) {
            "" => what.to_owned(),
            name => format!("{what}, {name}"),
        }
    }

    /// `what`, followed by the name of the point with `parameters`.
    pub(super) fn by_name(&self, what: &str, parameters: &BTreeMap<String, Value>) -> String {
        match self.find(parameters) {
            Some(point) => self.at(what, point),
            None => what.to_owned(),
        }
    }

    pub(super) fn name(&self, point: usize) -> &str {
        self.names.get(point).map_or("", String::as_str)
    }

    /// The name of the point with `parameters` for a sentence: with the names of those parameters whose values do not
    /// identify them.
    pub(super) fn unambiguous(&self, parameters: &BTreeMap<String, Value>) -> String {
        let Some(point) = self.find(parameters) else {
            return String::new();
        };
        let has_unit = |factor: &&Factor| factor.has_numbers() && !factor.is_bare();
        let have_units = self.factors.iter().filter(has_unit).count();
        let values = self.factors.iter().map(|factor| {
            let value = factor.value(point);
            match factor.is_bare() || (has_unit(&factor) && have_units > 1) {
                true => format!("{}\u{a0}{value}", factor.name),
                false => value.to_owned(),
            }
        });
        values.collect::<Vec<_>>().join(", ")
    }

    /// The name of a point as a section and a row in it. Rows are the values of a numeric parameter, the one
    /// with the most values if there are several.
    pub(super) fn section_and_row(&self, point: usize) -> PointLabel {
        let mut row = self.factors.len().saturating_sub(1);
        let mut most = 0;
        for (at, factor) in self.factors.iter().enumerate() {
            if factor.has_numbers() && factor.values.len() > most {
                (row, most) = (at, factor.values.len());
            }
        }
        let others = self.factors.iter().enumerate().filter(|(at, _)| *at != row);
        let section: Vec<_> = others.map(|(_, factor)| factor.value(point)).collect();
        let name = self
            .factors
            .get(row)
            .map_or("", |factor| factor.value(point));
        PointLabel {
            section: section.join(", "),
            row: name.to_owned(),
        }
    }

    /// The index of the point with `parameters`.
    pub(super) fn find(&self, parameters: &BTreeMap<String, Value>) -> Option<usize> {
        self.parameters.iter().position(|point| point == parameters)
    }

    /// The name of the point with `parameters`.
    pub(super) fn name_of(&self, parameters: &BTreeMap<String, Value>) -> &str {
        self.find(parameters).map_or("", |point| self.name(point))
    }
}

impl Factor {
    fn of(key: &str, parameters: &[BTreeMap<String, Value>]) -> Self {
        let mut known: Vec<Option<&Value>> = Vec::new();
        let mut at = Vec::new();
        for point in parameters {
            let value = point.get(key);
            let place = known.iter().position(|known| *known == value);
            at.push(place.unwrap_or(known.len()));
            if place.is_none() {
                known.push(value);
            }
        }
        let text = |value: &Option<&Value>| match value {
            Some(value) => names::value(key, value),
            None => "\u{2013}".to_owned(),
        };
        let mut values: Vec<_> = known.iter().map(text).collect();
        let mut distinct = values.clone();
        distinct.sort();
        distinct.dedup();
        if distinct.len() < values.len() {
            // Values that are equal after rounding are shown as they were written.
            let plain = |value: &Option<&Value>| value.map_or_else(String::new, names::plain);
            values = known.iter().map(plain).collect();
        }
        Self {
            name: names::parameter(key),
            values,
            at,
        }
    }

    fn has_numbers(&self) -> bool {
        let mut values = self.values.iter();
        values.all(|value| value.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// Whether a value is a number without a unit, a percentage, or a flag, which could belong to
    /// any parameter.
    fn is_bare(&self) -> bool {
        let is_bare = |value: &String| {
            let is_flag = matches!(value.as_str(), "true" | "false" | "\u{2013}");
            is_flag || value.parse::<f64>().is_ok() || value.ends_with('%')
        };
        self.values.iter().any(is_bare)
    }

    /// The value of the factor at a point.
    fn value(&self, point: usize) -> &str {
        let place = self.at.get(point);
        place.map_or("", |place| self.values[*place].as_str())
    }
}
