//! When a packet may first be sent.

use super::{Direction, Drx, LteConfig, Tti};
use crate::Seed;

/// Milliseconds from the beginning of a request to that of the first TTI it was granted: 1 for the
/// request, 3 for the base station, and 4 until the phone has sent, the TTI itself being the last of
/// them.
const GRANT: Tti = 7;

/// What decides about the first TTI.
pub(super) struct Access {
    /// Where chance comes from.
    seed: Seed,
    /// What the direction asks for.
    rule: Rule,
    /// The last TTI up to which the line is open: the phone need not ask again, or is awake.
    open_until: Option<Tti>,
}

/// What a direction asks for.
enum Rule {
    /// Waits until the phone listens.
    Downlink(Option<Sleep>),
    /// Asks, once every so many TTIs, and need not do so for so many after the last.
    Uplink { period: Tti, hold: Tti },
}

/// [`Drx`] in TTIs.
struct Sleep {
    /// How many of silence it takes.
    after: Tti,
    /// How many lie between two at which the phone listens.
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

    /// The first TTI for a packet that arrives before `tti`, the next to begin.
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

    /// The radio was used in `tti`.
    pub(super) fn used(&mut self, tti: Tti) {
        let until = match &self.rule {
            Rule::Downlink(None) => return,
            Rule::Downlink(Some(sleep)) => tti + sleep.after,
            Rule::Uplink { hold, .. } => tti + hold,
        };
        self.open_until = self.open_until.max(Some(until));
    }
}
