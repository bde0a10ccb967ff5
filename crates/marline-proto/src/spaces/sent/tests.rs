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
        counted_by: None,
    }
}

/// Packets, each with its number as token.
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
    sent.forget_resolved(Instant::EPOCH);
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
        // Neither an acknowledgment nor a PMTU probe is waited for.
        sent.commit(SentPacket {
            sent_at: at(number),
            mtu_probe: number == 4,
            ..packet(number != 3)
        });
    }
    assert_eq!(sent.waiting_since(), Some(at(0)));
    ack(&mut sent, 2..=2);
    assert_eq!(sent.waiting_since(), Some(at(5)));
    ack(&mut sent, 1..=1);
    assert_eq!(sent.waiting_since(), Some(at(5)));
    // Reordering at the front has no effect.
    ack(&mut sent, 0..=0);
    assert_eq!(sent.waiting_since(), Some(at(5)));
    sent.forget_resolved(Instant::EPOCH);
    assert_eq!(sent.waiting_since(), Some(at(5)));
    ack(&mut sent, 5..=6);
    assert_eq!(sent.waiting_since(), Some(at(7)));
    ack(&mut sent, 7..=7);
    assert_eq!(sent.waiting_since(), None);
}

/// The tokens that `hand_back` returns.
fn tokens(hand_back: impl FnOnce(&mut dyn FnMut(&u64))) -> Vec<u64> {
    let mut tokens = Vec::new();
    hand_back(&mut |token| tokens.push(*token));
    tokens
}

#[derive(Debug, PartialEq)]
struct Lost {
    number: u64,
    tokens: Vec<u64>,
    acked_between: bool,
}

/// Declares all outstanding packets below `below` lost.
fn lose(sent: &mut Sent<u64>, below: u64) -> Vec<Lost> {
    let mut lost = Vec::new();
    sent.lose_while(
        below,
        |_, _| Some(()),
        |packet, ()| {
            assert_eq!(packet.outcome, PacketOutcome::Lost);
            lost.push(Lost {
                number: packet.number,
                tokens: packet.tokens.copied().collect(),
                acked_between: packet.acked_between,
            });
            None
        },
    );
    lost
}

/// RFC 9002, section 2: packets in flight are ack-eliciting or padded.
#[test]
fn packets_are_counted_until_their_fate_is_known() {
    let mut sent = sent(4);
    let padded = SentPacket {
        in_flight: true,
        ..packet(false)
    };
    for silent in [padded, packet(false), packet(false)] {
        sent.commit(silent);
    }
    let counts = |sent: &Sent<u64>| (sent.ack_eliciting_in_flight(), sent.silent_outstanding());
    assert_eq!(counts(&sent), (4, 3));
    ack(&mut sent, 0..=0);
    ack(&mut sent, 4..=4);
    assert_eq!(counts(&sent), (3, 2));
    assert_eq!(lose(&mut sent, 6).len(), 4);
    assert_eq!(counts(&sent), (0, 1));
    assert!(!sent.has_ack_eliciting_in_flight());
    // Neither is counted again.
    ack(&mut sent, 0..=5);
    assert_eq!(counts(&sent), (0, 1));
    lose(&mut sent, 7);
    assert_eq!(counts(&sent), (0, 0));
}

#[test]
fn padding_alone_asks_for_no_acknowledgment() {
    let mut sent = Sent::<u64>::new();
    sent.commit(SentPacket {
        in_flight: true,
        ..packet(false)
    });
    assert!(!sent.has_ack_eliciting_in_flight());
}

/// RFC 9002, section 7.6.2.
#[test]
fn losses_say_whether_a_packet_between_them_was_acknowledged() {
    let mut sent = sent(7);
    ack(&mut sent, 1..=1);
    ack(&mut sent, 4..=4);
    let lost = lose(&mut sent, 7);
    let numbers: Vec<_> = lost.iter().map(|lost| lost.number).collect();
    assert_eq!(numbers, [0, 2, 3, 5, 6]);
    let after_acked = lost.iter().filter(|lost| lost.acked_between);
    assert!(after_acked.map(|lost| lost.number).eq([2, 5]));
}

/// RFC 9002, section 7.6.2: earlier losses may have been detected before, and may no longer be stored.
#[test]
fn losses_say_whether_a_packet_was_acknowledged_after_the_losses_before() {
    for is_forgotten in [false, true] {
        for (acked, is_between) in [(2, true), (3, false)] {
            let mut sent = sent(4);
            lose(&mut sent, 2);
            ack(&mut sent, acked..=acked);
            if is_forgotten {
                sent.forget_resolved(Instant::EPOCH + std::time::Duration::from_secs(1));
            }
            let lost = lose(&mut sent, 4);
            assert_eq!(lost[0].acked_between, is_between, "{acked}, {is_forgotten}");
        }
    }
}

#[test]
fn tokens_are_handed_back_once_and_only_of_outstanding_packets() {
    let mut sent = Sent::new();
    for number in 0..6 {
        sent.push_token(number);
        sent.push_token(10 + number);
        sent.commit(packet(true));
    }
    ack(&mut sent, 0..=1);
    sent.forget_resolved(Instant::EPOCH);
    ack(&mut sent, 4..=4);
    let lost = Lost {
        number: 2,
        tokens: vec![2, 12],
        acked_between: true,
    };
    assert_eq!(lose(&mut sent, 3), [lost]);
    let returned = tokens(|token| sent.return_outstanding(token));
    assert_eq!(returned, [3, 13, 5, 15]);
    sent.push_token(6);
    sent.commit(packet(true));
    assert_eq!(tokens(|token| sent.return_outstanding(token)), [6]);
    // Losses return no token twice, acknowledgments all of them.
    assert!(lose(&mut sent, 4).iter().all(|lost| lost.tokens.is_empty()));
    let mut acked = Vec::new();
    sent.on_acked(5..=5, |packet| acked.extend(packet.tokens.copied()))
        .unwrap();
    assert_eq!(acked, [5, 15]);
}

/// RFC 9002, section 6.2.4.
#[test]
fn probes_carry_tokens_of_the_oldest_packets_that_ask_for_an_answer_and_have_any() {
    let mut sent = Sent::new();
    for number in 0..7 {
        if number != 4 {
            sent.push_token(number);
        }
        sent.commit(packet(number != 2));
    }
    ack(&mut sent, 0..=0);
    sent.forget_resolved(Instant::EPOCH);
    ack(&mut sent, 3..=3);
    assert_eq!(tokens(|token| sent.oldest_outstanding(1, token)), [1]);
    assert_eq!(tokens(|token| sent.oldest_outstanding(2, token)), [1, 5]);
    assert_eq!(tokens(|token| sent.oldest_outstanding(9, token)), [1, 5, 6]);
}

#[test]
fn search_for_copies_goes_on_where_it_ended() {
    let mut sent = sent(12);
    sent.pass(0);
    sent.pass(1);
    assert_eq!(oldest(&mut sent), Some(2));
    ack(&mut sent, 2..=4);
    assert_eq!(oldest(&mut sent), Some(5));
    ack(&mut sent, 0..=1);
    sent.forget_resolved(Instant::EPOCH);
    assert_eq!((oldest(&mut sent), latest(&mut sent)), (Some(5), Some(11)));
    sent.pass(5);
    sent.pass(6);
    assert_eq!((oldest(&mut sent), oldest(&mut sent)), (Some(7), Some(7)));
    sent.pass(11);
    assert_eq!(latest(&mut sent), Some(10));
    assert!(sent.tokens_of(10).eq(&[10]));
}

/// RFC 9000, section 21.4: a skipped number is stored until a larger one is acknowledged.
#[test]
fn skipped_number_is_refused_until_a_larger_one_is_acknowledged() {
    let mut sent = Sent::<u64>::new();
    sent.skip(Instant::EPOCH);
    sent.commit(packet(true));
    sent.forget_resolved(Instant::EPOCH);
    assert_eq!(sent.on_acked(0..=0, |_| {}), Err(BadAck(0)));
    sent.forget_resolved(Instant::EPOCH);
    assert_eq!(sent.on_acked(0..=0, |_| {}), Err(BadAck(0)));
    ack(&mut sent, 1..=1);
    sent.forget_resolved(Instant::EPOCH);
    assert_eq!(sent.len(), 0);
    assert_eq!(sent.next_number(), 2);
}

/// A late acknowledgment must still reveal a spurious loss (RFC 9002, section 6.1).
#[test]
fn lost_packets_are_remembered_if_they_were_sent_since_the_horizon() {
    let mut sent = Sent::<u64>::new();
    for nanos in [1, 2, 3] {
        sent.commit(SentPacket {
            sent_at: Instant::from_nanos(nanos),
            ..packet(true)
        });
    }
    lose(&mut sent, 3);
    sent.forget_resolved(Instant::from_nanos(2));
    let mut late = Vec::new();
    sent.on_acked(0..=2, |packet| late.push((packet.number, packet.outcome)))
        .unwrap();
    let outcome = PacketOutcome::AckedAfterLoss;
    assert_eq!(late, [(1, outcome), (2, outcome)]);
}

#[test]
fn memory_of_resolved_packets_is_released() {
    let mut sent = sent(1_000);
    ack(&mut sent, 0..=900);
    sent.forget_resolved(Instant::EPOCH);
    assert_eq!((sent.len(), sent.tokens.len()), (99, 99));
    assert_eq!(sent.acked.len(), 0);
    assert!(
        sent.entries.capacity() >= 1_000,
        "a busy queue keeps its place"
    );
    ack(&mut sent, 0..=999);
    sent.forget_resolved(Instant::EPOCH);
    let idle = crate::limits::IDLE_QUEUE_CAPACITY;
    assert!(sent.entries.capacity() <= idle, "an idle one does not");
    assert!(sent.tokens.capacity() <= idle);
}

/// RFC 9002, section 6.4.
#[test]
fn discarded_packets_are_neither_acknowledged_nor_lost() {
    let mut sent = sent(4);
    ack(&mut sent, 1..=1);
    lose(&mut sent, 1);
    let mut outstanding = 0;
    sent.discard(|_| outstanding += 1);
    assert_eq!(outstanding, 2);
    assert_eq!((sent.len(), sent.next_number()), (0, 4));
    assert!(!sent.has_ack_eliciting_in_flight());
    assert!(lose(&mut sent, 4).is_empty());
    sent.on_acked(0..=3, |packet| panic!("{} is resolved", packet.number))
        .unwrap();
}

#[test]
fn lost_packet_remembers_the_sample_that_counted_it() {
    let mut sent = Sent::new();
    for token in 0..2 {
        sent.push_token(token);
        sent.commit(packet(true));
    }
    let sample = LossSampleId::default().following();
    sent.lose_while(
        2,
        |_, _| Some(()),
        |lost, ()| (lost.number == 1).then_some(sample),
    );
    let mut counted_by = Vec::new();
    let visit = |acked: ResolvedPacket<'_, u64>| counted_by.push(acked.packet.counted_by);
    sent.on_acked(0..=1, visit).expect("both were sent");
    assert_eq!(counted_by, [None, Some(sample)]);
}

/// The ID of the loss sample fits in padding: there is one entry for each packet in flight.
#[test]
fn metadata_of_a_packet_take_at_most_64_bytes() {
    assert!(size_of::<SentPacket>() <= 64);
}
