//! The first path: handshakes from several addresses, of which the first to complete is used (as RFC 8305
//! does for several destinations).

use std::collections::BTreeMap;
use std::future::{Future, pending, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use marline_proto::scheduling::path::PathStatus;
use marline_proto::{ClientConfig, ConnectionError, Instant};
use thiserror::Error;

use super::PathManager;
use super::addresses::Addresses;
use crate::connection::{Connecting, Connection};
use crate::endpoint::Endpoint;
use crate::error::ConnectError;
use crate::runtime::Timer;

/// Durations of the handshake after which a connection without confirmation is doubted: the confirmation takes one more
/// round trip, and is late by a probe timeout of about three if it is lost.
const HANDSHAKE_MULTIPLE: u32 = 4;

/// The shortest head start of RFC 8305, section 8.
const SHORTEST_HEAD_START: Duration = Duration::from_millis(100);

/// Why [`PathManager::connect`] has no connection.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ManagedConnectError {
    /// None of the rules has an address of the server's family now, or their caps are spent.
    #[error("no path has an address to reach {0} from")]
    NoAddress(SocketAddr),
    /// No handshake could be started.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// No handshake succeeded; this is the error of the first that failed.
    #[error(transparent)]
    Lost(#[from] ConnectionError),
}

impl PathManager {
    /// Connects to `server_name` at `remote`, and manages the paths of the connection.
    ///
    /// The handshake begins from the address of the first rule that has one, backups last. If it is not
    /// complete after [`PathPolicy::head_start`](super::PathPolicy::head_start), or fails, another begins in
    /// parallel from the next address, and so on. The first to complete is the connection, and the others are
    /// abandoned: the server sees them as connections that are closed at once. Addresses from which a handshake
    /// had no answer come last, until a path from there is validated or
    /// [`PathPolicy::longest_pause`](super::PathPolicy::longest_pause) has passed.
    ///
    /// Until its handshake is confirmed the connection has one path, and ends if that fails:
    /// [`connect_instead_of`](Self::connect_instead_of).
    ///
    /// # Errors
    /// No rule has an address, or all handshakes failed.
    pub async fn connect(
        &self,
        endpoint: &Endpoint,
        config: &ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connection, ManagedConnectError> {
        let mut addresses = self.first_addresses(endpoint, remote.ip()).into_iter();
        let runtime = endpoint.runtime();
        let mut race = Race {
            attempts: Vec::new(),
            timer: runtime.timer(),
        };
        let mut failure = None;
        let mut begun = Vec::new();
        loop {
            let next = addresses.next();
            let is_last = next.is_none();
            if is_last && race.attempts.is_empty() {
                return Err(failure.unwrap_or(ManagedConnectError::NoAddress(remote)));
            }
            if let Some(local) = next {
                match endpoint.connect_from(config.clone(), local, remote, server_name) {
                    Ok(connecting) => {
                        race.attempts.push(connecting);
                        begun.push(local);
                    }
                    Err(error) => {
                        failure.get_or_insert(error.into());
                        continue;
                    }
                }
                race.timer.set(runtime.now() + self.policy().head_start);
            }
            match race.next_outcome(is_last).await {
                AttemptOutcome::Connected(connection) => {
                    let now = runtime.now();
                    let local = connection.local_address().ip().to_canonical();
                    let at = begun.iter().position(|address| *address == local);
                    for silent in &begun[..at.unwrap_or(0)] {
                        self.doubt(now, *silent);
                    }
                    self.shared.silent.remove(local);
                    self.manage(&connection);
                    return Ok(connection);
                }
                AttemptOutcome::Failed(error) => {
                    failure.get_or_insert(error.into());
                }
                AttemptOutcome::DelayOver => {}
            }
        }
    }

    /// How long to wait for the confirmation of the handshake of `connection` before
    /// [`connect_instead_of`](Self::connect_instead_of): four times the duration of the handshake, at least 100 ms and
    /// at most [`PathPolicy::head_start`](super::PathPolicy::head_start). `None` if it is confirmed, or if there is
    /// no other address.
    pub fn confirmation_wait(&self, connection: &Connection) -> Option<Duration> {
        if connection.is_confirmed() || self.policy().rules.len() < 2 {
            return None;
        }
        let longest = self.policy().head_start;
        let handshake = connection.stats().handshake?;
        let wait = (handshake * HANDSHAKE_MULTIPLE).max(SHORTEST_HEAD_START);
        Some(wait.min(longest))
    }

    /// Connects from another address than `unconfirmed`, which does not become [confirmed](Connection::confirmed):
    /// a client changes its address, or opens paths, only after that (RFC 9000, section 9;
    /// draft-ietf-quic-multipath-21), so a connection whose network fails before has no other path.
    /// Returns `None` if the handshake is confirmed in the meantime. Otherwise the caller repeats on the new
    /// connection what it began on the other, and closes that.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_instead_of(
        &self,
        unconfirmed: &Connection,
        endpoint: &Endpoint,
        config: &ClientConfig,
        server_name: &str,
    ) -> Result<Option<Connection>, ManagedConnectError> {
        let local = unconfirmed.local_address().ip().to_canonical();
        self.doubt(endpoint.runtime().now(), local);
        let remote = unconfirmed.remote_address();
        let mut confirmed = pin!(async {
            if unconfirmed.confirmed().await.is_err() {
                pending::<()>().await;
            }
        });
        let mut other = pin!(self.connect(endpoint, config, remote, server_name));
        poll_fn(|cx| {
            if confirmed.as_mut().poll(cx).is_ready() {
                self.shared.silent.remove(local);
                return Poll::Ready(Ok(None));
            }
            other.as_mut().poll(cx).map_ok(Some)
        })
        .await
    }

    /// No answer arrived at `local` in time.
    fn doubt(&self, now: Instant, local: IpAddr) {
        self.shared
            .silent
            .insert(local, now + self.policy().longest_pause);
    }

    /// The local addresses for the first path, in the order of attempts.
    fn first_addresses(&self, endpoint: &Endpoint, remote: IpAddr) -> Vec<IpAddr> {
        let host = Addresses::now(&**endpoint.runtime());
        let rules = &self.policy().rules;
        let mut found = Vec::new();
        for wanted in [PathStatus::Available, PathStatus::Backup] {
            for (index, rule) in rules.iter().enumerate() {
                let is_spent = self.shared.budget.left(index) == Some(0);
                if rule.status == wanted
                    && !is_spent
                    && let Some(address) = host.of(&rule.source, None, remote)
                    && !found.contains(&address)
                {
                    host.bind(&*endpoint.socket(), &rule.source, address);
                    found.push(address);
                }
            }
        }
        let now = endpoint.runtime().now();
        found.sort_by_key(|address| self.shared.silent.contains(now, *address));
        found
    }
}

/// The addresses at which handshakes had no answer, of all connections of a manager.
#[derive(Debug, Default)]
pub(super) struct SilentAddresses(Mutex<BTreeMap<IpAddr, Instant>>);

impl SilentAddresses {
    /// Nothing arrives at `local`; another attempt is worth it at `until`.
    pub(super) fn insert(&self, local: IpAddr, until: Instant) {
        self.lock().insert(local, until);
    }

    /// A path from `local` works.
    pub(super) fn remove(&self, local: IpAddr) {
        self.lock().remove(&local);
    }

    pub(super) fn contains(&self, now: Instant, local: IpAddr) -> bool {
        self.lock().get(&local).is_some_and(|until| *until > now)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handshakes in parallel.
struct Race {
    attempts: Vec<Connecting>,
    timer: Box<dyn Timer>,
}

/// The event that ends a wait.
enum AttemptOutcome {
    Connected(Connection),
    Failed(ConnectionError),
    /// The next handshake is due.
    DelayOver,
}

impl Race {
    /// Waits for a handshake to end, and unless this `is_last`, no longer than until the timer expires.
    async fn next_outcome(&mut self, is_last: bool) -> AttemptOutcome {
        poll_fn(|cx| {
            for at in 0..self.attempts.len() {
                if let Poll::Ready(end) = Pin::new(&mut self.attempts[at]).poll(cx) {
                    drop(self.attempts.swap_remove(at));
                    return Poll::Ready(
                        end.map_or_else(AttemptOutcome::Failed, AttemptOutcome::Connected),
                    );
                }
            }
            match is_last {
                true => Poll::Pending,
                false => self.timer.poll(cx).map(|()| AttemptOutcome::DelayOver),
            }
        })
        .await
    }
}
