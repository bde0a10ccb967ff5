//! Bundles: parallel connections whose windows and slow-start state are synchronized at their sender
//! (mQUIC; Qian et al., IEEE Access 2018, section IV).
//!
//! | question | file |
//! | --- | --- |
//! | which switches are there? | `config` |
//! | how is the initial window split? | `split` |
//! | how does an event change windows and slow start? | `loss_based` |
//! | how are rates that drift apart made equal? | `rate_based` |
//! | how do rate-based members send like one connection? | `shared` |
//! | what does a request to join contain? | `join` |
//! | what does a member do itself? | `local` |
//! | what does a member report, and what can the engine have it do? | `member` |
//! | what does a decision contain? | `decision` |
//! | which members take part, and what happens to them together? | `ensemble` |
//! | what does a member get that joins while others are sending? | `ensemble/admit` |
//!
//! A [`Bundle`] is driven by whoever owns its members: signals and views in, directives out. The
//! members are connections of an endpoint or paths of a connection.

mod config;
mod decision;
mod ensemble;
mod join;
mod local;
mod loss_based;
mod member;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod owner;
mod rate_based;
mod shared;
mod split;

pub use config::{BundleConfig, BundleScope, Coalesce, Membership, MembershipId, RateBasedShare};
pub use decision::{BundleDecision, DecisionAction, DecisionCause, EnginePhase, MemberDecision};
pub use ensemble::Bundle;
pub use join::{JoinBundle, JoiningMember};
pub(crate) use local::LocalMember;
pub use loss_based::{Fluctuation, LossBasedConfig, LossBasedEngine, next_growth};
pub use member::{Directive, MemberDirective, MemberView, Signal};
pub use rate_based::equalize_rates;
pub(crate) use shared::Joins;
pub use shared::SharedController;
pub use split::split_initial_window;

/// The most members of one bundle: further ones are not coordinated.
pub const MAX_MEMBERS: usize = 16;

#[cfg(test)]
mod tests;
