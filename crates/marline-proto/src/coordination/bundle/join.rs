//! The request of a connection to join a bundle.

use std::net::IpAddr;
use std::sync::Arc;

use super::{BundleConfig, MembershipId};

/// A connection asks to join a bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinBundle {
    pub(crate) config: Arc<BundleConfig>,
    /// The bundle that the client named.
    pub(crate) id: Option<MembershipId>,
    /// Address of its peer.
    pub(crate) address: IpAddr,
    pub(crate) server_name: Option<Box<str>>,
    pub(crate) joining: JoiningMember,
}

/// A connection that joins a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoiningMember {
    /// How many connections its client announced.
    pub announced: Option<u64>,
    /// The initial window that it would have outside the bundle, in bytes.
    pub initial_window: u64,
    /// Whether its controller works with a rate rather than a window.
    pub rate_based: bool,
    /// Its present window, in bytes.
    pub window: u64,
    /// Whether it has left another bundle because it migrated to another address.
    pub moved: bool,
}
