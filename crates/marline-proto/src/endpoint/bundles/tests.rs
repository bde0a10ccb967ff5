//! Who belongs together, and what is left of those who are gone.

use std::net::Ipv4Addr;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use super::*;
use crate::coordination::bundle::{BundleConfig, MAX_MEMBERS, Newcomer};
use crate::observe::events::BundleTrigger;

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
        newcomer: Newcomer {
            announced: Some(3),
            initial_window: 38_400,
            window: 38_400,
            moved: false,
        },
    }
}

/// The same, from the `n`th address.
fn from(n: u8, join: JoinBundle) -> JoinBundle {
    JoinBundle {
        address: address(n),
        ..join
    }
}

impl Bundles {
    /// Whether every trace of a member is that of one who is in.
    fn is_tidy(&self) -> bool {
        let members: usize = self.bundles.iter().map(|(_, (_, it))| it.len()).sum();
        let open = self.bundles.len();
        members == self.of.len()
            && self.by_key.len() == open
            && self.bundles.iter().all(|(_, (_, it))| !it.is_empty())
            && (self.directives.iter()).all(|(handle, _)| self.of.contains_key(handle))
    }

    fn place(&self, handle: usize) -> Option<usize> {
        self.of.get(&ConnectionHandle(handle)).copied()
    }
}

#[test]
fn one_identifier_one_address_and_one_name_make_a_bundle() {
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
    // Who names none is matched by address, if at all.
    bundles.join(ConnectionHandle(6), join(None, "a.test"));
    bundles.join(ConnectionHandle(7), join(None, "a.test"));
    bundles.join(ConnectionHandle(8), join(None, "b.test"));
    bundles.join(ConnectionHandle(9), from(2, join(None, "a.test")));
    let places: Vec<_> = (0..10).flat_map(|handle| bundles.place(handle)).collect();
    assert_eq!(places, [0, 0, 1, 2, 3, 4, 5, 5, 6, 7]);
}

#[test]
fn who_moves_leaves_and_joins_anew() {
    let mut bundles = Bundles::default();
    for handle in 0..3 {
        bundles.join(ConnectionHandle(handle), join(Some(1), "a.test"));
    }
    let moved = |n| {
        let mut join = from(n, join(Some(1), "a.test"));
        join.newcomer.moved = true;
        join
    };
    bundles.directives.clear();
    bundles.join(ConnectionHandle(1), moved(2));
    let told = bundles.directives.pop_front();
    let (handle, directive) = told.expect("it is told how to begin");
    assert_eq!(handle, ConnectionHandle(1));
    let (decision, _) = directive.decision.expect("and why");
    assert_eq!(decision.trigger, BundleTrigger::Moved);
    assert!(bundles.directives.is_empty(), "and nobody else is");
    assert_ne!(bundles.place(1), bundles.place(0));
    assert!(bundles.is_tidy());
    bundles.join(ConnectionHandle(0), moved(2));
    bundles.join(ConnectionHandle(2), moved(2));
    assert_eq!(bundles.bundles.len(), 1, "nobody is where they were");
    assert!(bundles.is_tidy());
    bundles.join(ConnectionHandle(2), moved(2));
    assert_eq!(bundles.directives.len(), 2, "what it was told is outdated");
    assert!(bundles.is_tidy());
}

#[test]
fn who_moves_to_where_there_is_no_room_is_on_its_own() {
    let mut bundles = Bundles::default();
    bundles.join(ConnectionHandle(99), from(2, join(Some(1), "a.test")));
    for handle in 0..MAX_MEMBERS {
        bundles.join(ConnectionHandle(handle), join(Some(1), "a.test"));
    }
    bundles.join(ConnectionHandle(99), join(Some(1), "a.test"));
    assert_eq!(bundles.place(99), None);
    assert!(bundles.is_tidy());
}

#[test]
fn one_more_than_a_bundle_takes_is_on_its_own() {
    let mut bundles = Bundles::default();
    for handle in 0..=MAX_MEMBERS {
        bundles.join(ConnectionHandle(handle), join(Some(1), "a.test"));
    }
    assert_eq!(bundles.place(MAX_MEMBERS), None);
    assert_eq!(bundles.directives.len(), MAX_MEMBERS);
    assert!(bundles.is_tidy());
    // Its place does not come free by its own leaving.
    bundles.leave(ConnectionHandle(MAX_MEMBERS));
    assert_eq!(bundles.of.len(), MAX_MEMBERS);
}

#[test]
fn who_left_is_told_nothing_and_neither_is_its_heir() {
    let mut bundles = Bundles::default();
    bundles.join(ConnectionHandle(0), join(Some(1), "a.test"));
    bundles.join(ConnectionHandle(1), join(Some(1), "a.test"));
    bundles.leave(ConnectionHandle(0));
    let told: Vec<_> = bundles.directives.iter().map(|(it, _)| *it).collect();
    assert_eq!(told, [ConnectionHandle(1)]);
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
fn nothing_is_left_of_those_who_left() {
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
    assert!(bundles.bundles.is_empty() && bundles.directives.is_empty());
}
