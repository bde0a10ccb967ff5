//! Which directives a bundle gives its members.

use super::owner::*;
use super::*;

fn decisions(directives: &Directives) -> impl Iterator<Item = &BundleDecision> {
    let decisions = directives
        .iter()
        .filter_map(|it| it.directive.decision.as_ref());
    decisions.map(|it| &*it.decision)
}

fn actions(directives: &Directives) -> Vec<DecisionAction> {
    decisions(directives)
        .map(|decision| decision.action)
        .collect()
}

fn phase(directives: &Directives) -> Option<EnginePhase> {
    decisions(directives).next().map(|decision| decision.phase)
}

fn counted(directives: &Directives) -> u64 {
    decisions(directives)
        .map(|decision| decision.fluctuations)
        .max()
        .unwrap_or(0)
}

/// A connection whose window grew during its handshake.
const GROWN: JoiningMember = JoiningMember {
    announced: None,
    initial_window: 32 * MTU,
    rate_based: false,
    window: 100 * MTU,
    moved: false,
};

/// The decision of a bundle about a joining member.
struct Admitted {
    decision: BundleDecision,
    window: Option<u64>,
}

fn admit(bundle: &mut Bundle<u32>, joining: &JoiningMember) -> Admitted {
    let key = 1000 + bundle.len() as u32;
    let directive = bundle.join(key, joining).expect("the bundle is not full");
    let reason = directive.decision.expect("it has a reason");
    assert_eq!(reason.own, 0);
    Admitted {
        decision: BundleDecision::clone(&reason.decision),
        window: directive.window,
    }
}

/// The measured growth that the next decision uses.
fn growth_of_next(owner: &mut Owner) -> f64 {
    admit(&mut owner.bundle, &GROWN).decision.gamma
}

/// An owner in congestion avoidance, with windows of `packets`.
fn avoiding(config: BundleConfig, packets: &[u64]) -> Owner {
    let mut owner = Owner::with(config, packets.len(), 100);
    for _ in 0..30 {
        owner.lose(0);
        owner.wait(RTT);
    }
    assert!(
        owner
            .members
            .values()
            .all(|m| !m.controller.in_slow_start())
    );
    for (key, &packets) in (0..).zip(packets) {
        owner.set(key, packets);
        owner.member(key).controller.exit_slow_start();
    }
    owner
}

#[test]
fn a_loss_synchronizes_windows_as_in_the_example_of_the_paper() {
    let mut owner = Owner::with(BundleConfig::published(), 3, 30);
    let directives = owner.lose(1);
    assert_eq!(actions(&directives), [DecisionAction::Synchronized; 3]);
    assert_eq!(owner.packets(), [24.7; 3]);
    assert!(owner.members.values().all(|m| m.controller.in_slow_start()));
}

#[test]
fn three_members_leave_slow_start_with_the_eighth_round_that_has_an_event() {
    let mut owner = Owner::with(BundleConfig::published(), 3, 1000);
    for event in 1..=8 {
        owner.wait(RTT);
        let directives = owner.lose(event % 3);
        let expected = match event {
            8 => DecisionAction::Exited,
            _ => DecisionAction::Synchronized,
        };
        assert_eq!(actions(&directives), [expected; 3]);
    }
    assert!(
        owner
            .members
            .values()
            .all(|m| !m.controller.in_slow_start())
    );
    let before = owner.windows();
    owner.lose(0);
    assert_eq!(
        owner.windows()[1..],
        before[1..],
        "each member reacts on its own"
    );
}

/// Section IV-A: growth is updated per round.
#[test]
fn events_of_one_round_count_once_as_published() {
    let mut owner = Owner::with(BundleConfig::published(), 3, 100);
    assert_eq!(counted(&owner.lose(0)), 1);
    for key in [1, 2] {
        let directives = owner.lose(key);
        assert_eq!(actions(&directives), [DecisionAction::Coalesced; 3]);
        assert_eq!(counted(&directives), 1);
    }
    owner.wait(RTT);
    assert_eq!(counted(&owner.lose(0)), 2);
}

#[test]
fn each_event_of_a_round_counts_in_the_variant_of_every_event() {
    let mut owner = Owner::with(BundleConfig::published_every_event(), 3, 100);
    for event in 1..=7 {
        let directives = owner.lose(event % 3);
        assert_eq!(actions(&directives), [DecisionAction::Synchronized; 3]);
        assert_eq!(counted(&directives), event.into());
    }
    assert_eq!(actions(&owner.lose(0)), [DecisionAction::Exited; 3]);
}

#[test]
fn a_lone_active_member_does_not_end_slow_start_for_all() {
    let config = BundleConfig {
        scope: BundleScope::Active,
        ..BundleConfig::published_every_event()
    };
    let mut owner = Owner::with(config, 3, 1000);
    owner.member(1).active = false;
    owner.member(2).active = false;
    for _ in 1..8 {
        assert_eq!(actions(&owner.lose(0)), [DecisionAction::Synchronized]);
        assert!(owner.member(0).controller.in_slow_start());
    }
    assert_eq!(actions(&owner.lose(0)), [DecisionAction::Exited]);
}

#[test]
fn persistent_congestion_does_not_affect_other_members() {
    let mut owner = Owner::with(BundleConfig::default(), 3, 30);
    assert!(owner.lose_as(1, true).is_empty());
    assert_eq!(owner.packets(), [30.0, 2.0, 30.0]);
}

#[test]
fn a_collapsed_member_takes_no_part_until_it_leaves_slow_start() {
    let mut owner = avoiding(BundleConfig::published(), &[100, 100, 100]);
    owner.lose_as(1, true);
    let mut others = [100.0; 2];
    while owner.member(1).controller.in_slow_start() {
        assert!(owner.lose(0).iter().all(|it| it.member != 1));
        owner.set(0, 100);
        assert!(
            owner.rounds().is_empty(),
            "the others' windows are within the threshold"
        );
        let packets = owner.packets();
        assert!(packets[0] >= others[0] && packets[2] >= others[1]);
        others = [packets[0].min(100.0), packets[2]];
    }
    owner.set(1, 30);
    assert_eq!(actions(&owner.rounds()), [DecisionAction::Equalized; 3]);
    let equal = owner.windows();
    assert!(equal.iter().all(|&window| window == equal[0]));
}

#[test]
fn reports_of_a_collapsed_member_are_discarded() {
    let mut owner = avoiding(BundleConfig::default(), &[100, 100, 30]);
    owner.lose_as(1, true);
    assert!(owner.round(1).is_empty());
    owner.set(1, 90);
    assert!(!owner.member(1).controller.in_slow_start());
    assert!(owner.round(0).is_empty());
    assert!(owner.round(2).is_empty(), "one has not reported yet");
    assert_eq!(actions(&owner.round(1)), [DecisionAction::Equalized; 3]);
}

#[test]
fn without_state_no_member_is_made_to_leave_slow_start() {
    let config = BundleConfig {
        sync_state: false,
        corroborated_by: Some(1),
        ..BundleConfig::published_every_event()
    };
    let mut owner = Owner::with(config, 3, 30);
    let searching = |owner: &Owner| {
        let members = owner.members.values();
        members
            .map(|m| m.controller.in_slow_start())
            .collect::<Vec<_>>()
    };
    for _ in 0..10 {
        let directives = owner.lose(0);
        assert_eq!(actions(&directives), [DecisionAction::Synchronized; 3]);
        assert_eq!(phase(&directives), Some(EnginePhase::SlowStart));
        assert_eq!(owner.windows()[0], owner.sum() / 3);
        assert_eq!(searching(&owner), [false, true, true]);
    }
    assert_eq!(phase(&owner.delay(1)), Some(EnginePhase::SlowStart));
    let last = owner.lose(2);
    assert_eq!(actions(&last), [DecisionAction::Synchronized; 3]);
    assert_eq!(phase(&last), Some(EnginePhase::CongestionAvoidance));
    assert_eq!(actions(&owner.lose(2)), [DecisionAction::None; 3]);
    // A member that joins later gets the others' window and stays in slow start.
    let late = owner.join().expect("the bundle is not full");
    for key in 0..3 {
        owner.set(key, 100);
    }
    assert_eq!(actions(&owner.rounds()), [DecisionAction::Equalized; 4]);
    assert!(owner.member(late).controller.in_slow_start());
}

#[test]
fn without_state_the_bundle_leaves_slow_start_with_its_last_member() {
    let config = BundleConfig {
        sync_state: false,
        ..BundleConfig::default()
    };
    let mut owner = Owner::with(config.clone(), 2, 100);
    owner.lose(0);
    let directives = owner.lose(1);
    assert_eq!(actions(&directives), [DecisionAction::Coalesced; 2]);
    assert_eq!(phase(&directives), Some(EnginePhase::CongestionAvoidance));
    let mut owner = Owner::with(config, 2, 100);
    for (key, packets) in [(0, 100), (1, 20)] {
        owner.member(key).controller.exit_slow_start();
        owner.set(key, packets);
    }
    assert_eq!(actions(&owner.rounds()), [DecisionAction::Equalized; 2]);
}

#[test]
fn without_windows_and_state_members_are_independent() {
    let config = BundleConfig {
        sync_windows: false,
        sync_state: false,
        corroborated_by: Some(1),
        ..BundleConfig::published()
    };
    let mut owner = Owner::with(config, 3, 30);
    assert_eq!(actions(&owner.lose(1)), [DecisionAction::None; 3]);
    assert_eq!(actions(&owner.delay(2)), [DecisionAction::None; 3]);
    assert_eq!(owner.packets(), [30.0, 21.0, 30.0]);
    assert!(owner.member(0).controller.in_slow_start());
    assert!(owner.rounds().is_empty());
    let directives = owner.lose(0);
    assert_eq!(actions(&directives), [DecisionAction::None; 3]);
    assert_eq!(counted(&directives), 0);
}

#[test]
fn events_of_one_member_coalesce_within_its_round_trip_time() {
    let config = BundleConfig {
        coalesce: Coalesce::Member,
        ..BundleConfig::default()
    };
    let mut owner = Owner::with(config, 3, 100);
    assert_eq!(counted(&owner.lose(0)), 1);
    assert_eq!(actions(&owner.lose(0)), [DecisionAction::Coalesced; 3]);
    assert_eq!(counted(&owner.lose(1)), 2);
    owner.wait(RTT);
    assert_eq!(counted(&owner.lose(0)), 3);
}

#[test]
fn events_of_all_members_coalesce_within_the_longest_round_trip_time() {
    let mut owner = Owner::with(BundleConfig::default(), 3, 100);
    owner.member(2).rtt = RTT * 3;
    assert_eq!(counted(&owner.lose(0)), 1);
    owner.wait(RTT * 2);
    assert_eq!(actions(&owner.lose(1)), [DecisionAction::Coalesced; 3]);
    owner.wait(RTT);
    assert_eq!(counted(&owner.lose(1)), 2);
}

#[test]
fn delay_at_two_members_ends_slow_start_for_all() {
    let mut owner = Owner::with(BundleConfig::default(), 3, 100);
    for key in [0, 1, 2] {
        assert_eq!(
            phase(&owner.lose(key)),
            Some(EnginePhase::SlowStart),
            "losses may be random"
        );
    }
    owner.wait(RTT);
    owner.delay(0);
    assert_eq!(phase(&owner.delay(0)), Some(EnginePhase::SlowStart));
    owner.wait(RTT);
    assert_eq!(phase(&owner.delay(1)), Some(EnginePhase::SlowStart));
    let sum = owner.sum();
    assert_eq!(actions(&owner.delay(2)), [DecisionAction::Exited; 3]);
    assert_eq!(owner.sum(), sum, "windows do not change");
    assert!(
        owner
            .members
            .values()
            .all(|m| !m.controller.in_slow_start())
    );
}

#[test]
fn delay_at_the_only_active_member_ends_slow_start() {
    let mut owner = Owner::with(BundleConfig::default(), 3, 100);
    owner.member(0).active = false;
    owner.member(2).active = false;
    assert_eq!(actions(&owner.delay(1)), [DecisionAction::Exited]);
}

#[test]
fn a_delay_causes_a_backoff_only_if_configured() {
    for backs_off in [false, true] {
        let config = BundleConfig {
            backoff_on_delay: backs_off,
            ..BundleConfig::published()
        };
        let mut owner = Owner::with(config, 3, 30);
        owner.delay(1);
        let expected = if backs_off { 24.7 } else { 27.4 };
        assert_eq!(owner.packets(), [expected; 3]);
    }
}

#[test]
fn a_delay_in_congestion_avoidance_changes_nothing() {
    let mut owner = avoiding(BundleConfig::published(), &[100, 100, 100]);
    let directives = owner.delay(1);
    assert_eq!(actions(&directives), [DecisionAction::None; 3]);
    assert_eq!(owner.packets(), [100.0; 3]);
}

#[test]
fn a_delay_that_ends_slow_start_backs_off_its_own_member() {
    let config = BundleConfig {
        avoidance_growth: 1.49,
        ..BundleConfig::published()
    };
    let mut owner = Owner::with(config, 3, 30);
    assert_eq!(actions(&owner.delay(1)), [DecisionAction::Exited; 3]);
    assert_eq!(owner.packets(), [30.0, 21.0, 30.0]);
}

#[test]
fn windows_that_drift_apart_become_equal_without_slow_start() {
    let mut owner = avoiding(BundleConfig::published(), &[100, 100, 40]);
    owner.rounds();
    assert_eq!(owner.sum() / 3, owner.windows()[0]);
    assert!(owner.windows().iter().all(|&it| it == owner.windows()[0]));
    assert!(
        owner
            .members
            .values()
            .all(|m| !m.controller.in_slow_start())
    );
}

#[test]
fn a_member_that_joins_in_congestion_avoidance_is_equalized_after_a_round() {
    let mut owner = avoiding(BundleConfig::default(), &[100, 100]);
    let late = owner.join().expect("the bundle is not full");
    assert!(owner.member(late).controller.in_slow_start());
    let directives = owner.rounds();
    assert_eq!(actions(&directives), [DecisionAction::Equalized; 3]);
    assert!(owner.windows().iter().all(|&it| it == owner.windows()[0]));
    assert!(!owner.member(late).controller.in_slow_start());
}

#[test]
fn windows_are_equalized_only_after_all_active_members_have_reported() {
    let mut owner = avoiding(BundleConfig::default(), &[100, 20, 20]);
    assert!(owner.round(0).is_empty());
    assert!(owner.round(0).is_empty());
    assert!(owner.round(1).is_empty());
    assert_eq!(owner.round(2).len(), 3);
    // Members that left or are idle need not report.
    owner.set(0, 100);
    owner.member(1).active = false;
    owner.round(0);
    assert_eq!(owner.round(2).len(), 2);
}

#[test]
fn a_full_bundle_rejects_members_until_one_leaves() {
    let mut owner = Owner::with(BundleConfig::default(), MAX_MEMBERS, 10);
    assert_eq!(owner.join(), None);
    assert_eq!(owner.bundle.len(), MAX_MEMBERS);
    owner.leave(3);
    assert!(owner.join().is_some());
    owner.leave(5);
    assert_eq!(owner.bundle.join(0, &GROWN), None, "no key joins twice");
}

#[test]
fn signals_of_former_members_are_ignored() {
    let mut owner = Owner::with(BundleConfig::published(), 3, 30);
    let view = owner.member(2).view();
    owner.bundle.leave(2);
    let directives = owner
        .bundle
        .on_signal(owner.now, 2, Signal::Round, &mut |_| Some(view));
    assert!(directives.is_empty());
    // The owner may have dropped a member before its bundle knows.
    owner.members.remove(&1);
    assert_eq!(owner.lose(0).len(), 1);
    let directives = owner
        .bundle
        .on_signal(owner.now, 1, Signal::Round, &mut |_| None);
    assert!(directives.is_empty());
}

#[test]
fn a_newcomer_gets_a_part_of_the_initial_window_whatever_its_present_window() {
    let mut owner = Owner::new(BundleConfig::default());
    for packets in split_initial_window(32, 3) {
        let Admitted { decision, window } = admit(&mut owner.bundle, &GROWN);
        assert_eq!(window, Some(packets * MTU));
        assert_eq!(decision.cause, DecisionCause::Joined);
        assert_eq!(decision.action, DecisionAction::Split);
        assert_eq!(decision.before, [100 * MTU]);
        assert_eq!(decision.after, [packets * MTU]);
    }
    let mut owner = Owner::new(BundleConfig {
        split_initial_window: false,
        ..BundleConfig::default()
    });
    let window = admit(&mut owner.bundle, &GROWN).window;
    assert_eq!(window, Some(100 * MTU), "it keeps its window");
}

#[test]
fn a_migrated_member_gets_a_part_of_the_initial_window() {
    let mut owner = avoiding(BundleConfig::default(), &[100, 90]);
    let before = owner.windows();
    let moved = JoiningMember {
        moved: true,
        ..GROWN
    };
    let Admitted { decision, window } = admit(&mut owner.bundle, &moved);
    assert_eq!(decision.cause, DecisionCause::Moved);
    assert_eq!(
        window,
        split_initial_window(32, 3).nth(2).map(|it| it * MTU)
    );
    assert_eq!(owner.windows(), before);
}

#[test]
fn any_announced_number_of_connections_gives_a_window() {
    for announced in [1, 2, 3, 16, 17, 1000, (1 << 62) - 1, u64::MAX, 0] {
        let mut owner = Owner::new(BundleConfig::default());
        for _ in 0..MAX_MEMBERS {
            assert!(owner.join_with(MTU, Some(announced)).is_some());
        }
    }
    let config = BundleConfig {
        floor_packets: 4,
        ..BundleConfig::default()
    };
    let mut owner = Owner::new(config);
    owner.join_with(MTU, Some(u64::MAX));
    assert_eq!(owner.packets(), [4.0]);
}

#[test]
fn slow_start_growth_is_measured_and_clamped() {
    let mut owner = Owner::with(BundleConfig::default(), 3, 30);
    owner.rounds();
    owner.rounds();
    assert!((growth_of_next(&mut owner) - 2.0).abs() < 1e-9);
    // Growth after a directive is not measured, and growth beyond the bounds is clamped.
    let mut owner = Owner::with(BundleConfig::default(), 3, 30);
    owner.rounds();
    for key in 0..3 {
        owner.set(key, 3000);
    }
    owner.rounds();
    assert!((growth_of_next(&mut owner) - 2.0).abs() < 1e-9);
    let mut owner = Owner::with(BundleConfig::default(), 3, 3000);
    for key in 0..3 {
        owner.signal(key, Signal::Round);
    }
    for key in 0..3 {
        owner.set(key, 3001);
        owner.signal(key, Signal::Round);
    }
    assert!((growth_of_next(&mut owner) - 1.1).abs() < 1e-9);
}

#[test]
fn the_backoff_of_a_member_is_measured_and_clamped() {
    for (left, believed) in [(0.5, 0.5), (0.1, 0.3), (1.0, 0.95)] {
        let config = BundleConfig {
            slow_start_growth: Some(1.5),
            ..BundleConfig::default()
        };
        let mut owner = Owner::with(config, 2, 1000);
        let before = 1000 * MTU;
        let after = (before as f64 * left) as u64;
        owner.member(0).controller.set_window(after);
        let directives = owner.signal(
            0,
            Signal::Fluctuation {
                loss: true,
                persistent: false,
                before,
                after,
            },
        );
        let reason = directives[0].directive.decision.as_ref();
        let decision = &reason.expect("it has a reason").decision;
        let gamma = next_growth(1.5, 2, believed, 1.0);
        assert!(
            (decision.gamma - gamma).abs() < 1e-9,
            "{left}: {decision:?}"
        );
    }
}

fn fair() -> BundleConfig {
    BundleConfig {
        fair: true,
        backoff: Some(0.7),
        ..BundleConfig::default()
    }
}

#[test]
fn a_fair_bundle_backs_off_as_one_connection() {
    let mut owner = Owner::with(fair(), 3, 100);
    assert_eq!(actions(&owner.lose(1)), [DecisionAction::BackedOff; 3]);
    assert_eq!(owner.packets(), [70.0; 3]);
    assert_eq!(actions(&owner.lose(2)), [DecisionAction::Coalesced; 3]);
    assert_eq!(owner.packets(), [70.0; 3]);
    owner.wait(RTT);
    owner.lose(2);
    assert_eq!(owner.packets(), [49.0; 3]);
    assert!(
        owner
            .members
            .values()
            .all(|m| !m.controller.in_slow_start())
    );
}

#[test]
fn a_loss_after_a_delay_still_reduces_a_fair_bundle() {
    let mut owner = Owner::with(fair(), 3, 100);
    owner.delay(0);
    assert_eq!(owner.packets(), [100.0; 3]);
    owner.lose(1);
    assert_eq!(owner.packets(), [70.0; 3]);
}

#[test]
fn simultaneous_losses_reduce_a_fair_bundle_once() {
    let mut owner = Owner::with(fair(), 3, 100);
    let first = owner.react(0, false);
    let second = owner.react(1, false);
    owner.signal(0, first);
    let after_first = owner.windows();
    owner.signal(1, second);
    assert_eq!(owner.windows(), after_first);
    assert!(owner.sum() <= 210 * MTU);
}

#[test]
fn shares_of_a_fair_bundle_sum_to_one() {
    let mut owner = Owner::with(fair(), 3, 100);
    let shares = |owner: &Owner| owner.members.values().map(|m| m.share).sum::<f64>();
    owner.rounds();
    assert!((shares(&owner) - 1.0).abs() < 1e-9);
    owner.leave(1);
    owner.rounds();
    assert!((shares(&owner) - 1.0).abs() < 1e-9);
    owner.join();
    owner.join();
    owner.rounds();
    assert!((shares(&owner) - 1.0).abs() < 1e-9);
}

#[test]
fn windows_at_the_floor_stay_there() {
    for config in [BundleConfig::published(), fair()] {
        let mut owner = Owner::with(config, 3, 2);
        for _ in 0..20 {
            owner.lose(0);
            owner.delay(1);
            owner.wait(RTT);
        }
        assert_eq!(owner.packets(), [2.0; 3]);
    }
}

#[test]
fn rates_that_drift_apart_are_set_to_their_mean() {
    let mut owner = Owner::with(BundleConfig::default(), 3, 30);
    for (key, rate) in [(0, Some(100)), (1, Some(100)), (2, None)] {
        owner.member(key).rate_based = true;
        owner.member(key).rate = rate;
    }
    let report = |owner: &mut Owner| {
        let directives = (0..3).map(|key| owner.signal(key, Signal::Round));
        directives.flatten().collect::<Directives>()
    };
    assert!(report(&mut owner).is_empty(), "one has no rate yet");
    owner.member(2).rate = Some(50);
    assert!(
        report(&mut owner).is_empty(),
        "a ratio of 2 does not exceed 2"
    );
    owner.member(2).rate = Some(40);
    assert_eq!(report(&mut owner).len(), 3);
    assert!(owner.members.values().all(|m| m.rate == Some(80)));
    assert!(owner.lose(0).is_empty(), "rates do not follow losses");
}
