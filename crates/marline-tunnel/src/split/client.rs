//! The client: connections of its host as CONNECT requests.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::PROXY_AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use marline_http::Body;
use marline_http::client::{Connection, Download, Origin};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::local::{Local, LocalError, Side};
use super::relay::{ReadContent, Stream};
use super::segment::{Ends, Segment};
use super::table::{Table, TableLimits, Verdict};
use super::{FIELD, PACKETS};
use crate::counters::SplitBytes;
use crate::device::{Burst, Device, Tun};
use crate::dial::PROXY_STATUS;
use crate::icmp::Unreachable;
use crate::link::{BATCH, read};
use crate::packet::{Header, TCP, is_routable};
use crate::routing::Family;

/// Connections at a time: each is a stream, of which a server allows a few more ([`MAX_STREAMS`](super::server::MAX_STREAMS)), a
/// descriptor, and two chunks.
const LIMITS: TableLimits = TableLimits {
    known: 8192,
    open: 1000,
};

/// The time for the server to answer, which connects within less. Then the program tries again, as after a lost packet.
const OPEN: Duration = Duration::from_secs(30);

/// The time for the kernel to accept a connection that was opened.
const ACCEPT: Duration = Duration::from_secs(10);

/// The connections of a host that are split.
pub(crate) struct Splitter {
    device: Arc<Tun>,
    local: Local,
    table: Mutex<Table>,
    bytes: Arc<SplitBytes>,
}

/// The treatment of a packet of the host.
enum Handling {
    /// It was delivered, or dropped.
    Done,
    /// It begins a connection.
    Opens(Box<Opening>),
    /// It is carried as a packet.
    Packet,
}

/// The first segment of a connection, which waits for the answer of the server.
struct Opening {
    port: u16,
    side: Side,
    header: Header,
    segment: Segment,
    packet: Vec<u8>,
}

impl Splitter {
    /// Makes the device able to split connections.
    ///
    /// # Errors
    /// See [`LocalError`].
    pub(crate) async fn open(
        device: Arc<Tun>,
        families: &[Family],
        bytes: Arc<SplitBytes>,
    ) -> Result<Arc<Self>, LocalError> {
        Ok(Arc::new(Self {
            local: Local::open(&device, families).await?,
            device,
            table: Mutex::new(Table::new(LIMITS)),
            bytes,
        }))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles what the host sends; connections are begun if `may_open`.
    fn handle(&self, burst: &mut Burst, header: &Header, may_open: bool) -> Handling {
        if header.protocol != TCP {
            return Handling::Packet;
        }
        let Some(segment) = Segment::parse(burst.packet(), header) else {
            return Handling::Packet;
        };
        let ends = segment.ends;
        let Some(side) = self.local.side(header.source) else {
            return Handling::Packet;
        };
        if ends.source == side.own && ends.destination.ip() == side.peer {
            // Of the kernel's end, for the program.
            let known = self.table().ends(ends.destination.port());
            if let Some(known) = known {
                self.deliver(burst, &segment, known.reversed());
            }
            return Handling::Done;
        }
        if !is_routable(header.source) || !is_routable(header.destination) {
            return Handling::Packet;
        }
        let is_first = segment.is_first() && may_open;
        let verdict = self.table().outgoing(ends, is_first, Instant::now());
        match verdict {
            Verdict::Held => Handling::Done,
            Verdict::Other => Handling::Packet,
            Verdict::Belongs(port) => {
                self.deliver(burst, &segment, side.ends(port));
                Handling::Done
            }
            Verdict::Opens(port) => {
                burst.complete();
                Handling::Opens(Box::new(Opening {
                    port,
                    side,
                    header: *header,
                    segment,
                    packet: burst.packet().to_vec(),
                }))
            }
        }
    }

    fn deliver(&self, burst: &mut Burst, segment: &Segment, ends: Ends) {
        let is_partial = burst.is_partial();
        segment.readdress(burst.packet_mut(), ends, is_partial);
        // A segment that is lost is sent again.
        let _ = self.device.send_with_header(burst.with_header());
    }

    /// Handles the packets of the host while there is no tunnel, until the device is gone: connections end, none begin.
    pub(crate) async fn drain(&self) -> Infallible {
        let mut burst = Burst::default();
        loop {
            for _ in 0..BATCH {
                if read(&*self.device, &mut burst).await.is_err() {
                    return std::future::pending().await;
                }
                if let Ok(header) = Header::parse(burst.packet()) {
                    self.handle(&mut burst, &header, false);
                }
            }
            tokio::task::yield_now().await;
        }
    }

    /// Carries a connection to its end. Returns the first packet if it is to be carried as packets.
    async fn carry(self: Arc<Self>, opening: Box<Opening>, proxy: Arc<Proxy>) -> Option<Vec<u8>> {
        let port = opening.port;
        let mut place = Place {
            splitter: &self,
            port,
            is_open: false,
        };
        let (give, given) = oneshot::channel();
        let (upload, sent) = ReadContent::awaiting(given);
        let destination = opening.segment.ends.destination;
        let opened = timeout(OPEN, proxy.connect(destination, Body::new(upload))).await;
        // Kept until the upload has ended, which ends with it.
        let mut download = match opened.unwrap_or(Err(Refusal::Nothing)) {
            Ok(download) => download,
            Err(refusal) => {
                drop(place);
                return self.refuse(*opening, refusal);
            }
        };
        let accepted = self.local.expect(port);
        self.table().opened(port);
        place.is_open = true;
        let Opening {
            side,
            segment,
            mut packet,
            ..
        } = *opening;
        segment.readdress(&mut packet, side.ends(port), false);
        // The program sends it again.
        let _ = self.device.send(&packet);
        let accepted: TcpStream = timeout(ACCEPT, accepted).await.ok()?.ok()?;
        let stream = Stream::new(accepted, Arc::clone(&self.bytes), ());
        give.send(Arc::clone(&stream)).ok()?;
        // If one direction fails, both do: the stream is reset, and the connection.
        let _ = tokio::try_join!(stream.write(&mut download), sent.reached());
        None
    }

    /// Answers a program whose connection was not opened.
    fn refuse(&self, opening: Opening, refusal: Refusal) -> Option<Vec<u8>> {
        let Opening {
            header,
            segment,
            packet,
            ..
        } = opening;
        let answer = match refusal {
            Refusal::Packets => return Some(packet),
            Refusal::Nothing => None,
            Refusal::Reset => segment.reset(),
            Refusal::Unreachable(why) => why.message(&packet, &header),
        };
        if let Some(answer) = answer {
            let _ = self.device.send(&answer);
        }
        None
    }
}

impl Side {
    /// The ends of a connection that this port stands for.
    fn ends(&self, port: u16) -> Ends {
        Ends {
            source: SocketAddr::new(self.peer, port),
            destination: self.own,
        }
    }
}

/// The place of a connection in the table.
struct Place<'a> {
    splitter: &'a Splitter,
    port: u16,
    is_open: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut table = self.splitter.table();
        match self.is_open {
            true => table.closed(self.port, Instant::now()),
            false => table.remove(self.port),
        }
        drop(table);
        self.splitter.local.forget(self.port);
    }
}

/// The server of a tunnel, as the one that connects to destinations.
pub(crate) struct Proxy {
    connection: Arc<Connection>,
    origin: Origin,
    authorization: Option<HeaderValue>,
}

/// Why there is no connection to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// The server carries its packets.
    Packets,
    /// The destination refuses.
    Reset,
    Unreachable(Unreachable),
    /// It is not known.
    Nothing,
}

impl Proxy {
    /// `authorization` is the value of a field for the server, unless a certificate proves who the user is.
    pub(crate) fn new(
        connection: Arc<Connection>,
        origin: Origin,
        authorization: Option<HeaderValue>,
    ) -> Arc<Self> {
        Arc::new(Self {
            connection,
            origin,
            authorization,
        })
    }

    /// Has the server connect to a destination. `upload` is what is sent to it.
    async fn connect(&self, destination: SocketAddr, upload: Body) -> Result<Download, Refusal> {
        let mut request = Request::new(upload);
        *request.method_mut() = Method::CONNECT;
        let authority = destination.to_string();
        *request.uri_mut() = authority.parse::<Uri>().map_err(|_| Refusal::Packets)?;
        let fields = request.headers_mut();
        if let Some(authorization) = &self.authorization {
            fields.insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        let response = self.connection.request(&self.origin, request).await;
        // The connection is lost, or about to be.
        let response = response.map_err(|_| Refusal::Nothing)?;
        match response.status().is_success() {
            true => Ok(response.into_body()),
            false => Err(Refusal::of(response.status(), response.headers())),
        }
    }
}

impl Refusal {
    fn of(status: StatusCode, fields: &HeaderMap) -> Self {
        if fields.get(FIELD).is_some_and(|value| value == PACKETS) {
            return Self::Packets;
        }
        let proxy_status = fields.get(PROXY_STATUS);
        let reason = proxy_status.and_then(|field| field.to_str().ok());
        let reason = reason.and_then(|text| {
            let mut parameters = text.split(';').map(str::trim);
            parameters.find_map(|parameter| parameter.strip_prefix("error="))
        });
        match (reason, status) {
            (Some("connection_refused" | "connection_terminated"), _) => Self::Reset,
            (Some("destination_ip_prohibited"), _) => Self::Unreachable(Unreachable::Prohibited),
            (Some("connection_limit_reached"), _) => Self::Packets,
            (_, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT) => {
                Self::Unreachable(Unreachable::Host)
            }
            _ => Self::Packets,
        }
    }
}

/// The connections that are split during one tunnel. Dropped, they are reset.
pub(crate) struct Splitting {
    splitter: Arc<Splitter>,
    proxy: Arc<Proxy>,
    tasks: JoinSet<Option<Vec<u8>>>,
}

impl Splitting {
    pub(crate) fn new(splitter: Arc<Splitter>, proxy: Arc<Proxy>) -> Self {
        Self {
            splitter,
            proxy,
            tasks: JoinSet::new(),
        }
    }

    /// Handles what the host sends if it belongs to a connection that is split; returns whether it does. Connections are begun if
    /// `may_open`.
    pub(crate) fn handle(&mut self, burst: &mut Burst, header: &Header, may_open: bool) -> bool {
        match self.splitter.handle(burst, header, may_open) {
            Handling::Done => true,
            Handling::Packet => false,
            Handling::Opens(opening) => {
                let (splitter, proxy) = (Arc::clone(&self.splitter), Arc::clone(&self.proxy));
                self.tasks.spawn(splitter.carry(opening, proxy));
                true
            }
        }
    }

    /// The next packet that begins a connection which is not split.
    pub(crate) async fn not_split(&mut self) -> Vec<u8> {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(Some(packet))) => return packet,
                Some(_) => {}
                // Nothing happens until there is another.
                None => return std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_passed_on_to_the_program() {
        let refusal = |status: u16, name: &'static str, value: &'static str| {
            let mut fields = HeaderMap::new();
            if !name.is_empty() {
                fields.insert(name, HeaderValue::from_static(value));
            }
            Refusal::of(StatusCode::from_u16(status).unwrap(), &fields)
        };
        for (status, name, value, expected) in [
            (
                502,
                "proxy-status",
                "x; error=connection_refused",
                Refusal::Reset,
            ),
            (
                502,
                "proxy-status",
                "x; error=destination_ip_unroutable",
                Refusal::Unreachable(Unreachable::Host),
            ),
            (504, "", "", Refusal::Unreachable(Unreachable::Host)),
            (
                403,
                "proxy-status",
                "x;error=destination_ip_prohibited; details=\"a\"",
                Refusal::Unreachable(Unreachable::Prohibited),
            ),
            (403, "marline-tcp", "packets", Refusal::Packets),
            (
                503,
                "proxy-status",
                "x; error=connection_limit_reached",
                Refusal::Packets,
            ),
            (404, "", "", Refusal::Packets),
        ] {
            assert_eq!(refusal(status, name, value), expected, "{status} {value}");
        }
    }
}
