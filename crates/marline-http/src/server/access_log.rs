//! The access log: a line for each request.

mod line;

use std::io::Write;
use std::time::Duration;

use marline::settings::{Named, Word};

pub(super) use self::line::{Line, RequestLine};
use crate::log::messages::{self, Subject};
use crate::log::{Entry, Level, LogOutput, LogOutputError, LogRotation, Queue, Reports, Stream};

/// The form of the lines of an access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// A JSON object.
    #[default]
    Json,
    /// The Common Log Format of Apache and nginx.
    Common,
    /// The same with `Referer` and `User-Agent`.
    Combined,
}

impl Named for AccessLogFormat {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "json",
            about: "a JSON object with all fields",
            value: Self::Json,
        },
        Word {
            name: "common",
            about: "the Common Log Format of Apache and nginx",
            value: Self::Common,
        },
        Word {
            name: "combined",
            about: "the same with Referer and User-Agent",
            value: Self::Combined,
        },
    ];
}

/// Writes a line for each request, on a thread of its own: a reader that stalls stops no request. Cheap to clone.
///
/// Lines that find the queue full, or that cannot be written, are dropped and counted. Once there is space again, in JSON a
/// line `{"time":..,"dropped":..}` has the number of those dropped since the last such line.
#[derive(Clone)]
pub struct AccessLog {
    queue: Queue,
    format: AccessLogFormat,
}

/// The name of the log in messages.
const NAME: &str = "access log";

/// The subject of its lines, for syslog.
const SUBJECT: &str = "access";

impl AccessLog {
    /// Logs JSON objects to `out`; each line is one write.
    pub fn new(out: impl Write + Send + 'static) -> Self {
        let format = AccessLogFormat::Json;
        Self {
            queue: Queue::new(Stream::new(out, false), reports(format)),
            format,
        }
    }

    /// Logs to `output`, whose files are rotated as `rotation` says. Does not wait for a reader of a pipe.
    ///
    /// # Errors
    /// The output cannot be written, is a pipe that no process reads, or is rotated and no regular file.
    pub fn open(
        output: &LogOutput,
        format: AccessLogFormat,
        rotation: Option<&LogRotation>,
    ) -> Result<Self, LogOutputError> {
        let sink = output.open(NAME, false, rotation)?;
        Ok(Self {
            queue: Queue::new(sink, reports(format)),
            format,
        })
    }

    /// Lines that were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }

    /// Waits until all lines are written, but no longer than `limit`. Blocks the thread.
    pub fn finish(&self, limit: Duration) {
        self.queue.finish(limit);
    }

    /// Queues a line.
    pub(super) fn write(&self, line: &Line<'_>) {
        if let Some(text) = line.text(self.format) {
            self.queue.push(entry(line.time, text));
        }
    }
}

impl std::fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccessLog")
    }
}

fn entry(time: f64, text: Vec<u8>) -> Entry {
    Entry {
        time,
        level: Level::Information,
        subject: SUBJECT,
        text,
    }
}

fn reports(format: AccessLogFormat) -> Reports {
    Reports {
        name: NAME,
        dropped: match format {
            AccessLogFormat::Json => |time, dropped| {
                let text = format!("{{\"time\":{time},\"dropped\":{dropped}}}");
                Some(entry(time, text.into_bytes()))
            },
            // Readers of these take every line for a request.
            AccessLogFormat::Common | AccessLogFormat::Combined => |_, _| None,
        },
        operator: |text| messages::emit(Level::Error, Subject::Log, text),
    }
}
