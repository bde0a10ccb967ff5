//! What clients that have lost their patience wait for.

use std::collections::BTreeMap;

use marline::Prefix;

/// Bytes that each client is waiting for after [`limits::BUFFER_PATIENCE`](crate::limits::BUFFER_PATIENCE), as far as it is
/// entitled to them. What is free, and what those hold that have to end already, is for all of them together.
#[derive(Debug, Default)]
pub(super) struct Claims {
    clients: BTreeMap<Prefix, Claim>,
    total: u64,
}

#[derive(Debug, Default)]
struct Claim {
    /// Of all its responses.
    wanted: u64,
    /// As far as the client lacked it.
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

    /// What `client` claims if it lacks `lacking` bytes now.
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

    /// What all clients claim.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.clients.is_empty() && self.total == 0
    }
}
