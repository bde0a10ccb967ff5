//! Resumption of TLS sessions.

use super::*;

/// One connection of a client.
pub(super) struct Visit {
    resumed: bool,
    /// Bytes that the server sent until the handshake was confirmed.
    sent: u64,
}

/// Connects, transfers some data and closes the connection.
pub(super) fn visit(pair: &mut Pair) -> Visit {
    let before = pair.network.counts(Direction::ToClient).bytes;
    let ends = pair.establish();
    let sent = pair.network.counts(Direction::ToClient).bytes - before;
    let resumed = pair.client(ends.client).is_resumed();
    assert_eq!(pair.server(ends.server).is_resumed(), resumed);
    download(pair, ends, &pattern(10_000));
    close(pair, ends.client);
    Visit { resumed, sent }
}

#[test]
fn the_second_connection_resumes_without_a_certificate() {
    let mut pair = Pair::with(PairConfig {
        further_names: 100,
        ..PairConfig::default()
    });
    let first = visit(&mut pair);
    assert!(!first.resumed);
    let second = visit(&mut pair);
    assert!(second.resumed);
    assert!(
        second.sent + 2000 < first.sent,
        "{} bytes, then {}",
        first.sent,
        second.sent
    );
    assert!(visit(&mut pair).resumed);
}

#[test]
fn a_server_that_lost_its_sessions_makes_a_full_handshake() {
    let mut pair = Pair::new();
    visit(&mut pair);
    pair.reconfigure_server(|_, tls| {
        tls.session_storage = rustls::server::ServerSessionMemoryCache::new(16);
    });
    assert!(!visit(&mut pair).resumed);
    assert!(visit(&mut pair).resumed);
}
