//! Session tickets that are valid in one version of QUIC only (RFC 9369, section 5).

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
    own.session_storage = Arc::new(OfVersion {
        version,
        all: own.session_storage,
    });
    own.ticketer = Arc::new(OfVersion {
        version,
        all: own.ticketer,
    });
    Arc::new(own)
}

/// The sessions of one version in the storage of all.
#[derive(Debug)]
struct OfVersion<T: ?Sized> {
    version: Version,
    all: Arc<T>,
}

impl<T: ?Sized> OfVersion<T> {
    fn marked(&self, session: &[u8]) -> Vec<u8> {
        match self.version {
            Version::V1 => session.to_vec(),
            Version::V2 => [VERSION_2, session].concat(),
        }
    }

    fn unmarked(&self, session: Vec<u8>) -> Option<Vec<u8>> {
        match (self.version, session.strip_prefix(VERSION_2)) {
            (Version::V1, None) => Some(session),
            (Version::V2, Some(session)) => Some(session.to_vec()),
            _ => None,
        }
    }
}

impl StoresServerSessions for OfVersion<dyn StoresServerSessions> {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.all.put(key, self.marked(&value))
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.unmarked(self.all.get(key)?)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.unmarked(self.all.take(key)?)
    }

    fn can_cache(&self) -> bool {
        self.all.can_cache()
    }
}

impl ProducesTickets for OfVersion<dyn ProducesTickets> {
    fn enabled(&self) -> bool {
        self.all.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.all.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.all.encrypt(&self.marked(plain))
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.unmarked(self.all.decrypt(cipher)?)
    }
}

#[cfg(test)]
mod tests {
    use rustls::server::ServerSessionMemoryCache;

    use super::*;

    #[test]
    fn a_session_is_found_in_its_own_version_only() {
        let all: Arc<dyn StoresServerSessions> = ServerSessionMemoryCache::new(16);
        let of = |version| OfVersion {
            version,
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
}
