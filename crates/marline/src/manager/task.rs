//! The task that carries out the decisions of the machine, for one connection.

use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::Arc;

use marline_proto::{AbandonPathError, Instant, PathId};

use super::SharedManager;
use super::addresses::Addresses;
use super::budget::Meter;
use super::machine::{Action, Machine, Refusal};
use crate::connection::{Connection, ConnectionEvent, Events, WeakConnection};
use crate::error::OpenPathError;
use crate::runtime::Runtime;

/// Manages the paths of one connection until it ends.
pub(super) struct ManagerTask {
    shared: Arc<SharedManager>,
    runtime: Arc<dyn Runtime>,
    connection: WeakConnection,
    events: Events,
    machine: Machine,
    meter: Meter,
    addresses: Vec<Option<IpAddr>>,
    /// When to read the host's addresses again.
    poll_at: Instant,
    /// When to count the paths' bytes again; `None` for at once.
    count_at: Option<Instant>,
}

impl ManagerTask {
    pub(super) fn new(shared: Arc<SharedManager>, connection: &Connection) -> Self {
        let runtime = connection.runtime();
        let now = runtime.now();
        Self {
            machine: Machine::new(now, &shared.policy, false),
            addresses: vec![None; shared.policy.rules.len()],
            events: connection.events(),
            connection: connection.downgrade(),
            meter: Meter::default(),
            poll_at: now,
            count_at: None,
            shared,
            runtime,
        }
    }

    pub(super) async fn run(mut self) {
        if self.begin().await.is_none() {
            return;
        }
        let mut timer = self.runtime.timer();
        while let Some(deadline) = self.run_due() {
            timer.set(deadline);
            tokio::select! {
                event = self.events.next() => match event {
                    None | Some(ConnectionEvent::Closed(_)) => return,
                    Some(event) => self.on_event(&event),
                },
                () = poll_fn(|cx| timer.poll(cx)) => {}
            }
        }
    }

    /// Waits until the handshake is confirmed, and takes over the first path.
    async fn begin(&mut self) -> Option<()> {
        while !self.connection.upgrade()?.is_confirmed() {
            self.events.next().await?;
        }
        let connection = self.connection.upgrade()?;
        let now = self.runtime.now();
        self.machine = Machine::new(now, &self.shared.policy, connection.is_multipath());
        self.poll_addresses(&connection, now);
        let local = connection.local_address().ip();
        self.machine.on_first_path(now, PathId::INITIAL, local);
        Some(())
    }

    /// Does what is due; returns the next deadline, or `None` if the application has dropped the connection.
    fn run_due(&mut self) -> Option<Instant> {
        let connection = self.connection.upgrade()?;
        let now = self.runtime.now();
        if self.poll_at <= now {
            self.poll_addresses(&connection, now);
        }
        loop {
            if self.count_at.is_none_or(|at| at <= now) {
                self.count_bytes(&connection, now);
            }
            let Some(action) = self.machine.next_action(now) else {
                break;
            };
            self.act(&connection, now, action);
        }
        let deadlines = [
            Some(self.poll_at),
            self.count_at,
            self.machine.next_deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    fn poll_addresses(&mut self, connection: &Connection, now: Instant) {
        self.poll_at = now + self.shared.policy.poll;
        let host = Addresses::now(&*self.runtime);
        let remote = connection.remote_address().ip();
        for (known, rule) in self.addresses.iter_mut().zip(&self.shared.policy.rules) {
            *known = host.of(&rule.source, *known, remote);
        }
        self.machine.set_addresses(now, &self.addresses);
    }

    /// Counts what the paths have carried, and finds paths that are missing.
    fn count_bytes(&mut self, connection: &Connection, now: Instant) {
        let paths = connection.paths();
        let budget = &self.shared.budget;
        let next = self
            .meter
            .update(now, &paths, budget, |id| self.machine.charged_rule(id));
        // If no path has a cap, together with the addresses.
        self.count_at = Some(next.unwrap_or(self.poll_at));
        for rule in 0..self.addresses.len() {
            match budget.left(rule) {
                Some(0) => self.machine.on_cap_spent(now, rule),
                _ => self.machine.on_cap_renewed(now, rule),
            }
        }
        let ids: Vec<_> = paths.iter().map(|path| path.id).collect();
        self.machine.on_paths_listed(now, &ids);
    }

    fn on_event(&mut self, event: &ConnectionEvent) {
        let now = self.runtime.now();
        match event {
            ConnectionEvent::PathOpened(id) => {
                let Some(connection) = self.connection.upgrade() else {
                    return;
                };
                let paths = connection.paths();
                let stats = paths.iter().find(|stats| stats.id == *id);
                if let Some(local) = stats.and_then(|stats| stats.local) {
                    self.machine
                        .on_path_found(now, *id, local.ip().to_canonical());
                    // It may have a cap.
                    self.count_at = None;
                }
            }
            ConnectionEvent::PathValidated(id) => {
                self.machine.on_validated(now, *id);
                if let Some(local) = self.machine.local_of(*id) {
                    self.shared.silent.remove(local);
                }
            }
            ConnectionEvent::PathChanged => {
                if let Some(connection) = self.connection.upgrade() {
                    self.on_moved(&connection, now);
                }
            }
            ConnectionEvent::PathClosed { id, error } => {
                // Bytes since the last count are charged, too.
                self.count_at = None;
                if let Some(connection) = self.connection.upgrade() {
                    self.count_bytes(&connection, now);
                }
                self.machine.on_closed(now, *id, *error);
            }
            _ => {}
        }
    }

    /// A path has migrated: what it carried before counts for the rule of its former address.
    fn on_moved(&mut self, connection: &Connection, now: Instant) {
        self.count_bytes(connection, now);
        self.poll_addresses(connection, now);
        for path in connection.paths() {
            if let Some(local) = path.local {
                self.machine
                    .on_moved(now, path.id, local.ip().to_canonical());
            }
        }
    }

    fn open(&mut self, connection: &Connection, now: Instant, rule: usize, local: IpAddr) {
        let source = &self.shared.policy.rules[rule].source;
        Addresses::now(&*self.runtime).bind(&*connection.socket(), source, local);
        match connection.start_path(local) {
            Ok(id) => {
                self.machine.on_opened(id, rule, local);
                // It may have a cap.
                self.count_at = None;
            }
            Err(error) => self.machine.on_refused(now, rule, refusal(&error)),
        }
    }

    fn act(&mut self, connection: &Connection, now: Instant, action: Action) {
        match action {
            Action::Open { rule, local } => self.open(connection, now, rule, local),
            Action::Status { id, status } => connection.set_path_status(id, status),
            Action::Abandon { id, error } => match connection.abandon_path(id, error) {
                Ok(()) | Err(AbandonPathError::NoSuchPath) => {
                    self.machine.on_closed(now, id, error);
                }
                Err(AbandonPathError::LastPath) => self.machine.on_abandon_refused(now, id),
            },
            Action::Close => connection.close(
                self.shared.policy.close_code,
                b"the byte cap of the only path is spent",
            ),
        }
    }
}

/// Whether, and when, to try again.
fn refusal(error: &OpenPathError) -> Refusal {
    use marline_proto::OpenPathError as Proto;
    match error {
        OpenPathError::Refused(Proto::NoConnectionIds) => Refusal::Soon,
        OpenPathError::Refused(Proto::LimitReached)
        | OpenPathError::NoSuchAddress { .. }
        | OpenPathError::FamiliesDiffer { .. }
        | OpenPathError::Failed(_) => Refusal::Later,
        OpenPathError::Refused(_)
        | OpenPathError::BoundElsewhere { .. }
        | OpenPathError::ConnectionLost(_) => Refusal::Never,
    }
}
