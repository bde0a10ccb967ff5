//! The options of a page load.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::client::Assignment;

/// The options of a page load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Most connections to each host; one more is opened when all others are busy. Browsers use
    /// [so many](crate::client::HttpVersion::connections_of_browsers).
    pub connections: usize,
    /// Which of them gets the next object, if [`split_critical`](Self::split_critical) does not say it. With
    /// [`Assignment::First`], none is split.
    pub assignment: Assignment,
    /// The time to resolve the name of each host, once.
    pub name_resolution: Duration,
    /// Whether requests carry a priority (RFC 9218).
    pub priorities: bool,
    /// With several connections to a host, fetch the objects in which others are discovered in ranges, one on
    /// each connection, none smaller than this many bytes, and the other objects whole, on each connection in
    /// turn ([`SplitPolicy::Page`](crate::client::SplitPolicy::Page)). Without it, every object is fetched
    /// whole.
    pub split_critical: Option<NonZeroU64>,
}

impl Default for LoadOptions {
    /// One connection, with priorities and without ranges.
    fn default() -> Self {
        Self {
            connections: 1,
            assignment: Assignment::default(),
            name_resolution: Duration::ZERO,
            priorities: true,
            split_critical: None,
        }
    }
}
