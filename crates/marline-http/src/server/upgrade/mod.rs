//! Another process takes over from this one, for example a newer program: without a refused connection, and without a request
//! that is cut.
//!
//! The new process is a child, whose standard input is a [`channel::Channel`]. It gets the sockets of the old one, which
//! are the same in both, so that what arrives in between waits in them. [`message`] has the order of events. Once the new
//! process serves, it passes on the datagrams of connections that are not its own.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::net::TcpListener;

use super::reload::QuicEndpoint;
use super::stop::Stop;
use super::{Context, OfWorker, tcp};
use crate::log::Level;
use crate::log::messages::{self, Subject};

mod channel;
mod message;
mod predecessor;
mod successor;

pub use self::predecessor::Predecessor;
pub use self::successor::{UpgradeError, upgrade};

/// The variable with the process ID of the old process.
const VARIABLE: &str = "MARLINE_UPGRADE";

/// The state of a server about the processes before and after it.
#[derive(Debug, Default)]
pub(super) struct Takeover {
    /// Duplicates of its listening sockets of TCP. Without the last of them, they no longer listen.
    tcp: Mutex<Vec<OwnedFd>>,
    /// Set when the process before has ended, if there was one.
    predecessor: OnceLock<Stop>,
    /// Set when connections are accepted.
    pub(super) runs: Stop,
    /// Whether another process has taken over.
    has_successor: AtomicBool,
}

impl Takeover {
    /// That of a server with these sockets of TCP.
    pub(super) fn of(
        listeners: &[OfWorker<tcp::Listener>],
        pages: &[TcpListener],
    ) -> io::Result<Self> {
        let listeners = listeners.iter().map(|listener| listener.listener.socket());
        let sockets = listeners.chain(pages);
        let duplicates = sockets.map(|socket| socket.as_fd().try_clone_to_owned());
        Ok(Self {
            tcp: Mutex::new(duplicates.collect::<io::Result<_>>()?),
            predecessor: OnceLock::new(),
            runs: Stop::default(),
            has_successor: AtomicBool::new(false),
        })
    }

    pub(super) fn has_successor(&self) -> bool {
        self.has_successor.load(Ordering::Acquire)
    }

    /// Closes the duplicates, so that the listeners can close their sockets.
    pub(super) fn close_duplicates(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OwnedFd>> {
        self.tcp.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins to resume the sessions that another process has used.
fn take_over_sessions(quic: &QuicEndpoint) {
    let taken = quic.open_sessions().map(|sessions| sessions.take_over());
    if let Some(Err(error)) = taken {
        let text = format!("clients cannot resume their sessions: {error}");
        messages::emit(Level::Error, Subject::Keys, &text);
    }
}

impl Context {
    /// Duplicates of all listening sockets.
    fn sockets(&self) -> io::Result<Vec<OwnedFd>> {
        let tcp = self.takeover.lock();
        let tcp = tcp.iter().map(OwnedFd::try_clone);
        let udp = self.quic_endpoints().map(|endpoint| {
            let socket = endpoint.duplicate_socket()?;
            Ok(socket.into())
        });
        tcp.chain(udp).collect()
    }

    /// Accepts no more connections, for another process does.
    fn hand_over(&self) {
        self.takeover.has_successor.store(true, Ordering::Release);
        self.stop.stop();
    }

    /// Begins to resume the sessions of the process before.
    fn take_over_sessions(&self) {
        self.endpoints.iter().for_each(take_over_sessions);
    }

    /// Completes when the process before has ended, which gets its datagrams from this one.
    pub(super) async fn predecessor_ended(&self) {
        if let Some(ended) = self.takeover.predecessor.get()
            && !self.endpoints.is_empty()
        {
            ended.stopped().await;
        }
    }
}
