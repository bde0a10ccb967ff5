//! Any sequence of events keeps the rules that [`Owner`](super::owner::Owner) checks after each.

use std::time::Duration;

use proptest::prelude::*;

use super::owner::*;
use super::*;

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        1 => Just(What::Leave),
        6 => Just(What::Lose),
        1 => Just(What::Collapse),
        2 => Just(What::Delay),
        6 => Just(What::Round),
        1 => any::<bool>().prop_map(What::Active),
        1 => (0..300_u64).prop_map(What::Rtt),
        1 => (0..1_000_000_u64).prop_map(What::Rate),
    ]
}

fn op(mixed: bool) -> impl Strategy<Value = Op> {
    let datagram = if mixed {
        1200..1500_u64
    } else {
        1200..1201_u64
    };
    let announced = prop::option::of(prop_oneof![0..20_u64, any::<u64>()]);
    prop_oneof![
        2 => datagram.clone().prop_map(Op::Admit),
        4 => (datagram, announced).prop_map(|(datagram, n)| Op::Join(datagram, n)),
        4 => Just(Op::Rounds),
        4 => (0..300_u64).prop_map(Op::Wait),
        21 => (0..MAX_MEMBERS, what()).prop_map(|(member, what)| Op::To(member, what)),
    ]
}

prop_compose! {
    fn config()(
        switches in prop::array::uniform5(any::<bool>()),
        backoff in prop::option::of(0.3..0.95),
        slow_start_growth in prop::option::of(1.2..2.0),
        affected_growth in 0.9..1.1,
        imbalance in 1.0..3.0,
        scope in prop_oneof![Just(BundleScope::All), Just(BundleScope::Active)],
        coalesce in prop_oneof![Just(Coalesce::Never), Just(Coalesce::Member), Just(Coalesce::Bundle)],
        corroborated_by in prop::option::of(0..4_usize),
        floor_packets in 2..5_u64,
    ) -> BundleConfig {
        let [split_initial_window, sync_windows, sync_state, backoff_on_delay, fair] = switches;
        BundleConfig {
            split_initial_window,
            sync_windows,
            sync_state,
            backoff,
            slow_start_growth,
            affected_growth,
            imbalance,
            backoff_on_delay,
            scope,
            coalesce,
            corroborated_by,
            floor_packets,
            fair,
            ..BundleConfig::published()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn any_sequence_of_events_keeps_the_rules_of_bundles(
        config in config(),
        ops in any::<bool>().prop_flat_map(|mixed| prop::collection::vec(op(mixed), 0..150)),
    ) {
        let mut owner = Owner::with(config, 3, 30);
        for op in ops {
            owner.take(op);
        }
    }

    #[test]
    fn any_sequence_of_events_of_rate_based_members_keeps_the_rules(
        config in config(),
        ops in prop::collection::vec(op(false), 0..100),
    ) {
        let mut owner = Owner::with(config, 3, 30);
        for op in ops {
            owner.take(op);
            owner.members.values_mut().for_each(|member| member.rate_based = true);
        }
    }

    #[test]
    fn events_count_once_a_round_trip_time(
        is_bundle: bool,
        losses in prop::collection::vec((0..3_u32, 0..60_u64), 1..60),
    ) {
        let coalesce = if is_bundle { Coalesce::Bundle } else { Coalesce::Member };
        let config = BundleConfig { coalesce, affected_growth: 1.05, ..BundleConfig::default() };
        let mut owner = Owner::with(config, 3, 3000);
        let mut last = [None; 3];
        let mut counted = 0;
        for (key, ms) in losses {
            owner.wait(Duration::from_millis(ms));
            let directives = owner.lose(key);
            let decision = &directives[0].directive.decision.as_ref().unwrap().decision;
            let slot = if is_bundle { 0 } else { key as usize };
            let fresh = last[slot].is_none_or(|at| owner.now >= at + RTT);
            if fresh {
                last[slot] = Some(owner.now);
                counted += 1;
            }
            prop_assert_eq!(decision.fluctuations, counted);
        }
    }
}
