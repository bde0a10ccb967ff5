//! The settings of a file: the value and the line of each key.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use marline::TransportConfig;
use marline::settings::{
    Lines, RawValue, Refused, Settings, apply, is_key, misplaced_policy, one_line, quote, setting,
    unknown,
};
use marline_site::WrittenAt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{ConfigFile, foreign};
use crate::history::{INITIAL_WINDOW, instead_of_initial_window};

/// Tables that a message names.
const MOST_OWNERS: usize = 3;

/// The values of a table, with the line of each key.
#[derive(Clone, Debug, Default)]
pub(crate) struct WrittenTable {
    /// The name of the file in messages.
    file: Arc<str>,
    /// The tables that it is in.
    prefix: Vec<String>,
    /// Its keys in the order of the file.
    entries: Vec<(String, RawValue)>,
    /// Every key of the file.
    keys: Arc<Keys>,
}

/// The keys of a table by their spelling with `_`.
#[derive(Debug, Default)]
struct Keys(HashMap<String, Key>);

/// The location of a key, and the keys in its table if it has one.
#[derive(Debug, Default)]
struct Key {
    line: usize,
    inside: Keys,
}

impl Keys {
    fn find(&self, path: &[&str]) -> Option<&Key> {
        let (key, rest) = path.split_first()?;
        let key = self.0.get(&key.replace('-', "_"))?;
        if rest.is_empty() {
            Some(key)
        } else {
            key.inside.find(rest)
        }
    }
}

/// A key that is in one table twice, with `-` and with `_`.
struct Twice {
    /// The key, preceded by the tables that it is in.
    path: Vec<String>,
    line: usize,
    first_line: usize,
}

impl WrittenTable {
    /// All of a file called `file` with this `text`.
    ///
    /// # Errors
    /// The text is not valid TOML, or a key occurs twice: with file and line.
    pub(crate) fn read(file: &str, text: &str) -> Result<Self, String> {
        let lines = Lines::of(text);
        let table = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or_default();
            let line = lines.line(span.start);
            let reason = error.message().replace('\n', " ");
            if reason.contains("duplicate key") {
                // The span is that of the second one.
                let key = quote(text.get(span).unwrap_or_default());
                return format!("{file}:{line}: {key}: this key is there twice; keep one of them");
            }
            let reason = one_line(&reason);
            match lines.key_before(text, span.start) {
                Some(key) => format!("{file}:{line}: {}: {reason}", quote(key)),
                None => format!("{file}:{line}: {reason}"),
            }
        })?;
        let mut keys = Keys::default();
        let entries = read_table(table.get_ref(), &lines, &mut keys);
        let entries = entries.map_err(|twice| {
            let Twice {
                path,
                line,
                first_line,
            } = twice;
            let key = dotted(path.iter().map(String::as_str));
            format!("{file}:{line}: {key}: this key is there twice, in line {first_line} as well; keep one of them")
        })?;
        Ok(Self {
            file: file.into(),
            prefix: Vec::new(),
            entries,
            keys: Arc::new(keys),
        })
    }

    /// The keys of this table that are keys of `settings`.
    pub(super) fn only<C>(&self, settings: Settings<C>) -> Self {
        let entries = self.entries.iter();
        let entries = entries.filter(|(key, _)| is_key_of(settings, key));
        self.with(self.prefix.clone(), entries.cloned().collect())
    }

    fn with(&self, prefix: Vec<String>, entries: Vec<(String, RawValue)>) -> Self {
        Self {
            file: Arc::clone(&self.file),
            prefix,
            entries,
            keys: Arc::clone(&self.keys),
        }
    }

    /// The table `key` in it, if it is there.
    ///
    /// # Errors
    /// The value is not a table.
    pub(super) fn table(&self, key: &str) -> Result<Option<Self>, String> {
        let Some((_, written)) = self.entries.iter().find(|(written, _)| written == key) else {
            return Ok(None);
        };
        let RawValue::Table(entries) = written else {
            let place = self.place(&[key]);
            return Err(format!(
                "{place}: {key}: this must be the table [{key}], not {written}"
            ));
        };
        let prefix = [&self.prefix[..], &[key.to_owned()]].concat();
        Ok(Some(self.with(prefix, entries.clone())))
    }

    /// Refuses the first key in the file that is not `known`.
    ///
    /// # Errors
    /// A key is unknown: with file, line, and the known keys.
    pub(crate) fn refuse_unknown(&self, known: &[&str]) -> Result<(), String> {
        match self.first_unknown(known) {
            None => Ok(()),
            Some((key, written)) => {
                let settings = TransportConfig::SETTINGS;
                let what = misplaced_policy(settings, key, written)
                    .or_else(|| self.known_elsewhere(key, &self.prefix))
                    .unwrap_or_else(|| unknown("key", key, known.iter().copied()));
                Err(format!("{}: {what}", self.place(&[key])))
            }
        }
    }

    /// The first entry whose key is not `known`.
    pub(crate) fn first_unknown(&self, known: &[&str]) -> Option<&(String, RawValue)> {
        let is_known = |written: &str| known.iter().any(|key| is_key(written, key));
        self.entries.iter().find(|(key, _)| !is_known(key))
    }

    /// Whether the key `path` is in the file.
    pub(crate) fn has(&self, path: &[&str]) -> bool {
        self.line_of(path).is_some()
    }

    /// The file and line of `path`, for messages.
    pub(crate) fn place(&self, path: &[&str]) -> String {
        let line = self.line_of(path).unwrap_or(1);
        format!("{}:{line}", self.file)
    }

    /// The places of the table at `path` and of its keys.
    pub(super) fn written_at(&self, path: &[&str]) -> WrittenAt {
        let inside = self.keys.find(&self.full(path)).map(|key| &key.inside.0);
        let keys = inside.into_iter().flatten();
        let keys = keys.map(|(key, at)| (key.clone(), format!("{}:{}", self.file, at.line)));
        WrittenAt::new(self.place(path), keys.collect())
    }

    /// The name of `key` with those of the tables that it is in.
    pub(crate) fn name(&self, key: &str) -> String {
        dotted(self.full(&[key]))
    }

    fn line_of(&self, path: &[&str]) -> Option<usize> {
        Some(self.keys.find(&self.full(path))?.line)
    }

    /// `path` in the whole file.
    fn full<'a>(&'a self, path: &[&'a str]) -> Vec<&'a str> {
        let outer = self.prefix.iter().map(String::as_str);
        outer.chain(path.iter().copied()).collect()
    }

    /// Refuses values of `initial_window` that only scenarios accept.
    ///
    /// # Errors
    /// There is such a value: with file, line, and the key to use instead.
    pub(super) fn refuse_initial_window(&self) -> Result<(), String> {
        let mut entries = self.entries.iter();
        let entry = entries.find(|(key, _)| is_key(key, INITIAL_WINDOW));
        match entry.and_then(|(_, written)| instead_of_initial_window(written)) {
            None => Ok(()),
            Some(text) => {
                let place = self.place(&[INITIAL_WINDOW]);
                Err(format!("{place}: {INITIAL_WINDOW}: {text}"))
            }
        }
    }

    /// Applies the keys of `settings` to `config`.
    ///
    /// # Errors
    /// A value is not allowed: with file, line and key.
    pub(crate) fn apply<C>(&self, settings: Settings<C>, config: &mut C) -> Result<(), String> {
        let entries = self.only(settings).entries;
        apply(settings, config, &entries).map_err(|why| self.explain(&why))
    }

    /// The message about a key that is unknown in `tables`, but known in others, or to another server.
    fn known_elsewhere(&self, key: &str, tables: &[String]) -> Option<String> {
        let here: Vec<_> = tables
            .iter()
            .filter(|table| !table.starts_with('['))
            .collect();
        let here = here
            .iter()
            .map(|table| table.as_str())
            .collect::<Vec<_>>()
            .join(".");
        let instead = match foreign::instead_of(key, !here.is_empty()) {
            Some(instead) => instead.to_owned(),
            None => {
                // A file is either for sites or for a proxy.
                let other = if self.keys.find(&["proxy"]).is_some() {
                    "site"
                } else {
                    "proxy"
                };
                let rows = ConfigFile::rows()
                    .into_iter()
                    .chain(ConfigFile::endpoint_rows());
                let mut owners: Vec<_> = rows
                    .filter_map(|row| {
                        let (table, name) = row.key.rsplit_once('.').unwrap_or(("", &row.key));
                        let is_other = table.split('.').next() == Some(other);
                        let fits = is_key(key, name) && table != here && !is_other;
                        fits.then(|| table.to_owned())
                    })
                    .collect();
                owners.sort_by_key(|table| (table.len(), table.clone()));
                owners.dedup();
                owners.truncate(MOST_OWNERS);
                if owners.is_empty() {
                    return None;
                }
                let owners: Vec<_> = owners.iter().map(|table| written_table(table)).collect();
                format!("it belongs to {}", owners.join(", or "))
            }
        };
        Some(format!("unknown key \"{}\"; {instead}", quote(key)))
    }

    fn explain(&self, why: &Refused) -> String {
        let path: Vec<_> = why.path.iter().map(String::as_str).collect();
        let full = self.full(&path);
        let written = full.last().filter(|_| why.text.starts_with("unknown key"));
        let instead = written.and_then(|written| {
            let tables: Vec<_> = full.iter().map(|key| (*key).to_owned()).collect();
            self.known_elsewhere(written, &tables[..tables.len() - 1])
        });
        let text = instead.as_deref().unwrap_or(&why.text);
        let key = dotted(full);
        format!("{}: {key}: {}", self.place(&path), one_line(text))
    }

    /// The value written at `path`, if it is there: keys, and members of lists as `[1]`.
    pub(crate) fn value(&self, path: &[&str]) -> Option<&RawValue> {
        let (first, rest) = path.split_first()?;
        let (_, value) = self.entries.iter().find(|(key, _)| is_key(key, first))?;
        rest.iter().try_fold(value, |value, step| match value {
            RawValue::Table(entries) => {
                let found = entries.iter().find(|(key, _)| is_key(key, step));
                found.map(|(_, value)| value)
            }
            RawValue::List(members) => {
                let number = step.strip_prefix('[')?.strip_suffix(']')?;
                members.get(number.parse::<usize>().ok()?.checked_sub(1)?)
            }
            _ => None,
        })
    }
}

/// The table of a dotted key as files write it.
fn written_table(table: &str) -> String {
    match table {
        "" => "the top of the file, before the first table".to_owned(),
        "site" | "site.route" | "site.certificate" => format!("[[{table}]]"),
        other => format!("[{other}]"),
    }
}

/// A key and the tables that it is in, as messages have it.
fn dotted<'a>(path: impl IntoIterator<Item = &'a str>) -> String {
    let mut dotted = String::new();
    for key in path {
        // Members of a list are `[1]`, `[2]` and so on.
        if !dotted.is_empty() && !key.starts_with('[') {
            dotted.push('.');
        }
        dotted += &quote(key);
    }
    dotted
}

/// Reads the entries of `table` in the order of the file, and their lines into `keys`.
fn read_table(
    table: &DeTable<'_>,
    lines: &Lines,
    keys: &mut Keys,
) -> Result<Vec<(String, RawValue)>, Twice> {
    let mut ordered: Vec<_> = table.iter().collect();
    ordered.sort_by_key(|(key, _)| key.span().start);
    let mut entries = Vec::with_capacity(ordered.len());
    for (key, value) in ordered {
        let name = key.get_ref().to_string();
        let line = lines.line(key.span().start);
        let slot = match keys.0.entry(name.replace('-', "_")) {
            Entry::Vacant(slot) => slot.insert(Key {
                line,
                inside: Keys::default(),
            }),
            Entry::Occupied(first) => {
                return Err(Twice {
                    path: vec![name],
                    line,
                    first_line: first.get().line,
                });
            }
        };
        let written = read_value(value, lines, &mut slot.inside);
        let written = written.map_err(|mut twice| {
            twice.path.insert(0, name.clone());
            twice
        })?;
        entries.push((name, written));
    }
    Ok(entries)
}

/// Reads a value, and the lines of keys in it into `inside`.
fn read_value(
    value: &Spanned<DeValue<'_>>,
    lines: &Lines,
    inside: &mut Keys,
) -> Result<RawValue, Twice> {
    Ok(match value.get_ref() {
        DeValue::String(word) => RawValue::from(&**word),
        DeValue::Boolean(switch) => RawValue::Switch(*switch),
        DeValue::Integer(integer) => {
            let digits = integer.as_str().replace('_', "");
            let number = i64::from_str_radix(&digits, integer.radix());
            let larger = || RawValue::Number(digits.parse().unwrap_or(f64::INFINITY));
            number.map_or_else(|_| larger(), RawValue::Integer)
        }
        DeValue::Float(float) => {
            let digits = float.as_str().replace('_', "");
            RawValue::Number(digits.parse().unwrap_or(f64::NAN))
        }
        DeValue::Datetime(date) => RawValue::Date(date.to_string()),
        DeValue::Array(members) => RawValue::List(
            members
                .iter()
                .enumerate()
                .map(|(index, member)| {
                    let place = format!("[{}]", index + 1);
                    let key = inside.0.entry(place.clone()).or_default();
                    key.line = lines.line(member.span().start);
                    let written = read_value(member, lines, &mut key.inside);
                    written.map_err(|mut twice| {
                        twice.path.insert(0, place);
                        twice
                    })
                })
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => RawValue::Table(read_table(table, lines, inside)?),
    })
}

/// Whether `written` is a key of `settings`.
fn is_key_of<C>(settings: Settings<C>, written: &str) -> bool {
    setting(settings, written).is_some()
}

#[cfg(test)]
mod tests;
