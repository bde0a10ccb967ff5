//! Handshakes without losses.

use std::sync::Mutex;

use super::*;
use crate::config::ClientLimits;

#[test]
fn a_handshake_is_confirmed_after_two_round_trips_without_losses() {
    let mut pair = Pair::new();
    let began = pair.now;
    let ends = pair.establish();
    assert_eq!(pair.now - began, Duration::from_millis(40));
    assert_eq!(pair.client(ends.client).alpn(), Some(crate::testing::ALPN));
    assert_eq!(
        pair.server(ends.server).server_name(),
        Some(crate::testing::SERVER_NAME)
    );
    pair.drive(Duration::from_secs(1));
    assert_eq!(pair.client(ends.client).stats().packets_lost(), 0);
    assert_eq!(pair.server(ends.server).stats().packets_lost(), 0);
}

#[test]
fn a_transfer_over_ipv6_completes() {
    let mut pair = Pair::new();
    pair.client.address = "[2001:db8::1]:50000".parse().unwrap();
    pair.server.address = "[2001:db8::2]:443".parse().unwrap();
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(1 << 20));
    assert_eq!(
        pair.server(ends.server).remote_address(),
        "[2001:db8::1]:50000".parse().unwrap()
    );
}

#[test]
fn a_server_at_its_limit_of_connections_closes_with_connection_refused() {
    let mut pair = Pair::with(PairConfig {
        adjust_server: Box::new(|server| server.max_connections = 1),
        clients: ClientLimits {
            evict_idle: false,
            ..ClientLimits::default()
        },
        ..PairConfig::default()
    });
    pair.establish();
    let second = pair.connect();
    pair.drive(Duration::from_secs(1));
    let end = client_end(&pair, second);
    assert!(
        matches!(
            end,
            Some(ConnectionError::PeerTransport {
                code: ErrorCode::CONNECTION_REFUSED,
                ..
            })
        ),
        "{end:?}"
    );
}

#[test]
fn a_handshake_without_any_answer_times_out_after_ten_seconds() {
    let mut pair = Pair::new();
    pair.network.conditions(Direction::ToServer).down = true;
    let client = pair.connect();
    pair.drive(Duration::from_secs(9));
    assert_eq!(client_end(&pair, client), None);
    pair.drive(Duration::from_secs(2));
    assert_eq!(
        client_end(&pair, client),
        Some(ConnectionError::HandshakeTimeout)
    );
}

/// Labels of the secrets that TLS logged.
#[derive(Debug, Default)]
struct Labels(Mutex<Vec<String>>);

impl rustls::KeyLog for Labels {
    fn log(&self, label: &str, _client_random: &[u8], _secret: &[u8]) {
        self.0.lock().unwrap().push(label.to_owned());
    }
}

#[test]
fn secrets_are_logged_only_to_a_configured_key_log() {
    let identity = crate::testing::TestIdentity::new(&[crate::testing::SERVER_NAME]);
    let server = identity.server(&[crate::testing::ALPN], None);
    assert!(!server.key_log.will_log("CLIENT_TRAFFIC_SECRET_0"));
    let client = identity.client(&[crate::testing::ALPN], None);
    assert!(!client.key_log.will_log("CLIENT_TRAFFIC_SECRET_0"));

    let logged = Arc::new(Labels::default());
    let mut pair = Pair::new();
    let log = Arc::clone(&logged);
    pair.reconfigure_server(|_, tls| tls.key_log = log);
    pair.establish();
    let mut labels = std::mem::take(&mut *logged.0.lock().unwrap());
    labels.sort();
    labels.dedup();
    for label in [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_TRAFFIC_SECRET_0",
    ] {
        assert!(
            labels.iter().any(|known| known == label),
            "{label} is not in {labels:?}"
        );
    }
}
