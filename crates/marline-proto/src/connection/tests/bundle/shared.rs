//! Members whose controllers work with a rate: they share one.

use super::*;
use crate::congestion::Bbr3Config;
use crate::coordination::bundle::RateBasedShare;

fn shared() -> Bundled {
    bundled(BundleConfig::default(), Bbr3Config::WIRELESS)
}

/// How long a connection without a bundle takes for `len` bytes.
fn alone(len: usize, loss: f64) -> Duration {
    let mut bundled = shared();
    let ends = bundled.pair.establish();
    bundled.pair.network.set(link(loss));
    bundled.transfer(&[ends], len)
}

/// Whether `took` is at most 3 % longer than `other`.
fn is_as_fast(took: Duration, other: Duration) -> bool {
    took.as_secs_f64() <= other.as_secs_f64() * 1.03
}

#[test]
fn a_lone_active_member_is_as_fast_as_a_connection_without_a_bundle() {
    for len in [10_000, 100_000, 1_000_000, 5_000_000] {
        let mut bundled = shared();
        let members = bundled.open_all(1, 3);
        for active in members {
            let took = bundled.transfer(&[active], len);
            let alone = alone(len, 0.0);
            assert!(is_as_fast(took, alone), "{len}: {took:?}, alone: {alone:?}");
        }
    }
}

#[test]
fn a_later_member_does_not_start_from_nothing() {
    let mut bundled = shared();
    let first = bundled.open(1, 2);
    bundled.transfer(&[first], 4_000_000);
    let second = bundled.open(1, 2);
    let took = bundled.transfer(&[second], 300_000);
    let alone = alone(300_000, 0.0);
    assert!(took < alone * 4 / 5, "{took:?}, alone: {alone:?}");
}

#[test]
fn three_members_together_are_as_fast_as_one_connection() {
    let mut bundled = shared();
    let members = bundled.open_all(1, 3);
    bundled.transfer(&members, 100_000);
    let took = bundled.transfer(&members, 1_000_000);
    let alone = alone(3_000_000, 0.0);
    assert!(is_as_fast(took, alone), "{took:?}, alone: {alone:?}");
}

#[test]
fn a_member_that_is_dead_slows_the_others_little() {
    let closed = transfer_beside_dead(false);
    let dead = transfer_beside_dead(true);
    assert!(dead < closed * 3 / 2, "{dead:?}, closed: {closed:?}");
}

fn transfer_beside_dead(dead: bool) -> Duration {
    let mut bundled = shared();
    let members = bundled.open_all(1, 3);
    let now = bundled.pair.now;
    if dead {
        let server = bundled.pair.server(members[2].server);
        let id = server.open(Dir::Uni).unwrap();
        server.write(id, &pattern(100_000)).unwrap();
        bundled.pair.client.connections.remove(&members[2].client);
    } else {
        bundled.pair.client(members[2].client).close(now, 0, b"");
    }
    bundled.transfer(&members[..2], 2_000_000)
}

#[test]
fn a_member_that_moves_leaves_the_controller_of_the_others() {
    let mut bundled = shared();
    let members = bundled.open_all(1, 2);
    bundled.transfer(&members, 2_000_000);
    bundled.pair.drive(Duration::from_millis(200));
    let before = bundled.windows(&members);
    let now = bundled.pair.now;
    let elsewhere = SocketAddr::from(([198, 51, 100, 7], 50_000));
    bundled
        .pair
        .client(members[1].client)
        .rebind(now, elsewhere);
    bundled.pair.drive(Duration::from_secs(1));
    let after = bundled.windows(&members);
    assert_eq!(after[0], before[0]);
    assert!(after[1] < before[1] / 2, "{before:?}, {after:?}");
    let last = bundled.updates().pop().unwrap().decision;
    assert_eq!(
        (last.trigger, last.action),
        (BundleTrigger::Moved, BundleAction::Shared)
    );
}

#[test]
fn controllers_are_shared_if_the_share_is_that_of_one() {
    for (rate_based_share, fair, shares) in [
        (RateBasedShare::One, false, true),
        (RateBasedShare::Each, true, true),
        (RateBasedShare::Each, false, false),
    ] {
        let config = BundleConfig {
            rate_based_share,
            fair,
            ..BundleConfig::default()
        };
        let mut bundled = bundled(config, Bbr3Config::WIRELESS);
        bundled.open_all(1, 3);
        let updates = bundled.updates();
        let shared = updates
            .iter()
            .all(|update| update.decision.action == BundleAction::Shared);
        assert_eq!(shared, shares);
    }
}
