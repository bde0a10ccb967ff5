//! Migration of a connection to another address of this host, as the task of its endpoint decides.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use marline_proto::{Instant, MigrateError, MigrationStart};

use super::SharedConnection;
use crate::endpoint::{can_send_from, local_for_socket};
use crate::runtime::UdpSocket;

/// The facts that decide whether a client's connection with one path is to migrate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MigrationView {
    /// Its address.
    pub(crate) local: IpAddr,
    pub(crate) remote: SocketAddr,
    /// Where its socket is bound.
    pub(crate) bound: SocketAddr,
    /// The time of the last packet, if nothing answers any more.
    pub(crate) unresponsive_since: Option<Instant>,
    /// Whether another address is being validated.
    pub(crate) is_probing: bool,
    /// Why it cannot migrate, if it cannot.
    pub(crate) may_migrate: Result<(), MigrateError>,
}

impl SharedConnection {
    /// `None` if there is nothing to migrate: the connection has ended, has several paths, or does not know its address yet.
    pub(crate) fn migration_view(&self) -> Option<MigrationView> {
        let state = self.lock();
        let proto = &state.proto;
        let may_migrate = proto.may_migrate();
        let local = proto.local_address().ip().to_canonical();
        let is_fixed = may_migrate == Err(MigrateError::NotApplicable) || local.is_unspecified();
        if state.error.is_some() || is_fixed {
            return None;
        }
        let remote = proto.remote_address();
        Some(MigrationView {
            local,
            remote: SocketAddr::new(remote.ip().to_canonical(), remote.port()),
            bound: state.bound,
            unresponsive_since: proto.unresponsive_since(self.now()),
            is_probing: proto.is_probing_address(),
            may_migrate,
        })
    }

    /// Migrates to the address `to`, from which the socket can send.
    ///
    /// # Errors
    /// It cannot migrate any more.
    pub(crate) fn migrate(
        self: &Arc<Self>,
        to: IpAddr,
        start: MigrationStart,
    ) -> Result<(), MigrateError> {
        let now = self.now();
        let mut state = self.lock();
        let bound = state.bound;
        if state.error.is_some() || !can_send_from(bound, to) {
            return Err(MigrateError::NotApplicable);
        }
        let local = SocketAddr::new(local_for_socket(bound, to), bound.port());
        state.proto.migrate(now, local, start)?;
        self.touch(&mut state);
        Ok(())
    }

    /// Ends the connection, whose network is lost and which cannot migrate for the reason `why`.
    pub(crate) fn end_without_network(self: &Arc<Self>, why: MigrateError) {
        let now = self.now();
        let mut state = self.lock();
        state.proto.end_without_network(now, why);
        self.touch(&mut state);
    }

    /// Its endpoint's socket now.
    pub(crate) fn socket(&self) -> Arc<dyn UdpSocket> {
        Arc::clone(&self.lock().socket)
    }
}
