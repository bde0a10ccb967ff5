//! Counters of the packets that a tunnel has carried and dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// It is no valid packet of IP, or no HTTP datagram with one.
    Malformed,
    /// An address is of one link or host only, or multicast.
    Unroutable,
    /// Its source is not an address that its sender was assigned.
    ForgedSource,
    /// Its destination is no address of the client, or of no client.
    OtherDestination,
    /// Its destination is outside of the advertised routes.
    NoRoute,
    /// It is larger than the tunnel carries.
    TooLarge,
    /// The queue was full, or packets waited too long in it (CoDel).
    Queue,
    /// The device of this host did not take it.
    Device,
}

impl Dropped {
    /// All reasons, in the order of their declaration.
    pub const ALL: [Self; 8] = [
        Self::Malformed,
        Self::Unroutable,
        Self::ForgedSource,
        Self::OtherDestination,
        Self::NoRoute,
        Self::TooLarge,
        Self::Queue,
        Self::Device,
    ];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unroutable => "unroutable",
            Self::ForgedSource => "forged_source",
            Self::OtherDestination => "other_destination",
            Self::NoRoute => "no_route",
            Self::TooLarge => "too_large",
            Self::Queue => "queue",
            Self::Device => "device",
        }
    }
}

/// Packets of a tunnel, or of all tunnels of a server.
#[derive(Debug, Default)]
pub struct Counters {
    /// Those of all tunnels, which these are part of.
    total: Option<Arc<Self>>,
    sent: Direction,
    received: Direction,
    copied: AtomicU64,
    dropped: [AtomicU64; Dropped::ALL.len()],
    pub(crate) split: Arc<SplitBytes>,
}

#[derive(Debug, Default)]
struct Direction {
    packets: AtomicU64,
    bytes: AtomicU64,
}

/// Packets that were carried in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Packets.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct SplitBytes {
    sent: AtomicU64,
    received: AtomicU64,
}

impl SplitBytes {
    pub(crate) fn on_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn on_received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Relaxed);
    }
}

/// Bytes of connections of TCP that were carried as streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitCarried {
    /// Into the tunnel.
    pub sent: u64,
    /// Out of the tunnel.
    pub received: u64,
}

impl Direction {
    fn add(&self, packets: usize, bytes: usize) {
        self.packets.fetch_add(packets as u64, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    fn carried(&self) -> Carried {
        Carried {
            packets: self.packets.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
        }
    }
}

impl Counters {
    /// Those of one tunnel, which count in `total` as well.
    pub(crate) fn part_of(total: &Arc<Self>) -> Self {
        Self {
            total: Some(Arc::clone(total)),
            ..Self::default()
        }
    }

    /// Packets that were given to QUIC.
    pub fn sent(&self) -> Carried {
        self.sent.carried()
    }

    /// Packets of the peer that were delivered to this host.
    pub fn received(&self) -> Carried {
        self.received.carried()
    }

    /// Packets that were dropped for a reason.
    pub fn dropped(&self, why: Dropped) -> u64 {
        self.dropped[why as usize].load(Relaxed)
    }

    /// Packets that were given to QUIC for a second path.
    pub fn copied(&self) -> u64 {
        self.copied.load(Relaxed)
    }

    pub(crate) fn on_copied(&self) {
        self.copied.fetch_add(1, Relaxed);
        if let Some(total) = &self.total {
            total.on_copied();
        }
    }

    /// Bytes of connections that were carried as streams.
    pub fn split(&self) -> SplitCarried {
        SplitCarried {
            sent: self.split.sent.load(Relaxed),
            received: self.split.received.load(Relaxed),
        }
    }

    pub(crate) fn on_sent(&self, bytes: usize) {
        self.sent.add(1, bytes);
        if let Some(total) = &self.total {
            total.on_sent(bytes);
        }
    }

    pub(crate) fn on_received(&self, packets: usize, bytes: usize) {
        self.received.add(packets, bytes);
        if let Some(total) = &self.total {
            total.on_received(packets, bytes);
        }
    }

    pub(crate) fn on_dropped(&self, why: Dropped) {
        self.dropped[why as usize].fetch_add(1, Relaxed);
        if let Some(total) = &self.total {
            total.on_dropped(why);
        }
    }
}
