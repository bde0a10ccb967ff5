//! Content codings (RFC 9110, section 8.4) of responses.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use bytes::{Buf, Bytes};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue, Response};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::io::{AsyncBufRead, AsyncRead, BufReader, ReadBuf};

use super::{ClientError, Download};
use crate::limits::{FREE_EXPANSION, MAX_CODINGS, MAX_EXPANSION};

/// The codings that [`decoded`] knows, for `Accept-Encoding`.
pub(super) const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

/// Bytes that are decoded at a time.
const CHUNK: usize = 1 << 14;

/// The content of a response, decoded if it was compressed and that was asked for.
pub struct Decoding<B = Download>(Kind<B>);

enum Kind<B> {
    Plain(B),
    Decoded(Box<Decoded>),
}

/// Content that is decoded while it arrives.
struct Decoded {
    content: Source,
    arrived: Arc<Arrived>,
    has_ended: bool,
}

/// The encoded content, as far as it has arrived.
#[derive(Default)]
struct Arrived {
    /// In bytes.
    len: AtomicU64,
    trailers: Mutex<Option<HeaderMap>>,
}

/// Content that is read by a decoder, or the decoder of another coding.
type Source = Pin<Box<dyn AsyncBufRead + Send>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstandard,
}

/// Decodes the content of `response`, which may have several codings.
///
/// # Errors
/// One of them is unknown, or there are too many.
pub(super) fn decoded<B>(response: Response<B>) -> Result<Response<Decoding<B>>, ClientError>
where
    B: http_body::Body<Data = Bytes, Error = ClientError> + Send + Unpin + 'static,
{
    if response.body().is_end_stream() {
        return Ok(response.map(Decoding::plain));
    }
    let codings = codings(response.headers()).map_err(|problem| ClientError::Encoding {
        cause: problem.into(),
    })?;
    if codings.is_empty() {
        return Ok(response.map(Decoding::plain));
    }
    let (mut head, content) = response.into_parts();
    head.headers.remove(CONTENT_ENCODING);
    head.headers.remove(CONTENT_LENGTH);
    let arrived = Arc::<Arrived>::default();
    let encoded: Source = Box::pin(Encoded {
        content,
        chunk: Bytes::new(),
        arrived: Arc::clone(&arrived),
        has_ended: false,
    });
    // The last coding was applied last.
    let content = codings.iter().rev().fold(encoded, |source, coding| {
        let decoder = Decoder {
            decoder: coding.decoder(source),
            arrived: Arc::clone(&arrived),
            len: 0,
        };
        Box::pin(BufReader::with_capacity(CHUNK, decoder))
    });
    let decoded = Decoded {
        content,
        arrived,
        has_ended: false,
    };
    let body = Decoding(Kind::Decoded(Box::new(decoded)));
    Ok(Response::from_parts(head, body))
}

/// The codings in the order in which they were applied (RFC 9110, sections 8.4 and 8.4.1), or the reason why they cannot be decoded.
fn codings(headers: &HeaderMap) -> Result<Vec<Coding>, String> {
    let mut codings = Vec::new();
    for value in headers.get_all(CONTENT_ENCODING) {
        let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        for name in text.split(',').map(str::trim) {
            codings.push(match name {
                "" | "identity" => continue,
                "gzip" | "x-gzip" => Coding::Gzip,
                "deflate" => Coding::Deflate,
                "br" => Coding::Brotli,
                "zstd" => Coding::Zstandard,
                unknown => return Err(format!("the coding {unknown:?} is unknown")),
            });
        }
    }
    match codings.len() {
        ..=MAX_CODINGS => Ok(codings),
        many => Err(format!(
            "it has {many} codings, at most {MAX_CODINGS} are decoded"
        )),
    }
}

impl Coding {
    fn decoder(self, source: Source) -> Box<dyn Decode> {
        match self {
            Self::Gzip => {
                let mut decoder = GzipDecoder::new(source);
                decoder.multiple_members(true);
                Box::new(decoder)
            }
            Self::Deflate => Box::new(ZlibDecoder::new(source)),
            Self::Brotli => Box::new(BrotliDecoder::new(source)),
            Self::Zstandard => {
                let mut decoder = ZstdDecoder::new(source);
                decoder.multiple_members(true);
                Box::new(decoder)
            }
        }
    }
}

/// A decoder whose source can be read behind the end of its coding.
trait Decode: AsyncRead + Send + Unpin {
    fn source(&mut self) -> &mut Source;
}

macro_rules! decode {
    ($($decoder:ident),*) => {
        $(impl Decode for $decoder<Source> {
            fn source(&mut self) -> &mut Source {
                self.get_mut()
            }
        })*
    };
}

decode!(BrotliDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder);

/// Encoded content.
struct Encoded<B> {
    content: B,
    /// Bytes that have arrived and were not read.
    chunk: Bytes,
    arrived: Arc<Arrived>,
    has_ended: bool,
}

impl<B: http_body::Body<Data = Bytes, Error = ClientError> + Unpin> AsyncBufRead for Encoded<B> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        while this.chunk.is_empty() && !this.has_ended {
            match ready!(Pin::new(&mut this.content).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        this.arrived.len.fetch_add(data.len() as u64, Relaxed);
                        this.chunk = data;
                    }
                    Err(frame) => *this.arrived.trailers() = frame.into_trailers().ok(),
                },
                Some(Err(error)) => {
                    this.has_ended = true;
                    return Poll::Ready(Err(io::Error::other(error)));
                }
                None => this.has_ended = true,
            }
        }
        Poll::Ready(Ok(&this.chunk))
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        self.get_mut().chunk.advance(amount);
    }
}

impl<B: http_body::Body<Data = Bytes, Error = ClientError> + Unpin> AsyncRead for Encoded<B> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(self.as_mut().poll_fill_buf(cx))?;
        let amount = read.len().min(buffer.remaining());
        buffer.put_slice(&read[..amount]);
        self.consume(amount);
        Poll::Ready(Ok(()))
    }
}

impl Arrived {
    fn trailers(&self) -> std::sync::MutexGuard<'_, Option<HeaderMap>> {
        self.trailers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The decoder of one coding: its source ends where the coding does, and what it makes of it is not much larger than what has arrived.
struct Decoder {
    decoder: Box<dyn Decode>,
    arrived: Arc<Arrived>,
    /// Bytes after decoding.
    len: u64,
}

impl AsyncRead for Decoder {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut *this.decoder).poll_read(cx, buffer))?;
        let read = buffer.filled().len() - before;
        let has_ended = read == 0 && buffer.remaining() > 0;
        if has_ended && !ready!(this.decoder.source().as_mut().poll_fill_buf(cx))?.is_empty() {
            let problem = "bytes follow the end of the compressed content";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, problem)));
        }
        this.len += read as u64;
        let encoded = this.arrived.len.load(Relaxed);
        if this.len > FREE_EXPANSION && this.len / MAX_EXPANSION > encoded {
            return Poll::Ready(Err(io::Error::other(ClientError::Expansion { encoded })));
        }
        Poll::Ready(Ok(()))
    }
}

impl<B> Decoding<B> {
    /// Content as it is.
    pub(super) fn plain(content: B) -> Self {
        Self(Kind::Plain(content))
    }

    /// The content, if it is not decoded.
    pub(super) fn plain_mut(&mut self) -> Option<&mut B> {
        match &mut self.0 {
            Kind::Plain(content) => Some(content),
            Kind::Decoded(_) => None,
        }
    }

    /// The content, if it is not decoded.
    pub(super) fn into_plain(self) -> Option<B> {
        match self.0 {
            Kind::Plain(content) => Some(content),
            Kind::Decoded(_) => None,
        }
    }
}

impl<B: http_body::Body<Data = Bytes, Error = ClientError> + Unpin> Decoding<B> {
    /// The next bytes; `None` once all have arrived.
    ///
    /// # Errors
    /// As those of the content; it cannot be decoded, or is much larger than what arrived.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            let Some(frame) = self.frame().await else {
                return Ok(None);
            };
            // Trailers are ignored.
            if let Ok(chunk) = frame?.into_data() {
                return Ok(Some(chunk));
            }
        }
    }
}

impl<B: http_body::Body<Data = Bytes, Error = ClientError> + Unpin> http_body::Body
    for Decoding<B>
{
    type Data = Bytes;
    type Error = ClientError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientError>>> {
        match &mut self.get_mut().0 {
            Kind::Plain(content) => Pin::new(content).poll_frame(cx),
            Kind::Decoded(decoded) => decoded.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Plain(content) => content.is_end_stream(),
            Kind::Decoded(decoded) => decoded.has_ended,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Plain(content) => content.size_hint(),
            Kind::Decoded(_) => SizeHint::default(),
        }
    }
}

impl<B> fmt::Debug for Decoding<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoding").finish_non_exhaustive()
    }
}

impl Decoded {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientError>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let read = match ready!(self.content.as_mut().poll_fill_buf(cx)) {
            Ok(read) => Bytes::copy_from_slice(read),
            Err(error) => {
                self.has_ended = true;
                return Poll::Ready(Some(Err(explain(error))));
            }
        };
        if read.is_empty() {
            self.has_ended = true;
            let trailers = self.arrived.trailers().take();
            return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
        }
        self.content.as_mut().consume(read.len());
        Poll::Ready(Some(Ok(Frame::data(read))))
    }
}

/// The error of the connection if it is one, or that of the decoder.
fn explain(error: io::Error) -> ClientError {
    match error.downcast::<ClientError>() {
        Ok(error) => error,
        Err(error) => ClientError::Encoding {
            cause: error.into(),
        },
    }
}

#[cfg(test)]
mod tests;
