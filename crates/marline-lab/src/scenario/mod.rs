//! Experiments as data: what to do, in which variants, how often.
//!
//! A scenario is a TOML file. At the top stands what every run does: links, how both ends behave,
//! the workload. `[variant.NAME]` and `[sweep]` replace single values by their dotted keys, and so
//! do overrides from a command line; the rest is how often, and what to compare.
//!
//! ```toml
//! title = "A download on the train"
//! link = "rate=12mbps, rtt=80ms, loss=1%, buffer=200kB"
//! repeats = 30
//!
//! [workload]
//! objects = ["500kB", "2400kB"]
//!
//! [variant.newreno]
//! cc = "newreno"
//!
//! [variant.bbr]
//! cc = "bbr"
//!
//! [sweep]
//! "link.loss" = ["0%", "1%", "3%"]
//! ```

mod document;
mod endpoint;
mod error;
mod experiment;
mod job;
mod links;
mod model;
mod overrides;
mod published;
mod read;
mod sweep;
mod units;
mod wsp;

pub use endpoint::{AckKind, EndpointSettings, LossDetection, SlowStartExitKind};
pub use error::{Place, ScenarioError};
pub use experiment::{BackendKind, Cell, Comparison, Entry, Experiment, Published, list};
pub use job::{Backend, Job, Outcome, RunError, Value, Watched};
pub use model::{
    Background, Direction, Ecmp, HttpSettings, HttpVersion, LinkDef, Order, Settings, StreamDef,
    Topology, Traffic, Workload,
};

#[cfg(test)]
mod tests;
