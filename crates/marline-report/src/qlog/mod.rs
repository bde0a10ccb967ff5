//! Reads qlog in any version: JSON text sequences, one JSON value per line, or one JSON document.
//!
//! Malformed records are reported and skipped. Former names of events (`transport:packet_sent`,
//! `recovery:metrics_updated`) are equivalent to the current ones (`quic:packet_sent`,
//! `quic:recovery_metrics_updated`); see [`Event::kind`].

mod records;
mod trace;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::input;
use records::Records;
use trace::Trace;

/// Why a file or a record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read, or not to its end.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A record is malformed; later ones may be valid.
    #[error("{}: record {record}: {reason}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The number of the record, from 1.
        record: usize,
        /// The reason.
        reason: String,
    },
    /// The file has no event.
    #[error("{} has no event of qlog: {reason}", path.display())]
    NoEvents {
        /// The file.
        path: PathBuf,
        /// The error of its first record, or that there is none.
        reason: String,
    },
}

/// A logged event of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Seconds since the log's reference time.
    pub time_s: f64,
    /// The full name, such as `quic:packet_sent`.
    pub name: String,
    /// The data of the event; usually an object.
    pub data: Value,
    /// The path of the event; empty for the first.
    pub tuple: String,
    /// The connection, if the file names it.
    pub group: String,
    /// The trace that contains it.
    pub source: Arc<Source>,
}

/// Metadata of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Its index in the file, from 0.
    pub index: usize,
    /// Its title, or the file's.
    pub title: String,
    /// The program that wrote it.
    pub name: String,
    /// The vantage point: `client`, `server` or `network`.
    pub vantage_point: String,
    /// The reference time on the wall clock (RFC 3339), if the file has one.
    pub reference: String,
}

impl Event {
    /// The event type without its namespace, the same for every version of qlog.
    pub fn kind(&self) -> &str {
        match self.name.split_once(':').unwrap_or(("", &self.name)) {
            ("recovery", "parameters_set") => "recovery_parameters_set",
            (_, "recovery_metrics_updated") => "metrics_updated",
            (_, "path_assigned") => "tuple_assigned",
            (_, kind) => kind,
        }
    }

    /// A number in the data, at a path of keys. Numbers may be quoted.
    pub fn number(&self, keys: &[&str]) -> Option<f64> {
        number(self.at(keys)?)
    }

    /// A text in the data, at a path of keys.
    pub fn text(&self, keys: &[&str]) -> Option<&str> {
        self.at(keys)?.as_str()
    }

    fn at(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter()
            .try_fold(&self.data, |value, &key| value.get(key))
    }
}

/// A finite JSON number, possibly quoted.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
    .filter(|number: &f64| number.is_finite())
}

/// Reads the file at `path`; the events come in the order of the file.
///
/// # Errors
///
/// [`Error::Io`] if it cannot be opened, or is not a regular file: give others to [`Events::new`]. The iterator yields an [`Error::Record`] for each record
/// that it skips, and ends after an [`Error::Io`].
pub fn read(path: impl AsRef<Path>) -> Result<Events<BufReader<File>>, Error> {
    let path = path.as_ref();
    let file = input::open(path).map_err(|source| Error::Io {
        path: path.to_owned(),
        source,
    })?;
    Ok(Events::new(BufReader::new(file), path))
}

/// The events of a log. See [`read`].
#[derive(Debug)]
pub struct Events<R> {
    records: Records<R>,
    path: PathBuf,
    trace: Trace,
    /// Events of a document that were not returned yet.
    pending: std::vec::IntoIter<Result<Event, String>>,
}

impl<R: BufRead> Events<R> {
    /// Reads `input`; errors name it `path`.
    pub fn new(input: R, path: &Path) -> Self {
        Self {
            records: Records::new(input),
            path: path.to_owned(),
            trace: Trace::default(),
            pending: Vec::new().into_iter(),
        }
    }

    fn error(&self, reason: String) -> Error {
        Error::Record {
            path: self.path.clone(),
            record: self.records.number(),
            reason,
        }
    }
}

impl<R: BufRead> Iterator for Events<R> {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(event) = self.pending.next() {
                return Some(event.map_err(|reason| self.error(reason)));
            }
            let value = match self.records.next()? {
                Ok(value) => value,
                Err(records::Error::Io(source)) => {
                    return Some(Err(Error::Io {
                        path: self.path.clone(),
                        source,
                    }));
                }
                Err(records::Error::Malformed(reason)) => return Some(Err(self.error(reason))),
            };
            match trace::Record::of(value) {
                trace::Record::Header(header) => self.trace = Trace::of_header(&header),
                trace::Record::Document(document) => {
                    self.pending = trace::events_of(document).into_iter();
                }
                trace::Record::Event(event) => {
                    return Some(self.trace.event(event).map_err(|reason| self.error(reason)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
