//! Connections with the cryptographic library selected by the features. `make ring` runs this with the other one than
//! the default.

use std::time::Duration;

use marline_proto::testing::{Conditions, Ends, Pair, PairConfig};
use marline_proto::{Cipher, Connection, ConnectionHandle, Dir, RetryPolicy, WriteError};

const LENGTH: usize = 200_000;
const TIMEOUT: Duration = Duration::from_secs(60);

/// Sends [`LENGTH`] bytes from the server to the client.
fn download(pair: &mut Pair, client: ConnectionHandle, server: ConnectionHandle) {
    let id = pair.server(server).open(Dir::Uni).expect("it may");
    let (mut sent, mut received) = (0, 0);
    let done = pair.drive_until(TIMEOUT, |pair| {
        while sent < LENGTH {
            let most = (LENGTH - sent).min(5000);
            match pair.server(server).write(id, &[7; 5000][..most]) {
                Ok(len) => sent += len,
                Err(WriteError::Blocked) => break,
                Err(error) => panic!("{error}"),
            }
        }
        let now = pair.now;
        while let Ok(Some(bytes)) = pair.client(client).read(|| now, id, usize::MAX) {
            received += bytes.len();
        }
        received == LENGTH
    });
    assert!(done, "{received} of {LENGTH} bytes arrived");
}

#[test]
fn every_cipher_survives_losses_and_a_key_update() {
    for cipher in Cipher::ALL {
        let mut pair = Pair::with(PairConfig {
            cipher: Some(cipher),
            ..PairConfig::default()
        });
        pair.network.set(Conditions {
            loss: 0.02,
            jitter: Duration::from_millis(5),
            corrupt: 0.01,
            ..Conditions::default()
        });
        let Ends { client, server } = pair.establish();
        download(&mut pair, client, server);
        let now = pair.now;
        assert!(pair.server(server).initiate_key_update(now), "{cipher:?}");
        download(&mut pair, client, server);
    }
}

#[test]
fn a_client_proves_its_address_resumes_and_sends_early() {
    let mut pair = Pair::with(PairConfig {
        zero_rtt: true,
        adjust_server: Box::new(|server| server.retry = RetryPolicy::Always),
        ..PairConfig::default()
    });
    for visit in 0..2 {
        let began = pair.now;
        let client = pair.connect();
        let has_early_keys = pair.client(client).has_zero_rtt();
        assert_eq!(has_early_keys, visit == 1);
        let mut server = None;
        let done = pair.drive_until(TIMEOUT, |pair| {
            server = server.or(pair.server.accepted.pop_front());
            !pair.client(client).is_handshaking()
        });
        assert!(done && server.is_some());
        let took = pair.now - began;
        let connection: &mut Connection = pair.client(client);
        assert_eq!(connection.is_resumed(), visit == 1);
        assert_eq!(connection.is_early_data_accepted(), visit == 1);
        // The network takes 10 ms each way: with a Retry first, with a token later.
        assert_eq!(
            took,
            Duration::from_millis(if visit == 0 { 40 } else { 20 })
        );
        download(&mut pair, client, server.expect("it was accepted"));
    }
}
