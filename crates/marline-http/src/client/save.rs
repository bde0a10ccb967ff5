//! Writes content to its destination. A file appears under its name only when it is complete.

mod part;
mod place;
mod writer;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::header::{ETAG, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue};
use marline::Sha256;

use self::part::Part;
use self::place::Place;
pub(super) use self::writer::{Output, Writer};
use super::{ClientError, Destination};
use crate::file::{lacks_reader, open_output};
use crate::limits;
use crate::runtime::RuntimeHandle;

/// Identifies the representation to which a partial file belongs, for `If-Range`.
#[derive(Clone, Debug, Default)]
pub(super) struct Validator(pub(super) Option<HeaderValue>);

impl Validator {
    /// The value for a later `If-Range`: a strong entity tag, or a date.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let strong = headers
            .get(ETAG)
            .filter(|tag| tag.as_bytes().starts_with(b"\""));
        Self(strong.or_else(|| headers.get(LAST_MODIFIED)).cloned())
    }
}

/// The point from which to resume an incomplete file.
pub(super) struct ResumePoint {
    /// Bytes that the file has.
    pub(super) offset: u64,
    /// The validator of their representation.
    pub(super) validator: HeaderValue,
}

/// The result of saving complete content.
#[derive(Default)]
pub(super) struct Saved {
    /// SHA-256 in hexadecimal, unless bytes were only counted.
    pub(super) sha256: Option<String>,
    /// The file with the content.
    pub(super) file: Option<PathBuf>,
}

/// Takes, counts and hashes content.
pub(super) struct Sink {
    out: Out,
    hash: Sha256,
    len: u64,
    /// Whether the content is that of an error, which is counted but not kept.
    discards: bool,
}

enum Out {
    Nowhere,
    Counted,
    StandardOutput,
    /// A device, a pipe or a socket, which is written to and not replaced.
    Stream(File, PathBuf),
    File(Part),
}

impl Sink {
    /// As [`open`](Self::open), on a thread that may block; waits until a process reads the destination if it is a named pipe.
    pub(super) async fn open_for_reader(
        destination: &Destination,
        resume: bool,
        runtime: &RuntimeHandle,
    ) -> Result<Self, ClientError> {
        loop {
            let destination = destination.clone();
            let opening = move || Self::open(&destination, resume);
            match runtime.unblock(opening).await {
                Err(ClientError::File { path, cause }) if lacks_reader(&path, &cause) => {
                    runtime.sleep(limits::PIPE_POLL).await;
                }
                opened => return opened,
            }
        }
    }

    /// Opens the destination; with `resume`, continues the partial file of an earlier attempt.
    pub(super) fn open(destination: &Destination, resume: bool) -> Result<Self, ClientError> {
        let mut sink = Self {
            out: Out::Nowhere,
            hash: Sha256::new(),
            len: 0,
            discards: false,
        };
        match destination {
            Destination::Nowhere => {}
            Destination::Counted => sink.out = Out::Counted,
            Destination::StandardOutput => sink.out = Out::StandardOutput,
            Destination::File(_) | Destination::Named { .. } => {
                let path = match destination {
                    Destination::Named { directory, name } => &directory.join(name),
                    Destination::File(path) => path,
                    _ => return Ok(sink),
                };
                let place = Place::of(path).map_err(|cause| failed(path, cause))?;
                match place {
                    Place::StandardOutput => sink.out = Out::StandardOutput,
                    Place::Stream => {
                        let file = open_output(path).map_err(|cause| failed(path, cause))?;
                        sink.out = Out::Stream(file, path.clone());
                    }
                    Place::File(target) => {
                        let mut part = Part::open(path, target, resume)?;
                        sink.len = part.hash_existing(&mut sink.hash)?;
                        sink.out = Out::File(part);
                    }
                }
            }
        }
        Ok(sink)
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Whether a stream has some of the content, which cannot be taken back.
    pub(super) fn has_streamed(&self) -> bool {
        let is_kept = match &self.out {
            Out::Nowhere | Out::Counted | Out::File(_) => false,
            Out::StandardOutput => true,
            Out::Stream(_, path) => path != Path::new("/dev/null"),
        };
        is_kept && self.len > 0 && !self.discards
    }

    /// The point from which to resume a file that an earlier fetch left incomplete.
    pub(super) fn resume_point(&self) -> Option<ResumePoint> {
        match &self.out {
            Out::File(part) if self.len > 0 => Some(ResumePoint {
                offset: self.len,
                validator: part.validator()?.clone(),
            }),
            _ => None,
        }
    }

    /// Discards the content so far: a complete representation follows, identified by `validator`.
    pub(super) fn start_over(&mut self, validator: Validator) -> Result<(), ClientError> {
        self.hash = Sha256::new();
        self.len = 0;
        match &mut self.out {
            Out::File(part) => part.start_over(validator),
            _ => Ok(()),
        }
    }

    /// A second handle, to write pieces out of order; `None` if the destination needs them in order.
    ///
    /// A file with holes cannot be resumed: call [`end_pieces`](Self::end_pieces) when the last piece is
    /// written.
    pub(super) fn begin_pieces(&mut self) -> Result<Option<Pieces>, ClientError> {
        self.start_over(Validator::default())?;
        match &self.out {
            Out::Nowhere | Out::StandardOutput | Out::Stream(..) => Ok(None),
            Out::Counted => Ok(Some(Pieces(None))),
            Out::File(part) => Ok(Some(Pieces(Some((part.second_handle()?, part.path()))))),
        }
    }

    /// Whether pieces can be written out of order.
    pub(super) fn takes_pieces(&self) -> bool {
        matches!(self.out, Out::File(_) | Out::Counted) && self.len == 0
    }

    /// Counts and hashes the pieces: `size` bytes, if each is as long as announced.
    pub(super) fn end_pieces(&mut self, size: u64) -> Result<(), ClientError> {
        match &mut self.out {
            Out::Nowhere | Out::StandardOutput | Out::Stream(..) => {}
            Out::Counted => self.len = size,
            Out::File(part) => {
                self.hash = Sha256::new();
                self.len = part.hash_all(&mut self.hash)?;
            }
        }
        Ok(())
    }

    /// Discards the content that follows: it is not the object.
    pub(super) fn discard_content(&mut self) {
        self.hash = Sha256::new();
        self.len = 0;
        self.discards = true;
    }

    /// Writes the next bytes; may block.
    pub(super) fn write(&mut self, chunk: &[u8]) -> Result<(), ClientError> {
        self.len += chunk.len() as u64;
        if matches!(self.out, Out::Counted) {
            return Ok(());
        }
        self.hash.update(chunk);
        match &mut self.out {
            _ if self.discards => Ok(()),
            Out::Nowhere | Out::Counted => Ok(()),
            Out::StandardOutput => io::stdout().write_all(chunk).map_err(ClientError::Output),
            Out::Stream(file, path) => {
                let written = file.write_all(chunk);
                written.map_err(|cause| failed(path, cause))
            }
            Out::File(part) => part.write(chunk),
        }
    }

    /// Writes bytes that are not part of the content.
    pub(super) fn prefix(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        match &mut self.out {
            Out::Nowhere | Out::Counted => Ok(()),
            Out::StandardOutput => io::stdout().write_all(bytes).map_err(ClientError::Output),
            Out::Stream(file, path) => {
                let written = file.write_all(bytes);
                written.map_err(|cause| failed(path, cause))
            }
            Out::File(part) => part.write(bytes),
        }
    }

    /// Publishes the complete content.
    pub(super) fn finish(self) -> Result<Saved, ClientError> {
        if matches!(self.out, Out::Counted) {
            return Ok(Saved::default());
        }
        let digest = self.hash.finish();
        let hash = digest.iter().fold(String::new(), |mut hex, byte| {
            // Writing to a String cannot fail.
            let _ = std::fmt::Write::write_fmt(&mut hex, format_args!("{byte:02x}"));
            hex
        });
        let file = match self.out {
            _ if self.discards => None,
            Out::Nowhere | Out::Counted => None,
            Out::StandardOutput => {
                let flushed = io::stdout().flush();
                flushed.map_err(ClientError::Output)?;
                None
            }
            Out::Stream(_, path) => Some(path),
            Out::File(part) => Some(part.publish()?),
        };
        Ok(Saved {
            sha256: Some(hash),
            file,
        })
    }
}

impl Output for Sink {
    type Part = Bytes;

    fn may_block(&self) -> bool {
        !matches!(self.out, Out::Nowhere | Out::Counted)
    }

    fn take(&mut self, part: Bytes) -> Result<(), ClientError> {
        self.write(&part)
    }
}

/// A part of a file.
pub(super) struct Piece {
    pub(super) offset: u64,
    pub(super) bytes: Bytes,
}

/// Writes pieces of a file; without a file, discards them.
pub(super) struct Pieces(Option<(File, PathBuf)>);

impl Pieces {
    pub(super) fn write(&self, offset: u64, chunk: &[u8]) -> Result<(), ClientError> {
        let Some((file, path)) = &self.0 else {
            return Ok(());
        };
        #[cfg(unix)]
        let written = std::os::unix::fs::FileExt::write_all_at(file, chunk, offset);
        #[cfg(windows)]
        let written = write_all_at(file, chunk, offset);
        written.map_err(|cause| failed(path, cause))
    }
}

impl Output for Pieces {
    type Part = Piece;

    fn may_block(&self) -> bool {
        self.0.is_some()
    }

    fn take(&mut self, part: Piece) -> Result<(), ClientError> {
        self.write(part.offset, &part.bytes)
    }
}

#[cfg(windows)]
fn write_all_at(file: &File, mut chunk: &[u8], mut offset: u64) -> io::Result<()> {
    while !chunk.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, chunk, offset)?;
        chunk = &chunk[written..];
        offset += written as u64;
    }
    Ok(())
}

fn failed(path: &Path, cause: io::Error) -> ClientError {
    ClientError::File {
        path: path.to_owned(),
        cause,
    }
}

#[cfg(all(test, unix))]
mod tests;
