//! bundle: parallel connections whose windows and slow-start state are synchronized at their sender
//! (mQUIC; Qian et al., IEEE Access 2018, section IV).
//!
//! | question | file |
//! | --- | --- |
//! | which switches are there? | `config` |
//! | how is the initial window shared? | `split` |
//! | what does an event do to windows and slow start? | `loss_based` |
//! | what do rates that drift apart become? | `rate_based` |
//! | what does a connection say that wants to be a member? | `join` |
//! | what does a member report, and what is it told? | `member` |
//! | who takes part, and what becomes of them together? | `ensemble` |
//! | what does one get that comes to others in the middle of their work? | `ensemble/admit` |
//!
//! A [`Bundle`] is driven by whoever owns its members: signals and views in, directives out. It works for
//! connections of an endpoint as for paths of a connection.

mod config;
mod ensemble;
mod join;
mod local;
mod loss_based;
mod member;
mod rate_based;
mod split;

pub use config::{BundleConfig, Coalesce, Membership, MembershipId, Scope};
pub use ensemble::Bundle;
pub use join::{JoinBundle, Newcomer};
pub(crate) use local::LocalMember;
pub use loss_based::{Fluctuation, LossBased, LossBasedConfig, next_growth};
pub use member::{Decision, Directive, MemberView, Signal};
pub use rate_based::equalize_rates;
pub use split::split_initial_window;

/// Connections that one bundle coordinates, at most: more stay on their own.
pub const MAX_MEMBERS: usize = 16;

#[cfg(test)]
mod tests;
