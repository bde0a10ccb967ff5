//! Bundles of paths: paths between the same addresses share one bottleneck, and one engine coordinates
//! their windows and their slow start ([`crate::coordination::bundle`]).
//!
//! A path joins when it is validated, and leaves when it is abandoned or leads to another host. It keeps its
//! own packet number space, recovery and controller.

use std::sync::Arc;

use marline_wire::PathId;

use super::list::{PathList, Slot};
use crate::coordination::bundle::{Bundle, BundleConfig, MemberDirective, MemberView};
use crate::time::Instant;

/// The bundles of a connection: one for each 4-tuple that several of its paths share.
#[derive(Debug)]
pub(super) struct PathBundles {
    config: Arc<BundleConfig>,
    list: Vec<PathBundle>,
    /// Number of bundles ever created.
    count: u64,
}

#[derive(Debug)]
struct PathBundle {
    paths: Vec<PathId>,
    engine: Bundle<PathId>,
}

/// Paths that join a bundle, in order.
#[derive(Debug)]
pub(crate) struct Joining {
    pub(super) bundle: usize,
    pub(crate) members: Vec<Slot>,
}

impl PathBundles {
    pub(super) fn new(config: Arc<BundleConfig>) -> Self {
        Self {
            config,
            list: Vec::new(),
            count: 0,
        }
    }

    fn of(&self, path: PathId) -> Option<usize> {
        let holds = |bundle: &PathBundle| bundle.paths.contains(&path);
        self.list.iter().position(holds)
    }

    /// Called when a path is validated: it joins the other paths between its addresses, if there
    /// are any. Returns the paths to [admit](Self::admit) to the bundle.
    pub(super) fn join(&mut self, paths: &PathList, at: Slot) -> Option<Joining> {
        let beside: Vec<Slot> = paths.beside(at).collect();
        let bundle_of = |&at: &Slot| self.of(paths[at].id);
        if let Some(bundle) = beside.iter().find_map(bundle_of) {
            let members = vec![at];
            return Some(Joining { bundle, members });
        }
        let members: Vec<Slot> = beside.into_iter().chain([at]).collect();
        (members.len() > 1).then(|| Joining {
            bundle: self.begin(),
            members,
        })
    }

    /// Creates a bundle without members.
    fn begin(&mut self) -> usize {
        self.list.push(PathBundle {
            paths: Vec::new(),
            engine: Bundle::new(self.count, Arc::clone(&self.config)),
        });
        self.count += 1;
        self.list.len() - 1
    }

    /// Makes a path a member; returns the engine's directives.
    pub(super) fn admit(
        &mut self,
        paths: &mut PathList,
        bundle: usize,
        at: Slot,
    ) -> Vec<MemberDirective<PathId>> {
        let PathBundle {
            paths: members,
            engine,
        } = &mut self.list[bundle];
        let id = paths[at].id;
        members.push(id);
        let decided = engine.admit(id, &mut |member| view(paths, member));
        apply_directive(paths, decided)
    }

    pub(super) fn leave(&mut self, path: PathId) {
        for bundle in &mut self.list {
            bundle.paths.retain(|&member| member != path);
            bundle.engine.leave(path);
        }
        self.list.retain(|bundle| !bundle.paths.is_empty());
    }

    /// Passes the next signal of a path to the engine; returns its directives.
    pub(super) fn report(
        &mut self,
        now: Instant,
        paths: &mut PathList,
        at: Slot,
    ) -> Option<Vec<MemberDirective<PathId>>> {
        let signal = paths[at].member.next_signal()?;
        let id = paths[at].id;
        let Some(place) = self.of(id) else {
            return Some(Vec::new());
        };
        let engine = &mut self.list[place].engine;
        let decided = engine.on_signal(now, id, signal, &mut |member| view(paths, member));
        Some(apply_directive(paths, decided))
    }

    #[cfg(test)]
    pub(super) fn members(&self) -> Vec<Vec<PathId>> {
        let members = self.list.iter().map(|bundle| bundle.paths.clone());
        members.collect()
    }
}

fn apply_directive(
    paths: &mut PathList,
    decided: Vec<MemberDirective<PathId>>,
) -> Vec<MemberDirective<PathId>> {
    for MemberDirective { member, directive } in &decided {
        if let Some(at) = paths.by_id(*member) {
            paths[at].apply_directive(directive);
        }
    }
    decided
}

/// The state of a member. It is application-limited when all paths of its 4-tuple are, because the
/// scheduler chooses which of them carries the data.
fn view(paths: &PathList, id: PathId) -> Option<MemberView> {
    let at = paths.by_id(id)?;
    let path = &paths[at];
    let is_held_back = |at: Slot| !paths[at].recovery.is_app_limited();
    Some(MemberView {
        active: path.is_live()
            && path.recovery.in_flight() > 0
            && (is_held_back(at) || paths.beside(at).any(is_held_back)),
        ..path.member_view()
    })
}
