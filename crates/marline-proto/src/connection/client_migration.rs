//! Migration of a client to another of its addresses, as its endpoint decides (RFC 9000, section 9).

use std::net::SocketAddr;
use std::time::Duration;

use super::Connection;
use super::events::{ConnectionError, Event, MigrateError};
use crate::observe::events::MigrationState;
use crate::paths::Slot;
use crate::time::Instant;
use crate::tuple::FourTuple;

/// Probe timeouts in a row after which a path is reported as unresponsive. One is common, and two follow from a lost
/// probe.
const UNRESPONSIVE_PTOS: u32 = 3;

/// The shortest time without a packet after which a path is reported as unresponsive: wireless links pause for a part of it.
const UNRESPONSIVE_TIME: Duration = Duration::from_secs(1);

/// When a migrating client sends from its new address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationStart {
    /// At once, because the present address can no longer be used. Validation of the new one follows.
    AtOnce,
    /// When the new address is validated, if ever (RFC 9000, section 9.1); until then the present one is used.
    AfterValidation,
}

impl Connection {
    /// Client: whether the connection can migrate to another address now.
    ///
    /// # Errors
    ///
    /// The reason why it cannot.
    pub fn may_migrate(&self) -> Result<(), MigrateError> {
        if self.side.is_server() || !self.lifecycle.is_open() || self.paths.slots().count() != 1 {
            return Err(MigrateError::NotApplicable);
        }
        if !self.is_confirmed() {
            return Err(MigrateError::NotConfirmed);
        }
        if self.establishment.peer().disable_active_migration {
            return Err(MigrateError::Forbidden);
        }
        match self.paths.main().remote_cids.has_unused() {
            true => Ok(()),
            false => Err(MigrateError::NoConnectionId),
        }
    }

    /// Client: migrates to the local address `local`, with a connection ID that was not used from another. Congestion
    /// control and the round-trip time start anew (RFC 9000, section 9.4).
    ///
    /// If the validation of `local` fails, the connection stays at, or returns to, the present address.
    ///
    /// # Errors
    ///
    /// It cannot migrate; nothing has changed.
    pub fn migrate(
        &mut self,
        now: Instant,
        local: SocketAddr,
        start: MigrationStart,
    ) -> Result<(), MigrateError> {
        self.may_migrate()?;
        match start {
            MigrationStart::AtOnce => self.leave_address(now, self.local_address(), local),
            MigrationStart::AfterValidation => {
                let at = self.paths.main_slot();
                self.probe_address(now, at, local);
                self.after_input(now);
            }
        }
        Ok(())
    }

    fn probe_address(&mut self, now: Instant, at: Slot, local: SocketAddr) {
        self.paths[at].stop_probing();
        let Some(cid) = self.paths[at].remote_cids.next_unused() else {
            return;
        };
        let active = self.paths[at].tuples.active.addresses;
        let addresses = FourTuple { local, ..active };
        let tuple = self.client_tuple(now, at, addresses, Some(cid));
        self.paths[at].set_probed(tuple);
        self.telemetry
            .report_migration(now, &self.paths[at], MigrationState::ProbingStarted);
    }

    /// Whether another address of either end is being validated.
    pub fn is_probing_address(&self) -> bool {
        let probed = self.paths.main().tuples.probed.as_deref();
        probed.is_some_and(|tuple| tuple.validation.is_some())
    }

    /// Client: the time of the last packet that arrived on the only path, if three probe timeouts expired since, and it is a
    /// second ago.
    pub fn unresponsive_since(&self, now: Instant) -> Option<Instant> {
        let path = self.paths.main();
        let received_at = self.idle.received_at()?;
        let ptos = path.recovery.rtt().pto().saturating_mul(UNRESPONSIVE_PTOS);
        let is_unresponsive = self.side.is_client()
            && self.paths.slots().count() == 1
            && path.recovery.pto_count() >= UNRESPONSIVE_PTOS
            && received_at + ptos.max(UNRESPONSIVE_TIME) <= now;
        is_unresponsive.then_some(received_at)
    }

    /// Reports a path that does not answer, after a probe timeout of it.
    pub(super) fn report_unresponsive(&mut self, now: Instant) {
        if self.unresponsive_since(now).is_some() {
            self.events.application.push_back(Event::PathUnresponsive);
        }
    }

    /// Client: ends a connection whose network is lost, and which cannot migrate for the reason `why`. Nothing is sent: no
    /// address is left from which that is allowed.
    pub fn end_without_network(&mut self, now: Instant, why: MigrateError) {
        if self.lifecycle.is_open() {
            self.end_silently(now, ConnectionError::NetworkLost(why));
        }
    }
}
