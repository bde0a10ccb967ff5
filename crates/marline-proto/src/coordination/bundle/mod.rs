//! bundle: parallel connections whose windows and slow-start state are synchronized at their sender
//! (mQUIC; Qian et al., IEEE Access 2018, section IV).
//!
//! | question | file |
//! | --- | --- |
//! | which switches are there? | `config` |

mod config;

pub use config::{BundleConfig, Coalesce, Membership, MembershipId, Scope};

/// Connections that one bundle coordinates, at most: more stay on their own.
pub const MAX_MEMBERS: usize = 16;
