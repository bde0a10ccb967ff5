//! Bytes to JSON values, whatever separates them.

use std::io::{self, BufRead, Read};

use serde_json::Value;

/// RFC 7464's record separator.
const RECORD_SEPARATOR: u8 = 0x1e;

/// The longest record, in bytes: far more than an event needs.
const MAX_RECORD: u64 = 16 << 20;

/// The longest document that is one JSON value, in bytes: it is read as a whole.
const MAX_DOCUMENT: u64 = 1 << 30;

/// Why there is no value.
#[derive(Debug)]
pub(super) enum Error {
    /// Reading failed; there is no more.
    Io(io::Error),
    /// The record is not JSON; more may follow.
    Broken(String),
}

/// What separates the records of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Unknown,
    Sequence,
    Lines,
    Ended,
}

/// The JSON values of a file.
#[derive(Debug)]
pub(super) struct Records<R> {
    input: R,
    layout: Layout,
    number: usize,
    buf: Vec<u8>,
}

impl<R: BufRead> Records<R> {
    pub(super) const fn new(input: R) -> Self {
        Self {
            input,
            layout: Layout::Unknown,
            number: 0,
            buf: Vec::new(),
        }
    }

    /// Which record was read last, from 1.
    pub(super) const fn number(&self) -> usize {
        self.number
    }

    /// Reads up to and without the next `separator`; `None` at the end of the file.
    fn read_until(&mut self, separator: u8) -> Result<Option<&[u8]>, Error> {
        self.buf.clear();
        let mut limited = (&mut self.input).take(MAX_RECORD);
        let read = limited
            .read_until(separator, &mut self.buf)
            .map_err(Error::Io)?;
        if read == 0 {
            return Ok(None);
        }
        if self.buf.last() == Some(&separator) {
            self.buf.pop();
        } else if read as u64 == MAX_RECORD {
            let reason = format!("it is longer than {} MiB", MAX_RECORD >> 20);
            self.skip_until(separator)?;
            return Err(Error::Broken(reason));
        }
        Ok(Some(self.buf.trim_ascii()))
    }

    /// Passes over the rest of a record.
    fn skip_until(&mut self, separator: u8) -> Result<(), Error> {
        self.input
            .skip_until(separator)
            .map(|_| ())
            .map_err(Error::Io)
    }

    /// Looks at the first bytes: a sequence begins with its separator. Of anything else the first
    /// line tells: it is a whole value, or the file is one.
    fn find_layout(&mut self) -> Result<Option<Value>, Error> {
        let first = loop {
            let bytes = self.input.fill_buf().map_err(Error::Io)?;
            let Some(&byte) = bytes.first() else {
                self.layout = Layout::Ended;
                return Ok(None);
            };
            // Spaces and the bytes of a byte order mark mean nothing.
            if !byte.is_ascii_whitespace() && !matches!(byte, 0xef | 0xbb | 0xbf) {
                break byte;
            }
            self.input.consume(1);
        };
        if first == RECORD_SEPARATOR {
            self.input.consume(1);
            self.layout = Layout::Sequence;
            return Ok(None);
        }
        self.layout = Layout::Lines;
        self.number = 1;
        self.buf.clear();
        (&mut self.input)
            .take(MAX_DOCUMENT)
            .read_until(b'\n', &mut self.buf)
            .map_err(Error::Io)?;
        match serde_json::from_slice(&self.buf) {
            Ok(value) => return Ok(Some(value)),
            Err(error) if error.is_eof() => {}
            Err(error) => return Err(Error::Broken(format!("not JSON: {error}"))),
        }
        self.layout = Layout::Ended;
        let left = MAX_DOCUMENT.saturating_sub(self.buf.len() as u64);
        (&mut self.input)
            .take(left)
            .read_to_end(&mut self.buf)
            .map_err(Error::Io)?;
        let document = std::mem::take(&mut self.buf);
        parse(&document).map(Some)
    }
}

fn parse(record: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(record).map_err(|error| {
        Error::Broken(if error.is_eof() {
            "it ends in the middle of a value".to_owned()
        } else {
            format!("not JSON: {error}")
        })
    })
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = Result<Value, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let separator = match self.layout {
                Layout::Ended => return None,
                Layout::Sequence => RECORD_SEPARATOR,
                Layout::Lines => b'\n',
                Layout::Unknown => match self.find_layout() {
                    Ok(None) => continue,
                    Ok(Some(value)) => return Some(Ok(value)),
                    Err(error) => {
                        if matches!(error, Error::Io(_)) {
                            self.layout = Layout::Ended;
                        }
                        return Some(Err(error));
                    }
                },
            };
            self.number += 1;
            match self.read_until(separator) {
                Ok(Some([])) => self.number -= 1,
                Ok(Some(record)) => return Some(parse(record)),
                Ok(None) => self.layout = Layout::Ended,
                Err(error) => {
                    if matches!(error, Error::Io(_)) {
                        self.layout = Layout::Ended;
                    }
                    return Some(Err(error));
                }
            }
        }
    }
}
