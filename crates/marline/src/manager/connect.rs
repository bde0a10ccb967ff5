//! The first path: handshakes from several addresses, of which the first to complete is used (as RFC 8305
//! does for several destinations).

use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::Poll;

use marline_proto::scheduling::path::PathStatus;
use marline_proto::{ClientConfig, ConnectionError};
use thiserror::Error;

use super::PathManager;
use super::addresses::Addresses;
use crate::connection::{Connecting, Connection};
use crate::endpoint::Endpoint;
use crate::error::ConnectError;
use crate::runtime::Timer;

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
    /// abandoned: the server sees them as connections that are closed at once.
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
        loop {
            let next = addresses.next();
            let is_last = next.is_none();
            if is_last && race.attempts.is_empty() {
                return Err(failure.unwrap_or(ManagedConnectError::NoAddress(remote)));
            }
            if let Some(local) = next {
                match endpoint.connect_from(config.clone(), local, remote, server_name) {
                    Ok(connecting) => race.attempts.push(connecting),
                    Err(error) => {
                        failure.get_or_insert(error.into());
                        continue;
                    }
                }
                race.timer.set(runtime.now() + self.policy().head_start);
            }
            match race.next_outcome(is_last).await {
                AttemptOutcome::Connected(connection) => {
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
        found
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
