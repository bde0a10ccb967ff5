//! Any sequence of events keeps the rules that [`Sender`] checks after each.

use std::time::Duration;

use proptest::prelude::*;

use super::sender::*;
use super::*;

#[derive(Clone, Copy, Debug)]
enum Op {
    Send(u64),
    Fill,
    Limit,
    Ack(usize),
    Lose,
    Collapse,
    Mark,
    Move,
    Abandon,
    Wait(u64),
    Rtt(u64),
}

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

impl Sender {
    fn take(&mut self, op: Op) {
        match op {
            Op::Send(packets) => self.send(packets),
            Op::Fill => self.fill(),
            Op::Limit => self.limit(),
            Op::Ack(packets) => self.ack(packets),
            Op::Lose => self.lose(false),
            Op::Collapse => self.lose(true),
            Op::Mark => self.mark(),
            Op::Move => self.move_away(),
            Op::Abandon => self.abandon(),
            Op::Wait(millis) => self.wait(millis),
            Op::Rtt(millis) => self.rtt = Duration::from_millis(millis),
        }
    }
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
        // With more data waiting, Careful Resume ends.
        for _ in 0..20 {
            if sender.resume.is_over() {
                break;
            }
            sender.wait(1001);
            sender.window = sender.window.max(2 * DATAGRAM);
            sender.send(1);
            sender.fill();
            sender.limit();
            sender.wait(1001);
            sender.ack(usize::MAX);
        }
        prop_assert!(sender.resume.is_over());
        prop_assert!(sender.transitions.len() <= 4);
    }
}
