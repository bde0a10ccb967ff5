//! The server.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use peer_kit::{Outcome, ServerArgs, files};
use quiche::h3::{self, NameValue as _};
use quiche::{Config, ConnectionId, Header, Type};

use crate::config::{self, ID_LENGTH, MAX_RECEIVE};

/// Maximum time to wait for events.
const NAP: Duration = Duration::from_millis(100);

/// A response in progress.
struct Response {
    status: &'static [u8],
    body: Vec<u8>,
    head_sent: bool,
    /// Bytes of the body written to the stream.
    sent: usize,
}

struct Client {
    quic: quiche::Connection,
    http: Option<h3::Connection>,
    responses: HashMap<u64, Response>,
}

struct Server<'a> {
    args: &'a ServerArgs,
    config: Config,
    local: SocketAddr,
    sockets: [UdpSocket; 1],
    clients: HashMap<usize, Client>,
    /// Key of the next client.
    next: usize,
    by_id: HashMap<ConnectionId<'static>, usize>,
    /// Issued Retry tokens, with the client's address and original destination connection ID.
    retries: HashMap<Vec<u8>, (SocketAddr, ConnectionId<'static>)>,
}

pub(crate) fn run(args: &ServerArgs) -> Outcome {
    let mut config = config::config(quiche::PROTOCOL_VERSION, args.case == "zerortt")?;
    config.load_cert_chain_from_pem_file(args.cert.to_str().context("--cert")?)?;
    config.load_priv_key_from_pem_file(args.key.to_str().context("--key")?)?;
    let mut poll = Poll::new()?;
    let mut socket = UdpSocket::bind(args.listen)?;
    poll.registry()
        .register(&mut socket, Token(0), Interest::READABLE)?;
    let local = socket.local_addr()?;
    eprintln!("listening on {local}");
    let mut server = Server {
        args,
        config,
        local,
        sockets: [socket],
        clients: HashMap::new(),
        next: 0,
        by_id: HashMap::new(),
        retries: HashMap::new(),
    };
    let mut events = Events::with_capacity(16);
    loop {
        let timeouts = server.clients.values().filter_map(|c| c.quic.timeout());
        let nap = timeouts.min().map_or(NAP, |timeout| timeout.min(NAP));
        poll.poll(&mut events, Some(nap))?;
        server.receive()?;
        for client in server.clients.values_mut() {
            client.turn(&args.www)?;
        }
        server.issue_ids();
        for client in server.clients.values_mut() {
            if let Err(error) = config::send_all(&mut client.quic, &server.sockets) {
                eprintln!("send: {error}");
            }
        }
        server.forget_closed();
    }
}

impl Server<'_> {
    fn receive(&mut self) -> anyhow::Result<()> {
        let mut buffer = [0; MAX_RECEIVE];
        loop {
            let (length, from) = match self.sockets[0].recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let datagram = &mut buffer[..length];
            let Ok(header) = Header::from_slice(datagram, ID_LENGTH) else {
                continue;
            };
            let info = quiche::RecvInfo {
                from,
                to: self.local,
            };
            // Malformed datagrams are dropped, because they may be corrupted.
            match self.by_id.get(&header.dcid).copied() {
                Some(client) => {
                    if let Some(client) = self.clients.get_mut(&client) {
                        let _ = client.quic.recv(datagram, info);
                    }
                }
                None => {
                    if let Some((id, mut quic)) = self.accept(&header, from)?
                        && quic.recv(datagram, info).is_ok()
                    {
                        self.insert([header.dcid.into_owned(), id], quic);
                    }
                }
            }
        }
    }

    /// Answers a datagram of no known connection, and opens one if it may.
    fn accept(
        &mut self,
        header: &Header<'_>,
        from: SocketAddr,
    ) -> anyhow::Result<Option<(ConnectionId<'static>, quiche::Connection)>> {
        let mut answer = [0; config::MAX_DATAGRAM];
        let long = !matches!(header.ty, Type::Short | Type::VersionNegotiation);
        if long && !quiche::version_is_supported(header.version) {
            let length = quiche::negotiate_version(&header.scid, &header.dcid, &mut answer)?;
            self.answer(&answer[..length], from);
            return Ok(None);
        }
        if header.ty != Type::Initial {
            return Ok(None);
        }
        let token = header.token.as_deref().unwrap_or_default();
        if self.args.case == "retry" && token.is_empty() {
            let token = config::random_id();
            let id = config::random_id();
            let (scid, dcid) = (&header.scid, &header.dcid);
            let length = quiche::retry(scid, dcid, &id, &token, header.version, &mut answer)?;
            let known = (from, dcid.clone().into_owned());
            self.retries.insert(token.to_vec(), known);
            self.answer(&answer[..length], from);
            return Ok(None);
        }
        let retried = match self.retries.get(token) {
            Some((address, first)) if *address == from => Some(first.clone()),
            Some(_) => return Ok(None),
            None => None,
        };
        // After a Retry the client sends to the ID that packet gave it.
        let id = match retried {
            Some(_) => header.dcid.clone().into_owned(),
            None => config::random_id(),
        };
        let quic = quiche::accept(&id, retried.as_ref(), self.local, from, &mut self.config)?;
        Ok(Some((id, quic)))
    }

    /// Adds a connection with connection IDs `ids`.
    fn insert(&mut self, ids: [ConnectionId<'static>; 2], quic: quiche::Connection) {
        let index = self.next;
        self.next += 1;
        self.by_id.extend(ids.map(|id| (id, index)));
        let client = Client {
            quic,
            http: None,
            responses: HashMap::new(),
        };
        self.clients.insert(index, client);
    }

    /// Sends a stateless answer; a full socket drops it, as a network may.
    fn answer(&self, datagram: &[u8], to: SocketAddr) {
        let _ = self.sockets[0].send_to(datagram, to);
    }

    fn forget_closed(&mut self) {
        let before = self.clients.len();
        self.clients.retain(|_, client| !client.quic.is_closed());
        if self.clients.len() < before {
            self.by_id
                .retain(|_, client| self.clients.contains_key(client));
        }
    }

    /// Issues spare connection IDs to clients, which they need to migrate.
    fn issue_ids(&mut self) {
        for (index, client) in &mut self.clients {
            if client.quic.is_established() && !client.quic.is_closed() {
                for id in config::issue_ids(&mut client.quic) {
                    self.by_id.insert(id, *index);
                }
            }
            while let Some(id) = client.quic.retired_scid_next() {
                self.by_id.remove(&id);
            }
        }
    }
}

impl Client {
    fn turn(&mut self, www: &Path) -> anyhow::Result<()> {
        if self.quic.timeout().is_some_and(|timeout| timeout.is_zero()) {
            self.quic.on_timeout();
        }
        while self.quic.path_event_next().is_some() {}
        if self.http.is_none() && (self.quic.is_established() || self.quic.is_in_early_data()) {
            let config = h3::Config::new()?;
            self.http = h3::Connection::with_transport(&mut self.quic, &config).ok();
        }
        let Some(http) = &mut self.http else {
            return Ok(());
        };
        loop {
            match http.poll(&mut self.quic) {
                Ok((stream, h3::Event::Headers { list, .. })) => {
                    self.responses.insert(stream, respond(&list, www));
                }
                Ok((stream, h3::Event::Reset(_))) => {
                    self.responses.remove(&stream);
                }
                Ok(_) => {}
                Err(h3::Error::Done) => break,
                Err(error) => {
                    eprintln!("HTTP/3: {error}");
                    break;
                }
            }
        }
        let quic = &mut self.quic;
        self.responses
            .retain(|&stream, response| !response.push(stream, http, quic));
        Ok(())
    }
}

fn respond(headers: &[h3::Header], www: &Path) -> Response {
    let path = headers.iter().find(|header| header.name() == b":path");
    let body = path
        .and_then(|path| std::str::from_utf8(path.value()).ok())
        .and_then(|path| files::resolve(www, path))
        .and_then(|file| std::fs::read(file).ok());
    Response {
        status: if body.is_some() { b"200" } else { b"404" },
        body: body.unwrap_or_default(),
        head_sent: false,
        sent: 0,
    }
}

impl Response {
    /// Writes as much of the response as flow control permits; `true` when it is complete.
    fn push(
        &mut self,
        stream: u64,
        http: &mut h3::Connection,
        quic: &mut quiche::Connection,
    ) -> bool {
        if !self.head_sent {
            let headers = [
                h3::Header::new(b":status", self.status),
                h3::Header::new(b"content-length", self.body.len().to_string().as_bytes()),
            ];
            match http.send_response(quic, stream, &headers, self.body.is_empty()) {
                Ok(()) => self.head_sent = true,
                Err(h3::Error::StreamBlocked | h3::Error::Done) => return false,
                Err(_) => return true,
            }
        }
        while self.sent < self.body.len() {
            match http.send_body(quic, stream, &self.body[self.sent..], true) {
                Ok(length) => self.sent += length,
                Err(h3::Error::StreamBlocked | h3::Error::Done) => return false,
                Err(_) => return true,
            }
        }
        true
    }
}
