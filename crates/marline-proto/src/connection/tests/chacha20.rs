//! Every AEAD protects a connection, also beyond a key update.

use super::*;

#[test]
fn every_cipher_carries_a_transfer_and_a_key_update() {
    for cipher in Cipher::ALL {
        let mut pair = Pair::with(PairConfig {
            cipher: Some(cipher),
            ..PairConfig::default()
        });
        let (client, server) = pair.establish();
        download(&mut pair, client, server, &pattern(300_000));
        let now = pair.now;
        assert!(pair.client(client).initiate_key_update(now), "{cipher:?}");
        upload(&mut pair, client, server, &pattern(300_000));
        let generation = |connection: &mut Connection| {
            let keys = connection.keys.one_rtt.as_ref();
            keys.map(|keys| keys.generation())
        };
        assert_eq!(generation(pair.client(client)), Some(1), "{cipher:?}");
        assert_eq!(generation(pair.server(server)), Some(1), "{cipher:?}");
    }
}
