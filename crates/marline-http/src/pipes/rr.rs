//! RR-MP-QUIC: a fixed number of pipes, each in turn.

use marline::settings::{Domain, Entry, Field, Settings};

use super::policy::PipePolicy;
use crate::limits::MAX_PIPES;

/// Its name and parameters in settings.
pub(super) const ENTRY: Entry<PipePolicy, RrConfig> = Entry {
    name: "rr",
    about: "A fixed number of connections, each object on the next",
    parameters: RrConfig::SETTINGS,
    default: RrConfig::default,
    make: PipePolicy::RoundRobin,
};

/// The configuration of RR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RrConfig {
    /// P_max: the number of pipes.
    pub pipes: usize,
}

impl RrConfig {
    /// Its parameters in settings.
    pub const SETTINGS: Settings<Self> = &[&Field::new(
        "pipes",
        Domain::integer(1, MAX_PIPES as u64),
        "How many connections: P_max",
        |c: &mut Self| &mut c.pipes,
    )];
}

impl Default for RrConfig {
    /// The paper leaves the number open; five is the most that CBA opens.
    fn default() -> Self {
        Self { pipes: 5 }
    }
}

/// The pipe of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RrAssignment {
    /// ID_obj: the number of the object.
    pub object: u64,
    /// P_id: the pipe, from 0.
    pub pipe: usize,
    /// Whether it is the pipe's first object, for which the pipe is opened.
    pub is_new: bool,
}

/// Assigns objects to pipes in turn (the paper's eq. 1).
#[derive(Clone, Debug)]
pub struct RoundRobin {
    /// ID_curr: the number of the last object.
    current: u64,
    /// Whether each pipe has had an object; their number is P_max.
    used: Vec<bool>,
}

impl RoundRobin {
    /// A state without objects, with at least one pipe.
    pub fn new(config: RrConfig) -> Self {
        Self::resume(config, 0)
    }

    /// The same after `current` objects.
    pub fn resume(config: RrConfig, current: u64) -> Self {
        Self {
            current,
            used: vec![false; config.pipes.max(1)],
        }
    }

    /// The next object: `ID_obj = ID_curr + 1`, on the pipe `ID_obj mod P_max`. The paper omits that ID_curr takes the
    /// value of ID_obj.
    pub fn assign(&mut self) -> RrAssignment {
        self.current += 1;
        let pipe = (self.current % self.used.len() as u64) as usize;
        RrAssignment {
            object: self.current,
            pipe,
            is_new: !std::mem::replace(&mut self.used[pipe], true),
        }
    }
}
