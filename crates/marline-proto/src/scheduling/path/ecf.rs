//! Earliest completion first (Lim et al., CoNEXT 2017).

use std::sync::Arc;
use std::time::Duration;

use super::view::{open, usable};
use super::{PathScheduler, PathView, Plan, Work};
use crate::settings::{Domain, Entry, Field, Make, Named, Settings, Spec, Word};

/// Its name and parameters in settings.
pub(super) const ENTRY: Entry<Make<dyn PathScheduler>, EcfConfig> = Entry {
    name: "ecf",
    about: "A slower path only if that completes the transfer earlier",
    parameters: EcfConfig::SETTINGS,
    default: EcfConfig::default,
    make: |config| Arc::new(move || Box::new(Ecf::new(config))),
};

/// Variants of ECF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcfVariant {
    /// As implemented for Linux: the bytes to send count as one window at least, so that the end of a transfer
    /// waits for the fast path.
    #[default]
    Linux,
    /// As in the paper: the end of a transfer is sent on the slow path.
    Paper,
}

impl Named for EcfVariant {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "linux",
            about: "As the scheduler for Linux: the end of a transfer waits for the fast path",
            value: Self::Linux,
        },
        Word {
            name: "paper",
            about: "As the paper: the end of a transfer goes to the slow path",
            value: Self::Paper,
        },
    ];
}

/// The range and the default of the factor of hysteresis; for [`SaEcf`](super::SaEcf), too.
pub(super) const BETA: Domain = Domain::number(0.0, 10.0);
pub(super) const ABOUT_BETA: &str = "Hysteresis: waiting for the faster path ends once it would take longer than the slower path by this part";
pub(super) const ABOUT_VARIANT: &str = "Which version of ECF";

/// The configuration of ECF.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EcfConfig {
    /// Hysteresis: once waiting, a sender accepts a wait that is longer by this part.
    pub beta: f64,
    /// The variant.
    pub variant: EcfVariant,
}

impl EcfConfig {
    /// Its parameters in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Field::new("beta", BETA, ABOUT_BETA, |c: &mut Self| &mut c.beta),
        &Field::new(
            "variant",
            Domain::words::<EcfVariant>(),
            ABOUT_VARIANT,
            |c: &mut Self| &mut c.variant,
        ),
    ];
}

impl Default for EcfConfig {
    fn default() -> Self {
        Self {
            beta: 0.25,
            variant: EcfVariant::default(),
        }
    }
}

/// Waits for the fastest path if the transfer then completes earlier than on a slower path with room.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ecf {
    config: EcfConfig,
    waiting: bool,
}

impl Ecf {
    /// A scheduler that does not wait yet.
    pub const fn new(config: EcfConfig) -> Self {
        Self::resume(config, false)
    }

    /// A scheduler in a given state.
    pub const fn resume(config: EcfConfig, waiting: bool) -> Self {
        Self { config, waiting }
    }

    /// Whether it waits for the fastest path.
    pub const fn is_waiting(&self) -> bool {
        self.waiting
    }
}

impl PathScheduler for Ecf {
    fn plan(&mut self, paths: &[PathView], work: &Work<'_>) -> Plan {
        let Some(stream) = work.streams.first() else {
            return Plan::Wait;
        };
        let (fast, slow) = match Offer::of(paths) {
            Offer::Nothing => return Plan::Wait,
            Offer::Fastest(path) => return Plan::send(stream.id, Some(path)),
            Offer::Slower(fast, slow) => (fast, slow),
        };
        let unsent = work.unsent as f64;
        let waits = self.config.waits(fast, slow, unsent, &mut self.waiting);
        Plan::send(stream.id, Some(slow).filter(|_| !waits))
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn spec(&self) -> Spec {
        ENTRY.spec(&self.config)
    }
}

/// The two paths to compare.
pub(super) enum Offer<'a> {
    Nothing,
    /// The fastest path has room, or there is room only on a path without a sample.
    Fastest(&'a PathView),
    /// The fastest path, which has no room, and the fastest one with room.
    Slower(&'a PathView, &'a PathView),
}

impl<'a> Offer<'a> {
    pub(super) fn of(paths: &'a [PathView]) -> Self {
        let fast = usable(paths).min_by_key(|path| path.delay());
        let slow = open(paths).min_by_key(|path| path.delay());
        match (fast, slow) {
            (Some(fast), Some(slow)) if fast.id != slow.id && slow.smoothed_rtt.is_some() => {
                Self::Slower(fast, slow)
            }
            (_, Some(slow)) => Self::Fastest(slow),
            (_, None) => Self::Nothing,
        }
    }
}

impl EcfConfig {
    /// Whether `unsent` bytes complete earlier if they wait for `fast`, which is full, than if some are sent on
    /// `slow`. `waiting` is the state of the hysteresis.
    ///
    /// The paper counts rounds of a window, and waits a round for `fast`. Where the rate is known, bytes take their time at
    /// the rate, and the wait is what the pacer asks for.
    pub(super) fn waits(
        &self,
        fast: &PathView,
        slow: &PathView,
        unsent: f64,
        waiting: &mut bool,
    ) -> bool {
        let bytes = |path: &PathView| match self.variant {
            EcfVariant::Linux => unsent.max(path.window_bytes()),
            EcfVariant::Paper => unsent,
        };
        if fast.rate.is_some() && slow.rate.is_some() {
            let margin = fast.rttvar.max(slow.rttvar).as_secs_f64();
            let hysteresis = if *waiting { 1.0 + self.beta } else { 1.0 };
            let arrival = |path: &PathView| path.departure() + path.one_way().as_secs_f64();
            let by_fast = arrival(fast) + unsent / fast.delivery_rate();
            let waits = by_fast < hysteresis * (arrival(slow) + margin);
            *waiting = waits;
            return waits;
        }
        let rounds = |path: &PathView| bytes(path) / path.window_bytes();
        let seconds = |rtt: Option<Duration>| rtt.unwrap_or_default().as_secs_f64();
        let (fast_rtt, slow_rtt) = (seconds(fast.smoothed_rtt), seconds(slow.smoothed_rtt));
        let margin = fast.rttvar.max(slow.rttvar).as_secs_f64();
        let hysteresis = if *waiting { 1.0 + self.beta } else { 1.0 };
        if (1.0 + rounds(fast)) * fast_rtt >= hysteresis * (slow_rtt + margin) {
            *waiting = false;
            return false;
        }
        let waits = rounds(slow) * slow_rtt >= 2.0 * fast_rtt + margin;
        *waiting |= waits;
        waits
    }
}
