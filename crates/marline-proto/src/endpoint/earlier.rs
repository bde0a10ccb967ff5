//! Earlier connections of clients: when a client resumes its session, its latest connection reports its measurements.

use std::net::IpAddr;

use rustc_hash::FxHashMap;

use super::group::Location;

/// The latest connection of each client.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    latest: FxHashMap<IpAddr, Location>,
}

impl Earlier {
    /// Records that a handshake with `client` is complete.
    pub(super) fn on_established(&mut self, client: IpAddr, at: Location) {
        self.latest.insert(client, at);
    }

    /// The connection that has to report when `client` resumes a session in another.
    pub(super) fn latest(&self, client: IpAddr) -> Option<Location> {
        self.latest.get(&client).copied()
    }

    pub(super) fn on_drained(&mut self, client: IpAddr, at: Location) {
        if self.latest.get(&client) == Some(&at) {
            self.latest.remove(&client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::ConnectionHandle;

    #[test]
    fn the_latest_connection_of_a_client_reports() {
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse().unwrap());
        let at = |worker, number| Location {
            worker,
            handle: ConnectionHandle(number),
        };
        let mut earlier = Earlier::default();
        assert_eq!(
            earlier.latest(one),
            None,
            "the client has no connection yet"
        );
        earlier.on_established(one, at(0, 0));
        earlier.on_established(one, at(1, 0));
        earlier.on_established(other, at(0, 2));
        assert_eq!(earlier.latest(one), Some(at(1, 0)));
        earlier.on_drained(one, at(0, 0));
        assert_eq!(earlier.latest(one), Some(at(1, 0)));
        earlier.on_drained(one, at(1, 0));
        earlier.on_drained(other, at(0, 2));
        assert!(earlier.latest.is_empty());
    }
}
