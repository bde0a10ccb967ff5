//! The access log: a queue, and a thread that writes.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::file::open_for_appending;
use crate::limits;

/// Writes one JSON object per line, on a thread of its own: a reader that stalls stops no request. Cheap to clone.
///
/// Lines that find the queue full, or that cannot be written, are dropped and counted. Once there is space again, a
/// line `{"time":..,"dropped":..}` has the number of those dropped since the last such line.
#[derive(Clone)]
pub struct AccessLog(Arc<Owner>);

/// Ends the thread when the last log is dropped.
struct Owner(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Entry>,
    bytes: usize,
    /// Whether a line that is no longer in the queue is being written.
    writing: bool,
    dropped: u64,
    /// Dropped lines that no line has reported yet.
    unreported: u64,
    /// Whether no more lines follow.
    ended: bool,
}

/// A queued line.
struct Entry {
    /// Seconds since 1970.
    time: f64,
    text: Vec<u8>,
}

/// The line that reports dropped lines.
#[derive(Serialize)]
struct Dropped {
    /// Seconds since 1970.
    time: f64,
    dropped: u64,
}

impl AccessLog {
    /// Logs to `out`; each line is one write.
    pub fn new(out: impl Write + Send + 'static) -> Self {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
        });
        let writer = Writer {
            shared: Arc::clone(&shared),
            out,
            is_torn: false,
            report: super::report,
            reported: None,
        };
        let thread = thread::Builder::new().name("access log".to_owned());
        if thread.spawn(move || writer.run()).is_err() {
            // Without a thread, all lines are dropped, and counted.
            shared.queue().ended = true;
        }
        Self(Arc::new(Owner(shared)))
    }

    /// Appends to the file at `path`, which is created if there is none. It may be a pipe that a process reads. Does not
    /// wait for that.
    ///
    /// # Errors
    /// The file cannot be written, or is a pipe that no process reads.
    pub fn open(path: &Path) -> io::Result<Self> {
        open_for_appending(path).map(Self::new)
    }

    /// Lines that were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.0.0.queue().dropped
    }

    /// Waits until all lines are written, but no longer than `limit`. Blocks the thread.
    pub fn finish(&self, limit: Duration) {
        let queue = self.0.0.queue();
        let is_busy = |queue: &mut Queue| queue.writing || !queue.lines.is_empty();
        let waited = self.0.0.changed.wait_timeout_while(queue, limit, is_busy);
        drop(waited);
    }

    /// Queues a line of the given time, in seconds since 1970.
    pub(super) fn write(&self, time: f64, line: &impl Serialize) {
        let Ok(text) = json_line(line) else { return };
        let mut queue = self.0.0.queue();
        if queue.ended || !queue.has_room(text.len()) {
            queue.drop_line();
            return;
        }
        queue.push(Entry { time, text });
        drop(queue);
        self.0.0.changed.notify_all();
    }
}

fn json_line(line: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}

impl std::fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccessLog")
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.queue().ended = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn has_room(&self, bytes: usize) -> bool {
        self.bytes + bytes <= limits::LOG_QUEUE_BYTES
    }

    fn push(&mut self, line: Entry) {
        self.bytes += line.text.len();
        self.lines.push_back(line);
    }

    fn pop(&mut self) -> Option<Entry> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.text.len();
        if self.lines.is_empty() {
            self.lines.shrink_to(limits::IDLE_LOG_LINES);
        }
        Some(line)
    }

    fn drop_line(&mut self) {
        self.dropped += 1;
        self.unreported += 1;
    }
}

/// The writing thread.
struct Writer<W> {
    shared: Arc<Shared>,
    out: W,
    /// Whether the last line was written only partially.
    is_torn: bool,
    /// Prints a message for the operator.
    report: fn(&str),
    /// When dropped lines were last reported to the operator, in seconds since 1970.
    reported: Option<f64>,
}

impl<W: Write> Writer<W> {
    fn run(mut self) {
        while let Some(line) = self.next() {
            let unreported = self.shared.queue().unreported;
            let reported = self.report(line.time, unreported);
            let is_reported = reported.is_ok();
            let written = reported.and_then(|()| self.write(&line.text));
            let mut queue = self.shared.queue();
            queue.writing = false;
            if is_reported {
                queue.unreported -= unreported;
            }
            if written.is_err() {
                // A full disk must not stop the server.
                queue.drop_line();
            }
            drop(queue);
            self.shared.changed.notify_all();
            if let Err(error) = written {
                self.complain(&error, line.time);
            }
        }
    }

    /// Reports dropped lines to the operator, unless one was reported recently.
    fn complain(&mut self, error: &io::Error, now: f64) {
        // The clock may be set back.
        let is_known = |since: f64| (now - since).abs() < limits::LOG_COMPLAINTS.as_secs_f64();
        if self.reported.is_some_and(is_known) {
            return;
        }
        self.reported = Some(now);
        let dropped = self.shared.queue().dropped;
        (self.report)(&format!(
            "the access log cannot be written, so lines are dropped, {dropped} so far: {error}; make space for it"
        ));
    }

    /// Waits for a line; `None` if no more follow.
    fn next(&self) -> Option<Entry> {
        let mut queue = self.shared.queue();
        loop {
            if let Some(line) = queue.pop() {
                queue.writing = true;
                return Some(line);
            }
            if queue.ended {
                return None;
            }
            let woken = self.shared.changed.wait(queue);
            queue = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn report(&mut self, time: f64, dropped: u64) -> io::Result<()> {
        match dropped {
            0 => Ok(()),
            _ => self.write(&json_line(&Dropped { time, dropped })?),
        }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[derive(Serialize)]
    struct Line {
        text: String,
    }

    fn log(log: &AccessLog, text: &str) {
        let text = text.to_owned();
        log.write(7.0, &Line { text });
    }

    /// Writes with the permission of a test: each write takes one.
    struct Gate {
        permissions: mpsc::Receiver<io::Result<usize>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Without further permissions, everything is written.
            let len = self.permissions.recv().unwrap_or(Ok(bytes.len()))?;
            let len = len.min(bytes.len());
            self.written
                .lock()
                .unwrap()
                .extend_from_slice(&bytes[..len]);
            Ok(len)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Gated {
        log: AccessLog,
        permit: mpsc::Sender<io::Result<usize>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    fn gated() -> Gated {
        let (permit, permissions) = mpsc::channel();
        let written = Arc::default();
        let out = Gate {
            permissions,
            written: Arc::clone(&written),
        };
        Gated {
            log: AccessLog::new(out),
            permit,
            written,
        }
    }

    fn lines(written: &Mutex<Vec<u8>>) -> Vec<String> {
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_operator_is_told_once_a_minute_that_lines_are_dropped() {
        static MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let mut writer = Writer {
            shared: Arc::new(Shared {
                queue: Mutex::default(),
                changed: Condvar::new(),
            }),
            out: io::sink(),
            is_torn: false,
            report: |message| MESSAGES.lock().unwrap().push(message.to_owned()),
            reported: None,
        };
        let error = io::Error::from(io::ErrorKind::StorageFull);
        for seconds in 0..150 {
            writer.shared.queue().drop_line();
            writer.complain(&error, 1.7e9 + f64::from(seconds));
        }
        let messages = MESSAGES.lock().unwrap();
        assert_eq!(messages.len(), 3, "{messages:?}");
        assert!(messages[2].contains("121 so far"), "{messages:?}");
    }

    /// Every write to it fails, as to a full disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_line_that_cannot_be_written_is_reported() {
        static REPORTED: Mutex<usize> = Mutex::new(0);
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
        });
        let writer = Writer {
            shared: Arc::clone(&shared),
            out: std::fs::File::options()
                .write(true)
                .open("/dev/full")
                .unwrap(),
            is_torn: false,
            report: |_| *REPORTED.lock().unwrap() += 1,
            reported: None,
        };
        let access_log = AccessLog(Arc::new(Owner(shared)));
        log(&access_log, "first");
        log(&access_log, "second");
        drop(access_log);
        writer.run();
        assert_eq!(*REPORTED.lock().unwrap(), 1);
    }

    #[test]
    fn a_reader_that_stalls_blocks_nobody_and_loses_lines_that_are_counted() {
        let Gated {
            log: access_log,
            permit,
            written,
        } = gated();
        let long = "x".repeat(limits::LOG_QUEUE_BYTES / 10);
        for _ in 0..30 {
            log(&access_log, &long);
        }
        let dropped = access_log.dropped();
        assert!((15..30).contains(&dropped), "{dropped}");
        drop(permit);
        access_log.finish(LIMIT);
        log(&access_log, "after");
        access_log.finish(LIMIT);
        let lines = lines(&written);
        let report = format!("{{\"time\":7.0,\"dropped\":{dropped}}}");
        assert_eq!(lines.iter().filter(|line| **line == report).count(), 1);
        assert_eq!(lines.last().unwrap(), "{\"text\":\"after\"}");
        assert_eq!(lines.len() as u64, 30 - dropped + 2);
    }

    #[test]
    fn a_log_that_blocks_does_not_delay_the_end() {
        let Gated {
            log: access_log,
            permit,
            written,
        } = gated();
        log(&access_log, "never");
        access_log.finish(Duration::from_millis(1));
        assert!(written.lock().unwrap().is_empty());
        drop(permit);
    }

    #[test]
    fn a_line_after_one_that_was_torn_begins_anew() {
        let Gated {
            log: access_log,
            permit,
            written,
        } = gated();
        permit.send(Ok(5)).unwrap();
        permit.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        // The line feed of the second line fails, too.
        permit.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        drop(permit);
        for text in ["first", "second", "third"] {
            log(&access_log, text);
            access_log.finish(LIMIT);
        }
        let expected = [
            "{\"tex",
            "{\"time\":7.0,\"dropped\":2}",
            "{\"text\":\"third\"}",
        ];
        assert_eq!(lines(&written), expected);
        assert_eq!(access_log.dropped(), 2);
    }
}
