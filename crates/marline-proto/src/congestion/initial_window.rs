//! How much a new path may send before anything is acknowledged.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::Duration;

use crate::Instant;

/// What is known of a connection or path when its first window is chosen.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionKind<'a> {
    /// The moment of the question.
    pub now: Instant,
    /// The peer's address.
    pub peer: SocketAddr,
    /// The server's name, if the handshake told it.
    pub server_name: Option<&'a str>,
    /// Whether the TLS session was resumed.
    pub resumed: bool,
    /// Size of a full datagram, in bytes.
    pub max_datagram_size: u64,
}

/// What a connection has seen of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSample {
    /// Why it tells.
    pub event: SampleEvent,
    /// Its congestion window, in bytes.
    pub window: u64,
    /// The window that it began with, in bytes.
    pub initial_window: u64,
    /// The least round-trip time.
    pub rtt: Duration,
    /// Bytes that were acknowledged.
    pub delivered: u64,
    /// Whether the window never was what held data back.
    pub app_limited: bool,
    /// Whether any of its first flight was lost, or marked by the network.
    pub lost_at_first: bool,
}

impl PathSample {
    /// The capacity that it proves `now`; `None` if the window stands that is `known`, in bytes.
    ///
    /// Only what was acknowledged is known to fit. A connection that was short of data may have left room
    /// unused, so that it can only raise what is known; one that lost of its first flight lowers it,
    /// however little it delivered.
    pub fn capacity(&self, now: Instant, known: Option<u64>) -> Option<Capacity> {
        let window = self.window.min(super::MAXIMUM_WINDOW);
        let proven = window.min(self.delivered);
        let window = match known {
            Some(known) if self.lost_at_first && window < known => window,
            _ if self.delivered < self.initial_window => return None,
            Some(known) if self.app_limited && proven < known => return None,
            _ => proven,
        };
        (!self.rtt.is_zero()).then_some(Capacity {
            window,
            rtt: self.rtt,
            at: now,
        })
    }
}

/// When a connection tells what it has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleEvent {
    /// Its peer resumes the session in another connection, while this one is alive.
    Resumed,
    /// It is closed, or has timed out.
    Closed,
}

/// What a path was seen to carry: the parameters that careful resume saves (RFC 9959).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// A window of which acknowledgments have told that the path carries it, in bytes.
    pub window: u64,
    /// The least round-trip time then.
    pub rtt: Duration,
    /// When that was.
    pub at: Instant,
}

/// What is remembered of paths, and what became of it, for metrics. All but `records` are totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatistics {
    /// Records in memory, those included that are too old and not yet taken out.
    pub records: u64,
    /// Questions that memory had a record for.
    pub hits: u64,
    /// Questions that it had none for.
    pub misses: u64,
    /// Records that came into memory from where they are kept: a file, a server.
    pub fetched: u64,
    /// Changes that the file or the server took.
    pub writes: u64,
    /// Changes that neither will see: more came than could wait, or the server refused them.
    pub dropped_writes: u64,
    /// Times that the file or the server failed, and records that could not be read.
    pub errors: u64,
}

/// Chooses first windows.
pub trait InitialWindow: Send + Sync + Debug {
    /// The first window of the connection or path that `kind` describes, in bytes.
    fn window(&self, kind: &ConnectionKind<'_>) -> u64;

    /// The window until the handshake has told who the peer is, in bytes: what was learnt of an address
    /// is for those who have proven that it is theirs.
    fn window_before_handshake(&self, kind: &ConnectionKind<'_>) -> u64 {
        self.window(kind)
    }

    /// A connection that `kind` describes tells what it has seen of its path. What is learnt here is
    /// shared: call it only for peers whose address is validated.
    fn observe(&self, _kind: &ConnectionKind<'_>, _seen: &PathSample) {}

    /// What the path of the connection that `kind` describes was seen to carry, for careful resume. It
    /// stays there for others; before a connection uses it, it must [`claim`](Self::claim) it.
    fn resumption(&self, _kind: &ConnectionKind<'_>) -> Option<Capacity> {
        None
    }

    /// Takes what [`resumption`](Self::resumption) tells away for the connection that `kind` describes: one
    /// at a time resumes from it (RFC 9959, section 3.2). It comes back when a connection tells that it
    /// found a capacity itself.
    fn claim(&self, _kind: &ConnectionKind<'_>) -> Option<Capacity> {
        None
    }

    /// What is remembered for careful resume of the path of the connection that `kind` describes is wrong.
    fn forget(&self, _kind: &ConnectionKind<'_>) {}

    /// How what it remembers of paths is doing; `None` if it remembers nothing.
    fn statistics(&self) -> Option<StoreStatistics> {
        None
    }
}

/// The window RFC 9002, section 7.2 recommends: 10 datagrams, at most the larger of 14720 bytes and
/// two datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rfc9002Window;

impl InitialWindow for Rfc9002Window {
    fn window(&self, kind: &ConnectionKind<'_>) -> u64 {
        rfc9002(kind.max_datagram_size)
    }
}

/// A window of so many full datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    /// Datagrams; at least the 2 of the minimum window count.
    pub packets: u64,
}

impl InitialWindow for FixedWindow {
    fn window(&self, kind: &ConnectionKind<'_>) -> u64 {
        self.packets
            .max(super::MINIMUM_WINDOW_PACKETS)
            .saturating_mul(kind.max_datagram_size)
            .min(super::MAXIMUM_WINDOW)
    }
}

/// The recommended window for datagrams of `max_datagram_size` bytes.
pub(super) fn rfc9002(max_datagram_size: u64) -> u64 {
    (10 * max_datagram_size).min((2 * max_datagram_size).max(14_720))
}
