//! Address tokens returned to a server, and stored path records.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::congestion::{ConnectionKind, InitialWindow, MAXIMUM_WINDOW, Rfc9002Window};
use crate::coordination::history::{
    HistoryConfig, HistoryPolicy, MemoryStore, PathRecord, PathScope, PathStore, StoreLimits,
};
use crate::crypto::{Token, TokenError, TokenKey};
use crate::limits::NEW_TOKEN_LIFETIME;
use crate::rng::SecureRng;
use crate::{Instant, Version};
use marline_wire::ConnectionId;

/// Time at which the tokens are presented, in seconds since the Unix epoch.
const NOW: u64 = 1_800_000_000;

/// Destination connection ID of the packets with tokens.
const DESTINATION: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// Checks the content of an address token sealed with the server's key, as another version of this program may have
/// issued it, and the same bytes without a seal. A token is accepted only from its address, within its lifetime, in its
/// version, and not if any bit is changed.
///
/// The first byte selects a bit.
///
/// # Panics
///
/// If one of these does not hold.
pub fn check_address_token(input: &[u8]) {
    let Some((&bit, content)) = input.split_first() else {
        return;
    };
    let key = TokenKey::new(&[7; 32]);
    let client = SocketAddr::from(([192, 0, 2, 1], 4433));
    let destination = ConnectionId::new(&DESTINATION).expect("it is short");
    let open =
        |version, token: &[u8], client, now| key.open(version, token, client, &destination, now);
    assert_eq!(
        open(Version::V1, content, client, NOW),
        Err(TokenError::Unknown),
        "nobody else can make a token"
    );

    let mut rng = SecureRng::from_seed([bit; 32]);
    let mut token = key.seal(&mut rng, |buf| buf.extend_from_slice(content));
    let accepted = [Version::V1, Version::V2]
        .into_iter()
        .filter_map(|version| Some((version, open(version, &token, client, NOW).ok()?)));
    let accepted: Vec<_> = accepted.collect();
    assert!(accepted.len() <= 1, "a token has one version");
    if let Some((version, seen)) = accepted.first() {
        let elsewhere = SocketAddr::from(([198, 51, 100, 1], 4433));
        assert!(open(*version, &token, elsewhere, NOW).is_err());
        assert!(open(*version, &token, client, NOW + NEW_TOKEN_LIFETIME + 1).is_err());
        match seen {
            Token::Retry { retry_scid, .. } => assert_eq!(*retry_scid, destination),
            Token::NewToken {
                issued, capacity, ..
            } => {
                assert!(NOW - issued <= NEW_TOKEN_LIFETIME);
                if let Some(capacity) = capacity {
                    assert!(key.claim(capacity), "the first claim");
                    assert!(!key.claim(capacity), "a capacity is used once");
                }
            }
        }
    }
    let place = usize::from(bit >> 3) % token.len();
    token[place] ^= 1 << (bit & 7);
    assert_eq!(
        open(Version::V1, &token, client, NOW),
        Err(TokenError::Unknown),
        "a token that was altered"
    );
}

/// Checks bytes that a store returns for a path. A record that is accepted does not change when it is encoded again, and leads
/// to an initial window and a saved capacity within the bounds of every controller.
///
/// # Panics
///
/// If one of these does not hold.
pub fn check_record(bytes: &[u8]) {
    let now = Instant::EPOCH + Duration::from_secs(1 << 32);
    let Ok(record) = PathRecord::decode(bytes, now) else {
        return;
    };
    let encoded = record.encode(now);
    assert!(encoded.len() <= PathRecord::MAX_ENCODED);
    let again = PathRecord::decode(&encoded, now).expect("our own encoding");
    assert_eq!(again.encode(now), encoded);

    let kind = ConnectionKind {
        now,
        peer: SocketAddr::from(([192, 0, 2, 1], 4433)),
        server_name: None,
        resumed: bytes.len().is_multiple_of(2),
        max_datagram_size: 1200,
    };
    let store: Arc<dyn PathStore> = Arc::new(MemoryStore::new(StoreLimits {
        lifetime: Duration::MAX,
        ..StoreLimits::default()
    }));
    let config = HistoryConfig {
        lifetime: Duration::MAX,
        ..HistoryConfig::default()
    };
    let scope = PathScope::default();
    let key = scope.key(kind.peer, None);
    store.update(now, &key, &mut |stored| *stored = record.clone());
    let fallback: Arc<dyn InitialWindow> = Arc::new(Rfc9002Window);
    for policy in HistoryPolicy::ALL {
        let parts = policy.build(config.clone(), Arc::clone(&store), Arc::clone(&fallback));
        let window = parts.initial_window.window(&kind);
        assert!((fallback.window(&kind)..=MAXIMUM_WINDOW).contains(&window));
        if let Some(capacity) = parts.history.claim(&kind) {
            assert!(capacity.window <= MAXIMUM_WINDOW && capacity.at <= now);
            assert!(parts.history.claim(&kind).is_none(), "it is used once");
        }
    }
}
