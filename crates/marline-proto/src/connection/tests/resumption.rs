//! A client that was here before.

use super::*;

/// Connects, says whether that resumed, and what the server sent until the handshake was confirmed.
pub(super) fn visit(pair: &mut Pair) -> (bool, u64) {
    let before = pair.network.counts(Direction::ToClient).2;
    let (client, server) = pair.establish();
    let sent = pair.network.counts(Direction::ToClient).2 - before;
    let resumed = pair.client(client).is_resumed();
    assert_eq!(pair.server(server).is_resumed(), resumed);
    download(pair, client, server, &pattern(10_000));
    close(pair, client);
    (resumed, sent)
}

#[test]
fn the_second_connection_resumes_without_a_certificate() {
    let mut pair = Pair::with(PairConfig {
        further_names: 100,
        ..PairConfig::default()
    });
    let (resumed, first) = visit(&mut pair);
    assert!(!resumed);
    let (resumed, second) = visit(&mut pair);
    assert!(resumed);
    assert!(second + 2000 < first, "{first} bytes, then {second}");
    assert!(visit(&mut pair).0);
}

#[test]
fn a_server_that_lost_its_sessions_makes_a_full_handshake() {
    let mut pair = Pair::new();
    visit(&mut pair);
    pair.reconfigure_server(|_, tls| {
        tls.session_storage = rustls::server::ServerSessionMemoryCache::new(16);
    });
    assert!(!visit(&mut pair).0);
    assert!(visit(&mut pair).0);
}
