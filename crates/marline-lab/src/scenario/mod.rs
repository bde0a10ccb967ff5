//! Experiments as data: what to do, in which variants, how often.

mod endpoint;
mod job;
mod model;

pub use endpoint::{AckKind, EndpointSettings, LossDetection, SlowStartExitKind};
pub use job::{Backend, Job, Outcome, RunError, Value, Watched};
pub use model::{
    Background, Direction, Ecmp, HttpSettings, HttpVersion, LinkDef, Order, Settings, StreamDef,
    Topology, Traffic, Workload,
};
