use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::coordination::careful_resume::SavedModel;
use crate::crypto::token::TokenFault;
use crate::crypto::{Token, TokenError};

const NOW: u64 = 1_800_000_000;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn id(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

fn key() -> (TokenKey, SecureRng) {
    (TokenKey::new(&[1; 32]), SecureRng::from_seed([2; 32]))
}

#[test]
fn retry_tokens_are_valid_for_one_address_and_id_for_seconds() {
    let (key, mut rng) = key();
    let client = address("[2001:db8::1]:4433");
    let (original, retry) = (id(&[1; 8]), id(&[2; 20]));
    let token = key.retry(Version::V1, client, &original, &retry, NOW, &mut rng);
    let valid = Token::Retry {
        original_dcid: original,
        retry_scid: retry,
    };
    for later in [0, RETRY_TOKEN_LIFETIME] {
        assert_eq!(
            key.open(Version::V1, &token, client, &retry, NOW + later),
            Ok(valid)
        );
    }
    for (client, dcid, now, fault) in [
        (
            client,
            retry,
            NOW + RETRY_TOKEN_LIFETIME + 1,
            TokenFault::Expired,
        ),
        (client, retry, NOW - 1, TokenFault::Expired),
        (
            address("[2001:db8::1]:4434"),
            retry,
            NOW,
            TokenFault::Address,
        ),
        (
            address("[2001:db8::2]:4433"),
            retry,
            NOW,
            TokenFault::Address,
        ),
        (client, original, NOW, TokenFault::ConnectionId),
    ] {
        assert_eq!(
            key.open(Version::V1, &token, client, &dcid, now),
            Err(TokenError::Retry(fault))
        );
    }
}

#[test]
fn new_tokens_are_valid_for_one_ip_address_for_days() {
    let (key, mut rng) = key();
    let client = address("192.0.2.1:1000");
    let token = key.new_token(Version::V1, client.ip(), NOW, None, &mut rng);
    let other = key.new_token(Version::V1, client.ip(), NOW, None, &mut rng);
    let open =
        |token: &[u8], client, now| key.open(Version::V1, token, client, &ConnectionId::EMPTY, now);

    let returned = open(
        &token,
        address("[::ffff:192.0.2.1]:2000"),
        NOW + NEW_TOKEN_LIFETIME,
    );
    assert!(matches!(returned, Ok(Token::NewToken { issued: NOW, .. })));
    assert_ne!(
        returned,
        open(&other, client, NOW),
        "each has an ID of its own"
    );
    assert_eq!(
        open(&token, client, NOW + NEW_TOKEN_LIFETIME + 1),
        Err(TokenError::NewToken(TokenFault::Expired))
    );
    assert_eq!(
        open(&token, address("192.0.2.2:1000"), NOW),
        Err(TokenError::NewToken(TokenFault::Address))
    );
}

const CAPACITY: TokenCapacity = TokenCapacity {
    window: 1_234_567,
    rtt: Duration::from_micros(38_500),
    observed: NOW - 7,
    source: 99,
    model: None,
};

#[test]
fn a_new_token_carries_a_capacity() {
    let (key, mut rng) = key();
    let client = address("[2001:db8::1]:4433");
    let token = key.new_token(Version::V1, client.ip(), NOW, Some(&CAPACITY), &mut rng);
    assert!(token.len() <= MAX_LEN, "{}", token.len());
    let open = |client, now| key.open(Version::V1, &token, client, &ConnectionId::EMPTY, now);
    let Ok(Token::NewToken { capacity, .. }) = open(client, NOW) else {
        panic!("the token is valid");
    };
    assert_eq!(capacity, Some(CAPACITY));
    assert_eq!(CAPACITY.age(NOW), Duration::from_secs(7));
    assert_eq!(CAPACITY.age(0), Duration::ZERO);
    assert_eq!(
        open(address("[2001:db8::2]:4433"), NOW),
        Err(TokenError::NewToken(TokenFault::Address))
    );
    assert_eq!(
        open(client, NOW + NEW_TOKEN_LIFETIME + 1),
        Err(TokenError::NewToken(TokenFault::Expired))
    );
}

#[test]
fn a_new_token_carries_the_model_of_a_rate_based_controller() {
    let (key, mut rng) = key();
    let client = address("[2001:db8::1]:4433");
    let with_model = TokenCapacity {
        model: Some(SavedModel {
            bandwidth: 2_500_000,
            is_limit: true,
            random_loss: 20_000,
        }),
        ..CAPACITY
    };
    let token = key.new_token(Version::V1, client.ip(), NOW, Some(&with_model), &mut rng);
    assert!(token.len() <= MAX_LEN, "{}", token.len());
    let opened = key.open(Version::V1, &token, client, &ConnectionId::EMPTY, NOW);
    assert!(
        matches!(opened, Ok(Token::NewToken { capacity, .. }) if capacity == Some(with_model)),
        "{opened:?}"
    );
}

#[test]
fn tokens_without_a_capacity_keep_their_first_layout() {
    let (key, mut rng) = key();
    let client = address("192.0.2.1:1000");
    // Kind, issue time, address: the only layout before tokens could carry a capacity.
    let token = key.seal(&mut rng, |buf| {
        buf.push(1);
        buf.extend_from_slice(&NOW.to_be_bytes());
        buf.extend_from_slice(&[4, 192, 0, 2, 1]);
    });
    let opened = key.open(Version::V1, &token, client, &ConnectionId::EMPTY, NOW);
    assert!(matches!(
        opened,
        Ok(Token::NewToken {
            issued: NOW,
            capacity: None,
            ..
        })
    ));
    let made = key.new_token(Version::V1, client.ip(), NOW, None, &mut rng);
    assert_eq!(made.len(), token.len());
}

#[test]
fn the_capacity_of_one_source_is_claimed_once() {
    let (key, _) = key();
    assert!(key.claim(&CAPACITY));
    let later = TokenCapacity {
        window: 2_000_000,
        observed: NOW,
        ..CAPACITY
    };
    assert!(!key.claim(&later), "of the same connection");
    assert!(key.claim(&TokenCapacity {
        source: 100,
        ..CAPACITY
    }));
}

#[test]
fn a_token_of_another_key_is_unknown() {
    let (key, mut rng) = key();
    let client = address("192.0.2.1:1000");
    let token = key.new_token(Version::V1, client.ip(), NOW, None, &mut rng);
    let other = TokenKey::new(&[7; 32]);
    assert_eq!(
        other.open(Version::V1, &token, client, &ConnectionId::EMPTY, NOW),
        Err(TokenError::Unknown)
    );
}

proptest! {
    #[test]
    fn a_capacity_is_decoded_as_it_was_encoded(
        window: u64,
        micros: u32,
        observed: u64,
        source: u64,
        bandwidth: u64,
        is_limit: bool,
        random_loss: u32,
        has_model: bool,
        cut in 0..TokenCapacity::LEN,
    ) {
        let rtt = Duration::from_micros(micros.into());
        let model = has_model.then_some(SavedModel { bandwidth, is_limit, random_loss });
        let capacity = TokenCapacity { window, rtt, observed, source, model };
        let mut buf = Vec::new();
        capacity.encode(&mut buf);
        prop_assert_eq!(has_model, buf.len() > TokenCapacity::LEN);
        let decode = |bytes| TokenCapacity::decode(&mut Reader::new(bytes), has_model);
        prop_assert_eq!(decode(&buf), Ok(capacity));
        prop_assert!(decode(&buf[..cut]).is_err());
    }

    #[test]
    fn arbitrary_sealed_content_does_not_panic(plain in proptest::collection::vec(any::<u8>(), 0..60), kind in 0..5u8) {
        let (key, mut rng) = key();
        let client = address("192.0.2.1:1000");
        let token = key.seal(&mut rng, |buf| {
            buf.push(kind);
            buf.extend_from_slice(&plain);
        });
        let _ = key.open(Version::V1, &token, client, &ConnectionId::EMPTY, NOW);
    }

    #[test]
    fn altered_tokens_are_unknown(at: proptest::sample::Index, bit in 0..8u8, cut: proptest::sample::Index) {
        let (key, mut rng) = key();
        let client = address("192.0.2.1:1000");
        let token = key.retry(Version::V1, client, &id(&[1; 20]), &id(&[2; 20]), NOW, &mut rng);
        let mut altered = token.clone();
        altered[at.index(token.len())] ^= 1u8 << bit;
        let cut = &token[..cut.index(token.len())];
        for token in [&altered[..], cut] {
            prop_assert_eq!(key.open(Version::V1, token, client, &id(&[2; 20]), NOW), Err(TokenError::Unknown));
        }
    }

    #[test]
    fn arbitrary_bytes_are_an_unknown_token(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (key, _) = key();
        let opened = key.open(Version::V1, &bytes, address("192.0.2.1:1"), &ConnectionId::EMPTY, NOW);
        prop_assert_eq!(opened, Err(TokenError::Unknown));
    }
}

/// RFC 9369, section 5.
#[test]
fn tokens_are_valid_only_in_the_version_that_issued_them() {
    let (key, mut rng) = key();
    let client = address("192.0.2.1:1000");
    let (original, retry) = (id(&[1; 8]), id(&[2; 20]));
    for (version, other) in [(Version::V1, Version::V2), (Version::V2, Version::V1)] {
        let token = key.new_token(version, client.ip(), NOW, Some(&CAPACITY), &mut rng);
        assert!(key.open(version, &token, client, &retry, NOW).is_ok());
        assert_eq!(
            key.open(other, &token, client, &retry, NOW),
            Err(TokenError::NewToken(TokenFault::Version))
        );
        let token = key.retry(version, client, &original, &retry, NOW, &mut rng);
        assert!(key.open(version, &token, client, &retry, NOW).is_ok());
        assert_eq!(
            key.open(other, &token, client, &retry, NOW),
            Err(TokenError::Retry(TokenFault::Version))
        );
    }
}

#[test]
fn tokens_are_valid_until_the_second_rotation_after_them() {
    let (key, mut rng) = key();
    let client = address("192.0.2.1:4433");
    let dcid = id(&[1; 8]);
    let token = key.new_token(Version::V1, client.ip(), NOW, None, &mut rng);
    key.rotate(&[2; 32]);
    assert!(key.open(Version::V1, &token, client, &dcid, NOW).is_ok());
    let newer = key.new_token(Version::V1, client.ip(), NOW, None, &mut rng);
    key.rotate(&[3; 32]);
    let refused = key.open(Version::V1, &token, client, &dcid, NOW);
    assert_eq!(refused, Err(TokenError::Unknown));
    assert!(key.open(Version::V1, &newer, client, &dcid, NOW).is_ok());
}
