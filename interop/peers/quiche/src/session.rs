//! A client's HTTP/3 connection.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use peer_kit::{ClientArgs, files};
use quiche::h3::{self, NameValue as _};

use crate::config::{self, MAX_RECEIVE};

/// A version that no stack supports (RFC 9000, section 15).
const RESERVED_VERSION: u32 = 0xbaba_baba;
/// BoringSSL's `ssl_early_data_accepted`.
const EARLY_DATA_ACCEPTED: u32 = 2;
/// Maximum time to wait for events.
const NAP: Duration = Duration::from_millis(100);

struct Response {
    path: String,
    status: Vec<u8>,
    body: Vec<u8>,
}

pub(crate) struct Session {
    poll: Poll,
    events: Events,
    sockets: Vec<UdpSocket>,
    quic: quiche::Connection,
    http: Option<h3::Connection>,
    authority: String,
    server: SocketAddr,
    out: PathBuf,
    waiting: VecDeque<String>,
    under_way: HashMap<u64, Response>,
}

impl Session {
    /// Starts a connection, with the session `ticket` if there is one.
    pub(crate) fn open(args: &ClientArgs, ticket: Option<&[u8]>) -> anyhow::Result<Self> {
        let version = match args.case.as_str() {
            "versionnegotiation" => RESERVED_VERSION,
            _ => quiche::PROTOCOL_VERSION,
        };
        let mut config = config::config(version, args.case == "zerortt")?;
        let poll = Poll::new()?;
        let socket = bind(&poll, args.server)?;
        let local = socket.local_addr()?;
        let id = config::random_id();
        let mut quic = quiche::connect(Some(&args.name), &id, local, args.server, &mut config)?;
        if let Some(ticket) = ticket {
            quic.set_session(ticket)?;
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(16),
            sockets: vec![socket],
            quic,
            http: None,
            authority: args.name.clone(),
            server: args.server,
            out: args.out.clone(),
            waiting: VecDeque::new(),
            under_way: HashMap::new(),
        })
    }

    /// Downloads `paths`, as many concurrently as the server permits.
    pub(crate) fn fetch(&mut self, paths: &[String]) -> anyhow::Result<()> {
        self.waiting.extend(paths.iter().cloned());
        while !(self.waiting.is_empty() && self.under_way.is_empty()) {
            self.turn()?;
            if self.quic.is_closed() {
                bail!(
                    "connection closed: {:?}, timed out: {}",
                    self.quic.peer_error().or(self.quic.local_error()),
                    self.quic.is_timed_out()
                );
            }
        }
        Ok(())
    }

    /// Continues to receive for `time`.
    pub(crate) fn linger(&mut self, time: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.turn()?;
        }
        Ok(())
    }

    /// Migrates to another local port when the server has issued a spare connection ID.
    pub(crate) fn migrate(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.quic.available_dcids() == 0 {
            if Instant::now() > deadline {
                bail!("the server gave no spare connection ID");
            }
            self.turn()?;
        }
        config::issue_ids(&mut self.quic);
        let socket = bind(&self.poll, self.server)?;
        let local = socket.local_addr()?;
        self.sockets.push(socket);
        self.quic.migrate_source(local)?;
        Ok(())
    }

    pub(crate) fn ticket(&self) -> Option<Vec<u8>> {
        self.quic.session().map(<[u8]>::to_vec)
    }

    pub(crate) fn was_resumed(&self) -> bool {
        self.quic.is_resumed()
    }

    pub(crate) fn early_data_accepted(&self) -> bool {
        self.quic.early_data_reason() == EARLY_DATA_ACCEPTED
    }

    pub(crate) fn close(mut self) -> anyhow::Result<()> {
        match self
            .quic
            .close(true, h3::WireErrorCode::NoError as u64, b"")
        {
            Ok(()) | Err(quiche::Error::Done) => {}
            Err(error) => return Err(error.into()),
        }
        config::send_all(&mut self.quic, &self.sockets)
    }

    /// Sends, sleeps until something happens, receives.
    fn turn(&mut self) -> anyhow::Result<()> {
        // The first flight has to exist before early data.
        config::send_all(&mut self.quic, &self.sockets)?;
        self.request()?;
        config::send_all(&mut self.quic, &self.sockets)?;
        let nap = self.quic.timeout().map_or(NAP, |timeout| timeout.min(NAP));
        if let Err(error) = self.poll.poll(&mut self.events, Some(nap))
            && error.kind() != io::ErrorKind::Interrupted
        {
            return Err(error.into());
        }
        if self.quic.timeout().is_some_and(|timeout| timeout.is_zero()) {
            self.quic.on_timeout();
        }
        self.receive()?;
        while self.quic.path_event_next().is_some() {}
        self.respond()
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        let mut buffer = [0; MAX_RECEIVE];
        for socket in &self.sockets {
            let to = socket.local_addr()?;
            loop {
                let (length, from) = match socket.recv_from(&mut buffer) {
                    Ok(received) => received,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                };
                // Malformed datagrams are dropped, because they may be corrupted.
                let _ = self
                    .quic
                    .recv(&mut buffer[..length], quiche::RecvInfo { from, to });
            }
        }
        Ok(())
    }

    /// Sends pending requests, as far as the stream limit permits.
    fn request(&mut self) -> anyhow::Result<()> {
        if !(self.quic.is_established() || self.quic.is_in_early_data()) {
            return Ok(());
        }
        let http = match &mut self.http {
            Some(http) => http,
            none => {
                let config = h3::Config::new()?;
                none.insert(h3::Connection::with_transport(&mut self.quic, &config)?)
            }
        };
        while let Some(path) = self.waiting.front() {
            let headers = [
                h3::Header::new(b":method", b"GET"),
                h3::Header::new(b":scheme", b"https"),
                h3::Header::new(b":authority", self.authority.as_bytes()),
                h3::Header::new(b":path", path.as_bytes()),
            ];
            match http.send_request(&mut self.quic, &headers, true) {
                Ok(stream) => {
                    let response = Response {
                        path: path.clone(),
                        status: Vec::new(),
                        body: Vec::new(),
                    };
                    self.under_way.insert(stream, response);
                    self.waiting.pop_front();
                }
                Err(
                    h3::Error::StreamBlocked
                    | h3::Error::TransportError(quiche::Error::StreamLimit),
                ) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads responses and saves complete ones.
    fn respond(&mut self) -> anyhow::Result<()> {
        let Some(http) = &mut self.http else {
            return Ok(());
        };
        loop {
            let (stream, event) = match http.poll(&mut self.quic) {
                Ok(polled) => polled,
                Err(h3::Error::Done) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let Some(response) = self.under_way.get_mut(&stream) else {
                continue;
            };
            match event {
                h3::Event::Headers { list, .. } => {
                    let status = list.iter().find(|header| header.name() == b":status");
                    response.status = status.map(|s| s.value().to_vec()).unwrap_or_default();
                }
                h3::Event::Data => {
                    let mut buffer = [0; 16 * 1024];
                    while let Ok(length) = http.recv_body(&mut self.quic, stream, &mut buffer) {
                        response.body.extend_from_slice(&buffer[..length]);
                    }
                }
                h3::Event::Finished => {
                    if response.status != b"200" {
                        let status = String::from_utf8_lossy(&response.status);
                        bail!("{}: status {status}", response.path);
                    }
                    files::save(&self.out, &response.path, &response.body)
                        .with_context(|| response.path.clone())?;
                    self.under_way.remove(&stream);
                }
                h3::Event::Reset(code) => bail!("{}: reset with {code:#x}", response.path),
                h3::Event::PriorityUpdate | h3::Event::GoAway => {}
            }
        }
    }
}

/// A socket on any port of loopback, of the family of `server`.
fn bind(poll: &Poll, server: SocketAddr) -> io::Result<UdpSocket> {
    let mut socket = UdpSocket::bind(match server {
        SocketAddr::V4(_) => (Ipv4Addr::LOCALHOST, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::LOCALHOST, 0).into(),
    })?;
    poll.registry()
        .register(&mut socket, Token(0), Interest::READABLE)?;
    Ok(socket)
}
