//! Writes a connection's events as qlog: JSON text sequences (RFC 7464) of the schema of
//! draft-ietf-quic-qlog-main-schema-14 with the events of draft-ietf-quic-qlog-quic-events-13.
//!
//! Our additions are declared in `docs/reference/qlog.cddl`.
//!
//! Records are composed in one buffer. The `tuple` of an event is the number of its path. Payload
//! bytes, keys, tokens and reset tokens are never logged.

mod beside;
mod data;
mod frames;
mod header;
mod names;

pub use header::{Header, VantagePoint};

use std::io;

use marline_wire::PathId;
use marline_wire::params::TransportParameters;

use super::events::{Initiator, MetricsUpdated};
use super::json::Json;
use super::{Event, Observer};
use crate::Instant;

/// Size of a batch of output, in bytes.
const BATCH: usize = 16 * 1024;

/// Maximum number of paths whose metrics the writer stores to log only changes.
const REMEMBERED_PATHS: usize = 16;

/// An observer that writes qlog to `W`, which needs no buffering.
///
/// Writes batches, and the rest at [`flush`](Self::flush) and on drop. After the first error of `W`
/// logging stops, without effect on the connection: see [`error`](Self::error).
pub struct QlogWriter<W: io::Write + Send> {
    out: W,
    buf: Vec<u8>,
    reference: Instant,
    error: Option<io::Error>,
    state: State,
}

/// The context that a reader needs to interpret an event.
struct State {
    metrics: Vec<MetricsUpdated>,
    local_ack_delay_exponent: u64,
    remote_ack_delay_exponent: u64,
    /// Whether each end supports multipath.
    multipath: [bool; 2],
}

impl<W: io::Write + Send> QlogWriter<W> {
    /// Starts a log in `out`; times are relative to `header.reference`.
    pub fn new(out: W, header: &Header<'_>) -> Self {
        // Most connections of attackers end after a few records.
        let mut buf = Vec::with_capacity(1024);
        header.write(&mut buf);
        let default = TransportParameters::default().ack_delay_exponent;
        Self {
            out,
            buf,
            reference: header.reference,
            error: None,
            state: State {
                metrics: Vec::new(),
                local_ack_delay_exponent: default,
                remote_ack_delay_exponent: default,
                multipath: [false; 2],
            },
        }
    }

    /// Writes the buffered records.
    ///
    /// An error ends the log; [`error`](Self::error) returns it.
    pub fn flush(&mut self) {
        if self.error.is_none() {
            let result = self.out.write_all(&self.buf);
            self.error = result.and_then(|()| self.out.flush()).err();
        }
        self.buf.clear();
    }

    /// The error that ended the log, if any.
    pub const fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }
}

impl<W: io::Write + Send> Observer for QlogWriter<W> {
    fn on_event(&mut self, now: Instant, event: &Event<'_>) {
        if self.error.is_some() || !self.state.is_news(event) {
            return;
        }
        self.buf.push(0x1e);
        let state = &self.state;
        Json(&mut self.buf).item(|record| {
            record.ms("time", now - self.reference);
            record.str("name", event.name());
            if let Some(path) = event.path() {
                names::path(record, "tuple", path);
            }
            record.object("data", |data| data::write(data, event, state));
            beside::write(record, event, state);
        });
        self.buf.push(b'\n');
        self.state.remember(event);
        if self.buf.len() >= BATCH {
            self.flush();
        }
    }
}

impl<W: io::Write + Send> Drop for QlogWriter<W> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl<W: io::Write + Send> std::fmt::Debug for QlogWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QlogWriter")
            .field("buffered", &self.buf.len())
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl State {
    fn last_metrics(&self, path: PathId) -> Option<&MetricsUpdated> {
        self.metrics.iter().find(|last| last.path == path)
    }

    fn is_multipath(&self) -> bool {
        self.multipath == [true; 2]
    }

    fn is_news(&self, event: &Event<'_>) -> bool {
        match event {
            Event::MetricsUpdated(metrics) => self.last_metrics(metrics.path) != Some(metrics),
            _ => true,
        }
    }

    fn remember(&mut self, event: &Event<'_>) {
        match event {
            Event::MetricsUpdated(metrics) => {
                let known = self.metrics.iter().position(|m| m.path == metrics.path);
                match known {
                    Some(at) => self.metrics[at] = *metrics,
                    None if self.metrics.len() < REMEMBERED_PATHS => self.metrics.push(*metrics),
                    None => {}
                }
            }
            Event::ParametersSet(event) => {
                let exponent = match event.initiator {
                    Initiator::Local => &mut self.local_ack_delay_exponent,
                    Initiator::Remote => &mut self.remote_ack_delay_exponent,
                };
                *exponent = event.parameters.ack_delay_exponent;
                self.multipath[event.initiator as usize] =
                    event.parameters.initial_max_path_id.is_some();
            }
            _ => {}
        }
    }
}
