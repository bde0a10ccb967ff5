//! Any sequence of events obeys the rules that [`Sender`] checks after each.

use std::time::Duration;

use proptest::prelude::*;

use super::sender::*;
use super::*;

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (1..40_u64).prop_map(Op::Send),
        6 => Just(Op::Fill),
        12 => Just(Op::Limit),
        18 => (1..40_usize).prop_map(Op::Ack),
        3 => Just(Op::Lose),
        1 => Just(Op::Collapse),
        1 => Just(Op::Mark),
        1 => Just(Op::Move),
        1 => Just(Op::Abandon),
        6 => (0..150_u64).prop_map(Op::Wait),
        1 => (1..1000_u64).prop_map(Op::Rtt),
    ]
}

proptest! {
    #[test]
    fn any_sequence_of_events_keeps_the_rules_and_ends_careful_resume(
        packets in 0..2000_u64,
        rtt in 0..300_u64,
        max_jump in prop::option::of(0..2_000_000_u64),
        beta in prop_oneof![0.0..2.0, any::<f64>()],
        warm in any::<bool>(),
        ops in prop::collection::vec(op(), 0..120),
    ) {
        let saved = Capacity {
            window: packets * DATAGRAM,
            rtt: Duration::from_millis(rtt),
            ..SAVED
        };
        let config = CarefulResumeConfig { max_jump, beta, ..CarefulResumeConfig::default() };
        let mut sender = if warm {
            Sender::confirmed(saved, config)
        } else {
            Sender::new(saved, config)
        };
        for op in ops {
            sender.take(op);
        }
        sender.finish();
    }
}
