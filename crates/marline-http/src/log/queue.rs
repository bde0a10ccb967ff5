//! A queue of lines, and a thread that writes them.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::{Entry, Sink, timestamp};
use crate::limits;

/// Writes lines on a thread of its own: a destination that stalls stops no request. Cheap to clone.
///
/// Lines that find the queue full, or that cannot be written, are dropped and counted.
#[derive(Clone)]
pub(crate) struct Queue(Arc<Owner>);

/// How dropped lines are reported.
#[derive(Clone, Copy)]
pub(crate) struct Reports {
    /// The log in messages.
    pub(crate) name: &'static str,
    /// The line that states how many were dropped before it, in logs that have such a line.
    pub(crate) dropped: fn(time: f64, dropped: u64) -> Option<Entry>,
    /// Prints a message for the operator.
    pub(crate) operator: fn(&str),
}

/// Ends the thread when the last log is dropped.
struct Owner(Arc<Shared>);

struct Shared {
    lines: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Default)]
struct Lines {
    waiting: VecDeque<Entry>,
    bytes: usize,
    /// Whether a line that is no longer in the queue is being written.
    writing: bool,
    dropped: u64,
    /// Dropped lines that no line has reported yet.
    unreported: u64,
    /// Whether no more lines follow.
    ended: bool,
}

impl Queue {
    /// A queue of lines to `sink`.
    pub(crate) fn new(sink: impl Sink + 'static, reports: Reports) -> Self {
        let shared = Arc::new(Shared {
            lines: Mutex::default(),
            changed: Condvar::new(),
        });
        let writer = Writer::new(Arc::clone(&shared), sink, reports);
        let thread = thread::Builder::new().name(reports.name.to_owned());
        if thread.spawn(move || writer.run()).is_err() {
            // Without a thread, all lines are dropped, and counted.
            shared.lines().ended = true;
        }
        Self(Arc::new(Owner(shared)))
    }

    /// Lines that were dropped so far.
    pub(crate) fn dropped(&self) -> u64 {
        self.0.0.lines().dropped
    }

    /// Waits until all lines are written, but no longer than `limit`. Blocks the thread.
    pub(crate) fn finish(&self, limit: Duration) {
        let lines = self.0.0.lines();
        let is_busy = |lines: &mut Lines| lines.writing || !lines.waiting.is_empty();
        let waited = self.0.0.changed.wait_timeout_while(lines, limit, is_busy);
        drop(waited);
    }

    /// Queues a line.
    pub(crate) fn push(&self, entry: Entry) {
        let mut lines = self.0.0.lines();
        if lines.ended || !lines.has_room(&entry) {
            lines.drop_line();
            return;
        }
        lines.push(entry);
        drop(lines);
        self.0.0.changed.notify_all();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.lines().ended = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn has_room(&self, entry: &Entry) -> bool {
        self.bytes + entry.size() <= limits::LOG_QUEUE_BYTES
    }

    fn push(&mut self, entry: Entry) {
        self.bytes += entry.size();
        self.waiting.push_back(entry);
    }

    fn pop(&mut self) -> Option<Entry> {
        let entry = self.waiting.pop_front()?;
        self.bytes -= entry.size();
        if self.waiting.is_empty() {
            self.waiting.shrink_to(limits::IDLE_LOG_LINES);
        }
        Some(entry)
    }

    fn drop_line(&mut self) {
        self.dropped += 1;
        self.unreported += 1;
    }
}

/// The writing thread.
struct Writer<S> {
    shared: Arc<Shared>,
    sink: S,
    reports: Reports,
    /// When dropped lines were last reported to the operator, in seconds since 1970.
    reported: Option<f64>,
}

impl<S: Sink> Writer<S> {
    fn new(shared: Arc<Shared>, sink: S, reports: Reports) -> Self {
        Self {
            shared,
            sink,
            reports,
            reported: None,
        }
    }

    fn run(mut self) {
        while let Some(entry) = self.next() {
            let unreported = self.shared.lines().unreported;
            let reported = self.report(entry.time, unreported);
            let is_reported = reported.is_ok();
            let written = reported.and_then(|()| self.sink.write(&entry));
            let mut lines = self.shared.lines();
            lines.writing = false;
            if is_reported {
                lines.unreported -= unreported;
            }
            if written.is_err() {
                // A full disk must not stop the server.
                lines.drop_line();
            }
            drop(lines);
            self.shared.changed.notify_all();
            match written {
                Err(error) => self.complain(&error.to_string(), entry.time),
                Ok(()) if unreported > 0 => self.complain("it was too slow", entry.time),
                Ok(()) => {}
            }
        }
    }

    /// Reports dropped lines to the operator, unless some were reported recently.
    fn complain(&mut self, reason: &str, now: f64) {
        // The clock may be set back.
        let is_known = |since: f64| (now - since).abs() < limits::LOG_COMPLAINTS.as_secs_f64();
        if self.reported.is_some_and(is_known) {
            return;
        }
        self.reported = Some(now);
        let dropped = self.shared.lines().dropped;
        let name = self.reports.name;
        (self.reports.operator)(&format!(
            "the {name} cannot be written, so lines are dropped, {dropped} so far: {reason}; make space for it"
        ));
    }

    /// Waits for a line; `None` if no more follow.
    fn next(&self) -> Option<Entry> {
        let mut lines = self.shared.lines();
        loop {
            if let Some(entry) = lines.pop() {
                lines.writing = true;
                return Some(entry);
            }
            if lines.ended {
                return None;
            }
            let woken = self.shared.changed.wait(lines);
            lines = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn report(&mut self, time: f64, dropped: u64) -> io::Result<()> {
        match dropped {
            0 => Ok(()),
            _ => match (self.reports.dropped)(time, dropped) {
                Some(entry) => self.sink.write(&entry),
                None => Ok(()),
            },
        }
    }
}

/// Lines of text, one after another. Each is one write.
pub(crate) struct Stream<W> {
    pub(super) out: W,
    /// Whether lines begin with time, level and subject.
    is_stamped: bool,
    /// Whether the last line was written only partially.
    is_torn: bool,
}

impl<W> Stream<W> {
    pub(crate) fn new(out: W, is_stamped: bool) -> Self {
        Self {
            out,
            is_stamped,
            is_torn: false,
        }
    }

    /// The line of `entry`.
    pub(super) fn line(&self, entry: &Entry) -> Vec<u8> {
        let mut line = Vec::with_capacity(entry.text.len() + 64);
        if self.is_stamped {
            use marline::settings::Named;

            let (time, level) = (timestamp(entry.time), entry.level.name());
            let subject = entry.subject;
            line.extend_from_slice(format!("{time} {level} {subject}: ").as_bytes());
        }
        line.extend_from_slice(&entry.text);
        line.push(b'\n');
        line
    }
}

impl<W: Write> Stream<W> {
    pub(super) fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_torn {
            // The written part of the torn line stays a line of its own.
            self.out.write_all(b"\n")?;
            self.is_torn = false;
        }
        let mut rest = line;
        while !rest.is_empty() {
            match self.out.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    rest = &rest[written..];
                    self.is_torn = !rest.is_empty();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.flush()
    }
}

impl<W: Write + Send> Sink for Stream<W> {
    fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let line = self.line(entry);
        self.write_line(&line)
    }
}

#[cfg(test)]
#[path = "queue/tests.rs"]
mod tests;
