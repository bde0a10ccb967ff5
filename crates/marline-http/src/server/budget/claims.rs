//! The claims of clients whose patience has run out.

use std::collections::BTreeMap;

use marline::Prefix;

/// Bytes that each client has been waiting for longer than [`limits::BUFFER_RECLAIM_DELAY`](crate::limits::BUFFER_RECLAIM_DELAY), up
/// to its entitlement. Free bytes, and those of accounts that already have to end, are for all of them together.
#[derive(Debug, Default)]
pub(super) struct Claims {
    clients: BTreeMap<Prefix, Claim>,
    total: u64,
}

#[derive(Debug, Default)]
struct Claim {
    /// Bytes wanted by all its responses.
    wanted: u64,
    /// The part of them that the client lacks.
    counted: u64,
}

impl Claims {
    /// A response of `client`, which lacks `lacking` bytes, has waited for `wanted` bytes for too long.
    pub(super) fn add(&mut self, client: Prefix, wanted: u64, lacking: u64) {
        self.clients.entry(client).or_default().wanted += wanted;
        self.update(client, lacking);
    }

    /// A response of `client` no longer waits.
    pub(super) fn remove(&mut self, client: Prefix, wanted: u64, lacking: u64) {
        if let Some(claim) = self.clients.get_mut(&client) {
            claim.wanted = claim.wanted.saturating_sub(wanted);
            self.update(client, lacking);
        }
    }

    /// Updates and returns the claim of `client`, which now lacks `lacking` bytes.
    pub(super) fn update(&mut self, client: Prefix, lacking: u64) -> u64 {
        let Some(claim) = self.clients.get_mut(&client) else {
            return 0;
        };
        let counted = claim.wanted.min(lacking);
        self.total = self.total - claim.counted + counted;
        claim.counted = counted;
        if claim.wanted == 0 {
            self.clients.remove(&client);
        }
        counted
    }

    /// The sum of all claims.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.clients.is_empty() && self.total == 0
    }
}
