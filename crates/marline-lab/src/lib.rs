//! A network laboratory: experiments with transport protocols over link models.
//!
//! An experiment is data: hosts and links, variants, a workload, the number of repeats and the metrics.
//! It runs in virtual time, with production endpoints; in real time between network namespaces, with the
//! kernel's TCP and any programs; or with these in a kernel of its own, in virtual time again. All use the same link models.
//!
//! ```text
//! scenario -> run -> sim | emu -> execution   the experiment -> its runs -> a backend -> the workload
//!                |    \     /\
//!                |  marline-sim |             hosts, routers, links; virtual time
//!                +-> kernel ----+             a kernel in virtual time, in which emu runs
//!                                run -> stats -> report
//! ```

#[cfg(target_os = "linux")]
pub mod emu;
pub mod execution;
pub mod features;
#[cfg(target_os = "linux")]
pub mod kernel;
mod registry;
pub mod report;
pub mod run;
pub mod scenario;
pub mod sim;
pub mod stats;
pub mod verify;
pub mod workload;

pub use marline_link as link;
pub use registry::{Registry, RegistryError};
