//! The recursion of slow start, equal rates and the split of initial windows, as numbers.

use proptest::prelude::*;

use super::*;

/// The settings of the paper, with windows in packets.
fn published() -> LossBasedConfig {
    let config = BundleConfig::published();
    LossBasedConfig {
        affected_growth: config.affected_growth,
        avoidance_growth: config.avoidance_growth,
        imbalance: config.imbalance,
        floor: 2.0,
        sync_windows: true,
        sync_state: true,
    }
}

/// An event of the first of `members`.
fn event(members: usize) -> Fluctuation {
    Fluctuation {
        affected: 0,
        members,
        backoff: 0.7,
        slow_start_growth: 1.5,
    }
}

/// The event that ends slow start for `members`, if one of the first `most` does.
fn exit_index(config: LossBasedConfig, members: usize, most: u64) -> Option<u64> {
    let mut engine = LossBasedEngine::new(config);
    let mut windows = vec![100.0; members];
    (1..=most).find(|_| {
        windows.fill(100.0);
        engine.on_fluctuation(&event(members), &mut windows) == DecisionAction::Exited
    })
}

#[test]
fn slow_start_ends_with_the_event_of_figure_7() {
    let table = [1, 5, 8, 11, 15, 18, 21, 25];
    for (members, index) in (1..).zip(table) {
        let exits = exit_index(published(), members, 100);
        assert_eq!(exits, Some(index), "{members} members");
    }
}

#[test]
fn growth_that_tends_to_the_threshold_never_ends_slow_start() {
    let config = LossBasedConfig {
        affected_growth: 1.05,
        ..published()
    };
    for members in 1..=MAX_MEMBERS {
        assert_eq!(exit_index(config, members, 10_000), None);
    }
}

#[test]
fn an_event_scales_the_sum_of_windows_by_gamma_over_initial_growth() {
    let mut engine = LossBasedEngine::new(published());
    let mut windows = [21.0, 30.0, 30.0];
    let action = engine.on_fluctuation(&event(3), &mut windows);
    assert_eq!(action, DecisionAction::Synchronized);
    let sum: f64 = windows.iter().sum();
    assert!((sum - 74.0).abs() < 1e-9, "{sum}");
    assert!((sum * 1.5 - 111.0).abs() < 1e-9);
    assert!(windows.iter().all(|&window| window == windows[0]));
}

#[test]
fn growth_counts_members_that_take_no_part_in_the_decision() {
    let mut engine = LossBasedEngine::new(published());
    let mut windows = [100.0];
    let action = engine.on_fluctuation(&event(3), &mut windows);
    assert_eq!(action, DecisionAction::Synchronized);
    assert_eq!(engine.gamma(), Some(next_growth(1.5, 3, 0.7, 1.0)));
}

#[test]
fn without_state_windows_become_equal_and_keep_their_sum() {
    let mut engine = LossBasedEngine::new(LossBasedConfig {
        sync_state: false,
        ..published()
    });
    for events in 1..100 {
        let mut windows = [21.0, 30.0, 30.0];
        let action = engine.on_fluctuation(&event(3), &mut windows);
        assert_eq!(action, DecisionAction::Synchronized);
        assert_eq!(windows, [27.0; 3]);
        assert_eq!((engine.events(), engine.gamma()), (events, None));
    }
    assert_eq!(engine.phase(), EnginePhase::SlowStart);
}

#[test]
fn an_engine_that_synchronizes_nothing_decides_nothing() {
    let mut engine = LossBasedEngine::new(LossBasedConfig {
        sync_windows: false,
        sync_state: false,
        ..published()
    });
    let mut windows = [21.0, 30.0, 30.0];
    for _ in 0..100 {
        let action = engine.on_fluctuation(&event(3), &mut windows);
        assert_eq!(action, DecisionAction::None);
        assert_eq!(engine.on_round(&mut windows), DecisionAction::None);
    }
    assert_eq!(windows, [21.0, 30.0, 30.0]);
    assert_eq!((engine.events(), engine.gamma()), (0, None));
    assert_eq!(engine.phase(), EnginePhase::SlowStart);
}

#[test]
fn empty_lists_of_windows_or_rates_lead_to_no_decision() {
    let mut engine = LossBasedEngine::new(published());
    assert_eq!(
        engine.on_fluctuation(&event(1), &mut []),
        DecisionAction::None
    );
    assert_eq!(engine.events(), 0);
    engine.exit();
    assert_eq!(engine.on_round(&mut []), DecisionAction::None);
    assert!(!equalize_rates(&mut [], 2.0));
}

#[test]
fn a_ratio_at_the_threshold_is_no_imbalance() {
    let mut engine = LossBasedEngine::new(published());
    engine.exit();
    assert_eq!(engine.on_round(&mut [45.0, 30.0]), DecisionAction::None);
    assert_eq!(
        engine.on_round(&mut [46.0, 30.0]),
        DecisionAction::Equalized
    );
    assert!(!equalize_rates(&mut [Some(2.0), Some(1.0)], 2.0));
    assert!(equalize_rates(&mut [Some(2.1), Some(1.0)], 2.0));
    assert!(equalize_rates(&mut [Some(1.0), Some(0.0)], 2.0));
    assert!(!equalize_rates(&mut [Some(0.0), Some(0.0)], 2.0));
}

prop_compose! {
    fn config()(
        affected_growth in 0.8..1.2,
        avoidance_growth in 1.0..1.3,
        imbalance in 1.0..3.0,
        floor in 0.0..5.0,
        sync_windows: bool,
        sync_state: bool,
    ) -> LossBasedConfig {
        LossBasedConfig { affected_growth, avoidance_growth, imbalance, floor, sync_windows, sync_state }
    }
}

proptest! {
    #[test]
    fn growth_follows_its_closed_form(
        members in 1..=MAX_MEMBERS,
        backoff in 0.3..0.95,
        growth in 0.9..1.1,
        initial in 1.1..2.0,
        events in 1..40,
    ) {
        let others = (members - 1) as f64;
        let q = others / (others + backoff);
        let (mut gamma, mut power) = (initial, 1.0);
        for _ in 0..events {
            gamma = next_growth(gamma, members, backoff, growth);
            power *= q;
            let closed = growth + (initial - growth) * power;
            prop_assert!((gamma - closed).abs() < 1e-12, "{gamma}, {closed}");
        }
    }

    #[test]
    fn windows_are_never_made_larger_in_sum(
        config in config(),
        rounds in prop::collection::vec((any::<bool>(), prop::collection::vec(0.0..500.0, 1..8)), 1..60),
        idle in 0..8_usize,
        backoff in 0.3..0.95,
        slow_start_growth in 1.2..2.0,
    ) {
        let mut engine = LossBasedEngine::new(config);
        for (is_event, before) in rounds {
            let mut windows = before.clone();
            let phase = engine.phase();
            let action = if is_event {
                let members = before.len() + idle;
                let event = Fluctuation { affected: 0, members, backoff, slow_start_growth };
                engine.on_fluctuation(&event, &mut windows)
            } else {
                engine.on_round(&mut windows)
            };
            let sum = |windows: &[f64]| windows.iter().sum::<f64>();
            let least = config.floor * before.len() as f64;
            prop_assert!(sum(&windows) <= sum(&before).max(least) + 1e-9);
            prop_assert!(windows == before || windows.iter().all(|&w| w >= config.floor));
            prop_assert!(config.sync_windows || windows == before);
            match action {
                DecisionAction::Exited => prop_assert!(windows == before),
                DecisionAction::Synchronized => prop_assert!(is_event),
                DecisionAction::Equalized => prop_assert!(!is_event),
                _ => prop_assert!(windows == before),
            }
            // If slow start is not synchronized, the engine does not end it.
            prop_assert!(config.sync_state || engine.phase() == EnginePhase::SlowStart);
            prop_assert!(config.sync_state || config.sync_windows || action == DecisionAction::None);
            // Slow start does not begin again.
            let avoids = phase == EnginePhase::CongestionAvoidance;
            prop_assert!(!avoids || engine.phase() == phase);
        }
    }

    #[test]
    fn rates_keep_their_sum_and_become_equal(
        rates in prop::collection::vec(prop::option::weighted(0.9, 0.0..1e9), 0..20),
        imbalance in 1.0..4.0,
    ) {
        let mut after = rates.clone();
        let synced = equalize_rates(&mut after, imbalance);
        if !synced {
            prop_assert_eq!(&after, &rates);
            return Ok(());
        }
        let known: Vec<f64> = rates.iter().flatten().copied().collect();
        prop_assert_eq!(known.len(), rates.len(), "a rate is unknown");
        let (before, now): (f64, f64) = (known.iter().sum(), after.iter().flatten().sum());
        prop_assert!((before - now).abs() <= 1e-9 * before);
        prop_assert!(after.iter().all(|rate| *rate == after[0]));
        prop_assert!(!equalize_rates(&mut after, imbalance));
    }

    #[test]
    fn parts_of_an_initial_window_differ_by_one_packet_at_most(packets in 0..5000_u64, members in 0..100_u64) {
        let parts: Vec<u64> = split_initial_window(packets, members).collect();
        prop_assert_eq!(parts.len() as u64, members.max(1));
        prop_assert_eq!(parts.iter().sum::<u64>(), packets.max(members).max(1));
        prop_assert!(parts.is_sorted_by(|a, b| a >= b));
        prop_assert!(parts[0] - parts[parts.len() - 1] <= 1);
        prop_assert!(parts.iter().all(|&part| part > 0));
    }
}
