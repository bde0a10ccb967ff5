//! The resolver of a host while packets of some names go into the tunnel: it passes queries on.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, timeout};

use super::learned::connected;
use super::message::{Name, addresses, asked, failure, is_answer};
use super::routes::Routes;

/// Its address, on the device of the tunnel.
pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(169, 254, 77, 53);

/// The port of DNS.
pub(crate) const PORT: u16 = 53;

/// Queries at a time, for selected names and for others: resolvers of the former may not answer.
const MAX_QUERIES: usize = 128;

/// Connections at a time.
const MAX_STREAMS: usize = 64;

/// The time for a resolver to answer.
const ANSWER: Duration = Duration::from_secs(3);

/// The time for a program to send the next query in a connection.
const IDLE: Duration = Duration::from_secs(10);

/// The pause after a connection could not be accepted: descriptors are missing.
const PAUSE: Duration = Duration::from_millis(100);

/// The interval at which addresses are looked at that are out of date.
const SWEEP: Duration = Duration::from_secs(30);

/// Bytes of a query or an answer.
const MAX_MESSAGE: usize = 65_535;

/// The resolvers that queries are passed on to, in the order in which they are asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upstreams {
    /// Those for selected names.
    pub(crate) selected: Vec<SocketAddr>,
    /// Those for others.
    pub(crate) others: Vec<SocketAddr>,
}

/// The resolver.
pub(crate) struct Forwarder {
    udp: UdpSocket,
    tcp: TcpListener,
    names: Vec<Name>,
    upstreams: Mutex<Upstreams>,
    /// Where addresses are learned, unless the tunnel has ended.
    routes: Weak<Mutex<Routes>>,
    for_selected: Semaphore,
    for_others: Semaphore,
    streams: Arc<Semaphore>,
}

/// How a query is sent.
#[derive(Clone, Copy)]
enum Over {
    Udp,
    Tcp,
}

impl Forwarder {
    /// Listens at [`ADDRESS`], which the device has, for queries about `names` and others. Needs a runtime of tokio.
    ///
    /// # Errors
    /// The address is in use, or may not be used.
    pub(crate) fn open(names: &[Name], routes: &Arc<Mutex<Routes>>) -> io::Result<Arc<Self>> {
        let udp = std::net::UdpSocket::bind((ADDRESS, PORT))?;
        udp.set_nonblocking(true)?;
        let tcp = std::net::TcpListener::bind((ADDRESS, PORT))?;
        tcp.set_nonblocking(true)?;
        Ok(Arc::new(Self {
            udp: UdpSocket::from_std(udp)?,
            tcp: TcpListener::from_std(tcp)?,
            names: names.to_vec(),
            upstreams: Mutex::default(),
            routes: Arc::downgrade(routes),
            for_selected: Semaphore::new(MAX_QUERIES),
            for_others: Semaphore::new(MAX_QUERIES),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        }))
    }

    /// Asks these resolvers from now on.
    pub(crate) fn set(&self, upstreams: Upstreams) {
        *self
            .upstreams
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = upstreams;
    }

    /// Answers queries.
    pub(crate) async fn run(self: Arc<Self>) -> Infallible {
        let (mut tasks, mut sweeps) = (JoinSet::new(), interval(SWEEP));
        let mut buffer = vec![0; MAX_MESSAGE];
        loop {
            tokio::select! {
                received = self.udp.recv_from(&mut buffer) => {
                    // Others may be received after an error: those of ICMP.
                    if let Ok((length, peer)) = received
                        && is_local(peer)
                    {
                        let query = buffer[..length].to_vec();
                        tasks.spawn(Arc::clone(&self).answer_datagram(query, peer));
                    }
                }
                accepted = self.tcp.accept() => match accepted {
                    Ok((stream, peer)) => {
                        let permit = Arc::clone(&self.streams).try_acquire_owned();
                        if is_local(peer) && let Ok(permit) = permit {
                            tasks.spawn(Arc::clone(&self).answer_stream(stream, permit));
                        }
                    }
                    Err(_) => tokio::time::sleep(PAUSE).await,
                },
                _ = sweeps.tick() => self.sweep(),
                Some(_) = tasks.join_next() => {}
            }
        }
    }

    async fn answer_datagram(self: Arc<Self>, query: Vec<u8>, peer: SocketAddr) {
        if let Some(answer) = self.answer(&query, Over::Udp).await {
            // The program asks again.
            let _ = self.udp.send_to(&answer, peer).await;
        }
    }

    async fn answer_stream(self: Arc<Self>, mut stream: TcpStream, _permit: OwnedSemaphorePermit) {
        while let Ok(Ok(query)) = timeout(IDLE, read(&mut stream)).await {
            let Some(answer) = self.answer(&query, Over::Tcp).await else {
                return;
            };
            let written = timeout(IDLE, write(&mut stream, &answer));
            if !matches!(written.await, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// The answer to a query; `None` if it is none.
    async fn answer(&self, query: &[u8], over: Over) -> Option<Vec<u8>> {
        let name = asked(query)?;
        let is_selected = self.names.iter().any(|domain| name.is_within(domain));
        let upstreams = self
            .upstreams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let (upstreams, permits) = match is_selected {
            true => (upstreams.selected, &self.for_selected),
            false => (upstreams.others, &self.for_others),
        };
        let Ok(_permit) = permits.try_acquire() else {
            return failure(query);
        };
        for upstream in upstreams {
            let answer = match over {
                Over::Udp => timeout(ANSWER, ask(upstream, query)).await,
                Over::Tcp => timeout(ANSWER, ask_in_stream(upstream, query)).await,
            };
            if let Ok(Ok(answer)) = answer {
                // Its packets would go beside the tunnel.
                let is_usable = !is_selected || self.learn(&answer);
                return is_usable.then_some(answer).or_else(|| failure(query));
            }
        }
        failure(query)
    }

    /// Makes routes to the addresses of an answer; returns whether that has worked.
    fn learn(&self, answer: &[u8]) -> bool {
        let (Some(routes), Some(found)) = (self.routes.upgrade(), addresses(answer)) else {
            return false;
        };
        let mut routes = routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.learn(&found, Instant::now()).is_ok()
    }

    fn sweep(&self) {
        if let Some(routes) = self.routes.upgrade() {
            let mut routes = routes.lock().unwrap_or_else(PoisonError::into_inner);
            // What cannot be removed now is removed with the others.
            let _ = routes.expire(Instant::now(), connected);
        }
    }
}

/// Whether a query is of a program of this host, whose packets to [`ADDRESS`] come from there: nobody else on a network of the
/// host is answered.
fn is_local(peer: SocketAddr) -> bool {
    peer.ip() == ADDRESS
}

/// Asks a resolver by UDP.
async fn ask(resolver: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let any: IpAddr = match resolver {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Of a random port, which an answer has to know.
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(resolver).await?;
    socket.send(query).await?;
    let mut buffer = vec![0; MAX_MESSAGE];
    loop {
        let length = socket.recv(&mut buffer).await?;
        if is_answer(&buffer[..length], query) {
            buffer.truncate(length);
            return Ok(buffer);
        }
    }
}

/// Asks a resolver by TCP.
async fn ask_in_stream(resolver: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(resolver).await?;
    write(&mut stream, query).await?;
    let answer = read(&mut stream).await?;
    match is_answer(&answer, query) {
        true => Ok(answer),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Reads a message with its length before it (RFC 1035, section 4.2.2).
async fn read(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    let mut message = vec![0; length.into()];
    stream.read_exact(&mut message).await?;
    Ok(message)
}

async fn write(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let length = u16::try_from(message.len()).map_err(io::Error::other)?;
    stream
        .write_all(&[&length.to_be_bytes()[..], message].concat())
        .await
}
