//! 0-RTT data.

use super::*;

fn early_pair() -> Pair {
    let mut pair = Pair::with(PairConfig {
        zero_rtt: true,
        ..PairConfig::default()
    });
    resumption::visit(&mut pair);
    pair
}

/// A resumed connection with 0-RTT data.
struct Early {
    ends: Ends,
    /// Whether the server accepted the 0-RTT data.
    accepted: bool,
    /// Time until all data had arrived.
    took: Duration,
}

/// Connects and sends `data` immediately.
fn send_early(pair: &mut Pair, data: &Bytes) -> Early {
    let began = pair.now;
    let client = pair.connect();
    assert!(pair.client(client).has_zero_rtt());
    let id = pair
        .client(client)
        .open(Dir::Uni)
        .expect("limits are remembered");
    let mut rest = data.clone();
    let mut received = Vec::new();
    let mut server = None;
    let mut arrived = None;
    let done = pair.drive_until(TIMEOUT, |pair| {
        if !rest.is_empty() {
            let connection = pair.client(client);
            let _ = connection.write_chunk(id, &mut rest);
            if rest.is_empty() {
                connection.finish(id).expect("the stream is open");
            }
        }
        server = server.or(pair.server.accepted.pop_front());
        let now = pair.now;
        if let Some(server) = server {
            while let Ok(Some(bytes)) = pair.server(server).read(|| now, id, usize::MAX) {
                received.extend_from_slice(&bytes);
            }
        }
        if received.len() == data.len() {
            arrived.get_or_insert(now);
        }
        arrived.is_some() && pair.client(client).is_confirmed()
    });
    assert!(done, "{} of {} bytes arrived", received.len(), data.len());
    assert!(received == *data, "the bytes differ");
    let accepted = pair.client(client).is_early_data_accepted();
    let server = server.expect("the server accepted");
    let took = arrived.expect("all arrived") - began;
    Early {
        ends: Ends { client, server },
        accepted,
        took,
    }
}

fn is_rejection_emitted(pair: &Pair, client: ConnectionHandle) -> bool {
    pair.client
        .events
        .iter()
        .any(|(of, event)| *of == client && matches!(event, Event::ZeroRttRejected))
}

#[test]
fn early_data_arrives_with_the_first_flight() {
    let mut pair = early_pair();
    let early = send_early(&mut pair, &pattern(5_000));
    let ends = early.ends;
    assert!(early.accepted);
    assert_eq!(early.took, Duration::from_millis(10), "half a round trip");
    assert!(!is_rejection_emitted(&pair, ends.client));
    assert!(!pair.server(ends.server).is_replayable());
    assert_eq!(pair.client(ends.client).stats().packets_lost(), 0);
    upload(&mut pair, ends, &pattern(100_000));
}

#[test]
fn early_data_is_replayable_until_the_handshake_completes() {
    let mut pair = early_pair();
    let client = pair.connect();
    let id = pair
        .client(client)
        .open(Dir::Uni)
        .expect("limits are remembered");
    pair.client(client)
        .write(id, b"again")
        .expect("0-RTT is possible");
    pair.drive(Duration::from_millis(15));
    let server = pair
        .server
        .accepted
        .pop_front()
        .expect("the server accepted");
    let now = pair.now;
    assert_eq!(
        pair.server(server).read(|| now, id, 9),
        Ok(Some(Bytes::from_static(b"again")))
    );
    assert!(pair.server(server).is_replayable());
    pair.drive(Duration::from_millis(50));
    assert!(!pair.server(server).is_replayable());
}

#[test]
fn rejected_early_data_is_sent_again() {
    for seed in 0..5 {
        let mut pair = early_pair();
        pair.reconfigure_server(|_, tls| {
            tls.session_storage = rustls::server::ServerSessionMemoryCache::new(16);
        });
        let loss = if seed == 0 { 0.0 } else { 0.1 };
        pair.network.set(Conditions {
            loss,
            ..Conditions::default()
        });
        let Early { ends, accepted, .. } = send_early(&mut pair, &pattern(20_000));
        assert!(!accepted);
        assert!(!pair.client(ends.client).is_resumed());
        assert!(is_rejection_emitted(&pair, ends.client));
        upload(&mut pair, ends, &pattern(100_000));
    }
}

#[test]
fn a_server_that_accepts_no_more_early_data_still_resumes() {
    let mut pair = early_pair();
    pair.reconfigure_server(|_, tls| tls.max_early_data_size = 0);
    let Early { ends, accepted, .. } = send_early(&mut pair, &pattern(20_000));
    assert!(!accepted);
    assert!(pair.client(ends.client).is_resumed());
    assert!(is_rejection_emitted(&pair, ends.client));
}

#[test]
fn rejected_early_data_is_sent_again_within_the_new_limits_of_the_server() {
    let mut pair = early_pair();
    pair.reconfigure_server(|server, tls| {
        tls.session_storage = rustls::server::ServerSessionMemoryCache::new(16);
        server.transport = Arc::new(TransportConfig {
            stream_receive_window: Some(4_000),
            receive_window: Some(6_000),
            max_concurrent_uni_streams: 1,
            ..TransportConfig::default()
        });
    });
    assert!(!send_early(&mut pair, &pattern(20_000)).accepted);
}

#[test]
fn early_data_stays_within_the_remembered_limits() {
    let narrow = TransportConfig {
        stream_receive_window: Some(3_000),
        max_concurrent_uni_streams: 2,
        ..TransportConfig::default()
    };
    let mut pair = Pair::with(PairConfig {
        server: narrow,
        zero_rtt: true,
        ..PairConfig::default()
    });
    resumption::visit(&mut pair);
    let client = pair.connect();
    let connection = pair.client(client);
    let id = connection.open(Dir::Uni).expect("two are remembered");
    assert!(connection.open(Dir::Uni).is_some());
    assert!(connection.open(Dir::Uni).is_none());
    let mut rest = pattern(10_000);
    assert_eq!(connection.write_chunk(id, &mut rest), Ok(3_000));
    assert_eq!(
        connection.write_chunk(id, &mut rest),
        Err(WriteError::Blocked)
    );
}

#[test]
fn early_data_is_accepted_under_loss_and_after_a_retry() {
    for seed in 0..20 {
        let mut pair = Pair::with(PairConfig {
            zero_rtt: true,
            client: patient(),
            server: patient(),
            seed,
            ..PairConfig::default()
        });
        resumption::visit(&mut pair);
        pair.client_config.tokens = Arc::default();
        pair.reconfigure_server(|server, _| {
            if seed % 2 == 1 {
                server.retry = RetryPolicy::Always;
            }
        });
        pair.network.set(Conditions {
            loss: 0.2,
            jitter: Duration::from_millis(8),
            ..Conditions::default()
        });
        let Early { ends, accepted, .. } = send_early(&mut pair, &pattern(20_000));
        assert!(accepted, "seed {seed}");
        assert!(!is_rejection_emitted(&pair, ends.client), "seed {seed}");
    }
}
