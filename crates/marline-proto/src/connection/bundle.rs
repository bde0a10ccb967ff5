//! One connection among others: what it tells the engine of its bundle, and how it obeys. What concerns a
//! path as a member serves bundles of paths too.

use super::Connection;
use super::events::EndpointEvent;
use crate::coordination::bundle::{Directive, JoinBundle, MemberView, Membership, Newcomer};
use crate::observe;
use crate::observe::events::BundleUpdated;
use crate::paths::Slot;
use crate::time::Instant;

/// Where the connection stands in its bundle.
#[derive(Debug, Default)]
pub(super) struct Coordination {
    membership: Option<Membership>,
    /// The number that the endpoint gave the bundle.
    number: Option<u64>,
    /// Client: whether the server says that it coordinates.
    pub(super) peer_coordinates: bool,
}

impl Connection {
    /// The bundle that the client named, to join once the handshake has shown that it is no stranger.
    pub(super) fn remember_bundle(&mut self, membership: Option<Membership>) {
        self.coordination.membership = membership;
    }

    /// Whether other connections have a say in its window.
    pub(super) fn belongs_to_bundle(&self) -> bool {
        // Of a connection with paths of its own there is no one window to coordinate.
        let is_single = !self.is_multipath();
        self.config.bundle.as_ref().is_some_and(|config| {
            is_single
                && (self.coordination.membership.is_some()
                    || config.match_addresses && self.side.is_server())
        })
    }

    /// Asks the endpoint to take the connection into the bundle that it belongs to, if it does, and out
    /// of the one that it was in before it `moved` to another address.
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
        // On its own, until the endpoint says otherwise.
        self.coordination.number = None;
        let main = self.paths.main_slot();
        self.paths[main].leave_bundle();
        let join = JoinBundle {
            config: config.clone(),
            id: membership.map(|membership| membership.id),
            address: self.remote_address().ip(),
            server_name: self.server_name().map(Box::from),
            newcomer: Newcomer {
                announced: membership.map(|membership| membership.connections),
                initial_window: self.config.initial_window.window(&self.kind(now, moved)),
                window: self.paths.main().recovery.controller().window(),
                moved,
            },
        };
        self.mailbox
            .endpoint
            .push_back(EndpointEvent::JoinBundle(Box::new(join)));
    }

    /// How the connection stands, for the engine of its bundle.
    pub fn member_view(&self) -> MemberView {
        self.paths.main().member_view()
    }

    /// Does what the engine of the bundle decided; afterwards [`Self::poll_transmit`] may have something.
    pub fn obey(&mut self, now: Instant, directive: &Directive) {
        if let Some(received) = &directive.decision {
            self.coordination.number = Some(received.decision.bundle);
        }
        self.obey_on(now, self.paths.main_slot(), directive);
    }

    /// Does it on one path.
    fn obey_on(&mut self, now: Instant, at: Slot, directive: &Directive) {
        self.paths[at].obey(directive);
        self.report_directive(now, at, directive);
    }

    /// Reports what the engine of a bundle decided for a path.
    pub(super) fn report_directive(&mut self, now: Instant, at: Slot, directive: &Directive) {
        if let Some(received) = &directive.decision {
            let path = self.is_multipath().then_some(self.paths[at].id);
            let event = BundleUpdated::new(path, received);
            self.tell(now, &observe::Event::BundleUpdated(event));
        }
        self.tell_metrics(now, at);
    }

    /// The number of the bundle that the connection is a member of, within this endpoint; `None` if it
    /// is on its own.
    pub fn bundle(&self) -> Option<u64> {
        self.coordination.number
    }

    /// Client: whether the server coordinates the connections of a bundle; known once the handshake is
    /// complete.
    pub fn peer_coordinates_bundles(&self) -> bool {
        self.coordination.peer_coordinates && !self.is_multipath()
    }

    /// Hands the engine what recovery noticed on a path.
    pub(super) fn report_to_bundle(&mut self, now: Instant, at: Slot) {
        if self.is_multipath() {
            return self.report_to_path_bundle(now, at);
        }
        while let Some(signal) = self.paths[at].member.next_signal() {
            let event = EndpointEvent::Bundle(signal);
            self.mailbox.endpoint.push_back(event);
        }
    }
}
