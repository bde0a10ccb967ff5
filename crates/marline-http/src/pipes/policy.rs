//! Policies of pipes by name, and the configuration of pools.

use std::sync::Arc;
use std::time::Duration;

use marline::settings::{Registry, Spec};

use super::cba::{self, CbaConfig};
use super::kinds::ObjectKinds;
use super::rr::{self, RrConfig};
use super::signal::{NoSignal, RadioSignal};
use crate::limits::MAX_PIPES;

/// The policy for opening and using pipes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PipePolicy {
    /// A fixed number of them, each in turn.
    RoundRobin(RrConfig),
    /// As many as conditions call for; objects go to pipes with capacity.
    BurstAware(CbaConfig),
}

/// All policies of pipes.
pub const POLICIES: Registry<PipePolicy> =
    Registry::new("policy of pipes", &[&rr::ENTRY, &cba::ENTRY]);

impl PipePolicy {
    /// The most pipes that it opens to an origin.
    pub fn max_pipes(&self) -> usize {
        let most = match self {
            Self::RoundRobin(rr) => rr.pipes,
            Self::BurstAware(cba) => cba.max_pipes,
        };
        most.clamp(1, MAX_PIPES)
    }

    /// The same with `most` pipes: the number for RR, the limit for CBA.
    #[must_use]
    pub fn with_max_pipes(mut self, most: usize) -> Self {
        match &mut self {
            Self::RoundRobin(rr) => rr.pipes = most,
            Self::BurstAware(cba) => cba.max_pipes = most,
        }
        self
    }

    /// Its name and parameters, as written in settings.
    pub fn spec(&self) -> Spec {
        match self {
            Self::RoundRobin(config) => rr::ENTRY.spec(config),
            Self::BurstAware(config) => cba::ENTRY.spec(config),
        }
    }
}

/// The configuration of the pools of a client.
#[derive(Clone, Debug)]
pub struct PipesConfig {
    /// The policy for opening and using pipes.
    pub policy: PipePolicy,
    /// The quality of the radio, for [`PipePolicy::BurstAware`].
    pub signal: Arc<dyn RadioSignal>,
    /// Kinds of objects, and their priorities.
    pub kinds: ObjectKinds,
    /// A pipe that has carried nothing for this long is closed.
    pub idle_timeout: Duration,
}

impl PipesConfig {
    /// A policy without a signal, the usual kinds, and pipes that close after ten seconds without an object.
    pub fn new(policy: PipePolicy) -> Self {
        Self {
            policy,
            signal: Arc::new(NoSignal),
            kinds: ObjectKinds::default(),
            idle_timeout: Duration::from_secs(10),
        }
    }
}
