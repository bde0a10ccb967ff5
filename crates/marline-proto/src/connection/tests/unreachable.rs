//! ICMP messages "destination unreachable" (RFC 9000, section 14.2.1).

use std::sync::{Arc, Mutex};

use super::*;

/// A client whose datagrams are recorded and lost.
struct Lost {
    pair: Pair,
    client: ConnectionHandle,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Lost {
    fn new() -> Self {
        let mut pair = Pair::new();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&sent);
        pair.network.filter = Some(Box::new(move |_, datagram| {
            log.lock().unwrap().push(datagram.bytes.clone());
            true
        }));
        let client = pair.connect();
        pair.flush();
        Self { pair, client, sent }
    }

    fn first_datagram(&self) -> Vec<u8> {
        self.sent.lock().unwrap()[0].clone()
    }

    fn report(&mut self, remote: SocketAddr, quote: &[u8]) -> bool {
        let now = self.pair.now;
        let client = self.pair.client(self.client);
        client.handle_unreachable(now, Unreachable::Port, remote, quote)
    }
}

#[test]
fn an_unreachable_destination_ends_a_handshake_at_once() {
    let mut lost = Lost::new();
    let (remote, quote) = (lost.pair.server.address, lost.first_datagram());
    assert!(lost.report(remote, &quote));
    lost.pair.flush();
    assert_eq!(
        client_end(&lost.pair, lost.client),
        Some(ConnectionError::Unreachable(Unreachable::Port))
    );
    assert_eq!(lost.pair.client.endpoint.open_connections(), 0);
    assert_eq!(lost.sent.lock().unwrap().len(), 1, "nothing is sent again");
}

#[test]
fn an_address_that_a_dual_stack_socket_writes_as_ipv6_is_the_same() {
    let mut lost = Lost::new();
    let (remote, quote) = (lost.pair.server.address, lost.first_datagram());
    let SocketAddr::V4(remote) = remote else {
        panic!("the test network uses IPv4");
    };
    let mapped = SocketAddr::new(remote.ip().to_ipv6_mapped().into(), remote.port());
    assert!(lost.report(mapped, &quote));
}

#[test]
fn a_forged_unreachable_is_ignored() {
    let mut lost = Lost::new();
    let (remote, quote) = (lost.pair.server.address, lost.first_datagram());
    let elsewhere = SocketAddr::new(remote.ip(), remote.port() ^ 1);
    assert!(!lost.report(elsewhere, &quote), "another port");
    let elsewhere = SocketAddr::new([192, 0, 2, 77].into(), remote.port());
    assert!(!lost.report(elsewhere, &quote), "another host");
    let mut other = quote.clone();
    other[6] ^= 1;
    assert!(!lost.report(remote, &other), "another connection ID");
    for length in 0..6 + usize::from(quote[5]) {
        assert!(!lost.report(remote, &quote[..length]), "{length} bytes");
    }
    assert_eq!(client_end(&lost.pair, lost.client), None);
    lost.pair.network.filter = None;
    lost.pair.drive(Duration::from_secs(2));
    assert!(!lost.pair.client(lost.client).is_handshaking());
}

#[test]
fn an_unreachable_after_the_first_datagram_of_the_peer_is_ignored() {
    let mut pair = Pair::new();
    let sent = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&sent);
    pair.network.filter = Some(Box::new(move |direction, datagram| {
        if direction == Direction::ToServer {
            log.lock().unwrap().push(datagram.bytes.clone());
        }
        false
    }));
    let client = pair.connect();
    let heard = pair.drive_until(Duration::from_secs(1), |pair| {
        !pair.client(client).awaits_first_datagram()
    });
    assert!(heard);
    let (now, remote) = (pair.now, pair.server.address);
    let first = sent.lock().unwrap()[0].clone();
    let applied = pair
        .client(client)
        .handle_unreachable(now, Unreachable::Port, remote, &first);
    assert!(!applied);
    pair.drive(Duration::from_secs(1));
    assert!(!pair.client(client).is_handshaking());
    assert_eq!(client_end(&pair, client), None);
}

#[test]
fn a_server_ignores_unreachable_clients() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    let (now, remote) = (pair.now, pair.client.address);
    let id = pair.server(ends.server).original_destination();
    let mut quote = vec![0xc0, 0, 0, 0, 1, u8::try_from(id.len()).unwrap()];
    quote.extend_from_slice(&id);
    let applied =
        pair.server(ends.server)
            .handle_unreachable(now, Unreachable::Host, remote, &quote);
    assert!(!applied);
}
