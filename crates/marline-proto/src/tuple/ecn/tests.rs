use super::*;
use proptest::prelude::*;

const PTO: Duration = Duration::from_millis(100);
const START: Instant = Instant::EPOCH;

fn counts(ect0: u64, ect1: u64, ce: u64) -> Option<EcnCounts> {
    Some(EcnCounts { ect0, ect1, ce })
}

fn marks(path: &mut EcnValidation, now: Instant) -> bool {
    path.mark(now).is_some()
}

/// A path and a space, with `sent` marked packets in flight.
fn after(sent: u64) -> (EcnValidation, EcnLedger) {
    let (mut path, mut ledger) = (
        EcnValidation::new(Some(EcnCodepoint::Ect0)),
        EcnLedger::new(),
    );
    for _ in 0..sent {
        assert!(marks(&mut path, START));
        path.on_sent(&mut ledger, START, PTO);
    }
    (path, ledger)
}

#[test]
fn matching_counts_make_a_path_capable() {
    let (mut path, mut ledger) = after(5);
    assert_eq!(path.on_ack(&mut ledger, 3, counts(3, 0, 0)), Ok(0));
    assert_eq!(path.state(), EcnValidationState::Capable);
    assert_eq!(path.on_ack(&mut ledger, 2, counts(4, 0, 1)), Ok(1));
    for _ in 0..100 {
        path.on_sent(&mut ledger, START, PTO);
        assert!(marks(&mut path, START + PTO * 100));
    }
}

#[test]
fn marking_pauses_after_ten_packets() {
    let (mut path, mut ledger) = after(ECN_TESTING_PACKETS);
    assert_eq!(path.state(), EcnValidationState::Unknown);
    assert!(!marks(&mut path, START));
    assert_eq!(path.on_ack(&mut ledger, 1, counts(1, 0, 0)), Ok(0));
    assert!(marks(&mut path, START));
}

#[test]
fn marking_pauses_after_three_probe_timeouts() {
    let (mut path, _) = after(2);
    assert!(marks(&mut path, START + PTO * 2));
    assert!(!marks(&mut path, START + PTO * 3));
    assert_eq!(path.state(), EcnValidationState::Unknown);
}

#[test]
fn a_loss_of_every_marked_packet_fails_validation() {
    let (mut path, _) = after(ECN_TESTING_PACKETS);
    for _ in 1..ECN_TESTING_PACKETS {
        path.on_lost();
        assert_eq!(path.state(), EcnValidationState::Unknown);
    }
    path.on_lost();
    assert_eq!(path.state(), EcnValidationState::Failed);
}

#[test]
fn losses_during_the_test_fail_validation_when_it_ends() {
    let (mut path, _) = after(2);
    path.on_lost();
    path.on_lost();
    assert!(marks(&mut path, START), "the test has not ended");
    assert!(!marks(&mut path, START + PTO * 3));
    assert_eq!(path.state(), EcnValidationState::Failed);
}

#[test]
fn each_kind_of_wrong_counts_is_reported_once() {
    for (acked, reported, failure) in [
        (1, None, EcnFailure::NotReported),
        (3, counts(2, 0, 0), EcnFailure::Erased),
        (3, counts(0, 0, 0), EcnFailure::Erased),
        (2, counts(0, 2, 0), EcnFailure::Remarked),
        (2, counts(6, 0, 0), EcnFailure::NeverSent),
        (2, counts(4, 0, 2), EcnFailure::NeverSent),
        (2, counts(u64::MAX, 0, u64::MAX), EcnFailure::NeverSent),
    ] {
        let (mut path, mut ledger) = after(5);
        assert_eq!(path.on_ack(&mut ledger, acked, reported), Err(failure));
        assert_eq!(path.state(), EcnValidationState::Failed);
        assert!(!marks(&mut path, START));
        assert_eq!(
            path.on_ack(&mut ledger, acked, reported),
            Ok(0),
            "reported once"
        );
    }
    let (mut path, mut ledger) = after(5);
    assert_eq!(path.on_ack(&mut ledger, 3, counts(2, 0, 1)), Ok(1));
    assert_eq!(
        path.on_ack(&mut ledger, 1, counts(4, 0, 0)),
        Err(EcnFailure::Decreased)
    );
}

#[test]
fn acks_of_unmarked_packets_do_not_change_the_state() {
    let (mut path, mut ledger) = after(5);
    assert_eq!(path.on_ack(&mut ledger, 0, None), Ok(0));
    assert_eq!(path.on_ack(&mut ledger, 0, counts(0, 0, 0)), Ok(0));
    assert_eq!(path.state(), EcnValidationState::Testing);
}

#[test]
fn a_new_path_continues_the_counts_of_its_space() {
    let (mut old, mut ledger) = after(5);
    assert_eq!(old.on_ack(&mut ledger, 5, counts(4, 0, 1)), Ok(1));
    let mut new = EcnValidation::new(Some(EcnCodepoint::Ect0));
    new.on_sent(&mut ledger, START, PTO);
    assert_eq!(new.on_ack(&mut ledger, 1, counts(4, 0, 2)), Ok(1));
    assert_eq!(new.state(), EcnValidationState::Capable);
}

#[test]
fn a_path_with_ecn_disabled_never_marks() {
    let mut path = EcnValidation::new(None);
    assert!(!marks(&mut path, START));
    assert_eq!(path.on_ack(&mut EcnLedger::new(), 0, None), Ok(0));
    assert_eq!(path.state(), EcnValidationState::Failed);
}

proptest! {
    /// With losses of packets and of ACKs, validation does not fail if path and peer comply, and the CE marks add
    /// up.
    #[test]
    fn a_path_that_keeps_marks_passes_validation(packets in prop::collection::vec(0..5u8, 1..200)) {
        let (mut path, mut ledger) = (EcnValidation::new(Some(EcnCodepoint::Ect0)), EcnLedger::new());
        let (mut peer, mut newly_acked, mut seen, mut delivered) = ((0, 0), 0, 0, false);
        for fate in packets {
            let marked = marks(&mut path, START);
            if marked {
                path.on_sent(&mut ledger, START, PTO);
            }
            match fate {
                0 => if marked { path.on_lost() },
                1 => if marked { peer.1 += 1; newly_acked += 1; },
                _ => if marked { peer.0 += 1; newly_acked += 1; },
            }
            if fate > 2 {
                delivered |= newly_acked > 0;
                seen += path
                    .on_ack(&mut ledger, newly_acked, counts(peer.0, 0, peer.1))
                    .expect("the counts are correct");
                newly_acked = 0;
                prop_assert_eq!(seen, peer.1);
                prop_assert!(!delivered || path.state() == EcnValidationState::Capable);
            }
        }
    }

    /// No counts of a peer cause a panic, and failure is final.
    #[test]
    fn no_reported_counts_undo_a_failure(
        acks in prop::collection::vec((0..4u64, any::<Option<(u64, u64, u64)>>()), 0..50),
    ) {
        let (mut path, mut ledger) = after(4);
        let mut failed = false;
        for (acked, reported) in acks {
            let reported = reported.and_then(|(ect0, ect1, ce)| counts(ect0, ect1, ce));
            failed |= path.on_ack(&mut ledger, acked, reported).is_err();
            prop_assert_eq!(path.state() == EcnValidationState::Failed, failed);
        }
    }
}

/// A path that uses ECT(1), with `sent` packets in flight.
fn l4s_after(sent: u64) -> (EcnValidation, EcnLedger) {
    let mut path = EcnValidation::new(Some(EcnCodepoint::Ect1));
    let mut ledger = EcnLedger::new();
    for _ in 0..sent {
        assert_eq!(path.mark(START), Some(EcnCodepoint::Ect1));
        path.on_sent(&mut ledger, START, PTO);
    }
    (path, ledger)
}

#[test]
fn ect1_is_validated_by_its_own_count() {
    let (mut path, mut ledger) = l4s_after(5);
    assert_eq!(path.on_ack(&mut ledger, 3, counts(0, 2, 1)), Ok(1));
    assert_eq!(path.state(), EcnValidationState::Capable);
    assert_eq!(path.mark(START), Some(EcnCodepoint::Ect1));
    assert!(path.is_l4s());
    assert_eq!(path.on_ack(&mut ledger, 2, counts(0, 4, 1)), Ok(0));
}

#[test]
fn wrong_counts_of_ect1_end_its_use() {
    for (acked, reported, failure) in [
        (1, None, EcnFailure::NotReported),
        (3, counts(0, 2, 0), EcnFailure::Erased),
        (2, counts(2, 0, 0), EcnFailure::Remarked),
        (2, counts(1, 1, 0), EcnFailure::Remarked),
        (2, counts(0, 6, 0), EcnFailure::NeverSent),
        (2, counts(0, 4, 2), EcnFailure::NeverSent),
    ] {
        let (mut path, mut ledger) = l4s_after(5);
        assert_eq!(path.on_ack(&mut ledger, acked, reported), Err(failure));
        assert_eq!(path.mark(START), None, "{failure:?}");
    }
}
