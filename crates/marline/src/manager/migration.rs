//! Decisions about the migration of one connection, without I/O and without a clock.

use std::net::IpAddr;
use std::time::Duration;

use marline_proto::{Instant, MigrateError, MigrationStart};

/// The time for which a better address has to be there before a connection that works moves to it. Addresses and routes
/// change one after the other.
const SETTLE: Duration = Duration::from_millis(250);

/// The shortest time between two migrations; it doubles with each that follows another within [`CALM`].
const HOLD: Duration = Duration::from_secs(1);

/// The most times that [`HOLD`] doubles.
const MAX_DOUBLINGS: u32 = 6;

/// The time after a migration for which another counts as following it.
const CALM: Duration = Duration::from_secs(60);

/// The interval at which a validation that is in progress is looked at.
const PROBE_CHECK: Duration = Duration::from_millis(250);

/// The time without a packet after which a connection changes its port if there is no other address: most outages are
/// shorter.
const PORT_PATIENCE: Duration = Duration::from_secs(3);

/// The time without a packet after which a connection ends that cannot migrate, although there is another address.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// How much an address is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// The address that the system chooses, or one of a rule.
    Preferred,
    /// An address of a rule for backups.
    Backup,
    /// An address that no rule names, and that the system would not choose: only for connections that get no answers or have
    /// no other.
    LastResort,
}

/// An address to which a connection can migrate, or at which it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) address: IpAddr,
    pub(super) rank: Rank,
    /// Whether a connection got no answers there recently.
    pub(super) is_silent: bool,
}

/// The state of a connection and of the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation<'a> {
    pub(super) present: IpAddr,
    /// Whether the host still has the present address, at an interface that is up.
    pub(super) is_usable: bool,
    pub(super) unresponsive_since: Option<Instant>,
    pub(super) is_probing: bool,
    pub(super) may_migrate: Result<(), MigrateError>,
    /// Whether another port may help where there is no other address.
    pub(super) may_change_port: bool,
    /// Whether a new connection would begin at another address than the present one if that is silent.
    pub(super) reconnects_elsewhere: bool,
    /// The best first.
    pub(super) candidates: &'a [Candidate],
}

/// Something to do for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Migrate { to: IpAddr, start: MigrationStart },
    ChangePort,
    End(MigrateError),
}

/// The migrations of one connection.
#[derive(Debug, Default)]
pub(super) struct Migrations {
    moved_at: Option<Instant>,
    /// Migrations in a row, each within [`CALM`] of the one before.
    in_a_row: u32,
    /// The better address, and since when it is there.
    better: Option<(IpAddr, Instant)>,
    /// The address that is being validated.
    probed: Option<IpAddr>,
    deadline: Option<Instant>,
}

impl Migrations {
    /// The address whose validation has failed since the last call, if one has.
    pub(super) fn take_failed_probe(&mut self, situation: &Situation<'_>) -> Option<IpAddr> {
        let probed = self.probed.take_if(|probed| {
            // A migration to it shows first.
            *probed == situation.present || !situation.is_probing
        })?;
        (probed != situation.present).then_some(probed)
    }

    /// The step to take now.
    pub(super) fn decide(&mut self, now: Instant, situation: &Situation<'_>) -> Option<Step> {
        self.deadline = None;
        let has_routed = || {
            let mut candidates = situation.candidates.iter();
            candidates.any(|one| one.address != situation.present && one.rank < Rank::LastResort)
        };
        if situation.is_probing && (situation.is_usable || !has_routed()) {
            self.deadline = Some(now + PROBE_CHECK);
            return None;
        }
        let step = self.wanted(now, situation)?;
        if let Err(why) = situation.may_migrate {
            return self.end(now, situation, step, why);
        }
        let next = self.next_allowed().filter(|next| *next > now);
        if next.is_some() {
            self.deadline = next;
            return None;
        }
        self.on_step(now, step);
        Some(step)
    }

    /// When to decide again, if nothing happens before.
    pub(super) const fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn wanted(&mut self, now: Instant, situation: &Situation<'_>) -> Option<Step> {
        let others = || {
            let candidates = situation.candidates.iter();
            candidates.filter(|other| other.address != situation.present)
        };
        let heard = || others().filter(|other| !other.is_silent);
        let migrate = |to: &Candidate, start| Step::Migrate {
            to: to.address,
            start,
        };
        if !situation.is_usable {
            let routed = |other: &&Candidate| other.rank < Rank::LastResort;
            let routed = heard().find(routed).or_else(|| others().find(routed));
            return match routed {
                Some(to) => Some(migrate(to, MigrationStart::AtOnce)),
                None => heard()
                    .next()
                    .map(|to| migrate(to, MigrationStart::AfterValidation)),
            };
        }
        if let Some(since) = situation.unresponsive_since {
            if let Some(to) = heard().next() {
                return Some(migrate(to, MigrationStart::AfterValidation));
            }
            let patient_until = since + PORT_PATIENCE;
            if !situation.may_change_port || patient_until > now {
                self.deadline = Some(patient_until).filter(|until| *until > now);
                return None;
            }
            return Some(Step::ChangePort);
        }
        let rank = situation.present_rank();
        let Some(better) = heard().find(|other| other.rank < rank) else {
            self.better = None;
            return None;
        };
        let since = match self.better {
            Some((address, since)) if address == better.address => since,
            _ => now,
        };
        self.better = Some((better.address, since));
        if since + SETTLE > now {
            self.deadline = Some(since + SETTLE);
            return None;
        }
        Some(migrate(better, MigrationStart::AfterValidation))
    }

    /// Ends a connection that should migrate but cannot, if a new one would have another network.
    fn end(
        &mut self,
        now: Instant,
        situation: &Situation<'_>,
        wanted: Step,
        why: MigrateError,
    ) -> Option<Step> {
        if let Step::Migrate {
            start: MigrationStart::AtOnce,
            ..
        } = wanted
        {
            return Some(Step::End(why));
        }
        let since = situation
            .unresponsive_since
            .filter(|_| situation.reconnects_elsewhere)?;
        if since + END_PATIENCE > now {
            self.deadline = Some(since + END_PATIENCE);
            return None;
        }
        Some(Step::End(why))
    }

    fn next_allowed(&self) -> Option<Instant> {
        let doublings = self.in_a_row.min(MAX_DOUBLINGS);
        Some(self.moved_at? + HOLD.saturating_mul(1 << doublings))
    }

    fn on_step(&mut self, now: Instant, step: Step) {
        let follows = self.moved_at.is_some_and(|at| now - at < CALM);
        self.in_a_row = match follows {
            true => self.in_a_row.saturating_add(1),
            false => 0,
        };
        self.moved_at = Some(now);
        self.better = None;
        if let Step::Migrate {
            to,
            start: MigrationStart::AfterValidation,
        } = step
        {
            self.probed = Some(to);
        }
    }
}

impl Situation<'_> {
    /// The rank of the present address; one that is not a candidate ranks behind those of rules.
    fn present_rank(&self) -> Rank {
        let mut candidates = self.candidates.iter();
        let present = candidates.find(|one| one.address == self.present);
        present.map_or(Rank::LastResort, |present| present.rank)
    }
}

#[cfg(test)]
mod tests;
