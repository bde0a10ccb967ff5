use super::*;
use crate::samples::RateSnapshot;

fn send_ack_only(space: &mut Space<u64>) {
    space.sent.commit(SentPacket {
        sent_at: Instant::EPOCH,
        size: 40,
        ack_eliciting: false,
        in_flight: false,
        ecn: false,
        mtu_probe: false,
        tuple: 0,
        rate: RateSnapshot::default(),
        counted_by: None,
    });
}

#[test]
fn peer_that_acknowledges_nothing_is_sent_a_bounded_number_of_ack_only_packets() {
    let mut space = Space::new();
    for _ in 1..MAX_ACKS_UNANSWERED {
        send_ack_only(&mut space);
    }
    space.acknowledge_by(Instant::from_nanos(2));
    assert_eq!(space.received.deadline(), Some(Instant::from_nanos(2)));
    send_ack_only(&mut space);
    space.acknowledge_by(Instant::from_nanos(1));
    assert_eq!(space.received.deadline(), Some(Instant::from_nanos(2)));
    send_ack_only(&mut space);
    space.acknowledge_by(Instant::from_nanos(1));
    assert_eq!(space.received.deadline(), Some(Instant::from_nanos(2)));
}
