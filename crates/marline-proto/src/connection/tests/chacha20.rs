//! Transfers with each AEAD, before and after a key update.

use super::*;

#[test]
fn every_cipher_carries_a_transfer_and_a_key_update() {
    for cipher in Cipher::ALL {
        let mut pair = Pair::with(PairConfig {
            cipher: Some(cipher),
            ..PairConfig::default()
        });
        let ends = pair.establish();
        download(&mut pair, ends, &pattern(300_000));
        let now = pair.now;
        assert!(
            pair.client(ends.client).initiate_key_update(now),
            "{cipher:?}"
        );
        upload(&mut pair, ends, &pattern(300_000));
        let generation = |connection: &mut Connection| {
            let keys = connection.establishment.one_rtt();
            keys.map(|keys| keys.generation())
        };
        assert_eq!(generation(pair.client(ends.client)), Some(1), "{cipher:?}");
        assert_eq!(generation(pair.server(ends.server)), Some(1), "{cipher:?}");
    }
}
