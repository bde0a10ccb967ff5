//! Captures compressed by gzip (RFC 1952), also in several members, as in concatenated files, and with zeros behind
//! them, which gzip ignores as well: they fill the last block of a tape or a disk.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use flate2::bufread::GzDecoder;

/// The first bytes of a gzip file.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The source was cut, or changed, since it was compressed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the compressed data is {} after byte {at}", if *.is_cut { "cut" } else { "damaged" })]
pub(super) struct Fault {
    /// Whether its end is missing.
    pub(super) is_cut: bool,
    /// The last compressed byte before the fault.
    pub(super) at: u64,
}

/// The bytes of a capture, decompressed if gzip has compressed them. One piece at a time is in memory.
#[derive(Debug)]
pub(super) enum Bytes<R> {
    Plain(Source<R>),
    Gzip(Box<Members<R>>),
}

/// Members in turn.
#[derive(Debug)]
pub(super) struct Members<R> {
    /// The decoder of the current member; `None` only while it is replaced.
    decoder: Option<GzDecoder<BufReader<Source<R>>>>,
}

impl<R: Read> Members<R> {
    fn new(source: Source<R>) -> Self {
        Self {
            decoder: Some(GzDecoder::new(BufReader::new(source))),
        }
    }

    /// Begins the next member, after zeros. Returns whether there is one.
    fn begin_next(&mut self) -> io::Result<bool> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(false);
        };
        let source = decoder.get_mut();
        loop {
            let bytes = source.fill_buf()?;
            if bytes.is_empty() {
                return Ok(false);
            }
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            let is_begun = zeros < bytes.len();
            source.consume(zeros);
            if is_begun {
                break;
            }
        }
        let decoder = self.decoder.take();
        self.decoder = decoder.map(|decoder| GzDecoder::new(decoder.into_inner()));
        Ok(true)
    }

    fn taken(&self) -> u64 {
        let source = self.decoder.as_ref();
        source.map_or(0, |decoder| decoder.get_ref().get_ref().taken)
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.decoder {
            let read = decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() || !self.begin_next()? {
                return Ok(read);
            }
        }
        Ok(0)
    }
}

/// A source whose first bytes were already read.
#[derive(Debug)]
pub(super) struct Source<R> {
    first: [u8; MAGIC.len()],
    /// The number of first bytes, and of those taken.
    first_len: usize,
    first_taken: usize,
    rest: R,
    /// The number of bytes taken.
    taken: u64,
}

impl<R: Read> Bytes<R> {
    /// Looks at the first bytes.
    pub(super) fn of(mut source: R) -> io::Result<Self> {
        let mut first = [0; MAGIC.len()];
        let mut first_len = 0;
        while first_len < first.len() {
            match source.read(&mut first[first_len..]) {
                Ok(0) => break,
                Ok(read) => first_len += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let source = Source {
            first,
            first_len,
            first_taken: 0,
            rest: source,
            taken: 0,
        };
        Ok(match first_len == first.len() && first == MAGIC {
            true => Self::Gzip(Box::new(Members::new(source))),
            false => Self::Plain(source),
        })
    }

    /// An error of a read after byte `at`: a [`Fault`], or another.
    pub(super) fn fault(&self, error: io::Error, at: u64) -> io::Error {
        let is_cut = match error.kind() {
            ErrorKind::UnexpectedEof => true,
            ErrorKind::InvalidInput | ErrorKind::InvalidData => false,
            _ => return error,
        };
        match self {
            Self::Plain(_) => error,
            Self::Gzip(_) => io::Error::other(Fault { is_cut, at }),
        }
    }

    /// Whether the bytes are decompressed.
    pub(super) const fn is_compressed(&self) -> bool {
        matches!(self, Self::Gzip(_))
    }

    /// The number of bytes taken from the source, before decompression.
    pub(super) fn taken(&self) -> u64 {
        match self {
            Self::Plain(source) => source.taken,
            Self::Gzip(members) => members.taken(),
        }
    }
}

impl<R: Read> Read for Bytes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(source) => source.read(buffer),
            Self::Gzip(members) => members.read(buffer),
        }
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut first = &self.first[self.first_taken..self.first_len];
        let read = if first.is_empty() {
            self.rest.read(buffer)?
        } else {
            let read = first.read(buffer)?;
            self.first_taken += read;
            read
        };
        self.taken += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
