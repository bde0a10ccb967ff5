use super::*;

const ACK_DELAY: Duration = Duration::from_millis(25);
const NEAR: Duration = Duration::from_millis(20);

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn rtt(smoothed: u64, variance: u64) -> RttView {
    RttView {
        latest: millis(smoothed),
        adjusted: millis(smoothed),
        smoothed: millis(smoothed),
        min: millis(smoothed),
        variance: millis(variance),
    }
}

#[test]
fn the_oldest_unacknowledged_packet_sets_the_expected_time() {
    let mut liveness = Liveness::default();
    assert_eq!(liveness.expected_at(&rtt(30, 1)), None);
    liveness.on_sent(at(100));
    liveness.on_sent(at(120));
    assert_eq!(liveness.expected_at(&rtt(30, 1)), Some(at(130)));
    liveness.on_acked(Some(at(120)));
    assert_eq!(liveness.expected_at(&rtt(30, 1)), Some(at(150)));
    liveness.on_acked(None);
    assert_eq!(liveness.expected_at(&rtt(30, 1)), None);
}

#[test]
fn the_time_allowed_beyond_the_rtt_stays_within_its_limits() {
    let liveness = Liveness::default();
    let patience = |variance| liveness.patience(&rtt(100, variance), ACK_DELAY, NEAR);
    assert_eq!(patience(0), millis(25 + 25));
    assert_eq!(patience(10), millis(40 + 25));
    assert_eq!(patience(500), millis(75 + 25));
    // A slow other path extends the time.
    let slow = liveness.patience(&rtt(100, 500), ACK_DELAY, millis(200));
    assert_eq!(slow, millis(300 + 25));
}

#[test]
fn each_false_suspicion_doubles_the_time_allowed_until_a_failure_is_real() {
    let mut liveness = Liveness::default();
    let patience = |liveness: &Liveness| liveness.patience(&rtt(100, 0), ACK_DELAY, NEAR);
    for factor in [1, 2, 4, 8, 16, 16] {
        assert_eq!(patience(&liveness), millis(50 * factor));
        liveness.on_sent(at(1));
        liveness.suspect(at(300));
        assert!(liveness.is_suspected());
        liveness.on_answer(false);
        assert!(!liveness.is_suspected());
    }
    liveness.suspect(at(300));
    liveness.on_timeout(at(400));
    assert_eq!(liveness.unanswered_since(), Some(at(300)));
    liveness.on_answer(true);
    assert_eq!(liveness.unanswered_since(), None);
    assert_eq!(patience(&liveness), millis(50));
}

#[test]
fn one_immediate_ack_is_requested_for_each_answer() {
    let mut liveness = Liveness::default();
    liveness.on_sent(at(1));
    liveness.ask();
    liveness.on_sent(at(2));
    assert!(liveness.has_asked());
    liveness.on_acked(Some(at(2)));
    assert!(!liveness.has_asked());
}

#[test]
fn the_time_without_answers_counts_while_another_path_works() {
    let mut liveness = Liveness::default();
    liveness.on_company(at(5));
    assert_eq!(liveness.counts_since(), None);
    liveness.on_timeout(at(6));
    assert_eq!(liveness.counts_since(), Some(at(6)));
    liveness.on_company(at(9));
    assert_eq!(liveness.counts_since(), Some(at(9)));
    assert_eq!(liveness.unanswered_since(), Some(at(6)));
}
