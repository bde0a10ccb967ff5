//! TOML with the place of every value.

use std::ops::Range;

use marline::settings::{Lines, is_key, quote};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Value;
use super::error::{Place, Problem};

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) item: Item,
}

#[derive(Clone, Debug)]
pub(super) enum Item {
    Text(String),
    Integer(i64),
    Float(f64),
    Switch(bool),
    /// A date or a time of day, which no key takes.
    Date(String),
    List(Vec<Node>),
    Table(Table),
}

/// Entries in the order of the document. Keys may be written with `-` in place of `_`.
#[derive(Clone, Debug, Default)]
pub(super) struct Table(pub(super) Vec<(String, Node)>);

impl Table {
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        Some(&self.0[self.position(key)?].1)
    }

    /// The table under `key`, if there is one.
    pub(super) fn inner(&self, key: &str) -> Option<&Self> {
        match &self.get(key)?.item {
            Item::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let index = self.position(key)?;
        Some(&mut self.0[index].1)
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Node> {
        Some(self.0.remove(self.position(key)?).1)
    }

    fn position(&self, key: &str) -> Option<usize> {
        let of = |is: &dyn Fn(&str) -> bool| self.0.iter().position(|(name, _)| is(name));
        of(&|name| name == key).or_else(|| of(&|name| is_key(name, key)))
    }

    /// Replaces the value of `key`, or appends it.
    pub(super) fn set(&mut self, key: &str, node: Node) {
        match self.get_mut(key) {
            Some(old) => *old = node,
            None => self.0.push((key.to_owned(), node)),
        }
    }
}

impl Node {
    /// The kind of the value, for errors.
    pub(super) fn kind(&self) -> &'static str {
        match self.item {
            Item::Text(_) => "text",
            Item::Integer(_) => "an integer",
            Item::Float(_) => "a number",
            Item::Switch(_) => "true or false",
            Item::Date(_) => "a date or time",
            Item::List(_) => "a list",
            Item::Table(_) => "a table",
        }
    }

    pub(super) fn problem(&self, text: impl std::fmt::Display) -> Problem {
        Problem::new(&self.place, text)
    }

    /// The value, without its place.
    pub(super) fn value(&self) -> Value {
        match &self.item {
            Item::Text(text) | Item::Date(text) => text.as_str().into(),
            Item::Integer(number) => (*number).into(),
            Item::Float(number) => (*number).into(),
            Item::Switch(switch) => (*switch).into(),
            Item::List(nodes) => nodes.iter().map(Self::value).collect(),
            Item::Table(table) => {
                let entries = table.0.iter();
                Value::Object(
                    entries
                        .map(|(key, node)| (key.clone(), node.value()))
                        .collect(),
                )
            }
        }
    }

    /// A scalar, written as in the description of a link.
    pub(super) fn words(&self) -> Result<String, Problem> {
        Ok(match &self.item {
            Item::Text(text) => text.trim().to_owned(),
            Item::Integer(number) => number.to_string(),
            Item::Float(number) => number.to_string(),
            Item::Switch(switch) => switch.to_string(),
            Item::Date(_) => {
                return Err(self.problem("a date or time is not text; write it in quotes"));
            }
            Item::List(_) | Item::Table(_) => {
                let kind = self.kind();
                return Err(self.problem(format_args!("{kind}, where one value is expected")));
            }
        })
    }
}

/// Largest length of a part of a key in bytes: each value is stored with its whole key.
const MAX_KEY: usize = 1000;

/// Parses a document.
pub(super) fn parse(text: &str) -> Result<Table, Problem> {
    let lines = Lines::of(text);
    let table = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        let line = lines.line(span.start);
        let reason = error.message().replace('\n', " ");
        let key = match reason.contains(DUPLICATE) {
            true => text.get(span),
            false => lines.key_before(text, span.start),
        };
        let key = quote(key.unwrap_or_default()).into_owned();
        Problem::new(&Place::Line { line, key }, advice(&reason))
    })?;
    read_table(table.get_ref(), "", &lines)
}

/// Parses the value of an override, written as in a document; text that is not TOML counts as a string.
pub(super) fn parse_value(text: &str, place: &Place) -> Result<Node, Problem> {
    let mut node = match DeValue::parse(text) {
        Ok(value) => read_value(&value, place.clone(), "", &Lines::of(text))?,
        Err(_) => Node {
            place: place.clone(),
            item: Item::Text(text.to_owned()),
        },
    };
    // Values inside a table have places relative to the text.
    node.move_to(place);
    Ok(node)
}

impl Node {
    /// Sets the place of the value and of all values in it.
    pub(super) fn move_to(&mut self, place: &Place) {
        self.place = place.clone();
        match &mut self.item {
            Item::List(nodes) => nodes.iter_mut().for_each(|node| node.move_to(place)),
            Item::Table(table) => {
                for (_, node) in &mut table.0 {
                    node.move_to(place);
                }
            }
            _ => {}
        }
    }
}

/// The parser's message about a duplicate key; its span is that of the key.
const DUPLICATE: &str = "duplicate key";

/// The parser's message, with advice.
fn advice(reason: &str) -> String {
    if reason.contains(DUPLICATE) {
        format!("{reason}: a variant, table or key is there twice; rename or remove one")
    } else {
        format!("{reason}; see toml.io for the syntax")
    }
}

fn read_table(table: &DeTable<'_>, path: &str, lines: &Lines) -> Result<Table, Problem> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, value)| (key.span().start, value.span().start));
    let mut read = Table::default();
    for (key, value) in entries {
        let span: Range<usize> = key.span();
        let name = key.get_ref().as_ref();
        let place = Place::Line {
            line: lines.line(span.start),
            key: if path.is_empty() {
                quote(name).into_owned()
            } else {
                format!("[{path}] {}", quote(name))
            },
        };
        if name.len() > MAX_KEY {
            let text = format!("the key has {} bytes, more than {MAX_KEY}", name.len());
            return Err(Problem::new(&place, text));
        }
        let inner = if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        };
        read.0
            .push((name.to_owned(), read_value(value, place, &inner, lines)?));
    }
    Ok(read)
}

fn read_value(
    value: &Spanned<DeValue<'_>>,
    place: Place,
    path: &str,
    lines: &Lines,
) -> Result<Node, Problem> {
    let item = match value.get_ref() {
        DeValue::String(text) => Item::Text(text.clone().into_owned()),
        DeValue::Integer(integer) => {
            let digits = integer.as_str().replace('_', "");
            let number = i64::from_str_radix(&digits, integer.radix());
            Item::Integer(number.map_err(|_| {
                Problem::new(&place, "the integer is larger than 9223372036854775807")
            })?)
        }
        DeValue::Float(float) => {
            let number = float.as_str().replace('_', "").parse::<f64>();
            Item::Float(number.map_err(|_| Problem::new(&place, "this is not a number"))?)
        }
        DeValue::Boolean(switch) => Item::Switch(*switch),
        DeValue::Datetime(date) => Item::Date(date.to_string()),
        DeValue::Array(values) => {
            let mut nodes = Vec::new();
            for value in values.iter() {
                let place = match &place {
                    Place::Line { key, .. } => Place::Line {
                        line: lines.line(value.span().start),
                        key: key.clone(),
                    },
                    other => other.clone(),
                };
                nodes.push(read_value(value, place, path, lines)?);
            }
            Item::List(nodes)
        }
        DeValue::Table(table) => Item::Table(read_table(table, path, lines)?),
    };
    Ok(Node { place, item })
}
