//! Membership in bundles, and the state that remains after members leave.

use std::net::Ipv4Addr;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use super::*;
use crate::coordination::bundle::{BundleConfig, DecisionCause, JoiningMember, MAX_MEMBERS};

/// The `n`th address.
fn address(n: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, n))
}

fn join(id: Option<u8>, server_name: &str) -> JoinBundle {
    JoinBundle {
        config: Arc::new(BundleConfig::default()),
        id: id.map(|id| MembershipId([id; 16])),
        address: address(1),
        server_name: Some(server_name.into()),
        joining: JoiningMember {
            announced: Some(3),
            initial_window: 38_400,
            rate_based: false,
            window: 38_400,
            moved: false,
        },
    }
}

/// A request from the `n`th address.
fn from(n: u8, join: JoinBundle) -> JoinBundle {
    JoinBundle {
        address: address(n),
        ..join
    }
}

impl Bundles {
    /// Whether all state belongs to present members.
    fn is_tidy(&self) -> bool {
        let members: usize = self.entries.iter().map(|(_, it)| it.bundle.len()).sum();
        let open = self.entries.len();
        members == self.of.len()
            && self.by_key.len() == open
            && self.entries.iter().all(|(_, it)| !it.bundle.is_empty())
            && (self.directives.iter()).all(|it| self.of.contains_key(&it.member))
    }

    fn index(&self, handle: usize) -> Option<usize> {
        self.of.get(&ConnectionHandle(handle)).copied()
    }
}

#[test]
fn identifier_address_and_server_name_together_select_the_bundle() {
    let mut bundles = Bundles::default();
    bundles.join(ConnectionHandle(0), join(Some(1), "a.test"));
    bundles.join(ConnectionHandle(1), join(Some(1), "a.test"));
    bundles.join(ConnectionHandle(2), join(Some(2), "a.test"));
    bundles.join(ConnectionHandle(3), join(Some(1), "b.test"));
    let nameless = JoinBundle {
        server_name: None,
        ..join(Some(1), "")
    };
    bundles.join(ConnectionHandle(4), nameless);
    bundles.join(ConnectionHandle(5), from(2, join(Some(1), "a.test")));
    // Connections without an identifier are matched by address.
    bundles.join(ConnectionHandle(6), join(None, "a.test"));
    bundles.join(ConnectionHandle(7), join(None, "a.test"));
    bundles.join(ConnectionHandle(8), join(None, "b.test"));
    bundles.join(ConnectionHandle(9), from(2, join(None, "a.test")));
    let indices: Vec<_> = (0..10).flat_map(|handle| bundles.index(handle)).collect();
    assert_eq!(indices, [0, 0, 1, 2, 3, 4, 5, 5, 6, 7]);
}

#[test]
fn a_migrated_connection_leaves_its_bundle_and_joins_another() {
    let mut bundles = Bundles::default();
    for handle in 0..3 {
        bundles.join(ConnectionHandle(handle), join(Some(1), "a.test"));
    }
    let moved = |n| {
        let mut join = from(n, join(Some(1), "a.test"));
        join.joining.moved = true;
        join
    };
    bundles.directives.clear();
    bundles.join(ConnectionHandle(1), moved(2));
    let first = bundles.directives.pop_front();
    let first = first.expect("it gets its window");
    assert_eq!(first.member, ConnectionHandle(1));
    let reason = first.directive.decision.expect("it has a reason");
    assert_eq!(reason.decision.cause, DecisionCause::Moved);
    assert!(bundles.directives.is_empty(), "no other member gets one");
    assert_ne!(bundles.index(1), bundles.index(0));
    assert!(bundles.is_tidy());
    bundles.join(ConnectionHandle(0), moved(2));
    bundles.join(ConnectionHandle(2), moved(2));
    assert_eq!(bundles.entries.len(), 1, "the old bundle has ended");
    assert!(bundles.is_tidy());
    bundles.join(ConnectionHandle(2), moved(2));
    assert_eq!(
        bundles.directives.len(),
        2,
        "the outdated directive is dropped"
    );
    assert!(bundles.is_tidy());
}

#[test]
fn a_connection_that_migrates_into_a_full_bundle_is_in_none() {
    let mut bundles = Bundles::default();
    bundles.join(ConnectionHandle(99), from(2, join(Some(1), "a.test")));
    for handle in 0..MAX_MEMBERS {
        bundles.join(ConnectionHandle(handle), join(Some(1), "a.test"));
    }
    bundles.join(ConnectionHandle(99), join(Some(1), "a.test"));
    assert_eq!(bundles.index(99), None);
    assert!(bundles.is_tidy());
}

#[test]
fn a_full_bundle_takes_no_further_connection() {
    let mut bundles = Bundles::default();
    for handle in 0..=MAX_MEMBERS {
        bundles.join(ConnectionHandle(handle), join(Some(1), "a.test"));
    }
    assert_eq!(bundles.index(MAX_MEMBERS), None);
    assert_eq!(bundles.directives.len(), MAX_MEMBERS);
    assert!(bundles.is_tidy());
    // It is not a member, so nothing is freed when it leaves.
    bundles.leave(ConnectionHandle(MAX_MEMBERS));
    assert_eq!(bundles.of.len(), MAX_MEMBERS);
}

#[test]
fn directives_of_a_former_member_are_dropped() {
    let mut bundles = Bundles::default();
    bundles.join(ConnectionHandle(0), join(Some(1), "a.test"));
    bundles.join(ConnectionHandle(1), join(Some(1), "a.test"));
    bundles.leave(ConnectionHandle(0));
    let waiting: Vec<_> = bundles.directives.iter().map(|it| it.member).collect();
    assert_eq!(waiting, [ConnectionHandle(1)]);
}

#[test]
fn identifiers_are_not_written_in_full() {
    let mut bundles = Bundles::default();
    bundles.join(ConnectionHandle(0), join(Some(0xab), "a.test"));
    for text in [
        format!("{bundles:?}"),
        format!("{bundles:#?}"),
        format!("{:?}", join(Some(0xab), "a.test")),
    ] {
        assert!(text.contains("abab"), "{text}");
        assert!(!text.contains("ababab"), "{text}");
        assert!(!text.contains("171, 171, 171"), "{text}");
    }
}

#[test]
fn no_state_is_left_after_connections_leave() {
    const HANDLES: usize = 200;
    let mut rng = Pcg32::seed_from_u64(1);
    let mut bundles = Bundles::default();
    let mut inside = [false; HANDLES];
    for step in 0..10_000 {
        let handle = rng.random_range(0..HANDLES);
        if inside[handle] {
            bundles.leave(ConnectionHandle(handle));
        } else {
            let id = rng.random_range(0..40);
            bundles.join(ConnectionHandle(handle), join(Some(id), "a.test"));
        }
        inside[handle] = !inside[handle];
        if rng.random_bool(0.5) {
            bundles.directives.clear();
        }
        assert!(step % 100 != 0 || bundles.is_tidy());
    }
    for handle in 0..HANDLES {
        bundles.leave(ConnectionHandle(handle));
    }
    assert!(bundles.is_tidy());
    assert!(bundles.entries.is_empty() && bundles.directives.is_empty());
}
