//! Careful Resume: a path returns to the capacity that an earlier connection found on it (RFC 9959).
//!
//! | subject | file |
//! | --- | --- |
//! | settings | `config` |
//! | saved parameters of a path | `capacity` |
//! | transitions between phases | `phases` |
//! | phases, triggers, and responses of the path's controller | `step` |
//! | driver on a path | `driver` |
//!
//! A [`CarefulResume`] is driven by the recovery of one path, after its controller got the same samples;
//! each call returns a [`ResumeStep`] for that controller. Whoever remembers capacities must ensure that
//! one connection at a time resumes from one of them (section 3.2), and forget it if a step demands it.

mod capacity;
mod config;
mod driver;
mod phases;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod sender;
mod step;

pub use capacity::{Capacity, SavedModel};
pub use config::{CarefulResumeConfig, Reconnaissance};
pub(crate) use driver::{CarefulResumeDriver, CarefulResumeEvent};
pub use phases::{CarefulResume, WindowLimited};
pub use step::{
    ResumePhase, ResumeSeed, ResumeStep, ResumeTransition, ResumeTrigger, ResumeWindow,
};

#[cfg(test)]
mod tests;
