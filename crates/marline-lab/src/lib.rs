//! A network laboratory: experiments with transport protocols over link models.
//!
//! An experiment is data: hosts and links, variants, a workload, what to repeat and what to
//! measure. It runs in virtual time with real endpoints, or in real time between network namespaces
//! with the kernel's TCP and anybody's programs; the links are the same models in both.
//!
//! ```text
//! scenario -> run -> sim | emu -> play        the experiment -> its runs -> a backend -> the workload
//!                     \     /
//!                   marline-sim               hosts, routers, links; virtual time
//!                                run -> stats -> report

#[cfg(target_os = "linux")]
pub mod emu;
pub mod play;
pub mod report;
pub mod run;
pub mod scenario;
pub mod sim;
pub mod stats;
pub mod verify;
pub mod workload;
