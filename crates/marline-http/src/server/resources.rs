//! The resources that all responses of a server share.

use std::fmt::{self, Write};
use std::fs::{File, Metadata};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use marline::Prefix;
use tokio::sync::watch;

use super::Context;
use super::account::Account;
use super::budget::{Budget, Grant, UsedUp};
use super::exposition::head;
use super::open_files::{HeldFile, OpenFiles, TooManyFiles};
use super::stop::Stopped;
use crate::limits;
use crate::log::Level;
use crate::log::messages::{self, Frequent};
use crate::runtime::RuntimeHandle;

/// Budgets of a server.
#[derive(Debug)]
pub(super) struct Resources {
    pub(super) files: OpenFiles,
    pub(super) buffers: Budget,
    accounts: AtomicU64,
}

impl Resources {
    /// Allows `files` that are open, and `bytes` that are buffered.
    pub(super) fn new(files: u64, bytes: u64) -> Self {
        Self {
            files: OpenFiles::new(files),
            buffers: Budget::new(bytes),
            accounts: AtomicU64::new(0),
        }
    }

    /// A new account of a client at `address`.
    pub(super) fn account(&self, address: IpAddr) -> Account {
        let client = Prefix::of_network(address);
        Account::new(client, self.accounts.fetch_add(1, Relaxed))
    }

    /// Writes the units in use, as metrics.
    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        let name = "marline_open_files";
        head(out, name, "gauge", "Files that responses hold open.")?;
        writeln!(out, "{name} {}", self.files.open())?;
        let name = "marline_buffered_bytes";
        let help = "Bytes that are held between two sides: read or received from one, and not received by the other.";
        head(out, name, "gauge", help)?;
        writeln!(out, "{name} {}", self.buffers.used())
    }
}

/// The extension of a request that names the budgets of its response, and their use. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Origin(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    account: Account,
    /// Set for a request in 0-RTT, which is replayed from a forged address as well as sent from that of the client.
    proof: Option<AddressProof>,
    resources: Arc<Resources>,
    runtime: RuntimeHandle,
    /// The time it may wait for a part of the buffers.
    buffer_timeout: Duration,
    /// The size of reads of the response.
    chunk: Chunk,
}

/// Whether the address of a client is proven to be its own, as it is once the handshake is complete (RFC 9000, section
/// 8.1).
pub(super) type AddressProof = watch::Receiver<bool>;

impl Origin {
    /// Requests of a client at `address` whose responses have one account. With a `proof`, the network of the client is charged for
    /// what it uses after the proof of its address.
    pub(super) fn new(
        context: &Context,
        address: IpAddr,
        chunk: Chunk,
        proof: Option<AddressProof>,
    ) -> Self {
        Self(Arc::new(Shared {
            account: context.resources.account(address),
            proof,
            resources: Arc::clone(&context.resources),
            runtime: context.runtime.clone(),
            buffer_timeout: context.current.get().limits.buffer_timeout,
            chunk,
        }))
    }

    /// The size of reads of the response.
    pub(super) fn chunk(&self) -> &Chunk {
        &self.0.chunk
    }

    /// The account that budgets charge now.
    pub(super) fn account(&self) -> Account {
        match &self.0.proof {
            Some(proof) if !*proof.borrow() => self.0.account.of_unproven(),
            _ => self.0.account.clone(),
        }
    }

    /// Whether its request arrived in 0-RTT, and the handshake is not complete: it may be a replay.
    pub(super) fn is_early(&self) -> bool {
        self.0.proof.as_ref().is_some_and(|proof| !*proof.borrow())
    }

    /// The time of the server's clock, if it can be represented.
    pub(super) fn unix_time(&self) -> Option<SystemTime> {
        UNIX_EPOCH.checked_add(self.0.runtime.unix_time())
    }

    /// Completes when its response has to end.
    pub(super) fn evicted(&self) -> Stopped {
        self.0.account.evicted()
    }

    /// Waits for the proof of the client's address; returns whether it became proven only now.
    pub(super) async fn becomes_proven(&self) -> bool {
        match &self.0.proof {
            Some(proof) if !*proof.borrow() => self.is_proven_in_time().await,
            _ => false,
        }
    }

    /// Waits for the proof of the client's address if one is required; returns whether it is proven now.
    async fn is_proven_in_time(&self) -> bool {
        let Some(mut proof) = self.0.proof.clone() else {
            return false;
        };
        proof.wait_for(|is_proven| *is_proven).await.is_ok()
    }

    /// For a request in 0-RTT: waits for the proof of the client's address, and charges the client's network for the
    /// units that were charged to all clients without a proof. The proof may have come since it was charged.
    pub(super) async fn charge_when_proven(&self) {
        if self.is_proven_in_time().await {
            self.0.resources.files.charge_to_client_of(&self.0.account);
            self.0
                .resources
                .buffers
                .charge_to_client_of(&self.0.account);
        }
    }

    /// Holds a file open.
    ///
    /// # Errors
    /// The client may hold no other one.
    pub(super) fn hold(&self, file: File, metadata: &Metadata) -> Result<HeldFile, TooManyFiles> {
        let held = self.0.resources.files.hold(&self.account(), file, metadata);
        held.inspect_err(|_| {
            messages::emit_frequent(Level::Warning, Frequent::Files, || {
                "a request was refused: responses hold too many files open (max_open_files)"
                    .to_owned()
            });
        })
    }

    /// Takes a part of the buffers at once, if the client may take some.
    pub(super) fn try_take(&self, wanted: usize) -> Option<Grant> {
        self.0.resources.buffers.try_take(&self.account(), wanted)
    }

    /// Waits for a part of the buffers. Only clients with a proven address are waited for, and get the parts of others.
    pub(super) fn take(
        &self,
        wanted: usize,
    ) -> impl Future<Output = Result<Grant, UsedUp>> + Send + use<> {
        let origin = self.clone();
        async move {
            if let Some(grant) = origin.try_take(wanted) {
                return Ok(grant);
            }
            // Where there is no proof, the handshake ends in time, and the response with it.
            origin.becomes_proven().await;
            let account = origin.account();
            let buffers = origin.0.resources.buffers.clone();
            let runtime = origin.0.runtime.clone();
            let taken = buffers.take(account, wanted, runtime, origin.0.buffer_timeout);
            taken.await.inspect_err(|_| {
                messages::emit_frequent(Level::Warning, Frequent::Buffers, || {
                    "a response ended: too many bytes wait for clients (max_buffered_bytes)"
                        .to_owned()
                });
            })
        }
    }
}

/// The size of the next chunk of a response.
#[derive(Debug)]
pub(super) struct Chunk(AtomicUsize);

impl Chunk {
    /// Chunks of `bytes`.
    pub(super) fn of(bytes: usize) -> Self {
        Self(AtomicUsize::new(bytes))
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// Sets the size to the `room` of the stream. Less than [`limits::MIN_CHUNK_BYTES`] is not worth reading.
    pub(super) fn fit(&self, room: usize) {
        let bytes = room.clamp(limits::MIN_CHUNK_BYTES, limits::FILE_CHUNK_BYTES);
        self.0.store(bytes, Relaxed);
    }
}

impl Default for Chunk {
    fn default() -> Self {
        Self::of(limits::FILE_CHUNK_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const LIMIT: u64 = 100_000;

    /// The origin of a request in 0-RTT, and the sender of the proof of its address.
    fn early(resources: &Arc<Resources>, address: [u8; 4]) -> (Origin, watch::Sender<bool>) {
        let proof = watch::Sender::new(false);
        let origin = Origin(Arc::new(Shared {
            account: resources.account(address.into()),
            proof: Some(proof.subscribe()),
            resources: Arc::clone(resources),
            runtime: RuntimeHandle::new(None).unwrap(),
            buffer_timeout: Duration::from_secs(30),
            chunk: Chunk::default(),
        }));
        (origin, proof)
    }

    fn take_all(origin: &Origin) -> Vec<Grant> {
        std::iter::from_fn(|| origin.try_take(1000)).collect()
    }

    #[tokio::test]
    async fn requests_from_forged_addresses_leave_the_share_of_the_network_to_itself() {
        let resources = Arc::new(Resources::new(10, LIMIT));
        let (forged, _unproven) = early(&resources, [192, 0, 2, 1]);
        let held = take_all(&forged);
        assert_eq!(resources.buffers.used(), LIMIT / 2);
        let (victim, proof) = early(&resources, [192, 0, 2, 2]);
        proof.send_replace(true);
        let own = take_all(&victim);
        assert!(resources.buffers.used() >= LIMIT / 4 * 3);
        assert!(forged.evicted().now_or_never().is_none());
        drop((held, own));
    }

    #[tokio::test]
    async fn what_a_request_in_0_rtt_holds_is_charged_to_its_network_once_its_address_is_proven() {
        let resources = Arc::new(Resources::new(10, LIMIT));
        let (origin, proof) = early(&resources, [192, 0, 2, 1]);
        let file = tempfile::tempfile().unwrap();
        let metadata = file.metadata().unwrap();
        let file = origin.hold(file, &metadata).unwrap();
        let bytes = origin.try_take(1000).unwrap();
        let shared = origin.account();
        let own = resources.account([192, 0, 2, 9].into());
        let held_by = |account: &Account| {
            let files = resources.files.held_by(account.client());
            let bytes = resources.buffers.held_by(account.client());
            (files, bytes)
        };
        assert_eq!((held_by(&shared), held_by(&own)), ((1, 1000), (0, 0)));
        let mut charging = std::pin::pin!(origin.charge_when_proven());
        assert!((&mut charging).now_or_never().is_none());
        proof.send_replace(true);
        charging.await;
        assert_eq!((held_by(&shared), held_by(&own)), ((0, 0), (1, 1000)));
        let more = origin.try_take(10).unwrap();
        assert_eq!(held_by(&own), (1, 1010));
        drop((file, bytes, more));
        assert_eq!(held_by(&own), (0, 0));
        assert_eq!((resources.files.open(), resources.buffers.used()), (0, 0));
    }

    #[tokio::test]
    async fn requests_in_0_rtt_give_a_network_no_more_than_it_could_take() {
        let resources = Arc::new(Resources::new(10, LIMIT));
        let mut held = Vec::new();
        let mut ended = Vec::new();
        for _ in 0..8 {
            let (origin, proof) = early(&resources, [192, 0, 2, 1]);
            let bytes = take_all(&origin);
            proof.send_replace(true);
            origin.charge_when_proven().await;
            // A response that has to end gives back what it holds.
            let has_to_end = origin.evicted().now_or_never().is_some();
            held.extend((!has_to_end).then_some(bytes));
            ended.push(has_to_end);
        }
        assert_eq!(ended.iter().filter(|&&has_to_end| !has_to_end).count(), 1);
        let (small, proof) = early(&resources, [198, 51, 100, 1]);
        let bytes = small.try_take(1000).unwrap();
        proof.send_replace(true);
        small.charge_when_proven().await;
        assert!(small.evicted().now_or_never().is_none());
        drop((held, bytes));
    }

    #[tokio::test]
    async fn what_a_request_took_while_its_address_was_proven_is_charged_to_its_network() {
        let resources = Arc::new(Resources::new(10, LIMIT));
        let (origin, proof) = early(&resources, [192, 0, 2, 1]);
        let bytes = origin.try_take(1000).unwrap();
        let shared = origin.account();
        proof.send_replace(true);
        origin.charge_when_proven().await;
        let held_by = |account: &Account| resources.buffers.held_by(account.client());
        assert_eq!((held_by(&shared), held_by(&origin.account())), (0, 1000));
        drop(bytes);
    }

    #[tokio::test]
    async fn a_part_that_grows_after_the_proof_is_charged_to_the_network_of_the_client() {
        let resources = Arc::new(Resources::new(10, LIMIT));
        let (origin, proof) = early(&resources, [192, 0, 2, 1]);
        let mut bytes = origin.try_take(1000).unwrap();
        let shared = origin.account();
        let mut charging = std::pin::pin!(origin.charge_when_proven());
        assert!((&mut charging).now_or_never().is_none());
        proof.send_replace(true);
        charging.await;
        bytes.grow(&origin.account(), 3000);
        let held_by = |account: &Account| resources.buffers.held_by(account.client());
        assert_eq!((held_by(&shared), held_by(&origin.account())), (0, 3000));
        drop(bytes);
        assert_eq!(resources.buffers.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_in_0_rtt_waits_for_its_handshake_where_the_share_of_all_these_is_used_up() {
        let resources = Arc::new(Resources::new(10, LIMIT));
        let (forged, _unproven) = early(&resources, [192, 0, 2, 1]);
        let _held = take_all(&forged);
        let (origin, proof) = early(&resources, [198, 51, 100, 1]);
        let mut taking = Box::pin(origin.take(1000));
        let waited = tokio::time::timeout(Duration::from_secs(5), &mut taking).await;
        assert!(waited.is_err());
        proof.send_replace(true);
        let grant = taking.now_or_never().expect("it waits no longer").unwrap();
        assert_eq!(grant.bytes(), 1000);
    }
}
