//! The bundles of a client's connections.

use std::sync::{Mutex, PoisonError};

use marline::coordination::bundle::{Membership, MembershipId};

use crate::client::ClientError;
use crate::client::target::Origin;
use crate::runtime::RuntimeHandle;

/// The bundles of one client: one for each origin.
#[derive(Default)]
pub(super) struct Bundles {
    /// The seed of the identifiers; drawn when the first is needed.
    seed: Mutex<Option<[u8; 32]>>,
}

impl Bundles {
    /// The bundle of the `connections` to `origin`. The identifier of one origin does not reveal that of
    /// another.
    ///
    /// # Errors
    /// The system's random number generator failed.
    pub(super) fn membership(
        &self,
        origin: &Origin,
        connections: usize,
        runtime: &RuntimeHandle,
    ) -> Result<Membership, ClientError> {
        let mut seed = self.seed.lock().unwrap_or_else(PoisonError::into_inner);
        let seed = match *seed {
            Some(seed) => seed,
            None => *seed.insert(runtime.shared().seed().map_err(ClientError::Runtime)?),
        };
        let name = format!("bundle {}:{}", origin.host, origin.port);
        let tag = marline::hmac_sha256(&seed, name.as_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&tag[..16]);
        Ok(Membership {
            id: MembershipId(id),
            connections: connections.max(1) as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{HttpVersion, parse_url};

    #[tokio::test]
    async fn each_origin_has_a_bundle_of_its_own() {
        let runtime = RuntimeHandle::new(None).unwrap();
        let of = |bundles: &Bundles, url| {
            let origin = parse_url(url, HttpVersion::Http3).unwrap().origin;
            bundles.membership(&origin, 3, &runtime).unwrap()
        };
        let (one, other) = (Bundles::default(), Bundles::default());
        let member = of(&one, "https://example.org/");
        assert_eq!(member.connections, 3);
        assert_eq!(of(&one, "https://EXAMPLE.org:443/a"), member);
        assert_ne!(of(&one, "https://example.org:444/").id, member.id);
        assert_ne!(of(&one, "https://example.net/").id, member.id);
        assert_ne!(of(&other, "https://example.org/").id, member.id);
    }
}
