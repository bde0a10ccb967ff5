//! Every arrow from phase to phase, and what does not lead to one.

use std::time::Duration;

use super::sender::*;
use super::*;
use crate::observe::events::CarefulResumeRestored;
use Phase::*;

fn confirmed() -> Sender {
    Sender::confirmed(SAVED, CarefulResumeConfig::default())
}

/// With another round-trip time than now remembered.
fn remembering(rtt: Duration) -> Sender {
    Sender::confirmed(Capacity { rtt, ..SAVED }, CarefulResumeConfig::default())
}

const NANO: Duration = Duration::from_nanos(1);

#[test]
fn a_confirmed_path_jumps_once_data_waits() {
    let mut sender = confirmed();
    assert!(sender.resume.is_confirmed());
    assert_eq!(sender.transitions, [], "no data waits");
    sender.limit();
    let trigger = Some(Trigger::CongestionWindowLimited);
    assert_eq!(sender.latest(), (Reconnaissance, Unvalidated, trigger));
    assert_eq!(sender.window, 150_000);
    assert_eq!(sender.resume.pacing_rate(), Some(1_500_000));
    assert!(!sender.forgotten);
}

#[test]
fn no_jump_before_the_initial_window_is_acknowledged() {
    let mut sender = Sender::new(SAVED, CarefulResumeConfig::default());
    sender.limit();
    sender.send(10);
    sender.limit();
    sender.ack(9);
    sender.limit();
    assert!(!sender.resume.is_confirmed());
    assert_eq!(sender.transitions, []);
    sender.ack(1);
    sender.fill();
    sender.limit();
    assert_eq!(sender.resume.phase(), Unvalidated);
}

#[test]
fn a_last_packet_that_did_not_fit_is_not_waited_for() {
    let config = CarefulResumeConfig::default();
    let mut sender = Sender::new(SAVED, config);
    sender.resume = CarefulResume::new(SAVED, config, INITIAL + DATAGRAM - 1);
    sender.send(10);
    sender.ack(10);
    assert!(sender.resume.is_confirmed());
}

#[test]
fn another_round_trip_time_is_another_path() {
    let refused = (Reconnaissance, Normal, Some(Trigger::RttNotValidated));

    let mut sender = remembering(2 * RTT);
    assert_eq!(sender.latest(), refused, "as soon as it is known");
    sender.limit();
    assert_eq!(sender.window, 29_000);

    let mut sender = remembering(2 * RTT - 2 * NANO);
    sender.limit();
    assert_eq!(sender.resume.phase(), Unvalidated);

    let mut sender = remembering(RTT / 10 - NANO);
    assert_eq!(sender.transitions, [], "it may still fall");
    sender.limit();
    assert_eq!(sender.latest(), refused);
    assert_eq!(sender.window, 29_000);
    assert!(!sender.forgotten, "it may be right for the other path");

    let mut sender = remembering(RTT / 10);
    sender.limit();
    assert_eq!(sender.resume.phase(), Unvalidated);
}

#[test]
fn congestion_in_reconnaissance_ends_it() {
    let mut sender = confirmed();
    sender.lose(false);
    let loss = Some(Trigger::PacketLoss);
    assert_eq!(sender.latest(), (Reconnaissance, Normal, loss));
    assert_eq!(sender.window, 14_500, "the controller's own reaction");

    let mut sender = confirmed();
    sender.mark();
    let mark = Some(Trigger::EcnCe);
    assert_eq!(sender.latest(), (Reconnaissance, Normal, mark));

    let mut sender = confirmed();
    sender.lose(true);
    assert_eq!(sender.latest(), (Reconnaissance, Normal, loss));
    assert_eq!((sender.window, sender.ssthresh), (2000, None));

    let mut sender = confirmed();
    sender.move_away();
    let moved = Some(Trigger::PathChanged);
    assert_eq!(sender.latest(), (Reconnaissance, Normal, moved));
}

#[test]
fn what_is_too_old_or_in_use_or_no_gain_is_not_returned_to() {
    let ended = (Reconnaissance, Normal, None);
    let mut sender = confirmed();
    sender.wait(3_599_000);
    sender.limit();
    assert_eq!(sender.resume.phase(), Unvalidated, "an hour, to the moment");

    let mut sender = confirmed();
    sender.wait(3_599_001);
    sender.limit();
    assert_eq!(sender.latest(), ended);
    assert!(sender.forgotten);

    let mut sender = confirmed();
    sender.abandon();
    sender.limit();
    assert_eq!(sender.latest(), ended);
    assert!(!sender.forgotten);

    let little = Capacity {
        window: 58_001,
        ..SAVED
    };
    let mut sender = Sender::confirmed(little, CarefulResumeConfig::default());
    sender.limit();
    assert_eq!(sender.latest(), ended);
    assert!(!sender.forgotten);

    let mut sender = confirmed();
    sender.in_slow_start = false;
    sender.limit();
    assert_eq!(sender.latest(), ended, "the capacity is known already");
}

#[test]
fn no_jump_exceeds_what_is_configured() {
    let config = CarefulResumeConfig {
        max_jump: Some(80_000),
        ..CarefulResumeConfig::default()
    };
    let mut sender = Sender::confirmed(SAVED, config);
    sender.limit();
    assert_eq!(sender.window, 80_000);
}

#[test]
fn the_jump_is_over_when_it_is_in_flight() {
    let mut sender = Sender::jumped();
    sender.send(120);
    assert_eq!(sender.resume.phase(), Unvalidated);
    sender.send(1);
    let trigger = Some(Trigger::LastUnvalidatedPacketSent);
    assert_eq!(sender.latest(), (Unvalidated, Validating, trigger));
    assert_eq!(sender.window, 150_000);
}

#[test]
fn the_jump_is_over_when_some_of_it_arrives() {
    let mut sender = Sender::jumped();
    sender.send(60);
    sender.ack(29);
    assert_eq!(sender.resume.phase(), Unvalidated);
    assert_eq!(sender.window, 150_000, "no growth");
    sender.ack(1);
    let trigger = Some(Trigger::FirstUnvalidatedPacketAcknowledged);
    assert_eq!(sender.latest(), (Unvalidated, Validating, trigger));
    assert_eq!(sender.window, 59_000, "what is in flight");
    sender.ack(10);
    assert_eq!(sender.window, 69_000, "growth as usual");
}

#[test]
fn a_packet_of_acknowledgments_alone_validates_nothing() {
    let mut sender = Sender::confirmed(SAVED, CarefulResumeConfig::default());
    sender.send_alone();
    sender.limit();
    sender.ack(1);
    assert_eq!(sender.resume.phase(), Unvalidated, "nothing is sent yet");
    sender.send_alone();
    sender.send(60);
    sender.ack(28);
    assert_eq!(
        sender.resume.phase(),
        Unvalidated,
        "nothing has arrived yet"
    );
    sender.ack(1);
    assert_eq!(sender.resume.phase(), Validating);
}

#[test]
fn the_jump_is_over_after_a_round_trip() {
    type Move = fn(&mut Sender);
    let moves: [(Move, u64); 2] = [
        (|sender| sender.send(1), 90_000),
        (|sender| sender.ack(1), 88_000),
    ];
    for (next, window) in moves {
        let mut sender = Sender::jumped();
        sender.send(60);
        sender.wait(100);
        next(&mut sender);
        assert_eq!(sender.resume.phase(), Unvalidated);

        let mut sender = Sender::jumped();
        sender.send(60);
        sender.wait(100);
        sender.now += NANO;
        next(&mut sender);
        let trigger = Some(Trigger::RttExceeded);
        assert_eq!(sender.latest(), (Unvalidated, Validating, trigger));
        assert_eq!(sender.window, window, "what is in flight");
    }
}

#[test]
fn who_sends_little_keeps_what_is_proven() {
    let limited = (Unvalidated, Normal, Some(Trigger::RateLimited));
    let mut sender = Sender::jumped();
    sender.send(5);
    sender.ack(30);
    assert_eq!(sender.latest(), limited);
    assert_eq!(sender.window, 30_000);
    assert!(!sender.forgotten);

    let mut sender = Sender::jumped();
    sender.ack(25);
    sender.wait(101);
    sender.ack(1);
    assert_eq!(sender.latest(), limited, "nothing was sent at all");
    assert_eq!(sender.window, 29_000);

    // Little in flight when it jumped, but more than that now.
    let config = CarefulResumeConfig::default();
    let mut sender = Sender::new(SAVED, config);
    sender.send(10);
    sender.ack(10);
    sender.send(4);
    sender.limit();
    sender.send(5);
    sender.wait(101);
    sender.ack(1);
    assert_eq!(sender.latest(), limited);
    assert_eq!(sender.window, INITIAL, "no less without congestion");
}

#[test]
fn congestion_before_anything_arrives_is_retreated_from() {
    type Cause = fn(&mut Sender);
    let causes: [(Cause, Trigger); 4] = [
        (|sender| sender.lose(false), Trigger::PacketLoss),
        (Sender::mark, Trigger::EcnCe),
        (Sender::move_away, Trigger::PathChanged),
        (
            |sender| {
                sender.rtt = RTT / 2;
                sender.ack(1);
            },
            Trigger::PathChanged,
        ),
    ];
    for (cause, trigger) in causes {
        let mut sender = Sender::jumped();
        sender.send(20);
        cause(&mut sender);
        assert_eq!(sender.latest(), (Unvalidated, SafeRetreat, Some(trigger)));
        assert!(sender.window <= 14_500 && sender.forgotten);
        sender.ack(47);
        assert_eq!(sender.resume.phase(), SafeRetreat);
        sender.ack(2);
        let exit = Some(Trigger::ExitRecovery);
        assert_eq!(sender.latest(), (SafeRetreat, Normal, exit));
    }
}

#[test]
fn what_arrives_is_validated() {
    let mut sender = Sender::validating();
    sender.ack(149);
    assert_eq!(sender.resume.phase(), Validating);
    sender.ack(1);
    let trigger = Some(Trigger::LastUnvalidatedPacketAcknowledged);
    assert_eq!(sender.latest(), (Validating, Normal, trigger));
    assert_eq!(sender.window, 300_000, "slow start went on");
    assert_eq!((sender.ssthresh, sender.forgotten), (None, false));
}

#[test]
fn congestion_while_validating_is_retreated_from() {
    let mut sender = Sender::validating();
    sender.ack(100);
    sender.lose(false);
    let loss = Some(Trigger::PacketLoss);
    assert_eq!(sender.latest(), (Validating, SafeRetreat, loss));
    assert_eq!(sender.window, 50_000);
    sender.lose(false);
    sender.mark();
    sender.move_away();
    assert_eq!(sender.transitions.len(), 3, "no more than once");

    let mut sender = Sender::validating();
    sender.mark();
    let mark = Some(Trigger::EcnCe);
    assert_eq!(sender.latest(), (Validating, SafeRetreat, mark));
    assert_eq!(sender.window, 14_500);

    let mut sender = Sender::validating();
    sender.move_away();
    let moved = Some(Trigger::PathChanged);
    assert_eq!(sender.latest(), (Validating, SafeRetreat, moved));
}

#[test]
fn a_retreat_ends_with_a_later_packet_too() {
    let mut sender = Sender::validating();
    sender.ack(100);
    for _ in 0..50 {
        sender.lose(false);
    }
    assert_eq!(sender.resume.phase(), SafeRetreat);
    sender.send(1);
    sender.ack(1);
    let exit = Some(Trigger::ExitRecovery);
    assert_eq!(sender.latest(), (SafeRetreat, Normal, exit));
    assert_eq!(sender.ssthresh, Some(101_000 / 2));
}

#[test]
fn a_retreat_leaves_as_much_as_configured() {
    for (beta, ssthresh) in [(0.0, 75_000), (0.7, 105_000), (9.0, 150_000)] {
        let config = CarefulResumeConfig {
            beta,
            ..CarefulResumeConfig::default()
        };
        let mut sender = Sender::confirmed(SAVED, config);
        sender.limit();
        sender.send(121);
        sender.mark();
        sender.ack(150);
        assert_eq!(sender.ssthresh, Some(ssthresh));
    }
}

#[test]
fn persistent_congestion_ends_everything() {
    for mut sender in [Sender::jumped(), Sender::validating(), {
        let mut sender = Sender::validating();
        sender.mark();
        sender
    }] {
        let phase = sender.resume.phase();
        sender.lose(true);
        let loss = Some(Trigger::PacketLoss);
        assert_eq!(sender.latest(), (phase, Normal, loss));
        assert_eq!(sender.window, 2000, "the controller's own reaction");
        assert_eq!(sender.ssthresh, Some(14_500));
        assert!(sender.forgotten);
    }
}

#[test]
fn over_is_over() {
    let mut sender = Sender::validating();
    sender.ack(150);
    let before = sender.transitions.len();
    sender.fill();
    sender.limit();
    sender.ack(100);
    sender.lose(false);
    sender.mark();
    sender.lose(true);
    sender.move_away();
    sender.abandon();
    assert!(sender.resume.is_over());
    assert_eq!(sender.transitions.len(), before);
    assert!(!sender.forgotten);
}

#[test]
fn who_has_jumped_cannot_take_it_back() {
    let mut sender = Sender::jumped();
    sender.abandon();
    assert_eq!(sender.resume.phase(), Unvalidated);
}

#[test]
fn the_event_tells_what_changed() {
    let mut sender = Sender::jumped();
    let event = sender
        .resume
        .event(3, &sender.transitions[0], sender.window, None);
    assert_eq!(event.path, 3);
    assert_eq!((event.old, event.new), (Some(Reconnaissance), Unvalidated));
    assert_eq!(event.pipe_size, 29_000);
    assert_eq!(event.first_unvalidated_packet, 48);
    assert_eq!(event.last_unvalidated_packet, 47, "none so far");
    assert_eq!(event.congestion_window, Some(150_000));
    let restored = CarefulResumeRestored {
        congestion_window: 300_000,
        rtt: RTT,
    };
    assert_eq!(event.restored, Some(restored));

    sender.send(121);
    let event = sender
        .resume
        .event(3, &sender.transitions[1], sender.window, Some(7));
    assert_eq!(event.first_unvalidated_packet, 48);
    assert_eq!(event.last_unvalidated_packet, 168);
    assert_eq!((event.ssthresh, event.restored), (Some(7), None));
    assert_eq!(event.trigger, Some(Trigger::LastUnvalidatedPacketSent));
}
