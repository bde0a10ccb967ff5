use super::*;
use conformance::conformance;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(millis: u64) -> Instant {
    Instant::EPOCH + ms(millis)
}

/// The `unacked`-th packet since an ACK frame, in order, all of them at 100 ms.
fn packet(unacked: u64) -> ReceivedView {
    ReceivedView {
        now: at(100),
        number: 1000,
        largest: 1000,
        largest_acked: Some(1000 - unacked),
        smallest_missing: None,
        unacked,
        oldest_unacked_at: at(100),
        total_received: 1001,
        out_of_order: false,
        ce: false,
        min_rtt: ms(40),
    }
}

#[test]
fn every_policy_conforms() {
    POLICIES.check_each(|make| conformance(|| make()));
    conformance(|| Box::new(Decimation::PLAIN));
}

#[test]
fn every_second_packet_is_acknowledged_at_once_and_others_within_the_delay() {
    let mut policy = EveryN::default();
    assert_eq!(policy.on_packet(&packet(1)), AckDecision::By(at(125)));
    assert_eq!(policy.on_packet(&packet(2)), AckDecision::Now);
    let disordered = ReceivedView {
        out_of_order: true,
        ..packet(1)
    };
    assert_eq!(policy.on_packet(&disordered), AckDecision::Now);
    let marked = ReceivedView {
        ce: true,
        ..packet(1)
    };
    assert_eq!(policy.on_packet(&marked), AckDecision::Now);
}

#[test]
fn decimation_acknowledges_after_ten_packets_or_a_quarter_of_a_round_trip() {
    let mut policy = Decimation::default();
    assert_eq!(policy.on_packet(&packet(9)), AckDecision::By(at(110)));
    assert_eq!(policy.on_packet(&packet(10)), AckDecision::Now);
    let young = ReceivedView {
        total_received: 99,
        ..packet(2)
    };
    assert_eq!(policy.on_packet(&young), AckDecision::Now);
    let far = ReceivedView {
        min_rtt: ms(400),
        ..packet(9)
    };
    assert_eq!(policy.on_packet(&far), AckDecision::By(at(125)));
}

#[test]
fn decimation_gives_way_to_a_request_of_the_peer_only_if_it_is_to() {
    let requested = Requested {
        threshold: 3,
        max_delay: ms(50),
        reordering_threshold: 0,
    };
    let disordered = ReceivedView {
        out_of_order: true,
        ..packet(1)
    };
    for (spec, decision) in [
        ("decimation", AckDecision::Now),
        ("decimation(until_asked=true)", AckDecision::By(at(150))),
    ] {
        let mut policy = POLICIES.make(spec).expect("it is in the table")();
        assert_eq!(policy.spec().to_string(), spec);
        assert_eq!(policy.on_packet(&packet(9)), AckDecision::By(at(110)));
        assert_eq!(policy.on_packet(&disordered), AckDecision::Now);
        policy.on_frequency(&requested);
        assert_eq!(policy.on_packet(&disordered), decision);
    }
}

fn asked(threshold: u64, reordering_threshold: u64) -> PeerRequested {
    let mut policy = PeerRequested::default();
    policy.on_frequency(&Requested {
        threshold,
        max_delay: ms(50),
        reordering_threshold,
    });
    policy
}

#[test]
fn a_requested_threshold_is_acknowledged_at_once_when_it_is_exceeded() {
    let mut policy = asked(5, 0);
    assert_eq!(policy.on_packet(&packet(5)), AckDecision::By(at(150)));
    assert_eq!(policy.on_packet(&packet(6)), AckDecision::Now);
    assert_eq!(policy.max_ack_delay(), ms(50));
    assert_eq!(asked(0, 0).on_packet(&packet(1)), AckDecision::Now);
}

#[test]
fn only_the_first_of_consecutive_ce_marks_is_acknowledged_at_once() {
    let marked = ReceivedView {
        ce: true,
        ..packet(1)
    };
    let mut policy = asked(100, 0);
    assert_eq!(policy.on_packet(&marked), AckDecision::Now);
    assert_eq!(policy.on_packet(&marked), AckDecision::By(at(150)));
    policy.on_packet(&packet(1));
    assert_eq!(policy.on_packet(&marked), AckDecision::Now);

    let mut eager = asked(1, 0);
    assert_eq!(eager.on_packet(&marked), AckDecision::Now);
    assert_eq!(eager.on_packet(&marked), AckDecision::Now);
}

/// Receives `numbers` in this order and acknowledges only because of reordering; returns the packets acknowledged
/// immediately.
fn acknowledged(reordering_threshold: u64, numbers: &[u64]) -> Vec<u64> {
    let mut policy = asked(1000, reordering_threshold);
    let mut received: Vec<u64> = Vec::new();
    let (mut largest, mut largest_acked, mut unacked) = (0, None::<u64>, 0);
    let mut at_once = Vec::new();
    for &number in numbers {
        received.push(number);
        largest = number.max(largest);
        unacked += 1;
        let reported = largest_acked.map_or(0, |acked| {
            (acked + 1).saturating_sub(policy.reordering_threshold())
        });
        let decision = policy.on_packet(&ReceivedView {
            number,
            largest,
            largest_acked,
            smallest_missing: (reported..largest).find(|missing| !received.contains(missing)),
            unacked,
            out_of_order: true,
            ..packet(unacked)
        });
        if decision == AckDecision::Now {
            at_once.push(number);
            policy.on_ack_sent();
            largest_acked = Some(largest);
            unacked = 0;
        }
    }
    at_once
}

#[test]
fn the_reordering_threshold_follows_the_examples_of_the_draft() {
    let three = [0, 1, 3, 4, 5, 8, 9, 10];
    assert_eq!(acknowledged(3, &three), [5, 9, 10]);
    let five = [0, 1, 3, 5, 6, 7, 8, 9];
    assert_eq!(acknowledged(5, &five), [7, 9]);
    assert!(acknowledged(0, &three).is_empty());
    assert_eq!(acknowledged(1, &[0, 2, 3]), [2]);
}

#[test]
fn a_packet_that_the_peer_declared_lost_is_acknowledged_at_once() {
    assert_eq!(acknowledged(3, &[0, 1, 3, 4, 5, 2]), [5, 2]);
}
