//! Address validation with Retry packets and tokens (RFC 9000, section 8.1).

use super::*;

/// A pair whose server sends a Retry to every client without a token.
fn with_retry() -> Pair {
    Pair::with(PairConfig {
        adjust_server: Box::new(|server| server.retry = RetryPolicy::Always),
        ..PairConfig::default()
    })
}

/// The time until a handshake is confirmed.
fn handshake(pair: &mut Pair) -> Duration {
    let began = pair.now;
    let ends = pair.establish();
    let took = pair.now - began;
    download(pair, ends, &pattern(10_000));
    close(pair, ends.client);
    took
}

const ONE_ROUND_TRIP: Duration = Duration::from_millis(20);

#[test]
fn a_retry_costs_a_round_trip_and_a_token_saves_it_the_next_time() {
    let mut pair = with_retry();
    assert_eq!(handshake(&mut pair), ONE_ROUND_TRIP * 3);
    assert_eq!(handshake(&mut pair), ONE_ROUND_TRIP * 2);
    assert_eq!(handshake(&mut pair), ONE_ROUND_TRIP * 2);
}

#[test]
fn a_token_from_another_address_does_not_save_the_retry() {
    let mut pair = with_retry();
    handshake(&mut pair);
    pair.client.address = "192.0.2.9:50000".parse().unwrap();
    assert_eq!(handshake(&mut pair), ONE_ROUND_TRIP * 3);
}

#[test]
fn a_token_saves_the_retry_once() {
    let mut pair = with_retry();
    handshake(&mut pair);
    let tokens = &pair.client_config.tokens;
    let token = tokens.take(crate::testing::SERVER_NAME, Version::V1);
    let token = token.expect("the server issued a token");
    put(&pair, &token);
    assert_eq!(handshake(&mut pair), ONE_ROUND_TRIP * 2);
    pair.client_config.tokens = Arc::default();
    put(&pair, &token);
    assert_eq!(handshake(&mut pair), ONE_ROUND_TRIP * 3);
}

fn put(pair: &Pair, token: &[u8]) {
    let tokens = &pair.client_config.tokens;
    tokens.put(crate::testing::SERVER_NAME, Version::V1, token);
}

#[test]
fn handshakes_with_a_retry_complete_under_loss() {
    for seed in 0..20 {
        let mut pair = Pair::with(PairConfig {
            adjust_server: Box::new(|server| server.retry = RetryPolicy::Always),
            client: patient(),
            server: patient(),
            seed,
            ..PairConfig::default()
        });
        pair.network.set(Conditions {
            loss: 0.3,
            ..Conditions::default()
        });
        let ends = pair.establish();
        download(&mut pair, ends, &pattern(1000));
    }
}

#[test]
fn a_retry_token_from_another_address_closes_with_invalid_token() {
    let mut pair = with_retry();
    let client = pair.connect();
    // The Retry is sent to one address, and the next Initial packet comes from another.
    pair.drive(Duration::from_millis(15));
    let (now, other) = (pair.now, "203.0.113.7:50000".parse().unwrap());
    pair.client(client).rebind(now, other);
    pair.drive(Duration::from_secs(1));
    let end = client_end(&pair, client);
    assert!(
        matches!(
            end,
            Some(ConnectionError::PeerTransport {
                code: ErrorCode::INVALID_TOKEN,
                ..
            })
        ),
        "{end:?}"
    );
}
