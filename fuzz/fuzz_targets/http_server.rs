//! A server that answers with the steps of an input, and an honest one in its place, over HTTP/1.1 and HTTP/2.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use http::Version;
use marline_http::server::testing;
use marline_proto::testing::fuzz::{Script, Step};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::{http2, web};

/// The server's name.
pub const NAME: &str = "localhost";

/// Size in bytes of the buffer of each direction.
pub const BUFFER: usize = 1 << 16;

/// Time for which the server waits for a request.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The server's next replies; shared by its connections.
#[derive(Clone, Default)]
pub struct Replies(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    steps: VecDeque<Reply>,
    is_honest: bool,
}

/// A part of a response.
pub enum Reply {
    /// Status and fields.
    Head(Vec<(&'static str, String)>),
    Content(Vec<u8>),
    Raw(Vec<u8>),
    /// A frame of this type; over HTTP/1.1, the bytes alone.
    Frame(u8, Vec<u8>),
    /// On the control stream, or one more unidirectional stream.
    Control(Vec<u8>),
    Wait(Duration),
    /// The response is complete.
    End,
    Reset,
    Close,
}

impl Reply {
    fn of(step: Step<'_>) -> Self {
        let bytes = step.bytes.to_vec();
        match step.action % 12 {
            0 | 1 => Self::Head(fields(step)),
            2..=4 => Self::Content(bytes),
            5 => Self::Raw(bytes),
            6 => Self::Frame(step.number & 0x3f, bytes),
            7 => Self::Control(bytes),
            8 => Self::Wait(Duration::from_millis(u64::from(step.number) * 4)),
            9 => Self::Close,
            10 => Self::Reset,
            _ => Self::End,
        }
    }
}

/// Plausible fields: the number chooses them, and the bytes are their numbers.
fn fields(step: Step<'_>) -> Vec<(&'static str, String)> {
    const STATUS: [u16; 8] = [200, 206, 206, 416, 404, 304, 103, 503];
    let number = |place: usize| step.bytes.get(place).copied().unwrap_or_default();
    let [first, last, size] = [1, 2, 3].map(number);
    let all = [
        ("content-length", number(0).to_string()),
        ("content-range", format!("bytes {first}-{last}/{size}")),
        ("etag", format!("\"{}\"", number(4))),
        ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT".to_owned()),
        ("content-range", format!("bytes */{size}")),
    ];
    let status = (":status", STATUS[usize::from(step.number & 7)].to_string());
    let chosen = all.into_iter().enumerate();
    let chosen = chosen.filter(|(place, _)| step.number >> (3 + place) & 1 == 1);
    [status]
        .into_iter()
        .chain(chosen.map(|(_, field)| field))
        .collect()
}

impl Replies {
    pub fn new(script: &[u8]) -> Self {
        let replies = Self::default();
        replies.state().steps = Script::new(script).map(Reply::of).collect();
        replies
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic is survived")
    }

    /// The next part; `None` at the end of the input.
    pub fn next(&self) -> Option<Reply> {
        self.state().steps.pop_front()
    }

    /// Makes the server honest on all further connections.
    pub fn become_honest(&self) {
        let mut state = self.state();
        state.is_honest = true;
        state.steps.clear();
    }

    /// Opens a connection to the server.
    pub fn dial(&self, version: Version) -> DuplexStream {
        let (ours, theirs) = duplex(BUFFER);
        if self.state().is_honest {
            tokio::spawn(async move {
                let (_stop, stopping) = watch::channel(false);
                testing::serve_stream(theirs, version, web::site(), stopping).await;
            });
        } else {
            let replies = self.clone();
            tokio::spawn(async move {
                // The client may have closed the connection.
                let _ = match version {
                    Version::HTTP_2 => replies.answer_http2(theirs).await,
                    _ => replies.answer_http1(theirs).await,
                };
            });
        }
        ours
    }

    async fn answer_http1(&self, mut stream: DuplexStream) -> std::io::Result<()> {
        while has_request(&mut stream).await {
            loop {
                let bytes = match self.next() {
                    None | Some(Reply::Close | Reply::Reset) => return Ok(()),
                    Some(Reply::End) => break,
                    Some(Reply::Head(fields)) => text(&fields),
                    Some(Reply::Content(bytes) | Reply::Raw(bytes) | Reply::Frame(_, bytes)) => {
                        bytes
                    }
                    Some(Reply::Control(_)) => b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec(),
                    Some(Reply::Wait(time)) => {
                        sleep(time).await;
                        continue;
                    }
                };
                stream.write_all(&bytes).await?;
            }
        }
        Ok(())
    }

    async fn answer_http2(&self, mut stream: DuplexStream) -> std::io::Result<()> {
        stream.write_all(&http2::frame(4, 0, 0, b"")).await?;
        let mut id = 1;
        while has_request(&mut stream).await {
            let last = loop {
                let bytes = match self.next() {
                    None | Some(Reply::Close) => return Ok(()),
                    Some(Reply::End) => break http2::frame(0, 1, id, b""),
                    Some(Reply::Reset) => break http2::frame(3, 0, id, &[0, 0, 0, 2]),
                    Some(Reply::Head(fields)) => http2::frame(1, 4, id, &hpack::section(&fields)),
                    Some(Reply::Content(bytes)) => http2::frame(0, 0, id, &bytes),
                    Some(Reply::Raw(bytes)) => bytes,
                    Some(Reply::Frame(kind, bytes)) => http2::frame(kind, 4, id, &bytes),
                    Some(Reply::Control(bytes)) => http2::frame(4, 0, 0, &bytes),
                    Some(Reply::Wait(time)) => {
                        sleep(time).await;
                        continue;
                    }
                };
                stream.write_all(&bytes).await?;
            };
            stream.write_all(&last).await?;
            id += 2;
        }
        Ok(())
    }
}

/// Whether some of a request arrives in time.
async fn has_request(stream: &mut DuplexStream) -> bool {
    let mut bytes = [0; 4096];
    matches!(timeout(TIMEOUT, stream.read(&mut bytes)).await, Ok(Ok(1..)))
}

/// The head of a response over HTTP/1.1.
fn text(fields: &[(&'static str, String)]) -> Vec<u8> {
    let lines = fields.iter().map(|(name, value)| match *name {
        ":status" => format!("HTTP/1.1 {value} -\r\n"),
        name => format!("{name}: {value}\r\n"),
    });
    let lines: String = lines.collect();
    (lines + "\r\n").into_bytes()
}

mod hpack {
    /// Fields without compression (RFC 7541, section 6.2.2).
    pub(super) fn section(fields: &[(&'static str, String)]) -> Vec<u8> {
        let mut section = Vec::new();
        for (name, value) in fields {
            section.extend([0, name.len() as u8]);
            section.extend(name.as_bytes());
            section.push(value.len() as u8);
            section.extend(value.as_bytes());
        }
        section
    }
}
