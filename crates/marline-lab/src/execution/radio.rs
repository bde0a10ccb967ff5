//! The client's measurements of the radio of its link.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use marline::Instant;
use marline_http::pipes::{RadioSample, RadioSignal};
use marline_link::spec::Sinr;
use marline_link::{LinkSpec, Seed, Time};
use marline_sim::fabric::Switch;

use super::{Testbed, failed, network};
use crate::scenario::{Job, LinkDef, RunError};

/// The SINR of the client's link, which changes with it. The models compute it from the seed and the time alone, so
/// that it is the one that packets experience, without access to the link itself.
pub(super) struct LinkSignal {
    /// By the state of `switch` from which they hold.
    phases: Mutex<Vec<Phase>>,
    switch: Switch,
    started: Instant,
}

struct Phase {
    since: usize,
    /// `None` if the link has no radio any more.
    sinr: Option<Sinr>,
}

impl LinkSignal {
    pub(super) fn new(job: &Job, testbed: &Testbed) -> Result<Self, RunError> {
        let link = job.settings.radio_link().map_err(failed)?;
        let seed = network::seed_of(link, Seed::new(job.seed));
        let phase = |since, def: &LinkDef, seed| {
            let spec: LinkSpec = def.spec.parse().map_err(failed)?;
            let sinr = spec.sinr(seed);
            Ok::<_, RunError>(Phase { since, sinr })
        };
        let mut phases = vec![phase(0, link, seed)?];
        for change in network::changes_of(link, &job.settings.changes) {
            phases.push(phase(change.number, change.link, change.seed(seed))?);
        }
        Ok(Self {
            phases: Mutex::new(phases),
            switch: testbed.switch.clone(),
            started: testbed.started,
        })
    }
}

impl RadioSignal for LinkSignal {
    fn sample(&self, now: Instant) -> Option<RadioSample> {
        let state = self.switch.state();
        let mut phases = self.phases.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = phases.iter_mut().rev();
        let phase = known.find(|phase| phase.since <= state)?;
        let at = Time::ZERO + now.saturating_since(self.started);
        Some(RadioSample::of_sinr(phase.sinr.as_mut()?.at(at)))
    }
}

impl fmt::Debug for LinkSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkSignal").finish_non_exhaustive()
    }
}
