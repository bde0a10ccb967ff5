use super::*;
use proptest::prelude::*;

#[test]
fn nothing_may_be_sent_before_the_first_datagram() {
    assert_eq!(AmplificationLimit::new().credit(), 0);
}

#[test]
fn validation_removes_the_limit() {
    let mut limit = AmplificationLimit::new();
    limit.on_received(1200);
    assert!(!limit.is_validated());
    limit.on_validated();
    limit.on_sent(u64::MAX);
    assert_eq!(limit, AmplificationLimit::validated());
    assert!(limit.is_validated());
    assert_eq!(limit.credit(), u64::MAX);
}

#[test]
fn counters_saturate_at_the_largest_value() {
    let mut limit = AmplificationLimit::new();
    limit.on_received(u64::MAX);
    limit.on_received(1);
    assert_eq!(limit.credit(), u64::MAX);
    assert!(!limit.is_validated());
}

proptest! {
    /// A sender that respects the credit never sends more than three times the received bytes.
    #[test]
    fn at_most_three_times_the_received_bytes_are_sent(
        steps in prop::collection::vec((any::<bool>(), 1..1500u64), 0..200),
    ) {
        let mut limit = AmplificationLimit::new();
        let (mut received, mut sent) = (0, 0);
        for (arrives, bytes) in steps {
            if arrives {
                limit.on_received(bytes);
                received += bytes;
            } else if limit.credit() >= bytes {
                limit.on_sent(bytes);
                sent += bytes;
            }
            prop_assert!(sent <= 3 * received);
            prop_assert_eq!(limit.credit(), 3 * received - sent);
        }
    }
}
