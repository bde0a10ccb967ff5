//! A connection as a member of a bundle: joins it, reports to its engine, applies the engine's directives.

use super::Connection;
use super::events::EndpointEvent;
use crate::coordination::bundle::{Directive, JoinBundle, JoiningMember, MemberView, Membership};
use crate::observe;
use crate::observe::events::BundleUpdated;
use crate::paths::Slot;
use crate::time::Instant;

/// The connection's membership in a bundle.
#[derive(Debug, Default)]
pub(super) struct Coordination {
    membership: Option<Membership>,
    /// The number of the bundle in this endpoint.
    number: Option<u64>,
    /// Client: whether the server coordinates bundles.
    pub(super) peer_coordinates: bool,
}

impl Connection {
    /// Sets the membership that the client announced; the connection joins the bundle when the handshake is complete.
    pub(super) fn set_membership(&mut self, membership: Option<Membership>) {
        self.coordination.membership = membership;
    }

    /// Whether the connection is to join a bundle.
    pub(super) fn belongs_to_bundle(&self) -> bool {
        // A connection with several paths has no single window to coordinate.
        let is_single = !self.is_multipath();
        self.config.bundle.as_ref().is_some_and(|config| {
            is_single
                && (self.coordination.membership.is_some()
                    || config.match_addresses && self.side.is_server())
        })
    }

    /// Asks the endpoint to add the connection to its bundle, if it has one. After it `moved` to another address the
    /// endpoint removes it from the bundle that it was a member of.
    pub(super) fn join_bundle(&mut self, now: Instant, moved: bool) {
        let Some(config) = self
            .config
            .bundle
            .as_ref()
            .filter(|_| self.belongs_to_bundle())
        else {
            return;
        };
        let membership = self.coordination.membership;
        // No member until the endpoint has added it.
        self.coordination.number = None;
        let main = self.paths.main_slot();
        if self.paths[main].member.is_sharing() {
            // The shared controller stays with the other members.
            let first = self.paths[main].recovery.initial_window();
            let fresh = self
                .paths
                .fresh_recovery(&self.config, main, first, &mut self.rng);
            self.paths[main]
                .recovery
                .replace_controller(fresh.controller);
        }
        self.paths[main].leave_bundle();
        let join = JoinBundle {
            config: config.clone(),
            id: membership.map(|membership| membership.id),
            address: self.remote_address().ip(),
            server_name: self.server_name().map(Box::from),
            joining: JoiningMember {
                announced: membership.map(|membership| membership.connections),
                initial_window: self.config.initial_window.window(&self.kind(now, moved)),
                rate_based: self.paths.main().recovery.controller().is_rate_based(),
                window: self.paths.main().recovery.controller().window(),
                moved,
            },
        };
        self.events
            .endpoint
            .push_back(EndpointEvent::JoinBundle(Box::new(join)));
    }

    /// The state of the connection that the engine of its bundle reads.
    pub fn member_view(&self) -> MemberView {
        self.paths.main().member_view()
    }

    /// Applies a directive of the bundle's engine; afterwards [`Self::poll_transmit`] may return datagrams.
    pub fn apply_directive(&mut self, now: Instant, directive: &Directive) {
        if let Some(received) = &directive.decision {
            self.coordination.number = Some(received.decision.bundle);
        }
        let main = self.paths.main_slot();
        self.paths[main].apply_directive(directive);
        self.report_directive(now, main, directive);
    }

    /// Reports a directive that was applied to a path.
    pub(super) fn report_directive(&mut self, now: Instant, at: Slot, directive: &Directive) {
        if let Some(received) = &directive.decision {
            let path = self.paths.named(at);
            let event = BundleUpdated::new(path, received);
            self.telemetry
                .emit(now, &observe::Event::BundleUpdated(event));
        }
        self.report_metrics(now, at);
    }

    /// The number of the bundle that the connection is a member of, within this endpoint; `None` if it is in none.
    pub fn bundle(&self) -> Option<u64> {
        self.coordination.number
    }

    /// Client: whether the server coordinates the connections of a bundle; known once the handshake is
    /// complete.
    pub fn peer_coordinates_bundles(&self) -> bool {
        self.coordination.peer_coordinates && !self.is_multipath()
    }

    /// Passes the signals of a path's recovery to the engine of its bundle.
    pub(super) fn report_to_bundle(&mut self, now: Instant, at: Slot) {
        if self.is_multipath() {
            return self.report_to_path_bundle(now, at);
        }
        while let Some(signal) = self.paths[at].member.next_signal() {
            let event = EndpointEvent::Bundle(signal);
            self.events.endpoint.push_back(event);
        }
    }
}
