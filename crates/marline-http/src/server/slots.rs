//! The places of connections, shared by all versions.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::Context;

/// Time for the task of an already evicted connection to end.
const TASK_END: Duration = Duration::from_millis(100);

/// Time for which a new connection waits for the place of one that ends.
const SLOT_WAIT: Duration = Duration::from_secs(1);

/// The place of a connection, which is freed on drop.
pub(super) type Slot = OwnedSemaphorePermit;

impl Context {
    /// A free place, or that of a connection that is ending. `None` if there is none.
    pub(super) async fn slot(&self) -> Option<Slot> {
        self.slot_within(TASK_END).await
    }

    /// The same for a client at `address`, which is not forged: if there is none, an idle connection makes room.
    pub(super) async fn slot_for(&self, address: IpAddr) -> Option<Slot> {
        if let Some(slot) = self.slot().await {
            return Some(slot);
        }
        self.evict_idle_for(address);
        self.slot_within(SLOT_WAIT).await
    }

    async fn slot_within(&self, limit: Duration) -> Option<Slot> {
        let slot = Arc::clone(&self.slots).acquire_owned();
        self.runtime.timeout(limit, slot).await.ok()?.ok()
    }

    /// Ends an idle connection, over TCP first if more than half of all are.
    fn evict_idle_for(&self, address: IpAddr) -> bool {
        let over_tcp = || self.admission.evict_idle_for(address);
        let over_quic = || {
            // That of any worker ends one of any.
            let mut endpoints = self.endpoints.iter().map(|quic| &quic.endpoints[0]);
            endpoints.any(|endpoint| endpoint.evict_idle_for(address))
        };
        match self.admission.open() > self.max_connections as u64 / 2 {
            true => over_tcp() || over_quic(),
            false => over_quic() || over_tcp(),
        }
    }
}
