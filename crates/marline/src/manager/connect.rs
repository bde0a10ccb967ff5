//! The first path: a handshake from the first address that gets an answer.

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
    /// None of the rules has an address of the server's family now, or their bytes are spent.
    #[error("no path has an address to reach {0} from")]
    NoAddress(SocketAddr),
    /// No handshake could be tried.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// No handshake succeeded; this is why the first to fail did.
    #[error(transparent)]
    Lost(#[from] ConnectionError),
}

impl PathManager {
    /// Connects to `server_name` at `remote`, and manages the paths of the connection.
    ///
    /// The handshake begins from the address of the first rule that has one, those that are backups
    /// last. If it has no answer after [`PathPolicy::head_start`](super::PathPolicy::head_start), or fails, another
    /// begins from the next address beside it, and so on; the first to succeed is the connection, and the
    /// others are given up. The server sees them as connections that are closed at once.
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
            runners: Vec::new(),
            timer: runtime.timer(),
        };
        let mut failure = None;
        loop {
            let next = addresses.next();
            let is_last = next.is_none();
            if is_last && race.runners.is_empty() {
                return Err(failure.unwrap_or(ManagedConnectError::NoAddress(remote)));
            }
            if let Some(local) = next {
                match endpoint.connect_from(config.clone(), local, remote, server_name) {
                    Ok(connecting) => race.runners.push(connecting),
                    Err(error) => {
                        failure.get_or_insert(error.into());
                        continue;
                    }
                }
                race.timer.set(runtime.now() + self.policy().head_start);
            }
            match race.leg(is_last).await {
                Leg::Won(connection) => {
                    self.manage(&connection);
                    return Ok(connection);
                }
                Leg::Lost(error) => {
                    failure.get_or_insert(error.into());
                }
                Leg::Late => {}
            }
        }
    }

    /// Where the first path may begin, best first.
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

/// Handshakes beside each other.
struct Race {
    runners: Vec<Connecting>,
    timer: Box<dyn Timer>,
}

/// What happens first.
enum Leg {
    Won(Connection),
    Lost(ConnectionError),
    /// Nobody has answered for the head start.
    Late,
}

impl Race {
    /// Waits for a handshake to end, and no longer than for the head start unless this `is_last`.
    async fn leg(&mut self, is_last: bool) -> Leg {
        poll_fn(|cx| {
            for at in 0..self.runners.len() {
                if let Poll::Ready(end) = Pin::new(&mut self.runners[at]).poll(cx) {
                    drop(self.runners.swap_remove(at));
                    return Poll::Ready(end.map_or_else(Leg::Lost, Leg::Won));
                }
            }
            match is_last {
                true => Poll::Pending,
                false => self.timer.poll(cx).map(|()| Leg::Late),
            }
        })
        .await
    }
}
