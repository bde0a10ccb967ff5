//! Converts logs to the format of the viewer qvis (<https://qvis.quictools.info>, <https://github.com/quiclog/qvis>).
//!
//! At its head (2025-10), qvis supports the former version 0.3 of qlog: `qlog_version` and `qlog_format` in the header,
//! other names and namespaces of events, lengths in the frames. It opens neither the files of the current schema nor
//! its events.

mod data;
mod name;

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::qlog::{self, Event, Source};

/// The most bytes of a document: browsers load no longer text.
const MAX_BYTES: usize = 512 << 20;

/// Why logs could not be converted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log cannot be read, or has no events.
    #[error(transparent)]
    Log(#[from] qlog::Error),
    /// The result would be longer than browsers load.
    #[error("{}: the result would be longer than the {} MiB that browsers load", path.display(), MAX_BYTES >> 20)]
    TooLong {
        /// The log.
        path: PathBuf,
    },
}

/// A log for qvis: one JSON document.
#[derive(Debug)]
pub struct Document {
    title: String,
    traces: Vec<Trace>,
    /// The indices of the traces.
    places: HashMap<TraceKey, usize>,
    skipped: usize,
    first_error: Option<String>,
}

/// A connection of a trace.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TraceKey {
    /// The address of the trace's metadata.
    source: usize,
    group: String,
}

/// The events of one connection, and the trace that they come from.
#[derive(Debug)]
struct Trace {
    source: Arc<Source>,
    group: String,
    /// Events as JSON, with commas between them.
    events: String,
}

impl Document {
    /// Converts the events of the log at `path`, which is named in errors. Each connection becomes a trace.
    ///
    /// # Errors
    ///
    /// If reading fails, if there are no events, or if the document would be longer than 512 MiB. Malformed
    /// records are skipped and counted.
    pub fn of(
        path: impl Into<PathBuf>,
        events: impl IntoIterator<Item = Result<Event, qlog::Error>>,
    ) -> Result<Self, Error> {
        let path = path.into();
        let mut document = Self {
            title: String::new(),
            traces: Vec::new(),
            places: HashMap::new(),
            skipped: 0,
            first_error: None,
        };
        let mut left = MAX_BYTES;
        for event in events {
            match event {
                Ok(event) => {
                    let written = document.add(event);
                    left = left
                        .checked_sub(written)
                        .ok_or_else(|| Error::TooLong { path: path.clone() })?;
                }
                Err(error @ qlog::Error::Record { .. }) => {
                    document.skipped += 1;
                    document.first_error.get_or_insert(error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        if document.traces.is_empty() {
            let reason = document.first_error;
            return Err(Error::Log(qlog::Error::NoEvents {
                path,
                reason: reason.unwrap_or_else(|| "it has no record of one".to_owned()),
            }));
        }
        Ok(document)
    }

    /// Malformed records that were skipped.
    pub const fn skipped(&self) -> usize {
        self.skipped
    }

    /// The error of the first of them.
    pub fn first_error(&self) -> Option<&str> {
        self.first_error.as_deref()
    }

    /// Adds an event to its trace; returns the bytes that it takes.
    fn add(&mut self, event: Event) -> usize {
        if self.traces.is_empty() {
            self.title.clone_from(&event.source.title);
        }
        let index = self.traces.len();
        let key = TraceKey {
            source: Arc::as_ptr(&event.source).addr(),
            group: event.group.clone(),
        };
        let at = *self.places.entry(key).or_insert(index);
        if at == index {
            self.traces.push(Trace {
                source: Arc::clone(&event.source),
                group: event.group.clone(),
                events: String::new(),
            });
        }
        let events = &mut self.traces[at].events;
        let before = events.len();
        if !events.is_empty() {
            events.push_str(",\n");
        }
        events.push_str(&converted(event).to_string());
        events.len() - before
    }

    /// Writes the document.
    ///
    /// # Errors
    ///
    /// The error of `out`.
    pub fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        // qvis looks for these fields, in this order, at the beginning of the file.
        write!(
            out,
            "{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON\",\"title\":{},\"traces\":[",
            Value::from(&*self.title)
        )?;
        for (index, trace) in self.traces.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            // The fields of a trace end with its events.
            let head = trace.head().to_string();
            let head = head.strip_suffix('}').unwrap_or(&head);
            write!(out, "{comma}\n{head},\"events\":[\n{}\n]}}", trace.events)?;
        }
        writeln!(out, "]}}")
    }
}

impl Trace {
    /// Everything but the events.
    fn head(&self) -> Value {
        let Source {
            title,
            name,
            vantage_point,
            reference,
            ..
        } = &*self.source;
        let kind = match vantage_point.as_str() {
            kind @ ("client" | "server" | "network") => kind,
            _ => "unknown",
        };
        // qvis parses a date; it must have a number or a text.
        let reference = if reference.is_empty() {
            json!(0)
        } else {
            json!(reference)
        };
        json!({
            "title": title,
            "vantage_point": { "name": name, "type": kind },
            "common_fields": {
                "group_id": self.group,
                "time_format": "relative",
                "reference_time": reference,
            },
        })
    }
}

fn converted(event: Event) -> Value {
    let mut data = match event.data {
        Value::Object(data) => data,
        _ => Map::new(),
    };
    data::convert(&event.name, &mut data);
    json!({
        // Milliseconds; the resolution of logs is a nanosecond at best.
        "time": (event.time_s * 1e9).round() / 1e6,
        "name": name::of(&event.name),
        "data": data,
    })
}

#[cfg(test)]
mod tests;
