//! A server that answers with the steps of an input, over any version of HTTP, and an honest one in its place.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use http::Version;
use marline::{Connection, Endpoint, TransportConfig};
use marline_http::client::{Client, ClientConfig};
use marline_http::server::{Identity, Protocols, Server, ServerConfig, testing};
use marline_proto::testing::fuzz::{Script, Step};
use marline_sim::{Host, SimBuilder, identity};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::{http2, web};

/// The server's name.
pub const NAME: &str = "localhost";

/// The server's port in the simulated network.
const PORT: u16 = 443;

/// Size in bytes of the buffer of each direction over TCP.
const BUFFER: usize = 1 << 16;

/// Time for which the server waits for a request.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The server's next replies; shared by its connections.
#[derive(Clone, Default)]
pub struct Replies(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    steps: VecDeque<Reply>,
    is_honest: bool,
    /// The hostile server of HTTP/3, and its host.
    listening: Option<(Host, Endpoint)>,
}

/// A part of a response.
enum Reply {
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

    fn next(&self) -> Option<Reply> {
        self.state().steps.pop_front()
    }

    /// Opens a connection to the server over TCP.
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

    /// Listens for QUIC on `host`.
    fn listen(&self, host: &Host) {
        let transport = Arc::new(TransportConfig::default());
        let config = identity::identity().server_config(&[b"h3"], &transport);
        let config = config.expect("the identity is valid");
        let endpoint = host
            .endpoint(host.at(PORT), Some(config))
            .expect("the port is free");
        self.state().listening = Some((host.clone(), endpoint.clone()));
        let (replies, host) = (self.clone(), host.clone());
        host.clone().run(async move {
            while let Some(connecting) = endpoint.accept().await {
                let (replies, own) = (replies.clone(), host.clone());
                host.run(async move {
                    let Ok(connection) = connecting.await else {
                        return;
                    };
                    replies.answer_http3(&own, &connection).await;
                    connection.close(0x100, b"");
                });
            }
        });
    }

    /// Returns when the connection is to be closed.
    async fn answer_http3(&self, host: &Host, connection: &Connection) {
        let Ok(mut control) = connection.open_uni().await else {
            return;
        };
        let _ = control.write_all(&[0x00, 0x04, 0x00]).await;
        while let Ok((mut send, mut recv)) = connection.accept_bi().await {
            // A request without content.
            let _ = recv.read_to_end(BUFFER).await;
            loop {
                let bytes = match self.next() {
                    None | Some(Reply::Close) => return,
                    Some(Reply::End) => {
                        let _ = send.finish();
                        break;
                    }
                    Some(Reply::Reset) => {
                        send.reset(0x10c);
                        break;
                    }
                    Some(Reply::Head(fields)) => http3::frame(1, &http3::section(&fields)),
                    Some(Reply::Content(bytes)) => http3::frame(0, &bytes),
                    Some(Reply::Raw(bytes)) => bytes,
                    Some(Reply::Frame(kind, bytes)) => http3::frame(kind, &bytes),
                    Some(Reply::Control(bytes)) => {
                        let Ok(mut other) = connection.open_uni().await else {
                            return;
                        };
                        let _ = other.write_all(&bytes).await;
                        continue;
                    }
                    Some(Reply::Wait(time)) => {
                        host.sleep(time).await;
                        continue;
                    }
                };
                // The client may have stopped the stream.
                let _ = send.write_all(&bytes).await;
            }
        }
    }

    /// Replaces the server by an honest one, with other keys at the same address.
    pub async fn become_honest(&self) {
        let listening = {
            let mut state = self.state();
            state.is_honest = true;
            state.steps.clear();
            state.listening.take()
        };
        let Some((host, endpoint)) = listening else {
            return;
        };
        endpoint.close(0x100, b"");
        endpoint.wait_idle().await;
        drop(endpoint);
        host.sleep(TIMEOUT).await;
        let identity = Identity::repeatable(vec![NAME.to_owned()]).expect("a name");
        let mut config = ServerConfig::new(([0, 0, 0, 0], PORT).into(), identity, web::site());
        config.protocols = Protocols {
            http1: false,
            http2: false,
            ..Protocols::default()
        };
        config.runtime = Some(Arc::new(host.clone()));
        let server = Server::bind(config).await.expect("the port is free again");
        host.run(async move {
            let _ = server.run().await;
        });
    }
}

/// Runs `test` with a client of this configuration, whose only server is `replies`, over HTTP/3.
pub fn run(
    replies: Replies,
    mut config: ClientConfig,
    test: impl AsyncFnOnce(Arc<Client>, Replies),
) {
    let network = SimBuilder::new(1).link("access", ["client", "server"], "rate=20mbps,rtt=10ms");
    let mut sim = network.build().expect("a network");
    let [client, server] = ["client", "server"].map(|name| sim.host(name).expect("a host"));
    config.resolve.insert(NAME.to_owned(), server.at(PORT));
    config.runtime = Some(Arc::new(client));
    replies.listen(&server);
    let client = Arc::new(Client::new(config).expect("a client"));
    sim.run(test(client, replies), web::END).expect("it ends");
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

mod http3 {
    /// A frame of RFC 9114, section 7.1.
    pub(super) fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(payload.len()).expect("a step is short") | 0x4000;
        [&[kind], &length.to_be_bytes()[..], payload].concat()
    }

    /// Fields without compression (RFC 9204, section 4.5.6).
    pub(super) fn section(fields: &[(&'static str, String)]) -> Vec<u8> {
        let mut section = vec![0, 0];
        for (name, value) in fields {
            match name.len() {
                short @ 0..7 => section.push(0x20 | short as u8),
                long => section.extend([0x27, (long - 7) as u8]),
            }
            section.extend(name.as_bytes());
            section.push(value.len() as u8);
            section.extend(value.as_bytes());
        }
        section
    }
}
