//! The initial congestion window of a connection or path (RFC 9002, section 7.2).

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::Instant;
use crate::settings::{Domain, Entry, Field, Settings, Spec};

/// Its name in settings.
pub(super) const RFC9002: Entry<Arc<dyn InitialWindow>, ()> = Entry::plain(
    "rfc9002",
    "About 10 datagrams (RFC 9002, section 7.2)",
    |()| Arc::new(Rfc9002Window),
);

/// Its name and parameters in settings.
pub(super) const FIXED: Entry<Arc<dyn InitialWindow>, FixedWindow> = Entry {
    name: "fixed",
    about: "A number of full datagrams, the same on every path",
    parameters: FixedWindow::SETTINGS,
    default: || FixedWindow { packets: 10 },
    make: |window| Arc::new(window),
};

/// The properties of a connection or path by which its initial window is chosen.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionKind<'a> {
    /// The present time.
    pub now: Instant,
    /// The peer's address.
    pub peer: SocketAddr,
    /// The server's name, if the handshake has transmitted it.
    pub server_name: Option<&'a str>,
    /// Whether the TLS session was resumed.
    pub resumed: bool,
    /// Size of a full datagram, in bytes.
    pub max_datagram_size: u64,
}

/// Chooses initial windows.
pub trait InitialWindow: Send + Sync + Debug {
    /// The initial window of the connection or path that `kind` describes, in bytes.
    fn window(&self, kind: &ConnectionKind<'_>) -> u64;

    /// The window until the handshake has validated the peer's address, in bytes. It must not depend on
    /// what earlier connections learnt about that address, which may be forged.
    fn window_before_handshake(&self, kind: &ConnectionKind<'_>) -> u64 {
        self.window(kind)
    }

    /// Its notation in settings.
    fn spec(&self) -> Spec {
        Spec::named("custom")
    }
}

/// The window that RFC 9002, section 7.2 recommends: 10 datagrams, at most the larger of 14720 bytes and
/// two datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rfc9002Window;

impl InitialWindow for Rfc9002Window {
    fn window(&self, kind: &ConnectionKind<'_>) -> u64 {
        rfc9002(kind.max_datagram_size)
    }

    fn spec(&self) -> Spec {
        RFC9002.spec(&())
    }
}

/// A window of a fixed number of full datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    /// Datagrams; fewer than the 2 of the minimum window count as 2.
    pub packets: u64,
}

impl FixedWindow {
    /// Its parameters in settings.
    pub const SETTINGS: Settings<Self> = &[&Field::new(
        "packets",
        Domain::integer(super::MINIMUM_WINDOW_PACKETS, 100_000),
        "Full datagrams",
        |c: &mut Self| &mut c.packets,
    )];
}

impl InitialWindow for FixedWindow {
    fn window(&self, kind: &ConnectionKind<'_>) -> u64 {
        self.packets
            .max(super::MINIMUM_WINDOW_PACKETS)
            .saturating_mul(kind.max_datagram_size)
            .min(super::MAXIMUM_WINDOW)
    }

    fn spec(&self) -> Spec {
        FIXED.spec(self)
    }
}

/// The recommended window for datagrams of `max_datagram_size` bytes.
pub(super) fn rfc9002(max_datagram_size: u64) -> u64 {
    (10 * max_datagram_size).min((2 * max_datagram_size).max(14_720))
}
