//! Who belongs together, and what is left of those who are gone.

use std::net::Ipv4Addr;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use super::*;
use crate::coordination::bundle::MAX_MEMBERS;

const FIRST: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn join(id: Option<u8>, server_name: &str) -> JoinBundle {
    JoinBundle {
        config: Arc::new(BundleConfig::default()),
        membership: id.map(|id| Membership {
            id: MembershipId([id; 16]),
            connections: 3,
        }),
        address: None,
        server_name: Some(server_name.into()),
        view: MemberView {
            window: 38_400,
            datagram: 1200,
            in_slow_start: true,
            rate_based: false,
            rate: None,
            smoothed_rtt: Duration::from_millis(40),
            connected: true,
            active: true,
            remote: FIRST,
        },
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
fn only_one_identifier_and_one_name_make_a_bundle() {
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
    bundles.join(ConnectionHandle(5), join(None, "a.test"));
    let by_address = |name| JoinBundle {
        address: Some(FIRST),
        ..join(None, name)
    };
    bundles.join(ConnectionHandle(6), by_address("a.test"));
    bundles.join(ConnectionHandle(7), by_address("a.test"));
    bundles.join(ConnectionHandle(8), by_address("b.test"));
    let places: Vec<_> = (0..9).map(|handle| bundles.place(handle)).collect();
    let expected = [Some(0), Some(0), Some(1), Some(2), Some(3), None];
    assert_eq!(places[..6], expected);
    assert_eq!(places[6..], [Some(4), Some(4), Some(5)]);
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
    assert!(bundles.poll_directive_of(ConnectionHandle(0)).is_none());
    assert!(bundles.poll_directive_of(ConnectionHandle(1)).is_some());
    assert!(bundles.directives.is_empty());
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
