//! Earlier connections of clients: when a client resumes its session, its latest connection reports its measurements.

use std::collections::VecDeque;
use std::net::IpAddr;

use rustc_hash::FxHashMap;

use super::{ConnectionHandle, Endpoint};

/// The latest connection of each client, and the connections that have to report.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    latest: FxHashMap<IpAddr, ConnectionHandle>,
    due: VecDeque<ConnectionHandle>,
}

impl Earlier {
    /// Records that a handshake with `client` is complete.
    pub(super) fn on_established(&mut self, client: IpAddr, handle: ConnectionHandle) {
        self.latest.insert(client, handle);
    }

    /// Records that `client` resumes a session in another connection.
    pub(super) fn on_resumed(&mut self, client: IpAddr) {
        if let Some(&handle) = self.latest.get(&client)
            && !self.due.contains(&handle)
        {
            self.due.push_back(handle);
        }
    }

    pub(super) fn on_drained(&mut self, client: IpAddr, handle: ConnectionHandle) {
        if self.latest.get(&client) == Some(&handle) {
            self.latest.remove(&client);
        }
        // Handles are reused.
        self.due.retain(|due| *due != handle);
    }
}

impl Endpoint {
    /// The next connection that has to [report its measurements](crate::Connection::report_resumed) because its
    /// client resumes the session in another one; to be polled after every datagram and every event of a
    /// connection until it returns `None`.
    pub fn poll_resumed(&mut self) -> Option<ConnectionHandle> {
        self.earlier.due.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_connection_of_a_client_is_due_once() {
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse().unwrap());
        let mut earlier = Earlier::default();
        earlier.on_resumed(one);
        assert_eq!(earlier.due, [], "the client has no connection yet");
        for number in 0..2 {
            earlier.on_established(one, ConnectionHandle(number));
        }
        earlier.on_established(other, ConnectionHandle(2));
        earlier.on_resumed(one);
        earlier.on_resumed(one);
        assert_eq!(earlier.due, [ConnectionHandle(1)]);
        earlier.on_drained(one, ConnectionHandle(0));
        earlier.on_resumed(other);
        assert_eq!(earlier.due, [ConnectionHandle(1), ConnectionHandle(2)]);
        earlier.on_drained(one, ConnectionHandle(1));
        earlier.on_drained(other, ConnectionHandle(2));
        assert_eq!(earlier.due, []);
        assert!(earlier.latest.is_empty());
    }
}
