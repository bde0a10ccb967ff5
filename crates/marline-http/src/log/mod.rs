//! Logs: where their lines go, and the messages of a server.
//!
//! ```text
//! AccessLog, messages -> Queue (bounded) -> thread -> Sink: stream | file with rotation | syslog | journald
//! ```

mod file;
mod journald;
pub(crate) mod messages;
mod output;
mod queue;
mod rotation;
mod syslog;

use std::io;

use marline::settings::{Named, Word, text_values};
use time::OffsetDateTime;

pub use self::messages::{Frequent, MessageLog, Subject, emit, emit_frequent};
pub use self::output::{LogOutput, LogOutputError};
pub(crate) use self::queue::{Queue, Reports, Stream};
pub use self::rotation::{InvalidLogRotation, LogRotation};

/// How serious a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The server, or a part of it, does not work.
    Error,
    /// Something failed for some clients, or soon will for all.
    Warning,
    /// Something that an operator wants to know.
    #[default]
    Information,
}

impl Named for Level {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "error",
            about: "what does not work",
            value: Self::Error,
        },
        Word {
            name: "warning",
            about: "also what failed for some clients, or soon will for all",
            value: Self::Warning,
        },
        Word {
            name: "information",
            about: "also what happens as it should",
            value: Self::Information,
        },
    ];
}

impl Level {
    /// The severity of syslog (RFC 5424, section 6.2.1), which is the priority of journald.
    fn severity(self) -> u8 {
        match self {
            Self::Error => 3,
            Self::Warning => 4,
            Self::Information => 6,
        }
    }
}

text_values!(LogOutput, LogRotation);

/// A line of a log.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Seconds since 1970.
    pub(crate) time: f64,
    pub(crate) level: Level,
    /// The subject, in one word.
    pub(crate) subject: &'static str,
    /// The text, without control characters and without the end of a line.
    pub(crate) text: Vec<u8>,
}

impl Entry {
    /// Its memory in a queue, in bytes.
    fn size(&self) -> usize {
        self.text.len() + size_of::<Self>()
    }
}

/// The destination of lines, which may block.
pub(crate) trait Sink: Send {
    /// Writes a line.
    fn write(&mut self, entry: &Entry) -> io::Result<()>;
}

/// The time `unix`, in seconds since 1970, in UTC. Times outside of the years that can be written are those of 1970.
pub(crate) fn utc(unix: f64) -> OffsetDateTime {
    // A number of this size is exact to less than a microsecond.
    let nanos = (unix * 1e6).round() as i128 * 1000;
    let time = OffsetDateTime::from_unix_timestamp_nanos(nanos);
    let time = time.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    match (0..=9999).contains(&time.year()) {
        true => time,
        false => OffsetDateTime::UNIX_EPOCH,
    }
}

/// The time `unix`, in seconds since 1970, as in RFC 3339, in UTC and milliseconds. Years have four digits; those before 0 and after
/// 9999 are 1970.
pub fn timestamp(unix: f64) -> String {
    let time = utc(unix);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        time.year(),
        u8::from(time.month()),
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
        time.millisecond()
    )
}
