//! The settings of a file: the value and the line of each key.

use marline::settings::{Refused, Settings, Written, apply, is_key, unknown};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The values of a table, with the line of each key.
#[derive(Clone, Debug, Default)]
pub(crate) struct WrittenTable {
    /// The name of the file in messages.
    file: String,
    /// The tables that it is in.
    prefix: Vec<String>,
    entries: Vec<(String, Written)>,
    /// Every key of the file.
    lines: Vec<Line>,
}

/// The line of a key.
#[derive(Clone, Debug)]
struct Line {
    /// The key, preceded by the tables that it is in.
    path: Vec<String>,
    number: usize,
}

impl WrittenTable {
    /// All of a file called `file` with this `text`.
    ///
    /// # Errors
    /// It is no TOML: with file and line.
    pub(super) fn read(file: &str, text: &str) -> Result<Self, String> {
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line(text, span.start));
            format!("{file}:{line}: {}", error.message().replace('\n', " "))
        })?;
        let mut read = Self {
            file: file.to_owned(),
            ..Self::default()
        };
        read.entries = read.entries_of(text, &mut Vec::new(), table.get_ref());
        Ok(read)
    }

    /// Those of its keys that are keys of `settings`.
    pub(super) fn only<C>(&self, settings: Settings<C>) -> Self {
        let entries = self.entries.iter();
        let entries = entries.filter(|(key, _)| is_key_of(settings, key));
        Self {
            entries: entries.cloned().collect(),
            ..self.clone()
        }
    }

    /// The table `key` in it, if it is there.
    ///
    /// # Errors
    /// It is no table.
    pub(super) fn table(&self, key: &str) -> Result<Option<Self>, String> {
        let Some((_, written)) = self.entries.iter().find(|(written, _)| written == key) else {
            return Ok(None);
        };
        let Written::Table(entries) = written else {
            let place = self.place(&[key]);
            return Err(format!(
                "{place}: {key}: this must be the table [{key}], not {written}"
            ));
        };
        Ok(Some(Self {
            prefix: [&self.prefix[..], &[key.to_owned()]].concat(),
            entries: entries.clone(),
            ..self.clone()
        }))
    }

    /// Refuses the first key in the file that is not `known`.
    ///
    /// # Errors
    /// There is one: with file, line, and what is known.
    pub(super) fn refuse_unknown(&self, known: &[&str]) -> Result<(), String> {
        let is_known = |written: &str| known.iter().any(|key| is_key(written, key));
        let mut unknown_ones: Vec<_> = self
            .entries
            .iter()
            .filter(|(key, _)| !is_known(key))
            .map(|(key, _)| key.as_str())
            .collect();
        unknown_ones.sort_by_key(|key| self.line_of(&[key]));
        match unknown_ones.first() {
            None => Ok(()),
            Some(key) => {
                let what = unknown("key", key, known.iter().copied());
                Err(format!("{}: {what}", self.place(&[key])))
            }
        }
    }

    fn note(&mut self, text: &str, path: &[String], at: usize) {
        self.lines.push(Line {
            path: path.to_vec(),
            number: line(text, at),
        });
    }

    /// Reads the value at `path`.
    fn value(
        &mut self,
        text: &str,
        path: &mut Vec<String>,
        value: &Spanned<DeValue<'_>>,
    ) -> Written {
        match value.get_ref() {
            DeValue::String(word) => Written::Text(current(path, word)),
            DeValue::Boolean(switch) => Written::Switch(*switch),
            DeValue::Integer(integer) => {
                let digits = integer.as_str().replace('_', "");
                let number = i64::from_str_radix(&digits, integer.radix());
                number.map_or_else(|_| Written::Text(digits.clone()), Written::Integer)
            }
            DeValue::Float(float) => {
                let digits = float.as_str().replace('_', "");
                Written::Number(digits.parse().unwrap_or(f64::NAN))
            }
            DeValue::Datetime(date) => Written::Text(date.to_string()),
            DeValue::Array(_) => Written::List,
            DeValue::Table(table) => Written::Table(self.entries_of(text, path, table)),
        }
    }

    /// Reads the entries of `table` at `path`.
    fn entries_of(
        &mut self,
        text: &str,
        path: &mut Vec<String>,
        table: &DeTable<'_>,
    ) -> Vec<(String, Written)> {
        let mut entries = Vec::new();
        for (key, value) in table.iter() {
            path.push(key.get_ref().to_string());
            self.note(text, path, key.span().start);
            let written = self.value(text, path, value);
            let key = path.pop().unwrap_or_default();
            entries.push((key, written));
        }
        entries
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

    fn line_of(&self, path: &[&str]) -> Option<usize> {
        let path: Vec<_> = self.full(path);
        let is_same =
            |written: &String, key: &&str| written.replace('-', "_") == key.replace('-', "_");
        let is_there = |line: &&Line| {
            let mut keys = line.path.iter().zip(&path);
            line.path.len() == path.len() && keys.all(|(written, key)| is_same(written, key))
        };
        self.lines.iter().find(is_there).map(|line| line.number)
    }

    /// `path` in the whole file.
    fn full<'a>(&'a self, path: &[&'a str]) -> Vec<&'a str> {
        let outer = self.prefix.iter().map(String::as_str);
        outer.chain(path.iter().copied()).collect()
    }

    /// Applies the keys of `settings` to `config`.
    ///
    /// # Errors
    /// A value is not allowed: with file, line and key.
    pub(crate) fn apply<C>(&self, settings: Settings<C>, config: &mut C) -> Result<(), String> {
        let entries = self.only(settings).entries;
        apply(settings, config, &entries).map_err(|why| self.explain(&why))
    }

    fn explain(&self, why: &Refused) -> String {
        let path: Vec<_> = why.path.iter().map(String::as_str).collect();
        let key = self.full(&path).join(".");
        format!("{}: {key}: {}", self.place(&path), why.text)
    }
}

/// Whether `written` is a key of `settings`.
fn is_key_of<C>(settings: Settings<C>, written: &str) -> bool {
    settings
        .iter()
        .any(|setting| is_key(written, setting.key()))
}

/// The number of the line that contains byte `at`.
fn line(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
        + 1
}

/// Replaces an older spelling of a value.
fn current(path: &[String], word: &str) -> String {
    match (path.last().map(String::as_str), word) {
        (Some("average"), "moving") => "ewma".to_owned(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests;
