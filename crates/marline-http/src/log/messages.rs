//! The messages of a server for its operator, each with time, level and subject.
//!
//! They go to the log of the process that [`MessageLog::install`] sets, or else to standard error.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use marline::Runtime;

use super::{Entry, Level, LogOutput, LogOutputError, LogRotation, Queue, Reports};
use crate::limits;

/// The subject of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The start and the end of the server.
    Server,
    /// The configuration, and what it names.
    Configuration,
    /// Handshakes and certificates.
    Tls,
    /// Connections of QUIC and their logs.
    Quic,
    /// Applications behind a proxy.
    Upstream,
    /// Limits that are reached.
    Limits,
    /// The keys of the state directory.
    Keys,
    /// The logs themselves.
    Log,
    /// Tunnels, and requests for them.
    Tunnel,
    /// Defects of the program.
    Defect,
}

impl Subject {
    /// Its name in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Configuration => "configuration",
            Self::Tls => "tls",
            Self::Quic => "quic",
            Self::Upstream => "upstream",
            Self::Limits => "limits",
            Self::Keys => "keys",
            Self::Log => "log",
            Self::Tunnel => "tunnel",
            Self::Defect => "defect",
        }
    }
}

/// A kind of message that peers can cause as often as they like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frequent {
    /// A handshake over TCP fails.
    TlsHandshake,
    /// A balancer's header of the PROXY protocol cannot be read.
    ProxyHeader,
    /// A handshake over UDP fails.
    QuicHandshake,
    /// There are too many connections.
    Connections,
    /// The budget of buffers is used up.
    Buffers,
    /// The budget of open files is used up.
    Files,
    /// An application fails, or works again.
    Upstream,
    /// A tunnel is refused.
    Tunnel,
}

impl Frequent {
    const ALL: [Self; 8] = [
        Self::TlsHandshake,
        Self::ProxyHeader,
        Self::QuicHandshake,
        Self::Connections,
        Self::Buffers,
        Self::Files,
        Self::Upstream,
        Self::Tunnel,
    ];

    fn subject(self) -> Subject {
        match self {
            Self::TlsHandshake => Subject::Tls,
            Self::ProxyHeader => Subject::Server,
            Self::QuicHandshake => Subject::Quic,
            Self::Connections | Self::Buffers | Self::Files => Subject::Limits,
            Self::Upstream => Subject::Upstream,
            Self::Tunnel => Subject::Tunnel,
        }
    }
}

/// The log of messages of a process. Cheap to clone.
#[derive(Clone)]
pub struct MessageLog(Arc<Inner>);

struct Inner {
    queue: Queue,
    level: Level,
    runtime: Arc<dyn Runtime>,
    frequent: [Mutex<Budget>; Frequent::ALL.len()],
}

impl fmt::Debug for MessageLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MessageLog")
    }
}

/// The log that is installed.
static INSTALLED: RwLock<Option<MessageLog>> = RwLock::new(None);

fn installed() -> Option<MessageLog> {
    INSTALLED
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

impl MessageLog {
    /// Logs messages of `level` and more serious ones to `output`.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn open(
        output: &LogOutput,
        level: Level,
        rotation: Option<&LogRotation>,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, LogOutputError> {
        let reports = Reports {
            name: "error log",
            dropped: |time, dropped| {
                let text = format!("messages that were lost before this one: {dropped}");
                Some(entry(time, Level::Warning, Subject::Log, &text))
            },
            // Not to itself.
            operator: print,
        };
        let sink = output.open("error log", true, rotation)?;
        Ok(Self(Arc::new(Inner {
            queue: Queue::new(sink, reports),
            level,
            runtime,
            frequent: Default::default(),
        })))
    }

    /// Makes it the log of the process, instead of the previous one, whose messages are written first, within
    /// [`limits::LOG_FINISH`]. Blocks the thread.
    pub fn install(&self) {
        let mut installed = INSTALLED.write().unwrap_or_else(PoisonError::into_inner);
        let previous = installed.replace(self.clone());
        drop(installed);
        // Both may write to one file, where the order of messages is that of events.
        if let Some(previous) = previous {
            previous.0.queue.finish(limits::LOG_FINISH);
        }
    }

    /// Waits until all messages of the installed log are written, but no longer than `limit`. Blocks the thread.
    pub fn finish(limit: Duration) {
        if let Some(log) = installed() {
            log.0.queue.finish(limit);
        }
    }

    fn emit(&self, level: Level, subject: Subject, text: &str) {
        if level <= self.0.level {
            let time = self.0.runtime.unix_time().as_secs_f64();
            self.0.queue.push(entry(time, level, subject, text));
        }
    }

    fn emit_frequent(&self, level: Level, kind: Frequent, text: impl FnOnce() -> String) {
        if level > self.0.level {
            return;
        }
        let now = self.0.runtime.unix_time();
        let budget = &self.0.frequent[kind as usize];
        let taken = budget
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(now);
        let text = match taken {
            Taken::Refused => return,
            Taken::One => text(),
            Taken::Last => format!("{}; further ones are only counted for a minute", text()),
            Taken::After(count) => format!("{} (and {count} like it before)", text()),
        };
        self.emit(level, kind.subject(), &text);
    }
}

/// The messages of one kind that are emitted.
#[derive(Debug, Default)]
struct Budget {
    /// When the present interval began, since 1970.
    since: Duration,
    emitted: u32,
    refused: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Taken {
    One,
    /// None follows in this interval.
    Last,
    /// The first after this number that were not emitted.
    After(u64),
    Refused,
}

impl Budget {
    fn take(&mut self, now: Duration) -> Taken {
        // The clock may be set back.
        if now.abs_diff(self.since) >= limits::MESSAGE_INTERVAL {
            self.since = now;
            self.emitted = 0;
        }
        if self.emitted >= limits::MESSAGES_OF_KIND {
            self.refused += 1;
            return Taken::Refused;
        }
        self.emitted += 1;
        match (std::mem::take(&mut self.refused), self.emitted) {
            (0, limits::MESSAGES_OF_KIND) => Taken::Last,
            (0, _) => Taken::One,
            (refused, _) => Taken::After(refused),
        }
    }
}

/// A line of the log. Control characters are escaped: texts contain what peers sent.
fn entry(time: f64, level: Level, subject: Subject, text: &str) -> Entry {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => escaped.extend(c.escape_default()),
            false => escaped.push(c),
        }
    }
    Entry {
        time,
        level,
        subject: subject.name(),
        text: escaped.into_bytes(),
    }
}

/// Emits a message.
pub fn emit(level: Level, subject: Subject, text: &str) {
    match installed() {
        Some(log) => log.emit(level, subject, text),
        None => print(text),
    }
}

/// Emits a message that peers can cause: some of its kind in a minute, and the number of the others. Without a log, there is
/// none.
pub fn emit_frequent(level: Level, kind: Frequent, text: impl FnOnce() -> String) {
    if let Some(log) = installed() {
        log.emit_frequent(level, kind, text);
    }
}

/// Prints a message on standard error.
fn print(text: &str) {
    // Nobody is left to report to if this fails.
    let _ = io::stderr().write_all(format!("marline: {text}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use marline::TokioRuntime;

    use super::*;

    #[test]
    fn a_kind_of_message_has_some_in_a_minute_and_the_number_of_others() {
        let mut budget = Budget::default();
        let mut at = |seconds: u64| budget.take(Duration::from_secs(1_700_000_000 + seconds));
        for _ in 1..limits::MESSAGES_OF_KIND {
            assert_eq!(at(0), Taken::One);
        }
        assert_eq!(at(1), Taken::Last);
        for _ in 0..1000 {
            assert_eq!(at(59), Taken::Refused);
        }
        assert_eq!(at(60), Taken::After(1000));
        assert_eq!(at(61), Taken::One);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_stop_messages() {
        let mut budget = Budget::default();
        for _ in 0..limits::MESSAGES_OF_KIND {
            budget.take(Duration::from_secs(1_700_000_000));
        }
        assert_eq!(budget.take(Duration::from_secs(1_600_000_000)), Taken::One);
    }

    #[tokio::test]
    async fn messages_before_another_log_is_installed_are_written_before_those_after_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("log");
        let output = LogOutput::File(file.clone());
        let rounds = 0..100;
        for round in rounds.clone() {
            let runtime = Arc::new(TokioRuntime::current().unwrap());
            let log = MessageLog::open(&output, Level::Warning, None, runtime).unwrap();
            log.install();
            emit(Level::Warning, Subject::Configuration, &round.to_string());
        }
        MessageLog::finish(limits::LOG_FINISH);
        let written = std::fs::read_to_string(file).unwrap();
        let own = |line: &str| line.split("configuration: ").nth(1)?.parse().ok();
        let written: Vec<u32> = written.lines().filter_map(own).collect();
        assert_eq!(written, Vec::from_iter(rounds));
    }

    #[test]
    fn what_peers_sent_makes_no_line_of_its_own() {
        let line = entry(0.0, Level::Error, Subject::Tls, "a\nb\u{1b}[2J\u{9b}");
        assert_eq!(line.text, b"a\\nb\\u{1b}[2J\\u{9b}");
    }

    #[test]
    fn every_frequent_kind_has_a_budget_of_its_own() {
        for (index, kind) in Frequent::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
    }
}
