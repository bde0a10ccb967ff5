//! Members that join while others are sending.

use super::owner::*;
use super::*;

/// A bundle whose only member has a window of `packets`.
fn alone(config: BundleConfig, packets: u64) -> Owner {
    let mut owner = Owner::new(config);
    owner.admit(MTU);
    owner.set(0, packets);
    owner
}

#[test]
fn the_first_member_keeps_its_own_window() {
    let mut owner = Owner::new(BundleConfig::default());
    let directives = owner.admit(MTU).expect("the bundle is not full");
    assert_eq!(directives.len(), 1);
    assert_eq!(owner.packets(), [32.0]);
    assert!(owner.member(0).controller.in_slow_start());
}

#[test]
fn an_admitted_member_gets_an_equal_part_of_the_sum_of_windows() {
    let mut owner = alone(BundleConfig::default(), 300);
    owner.admit(MTU);
    assert_eq!(owner.packets(), [150.0; 2]);
    let directives = owner.admit(MTU).expect("the bundle is not full");
    assert_eq!(owner.packets(), [100.0; 3]);
    let reason = directives[2].directive.decision.as_ref();
    let MemberDecision { decision, own } = reason.expect("it has a reason");
    assert_eq!((decision.cause, *own), (DecisionCause::Joined, 2));
    assert_eq!(decision.action, DecisionAction::Split);
    assert_eq!(decision.phase, EnginePhase::SlowStart);
    assert!(owner.members.values().all(|m| m.controller.in_slow_start()));
}

#[test]
fn without_window_splitting_an_admitted_member_changes_no_window() {
    let config = BundleConfig {
        split_initial_window: false,
        ..BundleConfig::default()
    };
    let mut owner = alone(config, 300);
    owner.admit(MTU);
    assert_eq!(owner.packets(), [300.0, 32.0]);
}

#[test]
fn a_member_admitted_after_slow_start_begins_in_congestion_avoidance() {
    let mut owner = alone(BundleConfig::default(), 300);
    owner.member(0).controller.exit_slow_start();
    owner.admit(MTU);
    assert_eq!(owner.packets(), [150.0; 2]);
    assert!(!owner.member(1).controller.in_slow_start());
}

#[test]
fn a_collapsed_member_is_left_out_when_windows_are_divided() {
    let mut owner = alone(BundleConfig::default(), 300);
    owner.admit(MTU);
    owner.lose_as(1, true);
    let directives = owner.admit(MTU).expect("the bundle is not full");
    assert_eq!(directives.len(), 2);
    assert_eq!(owner.packets(), [75.0, 2.0, 75.0]);
}

#[test]
fn beside_collapsed_members_only_a_newcomer_gets_its_part_of_its_own_window() {
    let mut owner = alone(BundleConfig::default(), 300);
    owner.lose_as(0, true);
    owner.admit(MTU);
    assert_eq!(owner.packets(), [2.0, 16.0]);
}

#[test]
fn with_rates_only_the_newcomers_window_is_divided() {
    let mut owner = alone(BundleConfig::default(), 300);
    owner.member(0).rate_based = true;
    owner.admit(MTU);
    assert_eq!(owner.packets(), [300.0, 16.0]);
}

#[test]
fn admission_to_a_fair_bundle_divides_growth() {
    let config = BundleConfig {
        fair: true,
        ..BundleConfig::default()
    };
    let mut owner = alone(config, 300);
    owner.admit(MTU);
    owner.admit(MTU);
    assert!(owner.members.values().all(|m| m.share == 1.0 / 3.0));
}
