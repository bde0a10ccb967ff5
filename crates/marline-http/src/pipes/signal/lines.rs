//! Signals that a program writes, line by line: to a named pipe, or to standard input.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::live::{LiveSignal, Samples, SignalHost, SignalNotice, Stop, Waited};
use super::{RadioSample, trace};
use crate::file::open_input;
use crate::limits::{MAX_SIGNAL_LINE, MAX_WITHOUT_LINE, SIGNAL_HOLD, SIGNAL_PAUSE};

/// The source of lines. A line is SINR in dB, or a time, which is ignored, and SINR: a sample counts from when it is
/// read until the next one. Empty lines and those that begin with `#` are ignored, and so are those that are not
/// samples, or longer than [`MAX_SIGNAL_LINE`]; input without lines is abandoned after [`MAX_WITHOUT_LINE`]. When the
/// input ends, its last sample counts for [`SIGNAL_HOLD`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineSource {
    /// Standard input.
    Stdin,
    /// A named pipe, or a terminal. Programs may open and close it as often as they like.
    Pipe(PathBuf),
}

impl LineSource {
    /// Reads the lines on a thread.
    ///
    /// # Errors
    /// The input cannot be opened, is a device without lines such as `/dev/zero`, or no thread can be started.
    pub fn start(self, host: SignalHost) -> io::Result<LiveSignal> {
        let input = match &self {
            Self::Stdin => File::from(io::stdin().as_fd().try_clone_to_owned()?),
            Self::Pipe(path) => open_input(path)?,
        };
        if input.metadata()?.file_type().is_char_device() && !input.is_terminal() {
            return Err(io::Error::other(
                "it is a device that has no lines; give a file, a named pipe, or `-` for standard input",
            ));
        }
        let again = match self {
            Self::Stdin => None,
            Self::Pipe(path) => Some(path),
        };
        LiveSignal::spawn("radio lines", move |samples, stop| {
            let reader = Reader {
                lines: Lines::default(),
                host,
                samples,
                stop,
            };
            reader.run(input, again.as_deref());
        })
    }
}

/// The thread.
struct Reader {
    lines: Lines,
    host: SignalHost,
    samples: Arc<Samples>,
    stop: Stop,
}

impl Reader {
    /// Reads until the signal is dropped, or the input ends; `again` is opened again then.
    fn run(mut self, mut input: File, again: Option<&Path>) {
        let mut buffer = [0; 4096];
        // Whether the last sample counts for a limited time only.
        let mut is_ending = false;
        loop {
            let limit = is_ending.then_some(SIGNAL_HOLD);
            match self.stop.wait(Some(input.as_fd()), limit) {
                Waited::Stopped => return,
                Waited::TimedOut if is_ending => {
                    is_ending = false;
                    self.report_end();
                    continue;
                }
                Waited::TimedOut => continue,
                Waited::Readable => {}
            }
            match input.read(&mut buffer) {
                Ok(0) => {}
                Ok(count) => {
                    is_ending = false;
                    self.take(&buffer[..count]);
                    if self.lines.bytes > MAX_WITHOUT_LINE {
                        return self.give_up();
                    }
                    // A program that writes this much at once can wait.
                    let is_full = count == buffer.len();
                    if is_full && self.stop.wait(None, Some(SIGNAL_PAUSE)) == Waited::Stopped {
                        return;
                    }
                    continue;
                }
                Err(error) if is_passing(&error) => continue,
                Err(_) => {}
            }
            self.end();
            // Other files are not reopened at their end.
            let next = again.and_then(|path| open_input(path).ok());
            let is_pipe = |file: &File| Some(file.metadata().ok()?.file_type().is_fifo());
            let Some(next) = next.filter(|next| is_pipe(next) == Some(true)) else {
                if self.stop.wait(None, Some(SIGNAL_HOLD)) != Waited::Stopped {
                    self.report_end();
                }
                return;
            };
            (input, is_ending) = (next, true);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let line = self.lines.push(byte);
            self.on_line(line);
        }
    }

    /// The writer has closed the input: an unterminated line is complete, and the last sample expires after some time.
    fn end(&mut self) {
        let line = self.lines.finish();
        self.on_line(line);
        let now = self.host.runtime.now();
        self.samples.set(now + SIGNAL_HOLD, None);
    }

    fn on_line(&mut self, line: Line) {
        match line {
            Line::None => {}
            Line::Sample(sample) => {
                self.samples.set(self.host.runtime.now(), Some(sample));
            }
            Line::Malformed(text) => {
                if self.lines.malformed == 1 {
                    let line = self.lines.number;
                    (self.host.notify)(SignalNotice::Malformed { line, text });
                }
            }
        }
    }

    fn give_up(&self) {
        self.samples.set(self.host.runtime.now(), None);
        let bytes = self.lines.bytes;
        (self.host.notify)(SignalNotice::NoLines { bytes });
    }

    fn report_end(&self) {
        (self.host.notify)(SignalNotice::Ended {
            malformed: self.lines.malformed,
        });
    }
}

/// Whether the same read may succeed later.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
    )
}

/// The line that a byte completes.
#[derive(Debug, PartialEq)]
enum Line {
    /// None, or a line to ignore.
    None,
    Sample(RadioSample),
    /// A line that is not a sample, with its beginning.
    Malformed(String),
}

/// The line that is being read.
#[derive(Debug, Default)]
struct Lines {
    /// Its first bytes.
    line: Vec<u8>,
    is_too_long: bool,
    /// All of its bytes.
    bytes: u64,
    /// Lines so far.
    number: u64,
    /// The number of them that were not samples.
    malformed: u64,
}

impl Lines {
    fn push(&mut self, byte: u8) -> Line {
        match byte {
            b'\n' => self.complete(),
            _ => {
                self.bytes += 1;
                match self.line.len() < MAX_SIGNAL_LINE {
                    true => self.line.push(byte),
                    false => self.is_too_long = true,
                }
                Line::None
            }
        }
    }

    /// The input has ended.
    fn finish(&mut self) -> Line {
        match self.line.is_empty() {
            true => Line::None,
            false => self.complete(),
        }
    }

    fn complete(&mut self) -> Line {
        self.number += 1;
        let text = String::from_utf8_lossy(&self.line);
        let sample = match self.is_too_long {
            true => Err(()),
            false => parse(&text),
        };
        let line = match sample {
            Ok(None) => Line::None,
            Ok(Some(sample)) => Line::Sample(sample),
            Err(()) => {
                self.malformed += 1;
                Line::Malformed(trace::beginning(&text))
            }
        };
        self.line.clear();
        self.bytes = 0;
        self.is_too_long = false;
        line
    }
}

/// SINR, or a time and SINR.
fn parse(text: &str) -> Result<Option<RadioSample>, ()> {
    let Some(mut numbers) = trace::numbers(text) else {
        return Ok(None);
    };
    let first = numbers.next().flatten().ok_or(())?;
    let sinr = match numbers.next() {
        None => first,
        Some(second) => second.ok_or(())?,
    };
    Ok(Some(RadioSample::of_sinr(sinr)))
}

#[cfg(test)]
mod tests;
