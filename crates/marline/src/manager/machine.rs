//! Decisions about a connection's paths, without I/O and without a clock.

use std::net::IpAddr;
use std::time::Duration;

use marline_proto::scheduling::path::PathStatus;
use marline_proto::{ErrorCode, Instant, PathId};

use super::policy::PathPolicy;

/// The pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The first pause if the peer has sent no connection IDs for another path yet.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The pause before a path that could not be abandoned is tried again.
const ABANDON_PAUSE: Duration = Duration::from_millis(50);

/// The time for which a path has to carry data before the count of failures is reset.
const PROVEN: Duration = Duration::from_secs(10);

/// Something to do for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Open a path from `local`; then call [`Machine::on_opened`] or [`Machine::on_refused`].
    Open { rule: usize, local: IpAddr },
    /// Set the status of a path.
    Status { id: PathId, status: PathStatus },
    /// Abandon a path; if that is refused, call [`Machine::on_abandon_refused`].
    Abandon { id: PathId, error: ErrorCode },
    /// Close the connection: the cap of its last path is spent.
    Close,
}

/// Why no path was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Connection IDs are missing, which the peer will send soon.
    Soon,
    /// Another attempt may succeed later.
    Later,
    /// No attempt will succeed.
    Never,
}

/// The state of one rule of the policy.
#[derive(Debug)]
struct RuleState {
    status: PathStatus,
    address: Option<IpAddr>,
    /// When a path may be opened.
    due: Instant,
    /// Consecutive failed attempts.
    failures: u32,
    /// Whether its cap is spent.
    is_spent: bool,
}

/// A path that exists.
#[derive(Debug)]
struct ManagedPath {
    id: PathId,
    owner: Owner,
    local: IpAddr,
    /// The time since which it carries data.
    valid_since: Option<Instant>,
    /// The status that was set for a rule.
    status: PathStatus,
    /// If it is to be abandoned: why, and when.
    leaving: Option<Leaving>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Rule(usize),
    /// None: the first path, from an address that no rule names.
    Unlisted,
    /// The application or the connection opened it. Its bytes count for the rule that has its address, if
    /// there is one.
    Application(Option<usize>),
}

impl Owner {
    /// The rule that the path's bytes count for.
    const fn charged_rule(self) -> Option<usize> {
        match self {
            Self::Rule(rule) => Some(rule),
            Self::Application(charged_rule) => charged_rule,
            Self::Unlisted => None,
        }
    }
}

/// Why and when to abandon a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leaving {
    reason: LeavingReason,
    /// The earliest time.
    not_before: Instant,
}

impl Leaving {
    const fn new(reason: LeavingReason, not_before: Instant) -> Self {
        Self { reason, not_before }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeavingReason {
    /// Its address is no longer available, or no rule has it.
    AddressGone,
    /// Its cap is spent.
    CapSpent,
}

/// The paths of one connection, and the rules that they should follow.
#[derive(Debug)]
pub(super) struct Machine {
    rules: Vec<RuleState>,
    paths: Vec<ManagedPath>,
    longest_pause: Duration,
    /// Whether other paths may be opened.
    is_multipath: bool,
    is_closed: bool,
}

impl Machine {
    /// For a connection that has no path yet.
    pub(super) fn new(now: Instant, policy: &PathPolicy, is_multipath: bool) -> Self {
        let rules = policy.rules.iter().map(|rule| RuleState {
            status: rule.status,
            address: None,
            due: now,
            failures: 0,
            is_spent: false,
        });
        Self {
            rules: rules.collect(),
            paths: Vec::new(),
            longest_pause: policy.longest_pause,
            is_multipath,
            is_closed: false,
        }
    }

    /// Sets the present address of each rule.
    pub(super) fn set_addresses(&mut self, now: Instant, addresses: &[Option<IpAddr>]) {
        for (index, (rule, &address)) in self.rules.iter_mut().zip(addresses).enumerate() {
            if rule.address == address {
                continue;
            }
            rule.address = address;
            // Failures on another network do not count on this one.
            rule.failures = 0;
            rule.due = now;
            for path in &mut self.paths {
                if path.owner != Owner::Rule(index) {
                    continue;
                }
                match path.leaving.map(|leaving| leaving.reason) {
                    None if Some(path.local) != address => {
                        path.leaving = Some(Leaving::new(LeavingReason::AddressGone, now));
                    }
                    // The address returned before the path was abandoned.
                    Some(LeavingReason::AddressGone) if Some(path.local) == address => {
                        path.leaving = None;
                    }
                    _ => {}
                }
            }
        }
    }

    /// Adds the connection's first path, which carries data. Call [`set_addresses`](Self::set_addresses)
    /// before.
    pub(super) fn on_first_path(&mut self, now: Instant, id: PathId, local: IpAddr) {
        let owner = self.rule_at(local).map_or(Owner::Unlisted, Owner::Rule);
        self.insert(id, owner, local);
        self.on_validated(now, id);
        if owner == Owner::Unlisted
            && let Some(path) = self.path(id)
        {
            path.leaving = Some(Leaving::new(LeavingReason::AddressGone, now));
        }
    }

    /// A path exists; unless [`Action::Open`] opened it, the application or the connection did.
    pub(super) fn on_path_found(&mut self, now: Instant, id: PathId, local: IpAddr) {
        if self.path(id).is_none() {
            let charged_rule = self.rule_at(local);
            self.insert(id, Owner::Application(charged_rule), local);
            if charged_rule.is_some_and(|rule| self.rules[rule].is_spent)
                && let Some(path) = self.path(id)
            {
                path.leaving = Some(Leaving::new(LeavingReason::CapSpent, now));
            }
        }
    }

    /// The path of an [`Action::Open`] was opened.
    pub(super) fn on_opened(&mut self, id: PathId, rule: usize, local: IpAddr) {
        self.insert(id, Owner::Rule(rule), local);
    }

    /// The path of an [`Action::Open`] could not be opened.
    pub(super) fn on_refused(&mut self, now: Instant, rule: usize, refusal: Refusal) {
        let first = match refusal {
            Refusal::Soon => FIRST_WAIT,
            Refusal::Later => FIRST_PAUSE,
            Refusal::Never => {
                self.is_multipath = false;
                return;
            }
        };
        self.postpone(now, rule, first);
    }

    /// A path carries data.
    pub(super) fn on_validated(&mut self, now: Instant, id: PathId) {
        if let Some(path) = self.path(id) {
            path.valid_since.get_or_insert(now);
        }
    }

    /// A path has migrated to another address of this host.
    pub(super) fn on_moved(&mut self, now: Instant, id: PathId, local: IpAddr) {
        let rule = self.rule_at(local);
        let is_spent = rule.is_some_and(|rule| self.rules[rule].is_spent);
        let Some(path) = self.path(id).filter(|path| path.local != local) else {
            return;
        };
        path.local = local;
        path.owner = match path.owner {
            Owner::Application(_) => Owner::Application(rule),
            Owner::Rule(_) | Owner::Unlisted => rule.map_or(Owner::Unlisted, Owner::Rule),
        };
        path.leaving = is_spent.then(|| Leaving::new(LeavingReason::CapSpent, now));
    }

    /// A path was abandoned by either end, with this error.
    pub(super) fn on_closed(&mut self, now: Instant, id: PathId, error: ErrorCode) {
        let Some(at) = self.paths.iter().position(|path| path.id == id) else {
            return;
        };
        let path = self.paths.swap_remove(at);
        let (Owner::Rule(rule), None) = (path.owner, path.leaving) else {
            return;
        };
        if path.valid_since.is_some_and(|since| now - since >= PROVEN) {
            self.rules[rule].failures = 0;
        }
        let first = match error {
            // The application of one end does not want it.
            ErrorCode::APPLICATION_ABANDON_PATH => self.longest_pause,
            _ => FIRST_PAUSE,
        };
        self.postpone(now, rule, first);
    }

    /// Takes the connection's list of paths: those that are missing were abandoned.
    pub(super) fn on_paths_listed(&mut self, now: Instant, ids: &[PathId]) {
        let known = self.paths.iter().map(|path| path.id);
        let missing: Vec<_> = known.filter(|id| !ids.contains(id)).collect();
        for id in missing {
            self.on_closed(now, id, ErrorCode::NO_ERROR);
        }
    }

    /// The cap of a rule is spent.
    pub(super) fn on_cap_spent(&mut self, now: Instant, rule: usize) {
        if std::mem::replace(&mut self.rules[rule].is_spent, true) {
            return;
        }
        for path in &mut self.paths {
            if path.owner.charged_rule() == Some(rule) {
                path.leaving = Some(Leaving::new(LeavingReason::CapSpent, now));
            }
        }
    }

    /// The cap of a rule is not spent, or not any more.
    pub(super) fn on_cap_renewed(&mut self, now: Instant, rule: usize) {
        let state = &mut self.rules[rule];
        if !std::mem::replace(&mut state.is_spent, false) {
            return;
        }
        state.failures = 0;
        state.due = now;
        let address = state.address;
        for path in &mut self.paths {
            let is_for_cap = |leaving: &Leaving| leaving.reason == LeavingReason::CapSpent;
            if path.owner.charged_rule() == Some(rule)
                && path.leaving.as_ref().is_some_and(is_for_cap)
            {
                let is_gone = path.owner == Owner::Rule(rule) && Some(path.local) != address;
                path.leaving = is_gone.then(|| Leaving::new(LeavingReason::AddressGone, now));
            }
        }
    }

    /// [`Action::Abandon`] was refused.
    pub(super) fn on_abandon_refused(&mut self, now: Instant, id: PathId) {
        if let Some(ManagedPath {
            leaving: Some(leaving),
            ..
        }) = self.path(id)
        {
            leaving.not_before = now + ABANDON_PAUSE;
        }
    }

    /// The rule that the bytes of a path count for.
    pub(super) fn charged_rule(&self, id: PathId) -> Option<usize> {
        let path = self.paths.iter().find(|path| path.id == id)?;
        path.owner.charged_rule()
    }

    /// The local address of a path.
    pub(super) fn local_of(&self, id: PathId) -> Option<IpAddr> {
        let path = self.paths.iter().find(|path| path.id == id)?;
        Some(path.local)
    }

    fn rule_at(&self, local: IpAddr) -> Option<usize> {
        let of_rule = |rule: &RuleState| rule.address == Some(local);
        self.rules.iter().position(of_rule)
    }

    /// The next action; to be called until there is none.
    pub(super) fn next_action(&mut self, now: Instant) -> Option<Action> {
        if self.is_closed {
            return None;
        }
        self.next_status()
            .or_else(|| self.next_open(now))
            .or_else(|| self.next_abandon(now))
            .or_else(|| self.next_close(now))
    }

    /// When to call [`next_action`](Self::next_action) again, if nothing happens before.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let opening = (0..self.rules.len()).filter(|&rule| self.wants_path(rule));
        let opening = opening.map(|rule| self.rules[rule].due);
        let leaving = self.paths.iter().filter(|path| self.can_leave(path));
        let leaving = leaving.filter_map(|path| Some(path.leaving?.not_before));
        opening.chain(leaving).min()
    }

    /// Sets the status of a path that differs from what its rule wants: of a new one, or one that has migrated to another rule's address.
    fn next_status(&mut self) -> Option<Action> {
        let Self { rules, paths, .. } = self;
        let wanted = |path: &ManagedPath| match path.owner {
            Owner::Rule(rule) => rules[rule].status,
            Owner::Unlisted => PathStatus::Available,
            Owner::Application(_) => path.status,
        };
        let path = paths.iter_mut().find(|path| wanted(path) != path.status)?;
        path.status = wanted(path);
        Some(Action::Status {
            id: path.id,
            status: path.status,
        })
    }

    fn next_open(&self, now: Instant) -> Option<Action> {
        let mut rules = 0..self.rules.len();
        let rule = rules.find(|&rule| self.wants_path(rule) && self.rules[rule].due <= now)?;
        let local = self.rules[rule].address?;
        Some(Action::Open { rule, local })
    }

    fn next_abandon(&self, now: Instant) -> Option<Action> {
        let is_due = |path: &&ManagedPath| {
            path.leaving
                .is_some_and(|leaving| leaving.not_before <= now)
        };
        let mut paths = self.paths.iter().filter(is_due);
        let path = paths.find(|path| self.can_leave(path))?;
        Some(Action::Abandon {
            id: path.id,
            error: ErrorCode::APPLICATION_ABANDON_PATH,
        })
    }

    /// Closes the connection if the cap of its only path is spent: a cap is never exceeded knowingly.
    fn next_close(&mut self, now: Instant) -> Option<Action> {
        let is_spent = |path: &&ManagedPath| {
            path.leaving.is_some_and(|leaving| {
                leaving.reason == LeavingReason::CapSpent && leaving.not_before <= now
            })
        };
        let spent = self.paths.iter().find(is_spent)?;
        // A path whose validation is in progress may soon carry data.
        if self.paths.iter().any(|other| other.id != spent.id) {
            return None;
        }
        self.is_closed = true;
        Some(Action::Close)
    }

    /// Whether a rule should have a path and has none.
    fn wants_path(&self, index: usize) -> bool {
        let rule = &self.rules[index];
        let is_its_own =
            |path: &ManagedPath| path.owner == Owner::Rule(index) && path.leaving.is_none();
        self.is_multipath
            && !rule.is_spent
            && rule.address.is_some()
            && !self.paths.iter().any(is_its_own)
    }

    /// Whether a path that should be abandoned can be: another must carry data, which for a path whose address
    /// is no longer available must not be about to be abandoned itself.
    fn can_leave(&self, path: &ManagedPath) -> bool {
        let Some(Leaving { reason, .. }) = path.leaving else {
            return false;
        };
        self.paths.iter().any(|other| {
            other.id != path.id
                && other.valid_since.is_some()
                && (reason == LeavingReason::CapSpent || other.leaving.is_none())
        })
    }

    fn postpone(&mut self, now: Instant, rule: usize, first: Duration) {
        let rule = &mut self.rules[rule];
        // 2^16 times the shortest pause is longer than any sensible maximum.
        let pause = first.saturating_mul(1 << rule.failures.min(16));
        rule.failures = rule.failures.saturating_add(1);
        rule.due = now + pause.min(self.longest_pause);
    }

    fn insert(&mut self, id: PathId, owner: Owner, local: IpAddr) {
        self.paths.push(ManagedPath {
            id,
            owner,
            local,
            valid_since: None,
            status: PathStatus::Available,
            leaving: None,
        });
    }

    fn path(&mut self, id: PathId) -> Option<&mut ManagedPath> {
        self.paths.iter_mut().find(|path| path.id == id)
    }
}

#[cfg(test)]
mod tests;
