//! Responses as dictionaries of later ones (RFC 9842): a new version of a script is sent as its difference from the one that the client has.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Response};
use http_body::{Body as _, Frame, SizeHint};
use marline::Sha256;
use marline::settings::text_values;
use tokio::task::JoinHandle;
use zstd::stream::write::Encoder;

use super::in_turns::InTurns;
use crate::body::{Body, BoxError};
use crate::content::content_length;
use crate::limits::{DICTIONARY_BYTES, MAX_DICTIONARY};

/// The content coding: Zstandard with a dictionary (RFC 9842, section 5).
pub(super) const CODING: HeaderValue = HeaderValue::from_static("dcz");

/// Before the data of the coding and the hash of its dictionary: a frame that decoders of Zstandard skip.
const MAGIC: [u8; 8] = [0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0];
/// Content that begins so would be taken for a trained dictionary of Zstandard, and not for the text that it is.
const TRAINED: &[u8] = &[0x37, 0xa4, 0x30, 0xec];
/// Higher levels find little more in a text that is mostly there already.
const LEVEL: i32 = 6;
/// The least and the largest window: those of Zstandard, and the 8 MiB that every client has.
const MIN_WINDOW_LOG: u32 = 10;
const MAX_WINDOW_LOG: u32 = 23;
/// Frames have about this many bytes, so that the first leaves early.
const FRAME: usize = 1 << 14;

/// Responses whose dictionaries are remembered; those of further ones are learnt again.
const MAX_SOURCES: usize = 4096;

/// The SHA-256 of a dictionary, by which clients name it.
pub(super) type Hash = [u8; 32];

/// Paths whose responses are dictionaries of each other, as `/app/*.js`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DictionaryPattern(String);

/// A text is not a [`DictionaryPattern`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a dictionary path pattern; begin it with /, use at most one *, and no blanks or any of \\ \" : ( ) {{ }} + ? # as /app/*.js"
)]
pub struct InvalidPattern(String);

impl DictionaryPattern {
    fn matches(&self, path: &str) -> bool {
        match self.0.split_once('*') {
            Some((before, after)) => path
                .strip_prefix(before)
                .is_some_and(|rest| rest.ends_with(after)),
            None => path == self.0,
        }
    }
}

impl FromStr for DictionaryPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        // The others have a meaning in patterns of URLs, or in strings of structured fields.
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\\\":(){}+?#".contains(&byte);
        let is_one = text.matches('*').count() <= 1;
        match text.starts_with('/') && is_one && text.bytes().all(is_plain) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidPattern(text.to_owned())),
        }
    }
}

impl fmt::Display for DictionaryPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_values!(DictionaryPattern);

/// The dictionary that a client has for this request (RFC 9842, section 2.2).
pub(super) fn available(headers: &HeaderMap) -> Option<Hash> {
    let value = headers.get("available-dictionary")?.to_str().ok()?.trim();
    let encoded = value.strip_prefix(':')?.strip_suffix(':')?;
    STANDARD.decode(encoded).ok()?.try_into().ok()
}

/// A response that is, or may become, a dictionary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Source {
    pub(super) target: PathAndQuery,
    /// Its strong entity tag.
    pub(super) tag: HeaderValue,
}

/// The latest responses of a pattern, within [`DICTIONARY_BYTES`].
#[derive(Debug)]
pub(super) struct Dictionaries {
    pattern: DictionaryPattern,
    /// That of `Use-As-Dictionary`.
    announcement: HeaderValue,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_hash: HashMap<Hash, Bytes>,
    /// The oldest first.
    order: VecDeque<Hash>,
    bytes: usize,
    /// The responses that had them.
    sources: HashMap<Source, Hash>,
}

impl Dictionaries {
    pub(super) fn new(pattern: DictionaryPattern) -> Self {
        let value = HeaderValue::from_str(&format!("match=\"{pattern}\""));
        Self {
            // A pattern has only characters that are allowed.
            announcement: value.unwrap_or_else(|_| HeaderValue::from_static("")),
            pattern,
            kept: Mutex::default(),
        }
    }

    /// Announces `response` as a dictionary, if it is one, and learns its content unless it is known; whether it is learnt.
    pub(super) fn learn(
        self: &Arc<Self>,
        source: &Source,
        is_head: bool,
        response: &mut Response<Body>,
    ) -> bool {
        if !self.pattern.matches(source.target.path()) {
            return false;
        }
        let is_known = self.has(source);
        let is_short =
            content_length(response.headers()).is_none_or(|length| length <= MAX_DICTIONARY as u64);
        let is_learnt = !is_known && is_short && !is_head;
        if is_learnt {
            let body = std::mem::replace(response.body_mut(), Body::empty());
            let learned = Learned::new(body, Arc::clone(self), source.clone());
            *response.body_mut() = Body::new(learned);
        }
        if is_known || is_learnt {
            let headers = response.headers_mut();
            headers.insert("use-as-dictionary", self.announcement.clone());
        }
        is_learnt
    }

    pub(super) fn get(&self, hash: &Hash) -> Option<Bytes> {
        self.kept().by_hash.get(hash).cloned()
    }

    /// Whether the content of `source` is kept.
    pub(super) fn has(&self, source: &Source) -> bool {
        let kept = self.kept();
        let hash = kept.sources.get(source);
        hash.is_some_and(|hash| kept.by_hash.contains_key(hash))
    }

    /// Keeps `content`, and drops the oldest if there is too much.
    fn insert(&self, source: Source, hash: Hash, content: Bytes) {
        let mut kept = self.kept();
        let kept = &mut *kept;
        if !kept.by_hash.contains_key(&hash) {
            kept.bytes += content.len();
            kept.order.push_back(hash);
            kept.by_hash.insert(hash, content);
        }
        while kept.bytes > DICTIONARY_BYTES {
            let Some(oldest) = kept.order.pop_front() else {
                break;
            };
            let removed = kept.by_hash.remove(&oldest);
            kept.bytes -= removed.map_or(0, |content| content.len());
        }
        if kept.sources.len() >= MAX_SOURCES {
            let by_hash = &kept.by_hash;
            kept.sources.retain(|_, hash| by_hash.contains_key(hash));
        }
        if kept.sources.len() < MAX_SOURCES {
            kept.sources.insert(source, hash);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Content that becomes a dictionary when it was read to its end.
pub(super) struct Learned {
    body: Body,
    into: Option<Learning>,
}

struct Learning {
    dictionaries: Arc<Dictionaries>,
    source: Source,
    hash: Sha256,
    content: BytesMut,
}

impl Learned {
    pub(super) fn new(body: Body, dictionaries: Arc<Dictionaries>, source: Source) -> Self {
        Self {
            body,
            into: Some(Learning {
                dictionaries,
                source,
                hash: Sha256::new(),
                content: BytesMut::new(),
            }),
        }
    }
}

impl Learning {
    /// Takes a part of the content, unless it gets too much.
    fn and(mut self, data: &[u8]) -> Option<Self> {
        self.hash.update(data);
        self.content.extend_from_slice(data);
        (self.content.len() <= MAX_DICTIONARY).then_some(self)
    }

    fn end(self) {
        if !self.content.is_empty() && !self.content.starts_with(TRAINED) {
            let (hash, content) = (self.hash.finish(), self.content.freeze());
            self.dictionaries.insert(self.source, hash, content);
        }
    }
}

impl http_body::Body for Learned {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let into = self.into.take();
        self.into = match &frame {
            Some(Ok(frame)) => {
                let data = frame.data_ref().map_or(&[][..], Bytes::as_ref);
                into.and_then(|into| into.and(data))
            }
            Some(Err(_)) => None,
            None => {
                into.into_iter().for_each(Learning::end);
                None
            }
        };
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        // The end completes the dictionary.
        self.into.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// `response`, whose content is sent as its difference from `dictionary`, whose hash is `hash`.
pub(super) fn difference(
    response: Response<Body>,
    hash: Hash,
    dictionary: Bytes,
) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    let length = content_length(&parts.headers);
    parts.headers.insert(CONTENT_ENCODING, CODING);
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.remove(ACCEPT_RANGES);
    let difference = Difference {
        body: InTurns::new(body),
        coder: Coder::Begun(Beginning {
            hash,
            dictionary,
            length,
        }),
    };
    Response::from_parts(parts, Body::new(difference))
}

/// Content in the coding [`CODING`].
struct Difference {
    body: InTurns,
    coder: Coder,
}

enum Coder {
    Begun(Beginning),
    Making(JoinHandle<io::Result<Encoder<'static, Vec<u8>>>>),
    Coding {
        encoder: Encoder<'static, Vec<u8>>,
        /// Whether it may have data that it has not put out.
        holds: bool,
    },
    Ended,
}

struct Beginning {
    hash: Hash,
    dictionary: Bytes,
    /// That of the content, if it is known.
    length: Option<u64>,
}

impl Beginning {
    fn encoder(&self) -> io::Result<Encoder<'static, Vec<u8>>> {
        let head = [&MAGIC[..], &self.hash].concat();
        let mut encoder = Encoder::with_dictionary(head, LEVEL, &self.dictionary)?;
        // All of the dictionary stays in reach, within what every client has (RFC 9842, section 5).
        let reach = self.length.unwrap_or(u64::MAX);
        let reach = reach.saturating_add(self.dictionary.len() as u64);
        let window = (u64::BITS - reach.leading_zeros()).clamp(MIN_WINDOW_LOG, MAX_WINDOW_LOG);
        encoder.window_log(window)?;
        // Zstandard reads the dictionary only now.
        encoder.flush()?;
        Ok(encoder)
    }
}

impl Difference {
    /// Takes a step: the next data, if there are some, or [`Poll::Ready`] with none if there is another step.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BoxError>> {
        match std::mem::replace(&mut self.coder, Coder::Ended) {
            Coder::Begun(beginning) => {
                // It takes some milliseconds, in which the thread could do other things.
                let making = tokio::task::spawn_blocking(move || beginning.encoder());
                self.coder = Coder::Making(making);
                Poll::Ready(Ok(None))
            }
            Coder::Making(mut making) => {
                let Poll::Ready(made) = Pin::new(&mut making).poll(cx) else {
                    self.coder = Coder::Making(making);
                    return Poll::Pending;
                };
                let encoder = made.map_err(io::Error::other)??;
                let holds = false;
                self.coder = Coder::Coding { encoder, holds };
                Poll::Ready(Ok(None))
            }
            Coder::Coding { mut encoder, holds } => {
                let (least, holds) = match Pin::new(&mut self.body).poll_frame(cx) {
                    Poll::Ready(Some(frame)) => {
                        // Files have no trailers, which would come behind all data.
                        let data = frame?.into_data().unwrap_or_default();
                        encoder.write_all(&data)?;
                        (FRAME, true)
                    }
                    Poll::Ready(None) => {
                        let rest = encoder.finish()?;
                        return Poll::Ready(Ok(Some(rest.into())));
                    }
                    // Content that comes slowly does not wait for more.
                    Poll::Pending => {
                        if holds {
                            encoder.flush()?;
                        }
                        (1, false)
                    }
                };
                let is_enough = encoder.get_ref().len() >= least;
                let data = is_enough.then(|| std::mem::take(encoder.get_mut()).into());
                let is_over = least == 1 && data.is_none();
                self.coder = Coder::Coding { encoder, holds };
                match is_over {
                    true => Poll::Pending,
                    false => Poll::Ready(Ok(data)),
                }
            }
            Coder::Ended => Poll::Ready(Ok(None)),
        }
    }
}

impl http_body::Body for Difference {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        while !self.is_end_stream() {
            if let Some(data) = ready!(self.poll_step(cx)).transpose() {
                return Poll::Ready(Some(data.map(Frame::data)));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.coder, Coder::Ended)
    }
}

#[cfg(test)]
mod tests;
