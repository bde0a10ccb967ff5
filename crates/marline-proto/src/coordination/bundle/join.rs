//! What a connection says of itself that wants to be a member.

use std::net::IpAddr;
use std::sync::Arc;

use super::{BundleConfig, MembershipId, Newcomer};

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
