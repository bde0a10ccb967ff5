//! What to do about a connection's paths: decisions without I/O and without a clock.

use std::net::IpAddr;
use std::time::Duration;

use marline_proto::scheduling::path::PathStatus;
use marline_proto::{ErrorCode, Instant, PathId};

use super::policy::PathPolicy;

/// The pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The pause while connection IDs for another path are on their way.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The pause before a path that could not be abandoned is tried again.
const ABANDON_PAUSE: Duration = Duration::from_millis(50);

/// How long a path has to carry data for its failures to be forgotten.
const PROVEN: Duration = Duration::from_secs(10);

/// Something to do for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Open a path from `local`; then say [`Machine::opened`] or [`Machine::refused`].
    Open { rule: usize, local: IpAddr },
    /// Set the status of a path.
    Status { id: PathId, status: PathStatus },
    /// Abandon a path; if that is refused, say [`Machine::kept`].
    Abandon { id: PathId, error: ErrorCode },
    /// Close the connection: what it has left may not be used.
    Close,
}

/// Why no path was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There will be connection IDs soon.
    Soon,
    /// It may be otherwise later.
    Later,
    /// It will never be otherwise.
    Never,
}

/// One rule of the policy, as it stands.
#[derive(Debug)]
struct Rule {
    status: PathStatus,
    address: Option<IpAddr>,
    /// When a path may be opened.
    due: Instant,
    /// How many attempts failed in a row.
    failures: u32,
    /// Whether its bytes are spent.
    is_spent: bool,
}

/// A path that exists.
#[derive(Debug)]
struct Path {
    id: PathId,
    owner: Owner,
    local: IpAddr,
    /// Since when it carries data.
    valid_since: Option<Instant>,
    /// Whether the status that its rule wants is set.
    is_told: bool,
    /// If it is to be abandoned: why, and not before when.
    leaving: Option<(Reason, Instant)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Rule(usize),
    /// The first path, from an address that no rule names.
    Nobody,
    /// The application opened it, or the connection by itself. Its bytes count for the rule that has its
    /// address, if one has.
    Application(Option<usize>),
}

impl Owner {
    /// The rule whose bytes are spent.
    const fn payer(self) -> Option<usize> {
        match self {
            Self::Rule(rule) => Some(rule),
            Self::Application(payer) => payer,
            Self::Nobody => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The address is not there any more, or was never wanted.
    Gone,
    /// Its bytes are spent.
    Spent,
}

/// The paths of one connection and what they should be.
#[derive(Debug)]
pub(super) struct Machine {
    rules: Vec<Rule>,
    paths: Vec<Path>,
    longest_pause: Duration,
    /// Whether other paths may be opened.
    is_multipath: bool,
    is_closed: bool,
}

impl Machine {
    /// For a connection that has no path yet.
    pub(super) fn new(now: Instant, policy: &PathPolicy, is_multipath: bool) -> Self {
        let rules = policy.rules.iter().map(|rule| Rule {
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

    /// The address of each rule, as it is now.
    pub(super) fn addresses(&mut self, now: Instant, addresses: &[Option<IpAddr>]) {
        for (index, (rule, &address)) in self.rules.iter_mut().zip(addresses).enumerate() {
            if rule.address == address {
                continue;
            }
            rule.address = address;
            // Another network, or the old one again: what failed before says nothing.
            rule.failures = 0;
            rule.due = now;
            for path in &mut self.paths {
                if path.owner != Owner::Rule(index) {
                    continue;
                }
                match &path.leaving {
                    None if Some(path.local) != address => {
                        path.leaving = Some((Reason::Gone, now));
                    }
                    // It was away too shortly for anybody to notice.
                    Some((Reason::Gone, _)) if Some(path.local) == address => path.leaving = None,
                    _ => {}
                }
            }
        }
    }

    /// The connection's first path, which carries data. Say [`addresses`](Self::addresses) before.
    pub(super) fn first(&mut self, now: Instant, id: PathId, local: IpAddr) {
        let owner = self.rule_at(local).map_or(Owner::Nobody, Owner::Rule);
        self.insert(id, owner, local);
        self.validated(now, id);
        if owner == Owner::Nobody
            && let Some(path) = self.path(id)
        {
            path.leaving = Some((Reason::Gone, now));
        }
    }

    /// A path is open; if [`Action::Open`] did not want it, the application did.
    pub(super) fn found(&mut self, now: Instant, id: PathId, local: IpAddr) {
        if self.path(id).is_none() {
            let payer = self.rule_at(local);
            self.insert(id, Owner::Application(payer), local);
            if payer.is_some_and(|rule| self.rules[rule].is_spent)
                && let Some(path) = self.path(id)
            {
                path.leaving = Some((Reason::Spent, now));
            }
        }
    }

    /// The path that [`Action::Open`] wanted is on its way.
    pub(super) fn opened(&mut self, id: PathId, rule: usize, local: IpAddr) {
        self.insert(id, Owner::Rule(rule), local);
    }

    /// The path that [`Action::Open`] wanted cannot be.
    pub(super) fn refused(&mut self, now: Instant, rule: usize, refusal: Refusal) {
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
    pub(super) fn validated(&mut self, now: Instant, id: PathId) {
        if let Some(path) = self.path(id) {
            path.valid_since.get_or_insert(now);
        }
    }

    /// A path is no more, whoever abandoned it, with this error.
    pub(super) fn closed(&mut self, now: Instant, id: PathId, error: ErrorCode) {
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
            // Somebody does not want it.
            ErrorCode::APPLICATION_ABANDON_PATH => self.longest_pause,
            _ => FIRST_PAUSE,
        };
        self.postpone(now, rule, first);
    }

    /// The connection's paths, as it lists them: those that are missing were closed.
    pub(super) fn present(&mut self, now: Instant, ids: &[PathId]) {
        let gone = self.paths.iter().map(|path| path.id);
        let gone: Vec<_> = gone.filter(|id| !ids.contains(id)).collect();
        for id in gone {
            self.closed(now, id, ErrorCode::NO_ERROR);
        }
    }

    /// The bytes of a rule are spent.
    pub(super) fn spent(&mut self, now: Instant, rule: usize) {
        if std::mem::replace(&mut self.rules[rule].is_spent, true) {
            return;
        }
        for path in &mut self.paths {
            if path.owner.payer() == Some(rule) {
                path.leaving = Some((Reason::Spent, now));
            }
        }
    }

    /// [`Action::Abandon`] was refused.
    pub(super) fn kept(&mut self, now: Instant, id: PathId) {
        if let Some(Path {
            leaving: Some((_, not_before)),
            ..
        }) = self.path(id)
        {
            *not_before = now + ABANDON_PAUSE;
        }
    }

    /// The rule for which the bytes of a path count.
    pub(super) fn payer_of(&self, id: PathId) -> Option<usize> {
        let path = self.paths.iter().find(|path| path.id == id)?;
        path.owner.payer()
    }

    fn rule_at(&self, local: IpAddr) -> Option<usize> {
        let of_rule = |rule: &Rule| rule.address == Some(local);
        self.rules.iter().position(of_rule)
    }

    /// What to do next; ask until there is nothing.
    pub(super) fn next_action(&mut self, now: Instant) -> Option<Action> {
        if self.is_closed {
            return None;
        }
        self.next_status()
            .or_else(|| self.next_open(now))
            .or_else(|| self.next_abandon(now))
            .or_else(|| self.next_close(now))
    }

    /// When to ask again, if nothing happens before.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let opening = (0..self.rules.len()).filter(|&rule| self.wants_path(rule));
        let opening = opening.map(|rule| self.rules[rule].due);
        let leaving = self.paths.iter().filter(|path| self.can_leave(path));
        let leaving = leaving.filter_map(|path| path.leaving.map(|(_, not_before)| not_before));
        opening.chain(leaving).min()
    }

    fn next_status(&mut self) -> Option<Action> {
        let Self { rules, paths, .. } = self;
        let path = paths.iter_mut().find(|path| !path.is_told)?;
        path.is_told = true;
        let status = match path.owner {
            Owner::Rule(rule) => rules[rule].status,
            Owner::Nobody | Owner::Application(_) => PathStatus::Available,
        };
        match status {
            PathStatus::Available => self.next_status(),
            PathStatus::Backup => Some(Action::Status {
                id: path.id,
                status,
            }),
        }
    }

    fn next_open(&self, now: Instant) -> Option<Action> {
        let mut rules = 0..self.rules.len();
        let rule = rules.find(|&rule| self.wants_path(rule) && self.rules[rule].due <= now)?;
        let local = self.rules[rule].address?;
        Some(Action::Open { rule, local })
    }

    fn next_abandon(&self, now: Instant) -> Option<Action> {
        let is_due = |path: &&Path| path.leaving.is_some_and(|(_, at)| at <= now);
        let mut paths = self.paths.iter().filter(is_due);
        let path = paths.find(|path| self.can_leave(path))?;
        Some(Action::Abandon {
            id: path.id,
            error: ErrorCode::APPLICATION_ABANDON_PATH,
        })
    }

    /// A cap is a promise: rather no connection than one that breaks it.
    fn next_close(&mut self, now: Instant) -> Option<Action> {
        let is_spent =
            |path: &&Path| matches!(path.leaving, Some((Reason::Spent, at)) if at <= now);
        let spent = self.paths.iter().find(is_spent)?;
        // A path that is being validated may soon take over.
        if self.paths.iter().any(|other| other.id != spent.id) {
            return None;
        }
        self.is_closed = true;
        Some(Action::Close)
    }

    /// Whether a rule should have a path and has none.
    fn wants_path(&self, index: usize) -> bool {
        let rule = &self.rules[index];
        let is_its_own = |path: &Path| path.owner == Owner::Rule(index) && path.leaving.is_none();
        self.is_multipath
            && !rule.is_spent
            && rule.address.is_some()
            && !self.paths.iter().any(is_its_own)
    }

    /// Whether a path that should leave can: another must carry data. For one whose bytes are spent, any
    /// will do; one whose address is gone waits for another that stays.
    fn can_leave(&self, path: &Path) -> bool {
        let Some((reason, _)) = path.leaving else {
            return false;
        };
        self.paths.iter().any(|other| {
            other.id != path.id
                && other.valid_since.is_some()
                && (reason == Reason::Spent || other.leaving.is_none())
        })
    }

    fn postpone(&mut self, now: Instant, rule: usize, first: Duration) {
        let rule = &mut self.rules[rule];
        // 2^16 of the shortest are longer than any pause that makes sense.
        let pause = first.saturating_mul(1 << rule.failures.min(16));
        rule.failures = rule.failures.saturating_add(1);
        rule.due = now + pause.min(self.longest_pause);
    }

    fn insert(&mut self, id: PathId, owner: Owner, local: IpAddr) {
        self.paths.push(Path {
            id,
            owner,
            local,
            valid_since: None,
            is_told: false,
            leaving: None,
        });
    }

    fn path(&mut self, id: PathId) -> Option<&mut Path> {
        self.paths.iter_mut().find(|path| path.id == id)
    }
}

#[cfg(test)]
mod tests;
