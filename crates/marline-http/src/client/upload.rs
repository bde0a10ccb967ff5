//! The content of requests: bytes and files, one after another.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::stream::unfold;
use http_body::Frame;
use http_body_util::StreamBody;

use super::ClientError;
use super::pace::Pace;
use crate::body::{Body, BoxError};
use crate::runtime::RuntimeHandle;

/// Bytes that are read from a file at once.
const CHUNK: usize = 64 << 10;

/// The content of a request: parts that follow each other, or a stream. Files are read while they are sent.
#[derive(Clone, Debug, Default)]
pub struct Upload(Content);

#[derive(Clone, Debug)]
enum Content {
    Parts(Vec<UploadPart>),
    /// Taken when it is sent.
    Stream(Arc<Mutex<Option<Body>>>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Parts(Vec::new())
    }
}

/// A part of the content of a request.
#[derive(Clone, Debug)]
pub enum UploadPart {
    /// Bytes.
    Bytes(Bytes),
    /// The content of a file.
    File(PathBuf),
    /// Standard input to its end. A request with it can be sent once.
    Input,
}

impl Upload {
    /// These parts, one after another.
    pub fn new(parts: Vec<UploadPart>) -> Self {
        Self(Content::Parts(parts))
    }

    /// Content that is sent as it comes from `body`, once; its trailers, too.
    pub fn stream<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        match body.is_end_stream() {
            true => Self::default(),
            false => {
                let body = Some(Body::new(body));
                Self(Content::Stream(Arc::new(Mutex::new(body))))
            }
        }
    }

    /// Whether there is no content at all, in contrast to content of no bytes.
    pub fn is_none(&self) -> bool {
        matches!(&self.0, Content::Parts(parts) if parts.is_empty())
    }

    /// Whether it can be sent more than once.
    pub fn is_repeatable(&self) -> bool {
        match &self.0 {
            Content::Parts(parts) => !parts.iter().any(|part| matches!(part, UploadPart::Input)),
            Content::Stream(_) => false,
        }
    }

    /// Opens its files, and returns the content.
    ///
    /// # Errors
    /// [`ClientError::Upload`]: one of them cannot be opened.
    pub(super) async fn open(
        &self,
        runtime: &RuntimeHandle,
        pace: Option<&Arc<Pace>>,
    ) -> Result<OpenUpload, ClientError> {
        let parts = match &self.0 {
            Content::Parts(parts) => parts.clone(),
            Content::Stream(stream) => {
                let body = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
                let body = body.ok_or_else(|| ClientError::NoResponse {
                    cause: "the content of the request has been sent before".into(),
                })?;
                return Ok(OpenUpload {
                    length: http_body::Body::size_hint(&body).exact(),
                    body,
                    failure: Failure::default(),
                });
            }
        };
        let opened = runtime.unblock(move || {
            let mut length = Some(0u64);
            let mut sources = VecDeque::new();
            for part in parts {
                let source = Source::open(part)?;
                length = length
                    .zip(source.length())
                    .and_then(|(sum, more)| sum.checked_add(more));
                sources.push_back(source);
            }
            Ok::<_, ClientError>((length, sources))
        });
        let (length, sources) = opened.await?;
        let sending = Sending {
            sources,
            runtime: runtime.clone(),
            pace: pace.cloned(),
            failure: Failure::default(),
        };
        let failure = sending.failure.clone();
        let body = match self.is_none() {
            true => Body::empty(),
            false => Body::new(StreamBody::new(unfold(sending, Sending::next))),
        };
        Ok(OpenUpload {
            body,
            length,
            failure,
        })
    }
}

impl From<Bytes> for Upload {
    fn from(bytes: Bytes) -> Self {
        Self::new(vec![UploadPart::Bytes(bytes)])
    }
}

/// Content that is ready to be sent.
pub(super) struct OpenUpload {
    pub(super) body: Body,
    /// Its length in bytes, if it is known.
    pub(super) length: Option<u64>,
    pub(super) failure: Failure,
}

/// The reason why content could not be read, which errors of connections do not have.
#[derive(Clone, Debug, Default)]
pub(super) struct Failure(Arc<Mutex<Option<ClientError>>>);

impl Failure {
    /// The reason, once.
    pub(super) fn take(&self) -> Option<ClientError> {
        self.slot().take()
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<ClientError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Source {
    Bytes(Bytes),
    File {
        file: File,
        path: PathBuf,
        /// Bytes that are left of a regular file: what is appended meanwhile was not announced.
        left: Option<u64>,
    },
    Input,
}

impl Source {
    fn open(part: UploadPart) -> Result<Self, ClientError> {
        match part {
            UploadPart::Bytes(bytes) => Ok(Self::Bytes(bytes)),
            UploadPart::Input => Ok(Self::Input),
            UploadPart::File(path) => {
                let opened = File::open(&path).and_then(|file| Ok((file.metadata()?, file)));
                match opened {
                    Ok((metadata, file)) if !metadata.is_dir() => Ok(Self::File {
                        file,
                        path,
                        left: metadata.is_file().then_some(metadata.len()),
                    }),
                    Ok(_) => Err(unreadable(path, io::ErrorKind::IsADirectory.into())),
                    Err(cause) => Err(unreadable(path, cause)),
                }
            }
        }
    }

    fn length(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::File { left, .. } => *left,
            Self::Input => None,
        }
    }

    /// The next bytes; none at the end. May block.
    fn read(&mut self) -> Result<Bytes, ClientError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.split_to(bytes.len().min(CHUNK))),
            Self::Input => {
                let mut chunk = vec![0; CHUNK];
                let read = read(&mut io::stdin().lock(), &mut chunk);
                let len = read.map_err(|cause| unreadable(PathBuf::from("-"), cause))?;
                chunk.truncate(len);
                Ok(chunk.into())
            }
            Self::File { file, path, left } => {
                let most = left.map_or(CHUNK, |left| left.min(CHUNK as u64) as usize);
                let mut chunk = vec![0; most];
                let len =
                    read(file, &mut chunk).map_err(|cause| unreadable(path.clone(), cause))?;
                if let Some(left) = left {
                    if len == 0 && *left > 0 {
                        let cause = io::ErrorKind::UnexpectedEof.into();
                        return Err(unreadable(path.clone(), cause));
                    }
                    *left -= len as u64;
                }
                chunk.truncate(len);
                Ok(chunk.into())
            }
        }
    }
}

fn read(from: &mut impl Read, chunk: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

fn unreadable(path: PathBuf, cause: io::Error) -> ClientError {
    ClientError::Upload { path, cause }
}

/// Content that is being sent.
struct Sending {
    sources: VecDeque<Source>,
    runtime: RuntimeHandle,
    pace: Option<Arc<Pace>>,
    failure: Failure,
}

impl Sending {
    async fn next(mut self) -> Option<(Result<Frame<Bytes>, BoxError>, Self)> {
        loop {
            let mut source = self.sources.pop_front()?;
            let read = match source {
                Source::Bytes(_) => source.read().map(|bytes| (bytes, source)),
                Source::File { .. } | Source::Input => {
                    let reading = move || source.read().map(|bytes| (bytes, source));
                    self.runtime.unblock(reading).await
                }
            };
            match read {
                Ok((bytes, _)) if bytes.is_empty() => {}
                Ok((bytes, source)) => {
                    self.sources.push_front(source);
                    if let Some(pace) = &self.pace {
                        pace.wait(&self.runtime, bytes.len()).await;
                    }
                    return Some((Ok(Frame::data(bytes)), self));
                }
                Err(error) => {
                    self.sources.clear();
                    let text = error.to_string();
                    *self.failure.slot() = Some(error);
                    return Some((Err(text.into()), self));
                }
            }
        }
    }
}
