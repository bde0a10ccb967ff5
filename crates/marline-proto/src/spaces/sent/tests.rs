use super::*;

fn packet(ack_eliciting: bool) -> SentPacket {
    SentPacket {
        sent_at: Instant::EPOCH,
        size: 1200,
        ack_eliciting,
        in_flight: ack_eliciting,
        ecn: false,
        mtu_probe: false,
        tuple: 0,
        rate: RateSnapshot::default(),
    }
}

/// Packets with a ticket each: their number.
fn sent(packets: u64) -> Sent<u64> {
    let mut sent = Sent::new();
    for number in 0..packets {
        sent.push_token(number);
        sent.commit(packet(true));
    }
    sent
}

fn oldest(sent: &mut Sent<u64>) -> Option<u64> {
    sent.oldest_to_copy().map(|original| original.number)
}

fn latest(sent: &mut Sent<u64>) -> Option<u64> {
    sent.latest_to_copy().map(|original| original.number)
}

fn ack(sent: &mut Sent<u64>, range: RangeInclusive<u64>) {
    assert!(sent.on_acked(range, |_| {}).is_ok());
}

#[test]
fn copies_are_found_from_both_ends_and_once() {
    let mut sent = sent(6);
    ack(&mut sent, 0..=0);
    ack(&mut sent, 4..=4);
    assert_eq!((oldest(&mut sent), latest(&mut sent)), (Some(1), Some(5)));
    assert_eq!((oldest(&mut sent), latest(&mut sent)), (Some(1), Some(5)));
    sent.pass(5);
    assert_eq!(latest(&mut sent), Some(3));
    sent.pass(1);
    assert_eq!(oldest(&mut sent), Some(2));
    sent.pass(3);
    sent.pass(2);
    assert_eq!((oldest(&mut sent), latest(&mut sent)), (None, None));

    sent.push_token(6);
    sent.commit(packet(true));
    sent.commit(packet(false));
    assert_eq!((oldest(&mut sent), latest(&mut sent)), (Some(6), Some(6)));
    assert!(sent.tokens_of(6).eq(&[6]));
    assert!(sent.tokens_of(7).eq(&[]));
}

#[test]
fn what_goes_another_way_already_needs_no_copy() {
    let mut sent = sent(4);
    sent.return_outstanding(|_| {});
    assert_eq!((oldest(&mut sent), latest(&mut sent)), (None, None));
    sent.push_token(4);
    sent.commit(packet(true));
    assert_eq!((oldest(&mut sent), latest(&mut sent)), (Some(4), Some(4)));
}

#[test]
fn forgotten_packets_are_no_originals() {
    let mut sent = sent(4);
    assert_eq!((oldest(&mut sent), latest(&mut sent)), (Some(0), Some(3)));
    ack(&mut sent, 0..=3);
    sent.forget_settled(Instant::EPOCH);
    assert_eq!((oldest(&mut sent), latest(&mut sent)), (None, None));
    assert!(sent.tokens_of(2).eq(&[]));
    sent.pass(2);
    sent.discard(|_| {});
    assert_eq!((oldest(&mut sent), latest(&mut sent)), (None, None));
}

#[test]
fn the_oldest_packet_newer_than_all_acknowledged_ones_waits() {
    let mut sent = Sent::<u64>::new();
    assert_eq!(sent.waiting_since(), None);
    let at = |number: u64| Instant::from_nanos(number);
    for number in 0..8 {
        // Neither an acknowledgment nor a probe for larger datagrams waits.
        sent.commit(SentPacket {
            sent_at: at(number),
            mtu_probe: number == 4,
            ..packet(number != 3)
        });
    }
    assert_eq!(sent.waiting_since(), Some(at(0)));
    ack(&mut sent, 1..=2);
    assert_eq!(sent.waiting_since(), Some(at(5)));
    // What is late at the front says nothing.
    ack(&mut sent, 0..=0);
    assert_eq!(sent.waiting_since(), Some(at(5)));
    sent.forget_settled(Instant::EPOCH);
    assert_eq!(sent.waiting_since(), Some(at(5)));
    ack(&mut sent, 5..=6);
    assert_eq!(sent.waiting_since(), Some(at(7)));
    ack(&mut sent, 7..=7);
    assert_eq!(sent.waiting_since(), None);
}
