//! Which connection a client had before: it tells what it has seen when the client comes back.

use std::collections::VecDeque;
use std::net::IpAddr;

use rustc_hash::FxHashMap;

use super::{ConnectionHandle, Endpoint};

/// The latest connection of each client that has one, and those that are to tell.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    latest: FxHashMap<IpAddr, ConnectionHandle>,
    asked: VecDeque<ConnectionHandle>,
}

impl Earlier {
    /// A handshake with `client` is complete.
    pub(super) fn on_established(&mut self, client: IpAddr, handle: ConnectionHandle) {
        self.latest.insert(client, handle);
    }

    /// `client` resumes a session in another connection.
    pub(super) fn on_resumed(&mut self, client: IpAddr) {
        if let Some(&handle) = self.latest.get(&client)
            && !self.asked.contains(&handle)
        {
            self.asked.push_back(handle);
        }
    }

    pub(super) fn on_drained(&mut self, client: IpAddr, handle: ConnectionHandle) {
        if self.latest.get(&client) == Some(&handle) {
            self.latest.remove(&client);
        }
        // Handles are used again.
        self.asked.retain(|asked| *asked != handle);
    }
}

impl Endpoint {
    /// A connection that is to [tell what it has seen](crate::Connection::tell_resumed), for its client has
    /// come back; poll it after every datagram and every event of a connection until there is none.
    pub fn poll_resumed(&mut self) -> Option<ConnectionHandle> {
        self.earlier.asked.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_connection_of_a_client_tells_once() {
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse().unwrap());
        let mut earlier = Earlier::default();
        earlier.on_resumed(one);
        assert_eq!(earlier.asked, [], "it had none");
        for number in 0..2 {
            earlier.on_established(one, ConnectionHandle(number));
        }
        earlier.on_established(other, ConnectionHandle(2));
        earlier.on_resumed(one);
        earlier.on_resumed(one);
        assert_eq!(earlier.asked, [ConnectionHandle(1)]);
        earlier.on_drained(one, ConnectionHandle(0));
        earlier.on_resumed(other);
        assert_eq!(earlier.asked, [ConnectionHandle(1), ConnectionHandle(2)]);
        earlier.on_drained(one, ConnectionHandle(1));
        earlier.on_drained(other, ConnectionHandle(2));
        assert_eq!(earlier.asked, []);
        assert!(earlier.latest.is_empty());
    }
}
