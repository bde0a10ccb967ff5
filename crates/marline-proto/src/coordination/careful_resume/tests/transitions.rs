//! Every transition from phase to phase, and events that cause none.

use std::time::Duration;

use super::sender::*;
use super::*;
use crate::samples::LossSample;
use ResumePhase::*;

fn confirmed() -> Sender {
    Sender::confirmed(SAVED, CarefulResumeConfig::default())
}

/// A confirmed sender whose remembered round-trip time is `rtt`.
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
    let trigger = Some(ResumeTrigger::CongestionWindowLimited);
    assert_eq!(
        sender.latest(),
        transition(Reconnaissance, Unvalidated, trigger)
    );
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
fn less_than_a_datagram_of_the_initial_window_need_not_be_acknowledged() {
    let config = CarefulResumeConfig::default();
    let mut sender = Sender::new(SAVED, config);
    sender.resume = CarefulResume::new(SAVED, config, INITIAL + DATAGRAM - 1);
    sender.send(10);
    sender.ack(10);
    assert!(sender.resume.is_confirmed());
}

#[test]
fn an_rtt_that_differs_from_the_remembered_one_prevents_the_jump() {
    let refused = transition(Reconnaissance, Normal, Some(ResumeTrigger::RttNotValidated));

    let mut sender = remembering(2 * RTT);
    assert_eq!(sender.latest(), refused, "at the first RTT sample");
    sender.limit();
    assert_eq!(sender.window, 29_000);

    let mut sender = remembering(2 * RTT - 2 * NANO);
    sender.limit();
    assert_eq!(sender.resume.phase(), Unvalidated);

    let mut sender = remembering(RTT / 10 - NANO);
    assert_eq!(
        sender.transitions,
        [],
        "the smallest round-trip time may still fall"
    );
    sender.limit();
    assert_eq!(sender.latest(), refused);
    assert_eq!(sender.window, 29_000);
    assert!(
        !sender.forgotten,
        "the record may be right for the other path"
    );

    let mut sender = remembering(RTT / 10);
    sender.limit();
    assert_eq!(sender.resume.phase(), Unvalidated);
}

#[test]
fn congestion_in_reconnaissance_ends_it() {
    let mut sender = confirmed();
    sender.lose(false);
    let loss = Some(ResumeTrigger::PacketLoss);
    assert_eq!(sender.latest(), transition(Reconnaissance, Normal, loss));
    assert_eq!(sender.window, 14_500, "the controller's own reaction");

    let mut sender = confirmed();
    sender.mark();
    let mark = Some(ResumeTrigger::EcnCe);
    assert_eq!(sender.latest(), transition(Reconnaissance, Normal, mark));

    let mut sender = confirmed();
    sender.lose(true);
    assert_eq!(sender.latest(), transition(Reconnaissance, Normal, loss));
    assert_eq!((sender.window, sender.ssthresh), (2000, None));

    let mut sender = confirmed();
    sender.move_away();
    let moved = Some(ResumeTrigger::PathChanged);
    assert_eq!(sender.latest(), transition(Reconnaissance, Normal, moved));
}

#[test]
fn capacity_that_is_expired_claimed_or_no_gain_is_not_used() {
    let ended = transition(Reconnaissance, Normal, None);
    let mut sender = confirmed();
    sender.wait(3_599_000);
    sender.limit();
    assert_eq!(sender.resume.phase(), Unvalidated, "exactly an hour");

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
fn no_jump_exceeds_the_configured_maximum() {
    let config = CarefulResumeConfig {
        max_jump: Some(80_000),
        ..CarefulResumeConfig::default()
    };
    let mut sender = Sender::confirmed(SAVED, config);
    sender.limit();
    assert_eq!(sender.window, 80_000);
}

#[test]
fn a_full_window_ends_the_unvalidated_phase() {
    let mut sender = Sender::jumped();
    sender.send(120);
    assert_eq!(sender.resume.phase(), Unvalidated);
    sender.send(1);
    let trigger = Some(ResumeTrigger::LastUnvalidatedPacketSent);
    assert_eq!(
        sender.latest(),
        transition(Unvalidated, Validating, trigger)
    );
    assert_eq!(sender.window, 150_000);
}

#[test]
fn the_first_acknowledged_unvalidated_packet_ends_the_unvalidated_phase() {
    let mut sender = Sender::jumped();
    sender.send(60);
    sender.ack(29);
    assert_eq!(sender.resume.phase(), Unvalidated);
    assert_eq!(sender.window, 150_000, "no growth");
    sender.ack(1);
    let trigger = Some(ResumeTrigger::FirstUnvalidatedPacketAcknowledged);
    assert_eq!(
        sender.latest(),
        transition(Unvalidated, Validating, trigger)
    );
    assert_eq!(sender.window, 59_000, "the bytes in flight");
    sender.ack(10);
    assert_eq!(sender.window, 69_000, "the controller grows it again");
}

#[test]
fn ack_only_packets_validate_nothing() {
    let mut sender = Sender::confirmed(SAVED, CarefulResumeConfig::default());
    sender.send_ack_only();
    sender.limit();
    sender.ack(1);
    assert_eq!(sender.resume.phase(), Unvalidated, "nothing is sent yet");
    sender.send_ack_only();
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
fn a_round_trip_ends_the_unvalidated_phase() {
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
        let trigger = Some(ResumeTrigger::RttExceeded);
        assert_eq!(
            sender.latest(),
            transition(Unvalidated, Validating, trigger)
        );
        assert_eq!(sender.window, window, "the bytes in flight");
    }
}

#[test]
fn a_rate_limited_sender_keeps_the_larger_of_pipe_size_and_initial_window() {
    let limited = transition(Unvalidated, Normal, Some(ResumeTrigger::RateLimited));
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

    // Little was in flight at the jump, and more is now.
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
fn congestion_in_the_unvalidated_phase_leads_to_safe_retreat() {
    type Cause = fn(&mut Sender);
    let causes: [(Cause, ResumeTrigger); 4] = [
        (|sender| sender.lose(false), ResumeTrigger::PacketLoss),
        (Sender::mark, ResumeTrigger::EcnCe),
        (Sender::move_away, ResumeTrigger::PathChanged),
        (
            |sender| {
                sender.rtt = RTT / 2;
                sender.ack(1);
            },
            ResumeTrigger::PathChanged,
        ),
    ];
    for (cause, trigger) in causes {
        let mut sender = Sender::jumped();
        sender.send(20);
        cause(&mut sender);
        assert_eq!(
            sender.latest(),
            transition(Unvalidated, SafeRetreat, Some(trigger))
        );
        assert!(sender.window <= 14_500 && sender.forgotten);
        sender.ack(47);
        assert_eq!(sender.resume.phase(), SafeRetreat);
        sender.ack(2);
        let exit = Some(ResumeTrigger::ExitRecovery);
        assert_eq!(sender.latest(), transition(SafeRetreat, Normal, exit));
    }
}

#[test]
fn acknowledgment_of_the_last_unvalidated_packet_ends_validation() {
    let mut sender = Sender::validating();
    sender.ack(149);
    assert_eq!(sender.resume.phase(), Validating);
    sender.ack(1);
    let trigger = Some(ResumeTrigger::LastUnvalidatedPacketAcknowledged);
    assert_eq!(sender.latest(), transition(Validating, Normal, trigger));
    assert_eq!(sender.window, 300_000, "slow start went on");
    assert_eq!((sender.ssthresh, sender.forgotten), (None, false));
}

#[test]
fn congestion_while_validating_leads_to_safe_retreat_once() {
    let mut sender = Sender::validating();
    sender.ack(100);
    sender.lose(false);
    let loss = Some(ResumeTrigger::PacketLoss);
    assert_eq!(sender.latest(), transition(Validating, SafeRetreat, loss));
    assert_eq!(sender.window, 50_000);
    sender.lose(false);
    sender.mark();
    sender.move_away();
    assert_eq!(sender.transitions.len(), 3, "no more than once");

    let mut sender = Sender::validating();
    sender.mark();
    let mark = Some(ResumeTrigger::EcnCe);
    assert_eq!(sender.latest(), transition(Validating, SafeRetreat, mark));
    assert_eq!(sender.window, 14_500);

    let mut sender = Sender::validating();
    sender.move_away();
    let moved = Some(ResumeTrigger::PathChanged);
    assert_eq!(sender.latest(), transition(Validating, SafeRetreat, moved));
}

#[test]
fn acknowledgment_of_a_later_packet_ends_the_retreat_too() {
    let mut sender = Sender::validating();
    sender.ack(100);
    for _ in 0..50 {
        sender.lose(false);
    }
    assert_eq!(sender.resume.phase(), SafeRetreat);
    sender.send(1);
    sender.ack(1);
    let exit = Some(ResumeTrigger::ExitRecovery);
    assert_eq!(sender.latest(), transition(SafeRetreat, Normal, exit));
    assert_eq!(sender.ssthresh, Some(101_000 / 2));
}

#[test]
fn the_threshold_after_a_retreat_follows_beta() {
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
fn persistent_congestion_ends_careful_resume_and_forgets_the_capacity() {
    for mut sender in [Sender::jumped(), Sender::validating(), {
        let mut sender = Sender::validating();
        sender.mark();
        sender
    }] {
        let phase = sender.resume.phase();
        sender.lose(true);
        let loss = Some(ResumeTrigger::PacketLoss);
        assert_eq!(sender.latest(), transition(phase, Normal, loss));
        assert_eq!(sender.window, 2000, "the controller's own reaction");
        assert_eq!(sender.ssthresh, Some(14_500));
        assert!(sender.forgotten);
    }
}

#[test]
fn no_event_has_an_effect_in_the_normal_phase() {
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
fn abandoning_does_not_undo_a_jump() {
    let mut sender = Sender::jumped();
    sender.abandon();
    assert_eq!(sender.resume.phase(), Unvalidated);
}

#[test]
fn the_range_of_unvalidated_packets_begins_after_the_jump() {
    let mut sender = Sender::jumped();
    assert_eq!(sender.resume.first_unvalidated_packet(), 48);
    assert_eq!(sender.resume.last_unvalidated_packet(), 47, "none so far");
    sender.send(121);
    assert_eq!(sender.resume.first_unvalidated_packet(), 48);
    assert_eq!(sender.resume.last_unvalidated_packet(), 168);
}

/// A sender with a rate-based controller, which has jumped and sent 121 packets.
fn judging() -> Sender {
    let mut sender = confirmed();
    sender.resume = sender.resume.judging_losses();
    sender.limit();
    sender.send(121);
    assert_eq!(sender.resume.phase(), Validating);
    sender
}

#[test]
fn a_rate_based_controller_does_not_retreat_for_random_losses() {
    let mut sender = judging();
    // 15 of 121.
    for _ in 0..15 {
        sender.lose(false);
    }
    assert_eq!(sender.resume.phase(), Validating);
    assert!(!sender.forgotten);
    sender.ack(usize::MAX);
    assert_eq!(sender.resume.phase(), Normal);

    let mut sender = confirmed();
    sender.resume = sender.resume.judging_losses();
    sender.lose(false);
    sender.lose(false);
    assert_eq!(sender.transitions, [], "two of the first flight");
}

#[test]
fn a_rate_based_controller_retreats_for_more_losses_than_chance_explains() {
    let mut sender = judging();
    for _ in 0..16 {
        sender.lose(false);
    }
    let loss = Some(ResumeTrigger::PacketLoss);
    assert_eq!(sender.latest(), transition(Validating, SafeRetreat, loss));
    assert!(sender.forgotten);
}

#[test]
fn a_rate_based_controller_retreats_for_fewer_losses_beside_a_queue() {
    // 2 % of the 121 packets, and as much again if the saved random loss is that.
    for (model, tolerated) in [(None, 2), (Some(MODEL), 4)] {
        for (rtt, phase) in [(124, Validating), (126, SafeRetreat)] {
            let mut sender = judging();
            if let Some(model) = model {
                sender.resume.replace_saved(Capacity {
                    model: Some(model),
                    ..SAVED
                });
            }
            sender.rtt = Duration::from_millis(rtt);
            sender.ack(1);
            for _ in 0..tolerated {
                sender.lose(false);
            }
            assert_eq!(sender.resume.phase(), Validating, "{rtt} ms");
            sender.lose(false);
            assert_eq!(sender.resume.phase(), phase, "{rtt} ms");
        }
    }
}

#[test]
fn a_rate_based_controller_retreats_for_marks_and_persistent_congestion() {
    let mut sender = judging();
    sender.mark();
    assert_eq!(sender.resume.phase(), SafeRetreat);
    let mut sender = judging();
    sender.lose(true);
    assert_eq!(sender.resume.phase(), Normal);
    assert!(sender.forgotten);
}

/// The model that a rate-based controller left of the saved capacity.
const MODEL: SavedModel = SavedModel {
    bandwidth: 1_000_000,
    is_limit: true,
    random_loss: 20_000,
};

fn with_model(model: SavedModel) -> Sender {
    let saved = Capacity {
        model: Some(model),
        ..SAVED
    };
    Sender::confirmed(saved, CarefulResumeConfig::default())
}

fn jump_step(sender: &mut Sender) -> ResumeStep {
    let limited = WindowLimited {
        bytes_in_flight: sender.in_flight(),
        window: sender.window,
        in_slow_start: true,
    };
    sender.resume.on_window_limited(sender.now, &limited)
}

#[test]
fn a_rate_based_controller_begins_from_the_saved_model_at_its_bandwidth_at_most() {
    // 150 packets of the jump in 100 ms are 1.5 MB/s.
    for (is_limit, first_rate) in [(true, 1_000_000), (false, 1_500_000)] {
        let model = SavedModel { is_limit, ..MODEL };
        let mut sender = with_model(model);
        sender.resume = sender.resume.judging_losses();
        let step = jump_step(&mut sender);
        let seed = step.seed.expect("a model was saved");
        assert_eq!((seed.model, seed.first_rate), (model, first_rate));
        assert_eq!((seed.at, seed.min_rtt), (sender.now, sender::RTT));
        assert_eq!(step.window, Some(ResumeWindow::To(150_000)));
        assert_eq!(sender.resume.pacing_rate(), Some(first_rate));
    }
}

#[test]
fn a_window_based_controller_takes_the_window_alone() {
    let mut sender = with_model(MODEL);
    let step = jump_step(&mut sender);
    assert_eq!(step.seed, None);
    assert_eq!(step.window, Some(ResumeWindow::To(150_000)));
    assert_eq!(sender.resume.pacing_rate(), Some(1_500_000));
}

#[test]
fn a_packet_of_the_first_flight_that_chance_lost_does_not_delay_the_jump() {
    for judges in [true, false] {
        let mut sender = Sender::new(SAVED, CarefulResumeConfig::default());
        if judges {
            sender.resume = sender.resume.judging_losses();
        }
        sender.send(10);
        sender.ack(9);
        assert!(!sender.resume.is_confirmed(), "one is still under way");
        sender.lose(false);
        assert_eq!(sender.resume.is_confirmed(), judges);
    }
}

/// A sender with a rate-based controller after a handshake of this many milliseconds, which has data to send.
fn shaken(rtt: u64) -> Sender {
    let rtt = Duration::from_millis(rtt);
    let mut sender = Sender::after_handshake(SAVED, CarefulResumeConfig::default(), rtt);
    sender.limit();
    sender
}

#[test]
fn a_rate_based_controller_jumps_after_a_handshake_without_a_queue() {
    let sender = shaken(125);
    assert_eq!(sender.resume.phase(), Unvalidated);
    assert_eq!(sender.window, SAVED.window / 2);
    // A queue: others use the path, and the first flight tests it.
    let mut sender = shaken(126);
    assert_eq!(sender.transitions, []);
    sender.send(10);
    sender.ack(10);
    sender.fill();
    sender.limit();
    assert_eq!(sender.resume.phase(), Unvalidated);
    // A path of another round-trip time.
    let sender = shaken(50);
    let other = Some(ResumeTrigger::RttNotValidated);
    assert_eq!(sender.latest(), transition(Reconnaissance, Normal, other));
}

#[test]
fn a_retreat_before_the_first_flight_was_tested_ends_at_the_initial_window() {
    for (acked, window) in [(4, INITIAL), (80, 40 * DATAGRAM)] {
        let mut sender = shaken(100);
        sender.send(150);
        sender.ack(acked);
        assert_eq!(sender.resume.phase(), Validating);
        let step = sender.resume.on_loss(&LossSample {
            bytes: 40 * DATAGRAM,
            packets: 40,
            largest_lost: 120,
            latest_sent_at: sender.now,
            largest_sent: 149,
            bytes_in_flight: sender.in_flight() - 40 * DATAGRAM,
            persistent: false,
        });
        assert_eq!(sender.resume.phase(), SafeRetreat);
        assert_eq!(step.window, Some(ResumeWindow::AtMost(window)));
        // With the initial window it goes on like a new connection.
        assert_eq!(step.exit_slow_start, window > INITIAL);
    }
}
