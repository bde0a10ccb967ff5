//! The examples of RFC 9959, appendix B: an initial window of 10 packets, 29 in flight at the jump, 300
//! remembered.

use super::sender::*;
use super::*;
use ResumePhase::*;

fn course(sender: &Sender) -> Vec<ResumePhase> {
    sender.transitions.iter().map(|t| t.new).collect()
}

/// Appendix B.1.
#[test]
fn example_b_1_no_loss() {
    let mut sender = Sender::jumped();
    assert_eq!(sender.resume.pipe_size(), 29_000);
    assert_eq!(sender.window, 150_000);
    sender.send(100);
    sender.ack(29);
    sender.send(21);
    sender.ack(1);
    let trigger = Some(ResumeTrigger::FirstUnvalidatedPacketAcknowledged);
    assert_eq!(
        sender.latest(),
        transition(Unvalidated, Validating, trigger)
    );
    let window = sender.window;
    sender.ack(119);
    assert_eq!(sender.window, window + 119_000);
    sender.ack(1);
    assert_eq!(course(&sender), [Unvalidated, Validating, Normal]);
}

/// Appendix B.2: only 50 packets are to be sent.
#[test]
fn example_b_2_no_loss_rate_limited() {
    let mut sender = Sender::jumped();
    sender.send(50);
    sender.wait(101);
    sender.ack(29);
    let trigger = Some(ResumeTrigger::RttExceeded);
    assert_eq!(
        sender.latest(),
        transition(Unvalidated, Validating, trigger)
    );
    assert_eq!(sender.window, 50_000);
    sender.ack(50);
    assert_eq!(course(&sender), [Unvalidated, Validating, Normal]);
    assert_eq!(sender.resume.pipe_size(), 79_000);
}

/// Appendix B.3.
#[test]
fn example_b_3_loss_in_reconnaissance() {
    let mut sender = Sender::confirmed(SAVED, CarefulResumeConfig::default());
    sender.lose(false);
    assert_eq!(course(&sender), [Normal]);
    assert_eq!((sender.window, sender.ssthresh), (14_500, None));
}

/// Appendix B.4: the 35th unvalidated packet is lost.
#[test]
fn example_b_4_loss_while_validating() {
    let mut sender = Sender::validating();
    sender.ack(63);
    assert_eq!(sender.resume.pipe_size(), 63_000);
    sender.lose(false);
    assert_eq!(sender.window / DATAGRAM, 31);
    sender.ack(85);
    assert_eq!(sender.window / DATAGRAM, 31);
    sender.ack(1);
    assert_eq!(
        course(&sender),
        [Unvalidated, Validating, SafeRetreat, Normal]
    );
    // Section 3.5 also counts packets that arrived in this phase; the example ends at 120 packets, the
    // unvalidated ones alone.
    assert_eq!(sender.resume.pipe_size(), 149_000);
    assert_eq!(sender.ssthresh, Some(74_500));
}
