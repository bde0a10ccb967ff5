//! Sessions of one kind in the storage of all: of one version of QUIC (RFC 9369, section 5), or of rules that an application has.

use std::sync::Arc;

use marline_wire::Version;
use rustls::ServerConfig;
use rustls::server::{ProducesTickets, StoresServerSessions};

/// Prefix of sessions of version 2, which no session of rustls has. Sessions of version 1 are stored as
/// rustls writes them.
const VERSION_2: &[u8] = b"quicv2";

/// A copy of `config` that resumes only sessions of `version`.
pub(super) fn of_version(config: Arc<ServerConfig>, version: Version) -> Arc<ServerConfig> {
    let mut own = Arc::unwrap_or_clone(config);
    SessionKind::of_version(version).bind(&mut own);
    Arc::new(own)
}

/// A kind of sessions, which are stored with a prefix.
#[derive(Clone, Debug)]
pub struct SessionKind {
    prefix: Arc<[u8]>,
    /// The prefix of others, which begin with `prefix` as well.
    others: Option<&'static [u8]>,
}

impl SessionKind {
    /// Sessions with this prefix, which no session of rustls and of no other kind has: rustls begins with the version of TLS.
    pub fn with_prefix(prefix: &[u8]) -> Self {
        Self {
            prefix: prefix.into(),
            others: None,
        }
    }

    fn of_version(version: Version) -> Self {
        match version {
            Version::V1 => Self {
                prefix: [].into(),
                others: Some(VERSION_2),
            },
            Version::V2 => Self::with_prefix(VERSION_2),
        }
    }

    /// Has `config` store and resume only sessions of this kind, in the storage and by the tickets that it has.
    pub fn bind(&self, config: &mut ServerConfig) {
        config.session_storage = Arc::new(OfKind {
            kind: self.clone(),
            all: Arc::clone(&config.session_storage),
        });
        config.ticketer = Arc::new(OfKind {
            kind: self.clone(),
            all: Arc::clone(&config.ticketer),
        });
    }

    fn marked(&self, session: &[u8]) -> Vec<u8> {
        [&self.prefix, session].concat()
    }

    fn unmarked(&self, session: &[u8]) -> Option<Vec<u8>> {
        let is_other = self
            .others
            .is_some_and(|others| session.starts_with(others));
        let own = session.strip_prefix(&*self.prefix).filter(|_| !is_other);
        own.map(<[u8]>::to_vec)
    }
}

/// The sessions of one kind in the storage of all.
#[derive(Debug)]
struct OfKind<T: ?Sized> {
    kind: SessionKind,
    all: Arc<T>,
}

impl StoresServerSessions for OfKind<dyn StoresServerSessions> {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.all.put(key, self.kind.marked(&value))
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.kind.unmarked(&self.all.get(key)?)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.kind.unmarked(&self.all.take(key)?)
    }

    fn can_cache(&self) -> bool {
        self.all.can_cache()
    }
}

impl ProducesTickets for OfKind<dyn ProducesTickets> {
    fn enabled(&self) -> bool {
        self.all.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.all.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.all.encrypt(&self.kind.marked(plain))
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.kind.unmarked(&self.all.decrypt(cipher)?)
    }
}

#[cfg(test)]
mod tests {
    use rustls::server::ServerSessionMemoryCache;

    use super::*;

    #[test]
    fn a_session_is_found_in_its_own_version_only() {
        let all: Arc<dyn StoresServerSessions> = ServerSessionMemoryCache::new(16);
        let of = |version| OfKind {
            kind: SessionKind::of_version(version),
            all: Arc::clone(&all),
        };
        for (version, other) in [(Version::V1, Version::V2), (Version::V2, Version::V1)] {
            of(version).put(vec![1], vec![2, 3]);
            assert_eq!(of(other).get(&[1]), None);
            assert_eq!(of(version).get(&[1]), Some(vec![2, 3]));
            assert_eq!(of(other).take(&[1]), None);
            assert_eq!(of(version).take(&[1]), None, "it was removed");
        }
    }

    #[test]
    fn a_session_is_found_by_its_prefix_only() {
        let all: Arc<dyn StoresServerSessions> = ServerSessionMemoryCache::new(8);
        let of = |id: u8| OfKind {
            kind: SessionKind::with_prefix(&[b'a', id]),
            all: Arc::clone(&all),
        };
        assert!(of(1).put(vec![1], vec![2]));
        assert_eq!(of(1).get(&[1]), Some(vec![2]));
        assert_eq!(of(2).get(&[1]), None);
        assert!(all.put(vec![3], vec![4]));
        assert_eq!(of(1).take(&[3]), None, "it is of no kind");
    }
}
