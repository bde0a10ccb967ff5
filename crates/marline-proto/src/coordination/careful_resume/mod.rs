//! Careful Resume: a path returns to the capacity that an earlier connection found on it (RFC 9959).
//!
//! | question | file |
//! | --- | --- |
//! | which switches are there? | `config` |
//! | what is saved of a path? | `capacity` |
//! | which phase follows which, and when? | `phases` |
//! | what shall the path's controller do? | `step` |
//!
//! A [`CarefulResume`] is driven by the recovery of one path, after its controller saw the same samples;
//! each call answers with a [`Step`] for that controller. Whoever remembers sees to it that one
//! connection at a time resumes from what is remembered (section 3.2), and forgets it where a step says
//! so.

mod capacity;
mod config;
mod driver;
mod phases;
mod step;

pub use capacity::Capacity;
pub use config::CarefulResumeConfig;
pub(crate) use driver::Resumption;
pub use phases::{CarefulResume, Limited};
pub use step::{Step, Transition, Window};

pub use crate::observe::events::{CarefulResumePhase as Phase, CarefulResumeTrigger as Trigger};

#[cfg(test)]
mod tests;
