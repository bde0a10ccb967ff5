//! Endpoints of one server at one address, each of which has a socket and a thread of its own.

use std::fmt::Write as _;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;

use marline_proto::{EndpointConfig, ServerConfig, WORKER_ID_LEN, WorkerGroup, hmac_sha256};

use super::Endpoint;
use super::inbox::{Inbox, PassOn, Passed, PassedDatagram};
use crate::runtime::{Runtime, UdpSocket};

/// A worker of a server: see [`Endpoint::workers`].
#[derive(Debug)]
pub struct Worker {
    /// Its socket. All workers' sockets are bound to one address:
    /// [`reuse_port`](crate::runtime::reuse_port::bind).
    pub socket: Arc<dyn UdpSocket>,
    /// Its runtime, which runs all tasks of its endpoint and of that endpoint's connections.
    pub runtime: Arc<dyn Runtime>,
    /// Whether the socket is read from the beginning, rather than from [`Endpoint::start_receiving`] on because another process
    /// reads it.
    pub receives: bool,
}

impl Endpoint {
    /// The endpoints of a server with several workers, by number. They accept connections at one address, and share the
    /// keys and limits of `config`: the limits on clients hold for all of them together.
    ///
    /// The connection IDs of each carry its number, which only the key [`worker_key`](EndpointConfig::worker_key) reveals. A
    /// datagram that arrives at another endpoint is passed on to it. [`steer`](crate::runtime::reuse_port::steer) has the
    /// kernel deliver it at the right one.
    ///
    /// With [`TransportConfig::bundle`](crate::TransportConfig::bundle), one worker gets all connections of an address, so
    /// that those of a bundle are together.
    ///
    /// # Errors
    /// A socket has no address, there are no workers or more than 255, or the connection IDs are too short to carry a number.
    pub fn workers(
        config: &EndpointConfig,
        server: &ServerConfig,
        workers: Vec<Worker>,
    ) -> io::Result<Vec<Self>> {
        let invalid = |problem: String| io::Error::new(io::ErrorKind::InvalidInput, problem);
        let count = u8::try_from(workers.len()).ok().filter(|count| *count > 0);
        let Some(count) = count else {
            let count = workers.len();
            return Err(invalid(format!("{count} workers: there may be 1 to 255")));
        };
        if count > 1 && config.id_len() < WORKER_ID_LEN {
            let len = config.id_len();
            return Err(invalid(format!(
                "connection IDs of {len} bytes cannot carry the number of a worker; they need {WORKER_ID_LEN}"
            )));
        }
        let group = Arc::new(WorkerGroup::new(count));
        let inboxes = workers.iter().map(|_| Arc::new(Inbox::new(Arc::default())));
        let inboxes: Arc<[Arc<Inbox>]> = inboxes.collect();
        let numbered = (0..count).zip(workers);
        let endpoints = numbered.map(|(number, worker)| {
            let mut config = config.clone();
            if count > 1 {
                config.worker = Some(number);
                // Endpoints must not choose the same connection IDs.
                let mut purpose = String::new();
                let _ = write!(purpose, "worker {number}");
                config.rng_seed = hmac_sha256(&config.rng_seed, purpose.as_bytes());
            }
            let group = Arc::clone(&group);
            let proto = |server| marline_proto::Endpoint::in_group(Arc::new(config), server, group);
            let number = usize::from(number);
            Self::start(worker, Some(server.clone()), proto, &inboxes, number)
        });
        endpoints.collect()
    }

    /// Passes on the datagrams of connections that no worker of this process has, which are otherwise answered with a
    /// stateless reset or dropped: another process had this address before, and still has connections. Both have one
    /// [`worker_key`](EndpointConfig::worker_key), reset key and token key. With `None` no longer.
    ///
    /// The predecessor no longer reads the socket ([`stop_receiving`](Self::stop_receiving)), and gets them by
    /// [`deliver`](Self::deliver).
    pub fn set_predecessor(&self, predecessor: Option<Arc<dyn PassOn>>) {
        let mut state = self.shared.lock();
        state.proto.set_has_predecessor(predecessor.is_some());
        state.predecessor = predecessor;
    }

    /// Reads the socket no longer, for another process is to read it. Once this completes, what arrives waits in the socket.
    /// Connections continue with what is [delivered](Self::deliver), and are sent from the socket as before.
    pub async fn stop_receiving(&self) {
        self.shared.set_receives(false);
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            if !state.is_receiving || state.driver_ended {
                return Poll::Ready(());
            }
            state.stopping.register(cx.waker());
            Poll::Pending
        })
        .await;
    }

    /// Reads the socket from now on, which no other process reads any more.
    pub fn start_receiving(&self) {
        self.shared.set_receives(true);
    }

    /// Handles a datagram that another process has received. Any worker's endpoint may get it. It is dropped if too many
    /// wait.
    pub fn deliver(&self, datagram: PassedDatagram) {
        self.shared.inbox.push(Passed::ByProcess(datagram));
    }
}
