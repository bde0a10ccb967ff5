//! Channel access: the first TTI in which a packet may be sent.

use super::{Direction, Drx, LteConfig, Tti};
use crate::Seed;

/// Milliseconds from the start of a scheduling request to the start of the first granted TTI: 1 for the
/// request, 3 for the base station, and 4 until the phone has transmitted, of which the last is the
/// granted TTI itself.
const GRANT: Tti = 7;

/// Determines the first TTI for each packet.
pub(super) struct Access {
    /// Seed of random delays.
    seed: Seed,
    /// Rule of the direction.
    rule: Rule,
    /// Last TTI with immediate access: the uplink grant is still valid, or the phone is awake.
    open_until: Option<Tti>,
}

/// The access rule of a direction.
enum Rule {
    /// Packets wait until the phone is awake.
    Downlink(Option<Sleep>),
    /// The phone requests a grant at one of every `period` TTIs, unless it transmitted within `hold` TTIs.
    Uplink { period: Tti, hold: Tti },
}

/// [`Drx`] in TTIs.
struct Sleep {
    /// Inactivity timer.
    after: Tti,
    /// Cycle.
    cycle: Tti,
}

impl Access {
    pub(super) fn new(config: &LteConfig, direction: Direction, seed: Seed) -> Self {
        let sleep = |drx: Drx| Sleep {
            after: super::ttis(drx.after),
            cycle: super::ttis(drx.cycle).max(1),
        };
        Self {
            seed: seed.of("access"),
            rule: match direction {
                Direction::Downlink => Rule::Downlink(config.drx.map(sleep)),
                Direction::Uplink => Rule::Uplink {
                    period: config.request_period.max(1),
                    hold: config.grant_hold,
                },
            },
            open_until: None,
        }
    }

    /// The first TTI for a packet that arrives before `tti`, the next TTI to begin.
    pub(super) fn first(&mut self, tti: Tti) -> Tti {
        let open = self.open_until.is_some_and(|until| tti <= until);
        let draw = self.seed.nth(tti).value();
        let first = match &self.rule {
            Rule::Downlink(None) => return tti,
            Rule::Downlink(Some(_)) if open => tti,
            Rule::Downlink(Some(sleep)) => tti + draw % sleep.cycle,
            Rule::Uplink { .. } if open => tti + GRANT,
            Rule::Uplink { period, .. } => tti + draw % period + GRANT,
        };
        self.used(first);
        first
    }

    /// Records a transmission of the radio in `tti`.
    pub(super) fn used(&mut self, tti: Tti) {
        let until = match &self.rule {
            Rule::Downlink(None) => return,
            Rule::Downlink(Some(sleep)) => tti + sleep.after,
            Rule::Uplink { hold, .. } => tti + hold,
        };
        self.open_until = self.open_until.max(Some(until));
    }
}
