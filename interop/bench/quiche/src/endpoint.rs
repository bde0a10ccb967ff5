//! Many connections on one socket.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bench_kit::SERVER_NAME;
use bench_kit::batches::{MAX_BATCH, Socket};
use quiche::{Config, Connection, ConnectionId, Header, RecvInfo, Type};
use rand::RngExt as _;

use crate::config::DATAGRAM;

/// Length of connection IDs, bytes.
const ID_LENGTH: usize = 16;
/// Maximum time to wait for events.
const NAP: Duration = Duration::from_secs(1);

/// The key of a connection in an endpoint.
pub(crate) type Key = usize;

/// One socket and its connections.
pub(crate) struct Endpoint {
    socket: Socket,
    local: SocketAddr,
    config: Config,
    server: bool,
    connections: Vec<Option<Connection>>,
    by_id: HashMap<ConnectionId<'static>, Key>,
    /// Earliest timeout of any connection.
    next_timeout: Option<Instant>,
    batch: Vec<u8>,
}

impl Endpoint {
    /// An endpoint at `address`, which accepts connections if it is a `server`.
    pub(crate) fn bind(address: SocketAddr, config: Config, server: bool) -> anyhow::Result<Self> {
        let socket = Socket::bind(address)?;
        Ok(Self {
            local: socket.local_addr()?,
            socket,
            config,
            server,
            connections: Vec::new(),
            by_id: HashMap::new(),
            next_timeout: None,
            batch: vec![0; MAX_BATCH],
        })
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Starts a connection to `server`.
    pub(crate) fn connect(&mut self, server: SocketAddr) -> anyhow::Result<Key> {
        let id = random_id();
        let name = Some(SERVER_NAME);
        let connection = quiche::connect(name, &id, self.local, server, &mut self.config)?;
        let key = self.insert(connection, [id]);
        self.flush(key)?;
        Ok(key)
    }

    /// The connection at `key`, unless it is closed.
    pub(crate) fn get(&mut self, key: Key) -> Option<&mut Connection> {
        self.connections.get_mut(key)?.as_mut()
    }

    /// Waits for datagrams, passes them to their connections, and calls `handle` for each that received any.
    pub(crate) fn turn(
        &mut self,
        mut handle: impl FnMut(Key, &mut Connection) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let nap = self.next_timeout.map_or(NAP, |at| {
            at.saturating_duration_since(Instant::now()).min(NAP)
        });
        self.socket.wait(nap)?;
        loop {
            let mut touched = Vec::new();
            if !self.receive(&mut touched)? {
                break;
            }
            for key in touched {
                if let Some(connection) = self.get(key) {
                    handle(key, connection)?;
                }
                self.flush(key)?;
            }
        }
        if self.next_timeout.is_some_and(|at| at <= Instant::now()) {
            self.expire()?;
        }
        Ok(())
    }

    /// Sends the datagrams of the connection at `key`, and removes it if it is closed.
    pub(crate) fn flush(&mut self, key: Key) -> anyhow::Result<()> {
        let Some(connection) = self.connections.get_mut(key).and_then(Option::as_mut) else {
            return Ok(());
        };
        let (mut filled, mut segment, mut to) = (0, 0, self.local);
        loop {
            match connection.send(&mut self.batch[filled..][..DATAGRAM]) {
                Ok((length, info)) => {
                    if filled > 0 && length > segment {
                        self.socket.send(info.to, &self.batch[..filled], segment)?;
                        self.batch.copy_within(filled..filled + length, 0);
                        filled = 0;
                    }
                    if filled == 0 {
                        segment = length;
                    }
                    filled += length;
                    // Only the last datagram of a batch may be shorter.
                    if length < segment || filled + DATAGRAM > self.batch.len() {
                        self.socket.send(info.to, &self.batch[..filled], segment)?;
                        filled = 0;
                    }
                    to = info.to;
                }
                Err(quiche::Error::Done) => break,
                Err(error) => return Err(error.into()),
            }
        }
        if filled > 0 {
            self.socket.send(to, &self.batch[..filled], segment)?;
        }
        if connection.is_closed() || connection.is_draining() {
            self.connections[key] = None;
            self.by_id.retain(|_, at| *at != key);
        } else if let Some(timeout) = connection.timeout_instant() {
            self.next_timeout = Some(self.next_timeout.map_or(timeout, |next| next.min(timeout)));
        }
        Ok(())
    }

    fn insert<const N: usize>(
        &mut self,
        connection: Connection,
        ids: [ConnectionId<'static>; N],
    ) -> Key {
        let free = self.connections.iter().rposition(Option::is_none);
        let key = free.unwrap_or(self.connections.len());
        match self.connections.get_mut(key) {
            Some(slot) => *slot = Some(connection),
            None => self.connections.push(Some(connection)),
        }
        self.by_id.extend(ids.map(|id| (id, key)));
        key
    }

    /// Passes a batch of datagrams to their connections, and records those. Returns whether there were any.
    fn receive(&mut self, touched: &mut Vec<Key>) -> anyhow::Result<bool> {
        let mut opened = Vec::new();
        let Self {
            socket,
            local,
            config,
            server,
            connections,
            by_id,
            ..
        } = self;
        let more = socket.receive(|from, datagram| {
            let Ok(header) = Header::from_slice(datagram, ID_LENGTH) else {
                return;
            };
            let info = RecvInfo { from, to: *local };
            if let Some(&key) = by_id.get(&header.dcid) {
                if let Some(connection) = connections.get_mut(key).and_then(Option::as_mut) {
                    // Errors are ignored: only quiche sends to this socket.
                    let _ = connection.recv(datagram, info);
                    if touched.last() != Some(&key) && !touched.contains(&key) {
                        touched.push(key);
                    }
                }
            } else if *server && header.ty == Type::Initial {
                let id = random_id();
                if let Ok(mut connection) = quiche::accept(&id, None, *local, from, config) {
                    let _ = connection.recv(datagram, info);
                    opened.push((connection, [id, header.dcid.into_owned()]));
                }
            }
        })?;
        for (connection, ids) in opened {
            touched.push(self.insert(connection, ids));
        }
        Ok(more)
    }

    /// Processes timeouts of connections, and determines the next one.
    fn expire(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        self.next_timeout = None;
        for key in 0..self.connections.len() {
            let Some(connection) = self.get(key) else {
                continue;
            };
            if connection.timeout_instant().is_some_and(|at| at <= now) {
                connection.on_timeout();
            }
            self.flush(key)?;
        }
        Ok(())
    }
}

fn random_id() -> ConnectionId<'static> {
    ConnectionId::from_vec(rand::rng().random::<[u8; ID_LENGTH]>().to_vec())
}
