//! Bundles of paths: those between the same addresses share one bottleneck, and one engine keeps their
//! windows and their slow start in step ([`crate::coordination::bundle`]).
//!
//! A path joins when it is valid, and leaves when it is abandoned or goes to another host. Its number
//! space, its recovery and its controller stay its own.

use std::sync::Arc;

use marline_wire::PathId;

use crate::connection::Connection;
#[cfg(test)]
use crate::connection::path::Path;
use crate::connection::slots::{Paths, Slot};
use crate::coordination::bundle::{Bundle, BundleConfig, Directive, MemberView};
use crate::coordination::history::PathSample;
use crate::time::Instant;

/// The bundles of a connection: one for each 4-tuple that several of its paths share.
#[derive(Debug)]
pub(super) struct Groups {
    config: Arc<BundleConfig>,
    list: Vec<Group>,
    /// Bundles that ever were.
    count: u64,
}

#[derive(Debug)]
struct Group {
    paths: Vec<PathId>,
    bundle: Bundle<PathId>,
}

impl Groups {
    pub(super) fn new(config: Arc<BundleConfig>) -> Box<Self> {
        Box::new(Self {
            config,
            list: Vec::new(),
            count: 0,
        })
    }

    fn of(&self, path: PathId) -> Option<usize> {
        self.list
            .iter()
            .position(|group| group.paths.contains(&path))
    }

    fn leave(&mut self, path: PathId) {
        for group in &mut self.list {
            group.paths.retain(|&member| member != path);
            group.bundle.leave(path);
        }
        self.list.retain(|group| !group.paths.is_empty());
    }

    /// A group without members.
    fn begin(&mut self) -> usize {
        self.list.push(Group {
            paths: Vec::new(),
            bundle: Bundle::new(self.count, Arc::clone(&self.config)),
        });
        self.count += 1;
        self.list.len() - 1
    }
}

/// How a member stands. It is short of data when all that go its way are: which of them carries what there
/// is, is the scheduler's choice.
fn view(paths: &Paths, id: PathId) -> Option<MemberView> {
    let at = paths.by_id(id)?;
    let path = &paths[at];
    let mut view = path.member_view();
    let is_held_back = |at: Slot| !paths[at].recovery.is_app_limited();
    view.active = path.is_live()
        && path.recovery.in_flight() > 0
        && (is_held_back(at) || paths.beside(at).any(is_held_back));
    Some(view)
}

impl Connection {
    /// Whether this end coordinates the paths of a 4-tuple.
    pub(in crate::connection) fn coordinates_paths(&self) -> bool {
        let multipath = self.multipath.as_ref();
        multipath.is_some_and(|multipath| multipath.groups.is_some())
    }

    /// A path is valid: it joins those beside it, if there are any.
    pub(in crate::connection) fn join_group(&mut self, now: Instant, at: Slot) {
        let Some(mut groups) = self.take_groups() else {
            return;
        };
        let beside: Vec<Slot> = self.paths.beside(at).collect();
        let group_of = |&at: &Slot| groups.of(self.paths[at].id);
        if let Some(group) = beside.iter().find_map(group_of) {
            self.admit(now, &mut groups, group, at);
        } else if !beside.is_empty() {
            let group = groups.begin();
            for member in beside.into_iter().chain([at]) {
                self.admit(now, &mut groups, group, member);
            }
        }
        self.put_groups(groups);
    }

    /// A path is abandoned.
    pub(in crate::connection) fn leave_group(&mut self, at: Slot) {
        if let Some(multipath) = &mut self.multipath
            && let Some(groups) = &mut multipath.groups
        {
            groups.leave(self.paths[at].id);
            self.paths[at].leave_bundle();
        }
    }

    /// A path leads to another host from now on.
    pub(in crate::connection) fn change_group(&mut self, now: Instant, at: Slot) {
        self.leave_group(at);
        self.join_group(now, at);
    }

    fn admit(&mut self, now: Instant, groups: &mut Groups, group: usize, at: Slot) {
        let Group {
            paths: members,
            bundle,
        } = &mut groups.list[group];
        let id = self.paths[at].id;
        members.push(id);
        let told = bundle.admit(id, &mut |member| view(&self.paths, member));
        self.obey_all(now, &told);
    }

    /// Adds what the paths coordinated with the main one have seen: it is one way, and it carried them all.
    pub(in crate::connection) fn add_group_to(&self, sample: &mut PathSample) {
        if !self.coordinates_paths() {
            return;
        }
        for at in self.paths.beside(self.paths.main()) {
            let other = self.paths[at].sample(sample.event);
            sample.window += other.window;
            sample.delivered += other.delivered;
            sample.app_limited &= other.app_limited;
            sample.lost_at_first |= other.lost_at_first;
        }
    }

    /// Takes what recovery noticed on a path to the engine, and does what that decides.
    pub(in crate::connection) fn report_to_group(&mut self, now: Instant, at: Slot) {
        let signals = self.paths[at].member.take_signals();
        if signals.is_empty() {
            return;
        }
        let Some(mut groups) = self.take_groups() else {
            return;
        };
        let id = self.paths[at].id;
        if let Some(place) = groups.of(id) {
            let bundle = &mut groups.list[place].bundle;
            for signal in signals {
                let paths = &self.paths;
                let told = bundle.on_signal(now, id, signal, &mut |member| view(paths, member));
                self.obey_all(now, &told);
            }
        }
        self.put_groups(groups);
    }

    fn obey_all(&mut self, now: Instant, told: &[(PathId, Directive)]) {
        for (id, directive) in told {
            if let Some(at) = self.paths.by_id(*id) {
                self.obey_on(now, at, directive);
            }
        }
    }

    fn take_groups(&mut self) -> Option<Box<Groups>> {
        self.multipath.as_mut()?.groups.take()
    }

    fn put_groups(&mut self, groups: Box<Groups>) {
        if let Some(multipath) = &mut self.multipath {
            multipath.groups = Some(groups);
        }
    }
}

#[cfg(test)]
impl Connection {
    /// The paths that are coordinated together.
    pub(in crate::connection) fn groups(&self) -> Vec<Vec<PathId>> {
        let groups = self.multipath.as_ref().and_then(|m| m.groups.as_ref());
        groups.map_or_else(Vec::new, |groups| {
            groups
                .list
                .iter()
                .map(|group| group.paths.clone())
                .collect()
        })
    }

    /// The datagram size of each path, in bytes.
    pub(in crate::connection) fn datagram_sizes(&self) -> Vec<u16> {
        let size = |path: &Path| path.tuples.active.mtu.current();
        self.paths.iter().map(size).collect()
    }
}
