//! Members that come while the others are at work.

use super::owner::*;
use super::*;
use crate::observe::events::{BundleAction, BundlePhase, BundleTrigger};

/// A bundle whose only member has a window of `packets`.
fn alone(config: BundleConfig, packets: u64) -> Owner {
    let mut owner = Owner::new(config);
    owner.admit(MTU);
    owner.set(0, packets);
    owner
}

#[test]
fn the_first_brings_its_own_window() {
    let mut owner = Owner::new(BundleConfig::default());
    let told = owner.admit(MTU).expect("there is room");
    assert_eq!(told.len(), 1);
    assert_eq!(owner.packets(), [32.0]);
    assert!(owner.member(0).controller.in_slow_start());
}

#[test]
fn what_the_others_have_is_shared_out() {
    let mut owner = alone(BundleConfig::default(), 300);
    owner.admit(MTU);
    assert_eq!(owner.packets(), [150.0; 2]);
    let told = owner.admit(MTU).expect("there is room");
    assert_eq!(owner.packets(), [100.0; 3]);
    let (decision, place) = told[2].1.decision.as_ref().expect("it is told why");
    assert_eq!((decision.trigger, *place), (BundleTrigger::Joined, 2));
    assert_eq!(decision.action, BundleAction::Split);
    assert_eq!(decision.phase, BundlePhase::SlowStart);
    assert!(owner.members.values().all(|m| m.controller.in_slow_start()));
}

#[test]
fn without_a_shared_initial_window_all_keep_theirs() {
    let config = BundleConfig {
        split_initial_window: false,
        ..BundleConfig::default()
    };
    let mut owner = alone(config, 300);
    owner.admit(MTU);
    assert_eq!(owner.packets(), [300.0, 32.0]);
}

#[test]
fn who_comes_after_slow_start_does_not_search_again() {
    let mut owner = alone(BundleConfig::default(), 300);
    owner.member(0).controller.exit_slow_start();
    owner.admit(MTU);
    assert_eq!(owner.packets(), [150.0; 2]);
    assert!(!owner.member(1).controller.in_slow_start());
}

#[test]
fn who_collapsed_has_nothing_to_share() {
    let mut owner = alone(BundleConfig::default(), 300);
    owner.admit(MTU);
    owner.lose_as(1, true);
    let told = owner.admit(MTU).expect("there is room");
    assert_eq!(told.len(), 2);
    assert_eq!(owner.packets(), [75.0, 2.0, 75.0]);
}

#[test]
fn where_all_have_collapsed_one_begins_with_its_part() {
    let mut owner = alone(BundleConfig::default(), 300);
    owner.lose_as(0, true);
    owner.admit(MTU);
    assert_eq!(owner.packets(), [2.0, 16.0]);
}

#[test]
fn rates_are_not_shared_out() {
    let mut owner = alone(BundleConfig::default(), 300);
    owner.member(0).rate_based = true;
    owner.admit(MTU);
    assert_eq!(owner.packets(), [300.0, 16.0]);
}

#[test]
fn a_fair_bundle_shares_growth_out_too() {
    let config = BundleConfig {
        fair: true,
        ..BundleConfig::default()
    };
    let mut owner = alone(config, 300);
    owner.admit(MTU);
    owner.admit(MTU);
    assert!(owner.members.values().all(|m| m.share == 1.0 / 3.0));
}
