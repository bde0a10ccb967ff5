//! The task that migrates the connections of an endpoint when their network is down or does not answer (RFC 9000, section 9).

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use marline_proto::scheduling::path::PathStatus;
use marline_proto::{ConnectionHandle, Instant, MigrateError};
use rustc_hash::FxHashMap;

use super::SharedManager;
use super::addresses::Addresses;
use super::migration::{Candidate, Migrations, Rank, Situation, Step};
use crate::connection::{MigrationView, SharedConnection};
use crate::endpoint::{EndpointWatch, can_send_from};
use crate::runtime::NetworkChanges;

/// The shortest time between two looks at the host's network. Each packet that cannot be sent asks for one.
const PAUSE: Duration = Duration::from_millis(50);

/// The time after a change of the network after which it is looked at once more: addresses, links and routes change one
/// after the other.
const SECOND_LOOK: Duration = Duration::from_millis(300);

/// Follows the host's network for the connections of one endpoint until that ends.
pub(super) struct Follower {
    shared: Arc<SharedManager>,
    watch: EndpointWatch,
    /// `None` where addresses are read at intervals.
    changes: Option<Box<dyn NetworkChanges>>,
    followed: FxHashMap<ConnectionHandle, Followed>,
    /// The last look.
    looked_at: Instant,
    /// When to look again, after a change.
    again_at: Option<Instant>,
}

struct Followed {
    connection: Arc<SharedConnection>,
    migrations: Migrations,
}

impl Follower {
    pub(super) fn new(shared: Arc<SharedManager>, watch: EndpointWatch) -> Self {
        Self {
            changes: watch.runtime().network_changes(),
            looked_at: watch.runtime().now(),
            again_at: None,
            followed: FxHashMap::default(),
            shared,
            watch,
        }
    }

    pub(super) async fn run(mut self) {
        let mut timer = self.watch.runtime().timer();
        let mut next = None;
        while !self.watch.has_ended() {
            if let Some(at) = next {
                timer.set(at);
            }
            let soon = self.looked_at + PAUSE;
            tokio::select! {
                () = self.watch.notified() => next = earlier(next, soon),
                () = poll_fn(|cx| poll_change(&mut self.changes, cx)) => {
                    next = earlier(next, soon);
                    self.again_at = Some(self.watch.runtime().now() + SECOND_LOOK);
                }
                () = poll_fn(|cx| timer.poll(cx)), if next.is_some() => next = self.look(),
            }
        }
    }

    /// Looks at the network and at all connections; returns when to do so again.
    fn look(&mut self) -> Option<Instant> {
        let now = self.watch.runtime().now();
        self.looked_at = now;
        self.again_at = self.again_at.filter(|at| *at > now);
        self.update_followed();
        let runtime = Arc::clone(self.watch.runtime());
        let host = Addresses::now(&*runtime);
        let handles: Vec<_> = self.followed.keys().copied().collect();
        let mut next = self.again_at;
        for handle in handles {
            if let Some(deadline) = self.follow(now, &host, handle) {
                next = earlier(next, deadline);
            }
        }
        let polls = self.changes.is_none() && !self.followed.is_empty() && host.are_listed();
        match polls {
            true => earlier(next, now + self.shared.policy.poll),
            false => next,
        }
    }

    /// Takes over new connections, and forgets those that have ended.
    fn update_followed(&mut self) {
        let mut known = std::mem::take(&mut self.followed);
        for connection in self.watch.clients() {
            let handle = connection.handle;
            let former = known
                .remove(&handle)
                .filter(|former| Arc::ptr_eq(&former.connection, &connection));
            let followed = former.unwrap_or_else(|| Followed {
                connection,
                migrations: Migrations::default(),
            });
            self.followed.insert(handle, followed);
        }
    }

    /// Does what is due for one connection; returns when to look at it again.
    fn follow(
        &mut self,
        now: Instant,
        host: &Addresses<'_>,
        handle: ConnectionHandle,
    ) -> Option<Instant> {
        let connection = Arc::clone(&self.followed.get(&handle)?.connection);
        let view = connection.migration_view()?;
        // Its own host is always there.
        if view.remote.ip().is_loopback() || !self.may_leave(&view) {
            return None;
        }
        let candidates = self.candidates(now, host, &view);
        let situation = Situation {
            present: view.local,
            is_usable: host.has(view.local),
            unresponsive_since: view.unresponsive_since,
            is_probing: view.is_probing,
            may_migrate: view.may_migrate,
            may_change_port: self.may_change_port(host, &view),
            reconnects_elsewhere: !self.shared.policy.rules.is_empty(),
            candidates: &candidates,
        };
        let silent_until = now + self.shared.policy.longest_pause;
        let migrations = &mut self.followed.get_mut(&handle)?.migrations;
        if let Some(failed) = migrations.take_failed_probe(&situation) {
            self.shared.silent.insert(failed, silent_until);
            // It is no longer a candidate.
            return Some(now + PAUSE);
        }
        let step = migrations.decide(now, &situation);
        let next = migrations.next_deadline();
        let Some(step) = step else { return next };
        let is_silent = situation.is_usable && situation.unresponsive_since.is_some();
        match step {
            Step::Migrate { to, start } => {
                if is_silent {
                    self.shared.silent.insert(view.local, silent_until);
                }
                if can_send_from(view.bound, to) {
                    host.bind_address(&*connection.socket(), to);
                    // It may have ended meanwhile.
                    connection.migrate(to, start).ok();
                } else {
                    self.rebind(SocketAddr::new(to, 0));
                }
            }
            Step::ChangePort => self.rebind(SocketAddr::new(view.bound.ip(), 0)),
            Step::End(why) => {
                self.shared.silent.insert(view.local, silent_until);
                connection.end_without_network(why);
            }
        }
        // What became of it.
        Some(next.unwrap_or(now + SECOND_LOOK))
    }

    /// Whether the connection may use another address than its own: a socket that is bound to one has no other without
    /// a rule that says so.
    fn may_leave(&self, view: &MigrationView) -> bool {
        view.bound.ip().is_unspecified() || !self.shared.policy.rules.is_empty()
    }

    /// Another port is another mapping in translators of addresses. All connections of the endpoint get it.
    fn may_change_port(&self, host: &Addresses<'_>, view: &MigrationView) -> bool {
        let chosen = host.chosen(view.remote);
        let is_chosen = chosen
            .is_some_and(|chosen| chosen == view.local || host.share_interface(chosen, view.local));
        let forbids = |followed: &Followed| {
            let view = followed.connection.migration_view();
            view.is_some_and(|view| view.may_migrate == Err(MigrateError::Forbidden))
        };
        self.shared.policy.rules.is_empty()
            && is_chosen
            && view.bound.ip().is_unspecified()
            && !self.followed.values().any(forbids)
    }

    /// Moves the endpoint to a new socket. Without one, the connections stay where they are.
    fn rebind(&self, to: SocketAddr) {
        let socket = self.watch.runtime().bind(to);
        socket.and_then(|socket| self.watch.rebind(socket)).ok();
    }

    /// The addresses from which the server of a connection can be reached, the best first.
    fn candidates(
        &self,
        now: Instant,
        host: &Addresses<'_>,
        view: &MigrationView,
    ) -> Vec<Candidate> {
        let mut found: Vec<Candidate> = Vec::new();
        let mut add = |address: IpAddr, rank| {
            if !found.iter().any(|known| known.address == address) {
                found.push(Candidate {
                    address,
                    rank,
                    is_silent: self.shared.silent.contains(now, address),
                });
            }
        };
        let remote = view.remote.ip();
        let rules = &self.shared.policy.rules;
        for (wanted, rank) in [
            (PathStatus::Available, Rank::Preferred),
            (PathStatus::Backup, Rank::Backup),
        ] {
            for (index, rule) in rules.iter().enumerate() {
                let is_spent = self.shared.budget.left(index) == Some(0);
                if rule.status == wanted
                    && !is_spent
                    && let Some(address) = host.of(&rule.source, Some(view.local), remote)
                {
                    add(address, rank);
                }
            }
        }
        if rules.is_empty() {
            // Routes may stay when their interface has lost its carrier.
            let chosen = host.chosen(view.remote);
            if let Some(chosen) = chosen.filter(|chosen| host.has(*chosen)) {
                // An interface may get further addresses, such as temporary ones (RFC 8981); connections keep theirs.
                let is_same = host.has(view.local) && host.share_interface(chosen, view.local);
                add(if is_same { view.local } else { chosen }, Rank::Preferred);
            }
            if view.unresponsive_since.is_some() || !host.has(view.local) {
                for address in host.others(view.remote) {
                    add(address, Rank::LastResort);
                }
            }
        }
        found
    }
}

fn earlier(next: Option<Instant>, other: Instant) -> Option<Instant> {
    Some(next.map_or(other, |next| next.min(other)))
}

fn poll_change(changes: &mut Option<Box<dyn NetworkChanges>>, cx: &mut Context<'_>) -> Poll<()> {
    match changes {
        Some(changes) => changes.poll_change(cx),
        None => Poll::Pending,
    }
}
