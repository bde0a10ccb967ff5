//! Splits input into JSON values, for every separator.

use std::io::{self, BufRead, Read};

use serde_json::Value;

/// RFC 7464's record separator.
const RECORD_SEPARATOR: u8 = 0x1e;

/// Maximum size of a record in bytes.
const MAX_RECORD: u64 = 16 << 20;

/// Maximum size in bytes of a document that is one JSON value, which is read as a whole; in memory it takes several times as
/// many. Longer logs are JSON text sequences.
const MAX_DOCUMENT: u64 = 128 << 20;

/// Why a value could not be read.
#[derive(Debug)]
pub(super) enum Error {
    /// Reading failed; the input ends.
    Io(io::Error),
    /// The record is not JSON; others may follow.
    Malformed(String),
}

/// The separation of records in a file.
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

    /// The number of the record read last, from 1.
    pub(super) const fn number(&self) -> usize {
        self.number
    }

    /// Reads up to the next `separator`, which is not included; `None` at the end of the file.
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
            self.skip_until(separator)?;
            return Err(too_long(MAX_RECORD));
        }
        Ok(Some(self.buf.trim_ascii()))
    }

    /// Skips the rest of a record, if it is not much longer.
    fn skip_until(&mut self, separator: u8) -> Result<(), Error> {
        let mut limited = (&mut self.input).take(MAX_DOCUMENT);
        let skipped = limited.skip_until(separator).map_err(Error::Io)?;
        if skipped as u64 == MAX_DOCUMENT {
            self.layout = Layout::Ended;
        }
        Ok(())
    }

    /// Determines the layout from the first bytes: a sequence begins with a separator. Otherwise the
    /// first line is a complete value, or the whole file is one.
    fn find_layout(&mut self) -> Result<Option<Value>, Error> {
        let first = loop {
            let bytes = self.input.fill_buf().map_err(Error::Io)?;
            let Some(&byte) = bytes.first() else {
                self.layout = Layout::Ended;
                return Ok(None);
            };
            // White space and a byte order mark are skipped.
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
        self.number = 1;
        if !matches!(first, b'{' | b'[') {
            self.layout = Layout::Ended;
            let reason = "not JSON: it begins with neither an object nor a record separator";
            return Err(Error::Malformed(reason.to_owned()));
        }
        self.layout = Layout::Lines;
        self.buf.clear();
        let mut limited = (&mut self.input).take(MAX_DOCUMENT);
        limited
            .read_until(b'\n', &mut self.buf)
            .map_err(Error::Io)?;
        match serde_json::from_slice(&self.buf) {
            Ok(value) => return Ok(Some(value)),
            Err(error) if error.is_eof() => {}
            Err(error) => return Err(Error::Malformed(format!("not JSON: {error}"))),
        }
        self.layout = Layout::Ended;
        let left = MAX_DOCUMENT.saturating_sub(self.buf.len() as u64);
        let mut limited = (&mut self.input).take(left);
        limited.read_to_end(&mut self.buf).map_err(Error::Io)?;
        if self.buf.len() as u64 >= MAX_DOCUMENT {
            self.buf = Vec::new();
            return Err(too_long(MAX_DOCUMENT));
        }
        let document = std::mem::take(&mut self.buf);
        parse(&document).map(Some)
    }
}

fn too_long(limit: u64) -> Error {
    Error::Malformed(format!("it is longer than {} MiB", limit >> 20))
}

fn parse(record: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(record).map_err(|error| {
        Error::Malformed(if error.is_eof() {
            "it ends within a value".to_owned()
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
