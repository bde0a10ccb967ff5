//! What a connection says of itself that wants to be a member.

use std::net::IpAddr;
use std::sync::Arc;

use super::{BundleConfig, MembershipId};

/// A connection wants to be coordinated.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinBundle {
    pub(crate) config: Arc<BundleConfig>,
    /// The bundle that its client named.
    pub(crate) id: Option<MembershipId>,
    /// Where it comes from.
    pub(crate) address: IpAddr,
    pub(crate) server_name: Option<Box<str>>,
    pub(crate) newcomer: Newcomer,
}

/// Someone who wants to be a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newcomer {
    /// Connections that its client announced.
    pub announced: Option<u64>,
    /// The window that it would begin with on its own, in bytes.
    pub initial_window: u64,
    /// Its window now.
    pub window: u64,
    /// Whether it was somebody's member before, and comes from another address now.
    pub moved: bool,
}
