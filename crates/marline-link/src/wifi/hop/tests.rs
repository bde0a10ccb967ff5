use super::{Entry, Hop, Outbox};
use crate::wifi::aggregate::Limits;
use crate::wifi::errors::{Channel, Errors};
use crate::wifi::{Phy, StationConfig, Width, WifiConfig};
use crate::{Packet, Seed};

fn config() -> WifiConfig {
    WifiConfig::new(Phy::ht(Width::Ht40, 15, true), 1)
}

fn limits(config: &WifiConfig) -> Limits {
    Limits::new(config, &StationConfig::DEFAULT, config.phy)
}

/// A hop with MPDU error rate `errors`, and `packets` numbered packets of 1,500 bytes in its queue.
fn hop(errors: f64, packets: usize) -> Hop<usize> {
    let errors = Errors {
        mpdu: errors,
        ..Errors::default()
    };
    let mut hop = Hop::new(Channel::new(errors, Seed::new(1)), Some(100_000_000));
    push(&mut hop, 0..packets);
    hop
}

fn push(hop: &mut Hop<usize>, packets: std::ops::Range<usize>) {
    for body in packets {
        hop.push(Entry::new(0, 1, Packet::new(1500, body)));
    }
}

#[test]
fn failed_mpdus_are_retransmitted_with_their_sequence_number() {
    let mut hop = hop(0.5, 10);
    let limits = limits(&config());
    let mut outbox = Outbox::default();
    assert_eq!(hop.fill(limits, false).mpdus(), 10);
    let outcome = hop.complete(0, 7, &mut outbox);
    let failed = 10 - outcome.packets;
    assert!(outcome.acknowledged && failed > 0 && failed < 10);
    assert_eq!(outcome.bytes, 1500 * outcome.packets as u64);
    push(&mut hop, 10..12);
    assert_eq!(hop.fill(limits, false).mpdus() as usize, failed + 2);
    while !hop.is_empty() {
        hop.complete(0, 1000, &mut outbox);
        hop.fill(limits, false);
    }
    let bodies: Vec<usize> = outbox
        .arrived
        .iter()
        .map(|entry| entry.packet.body)
        .collect();
    assert_eq!(bodies, (0..12).collect::<Vec<_>>());
}

#[test]
fn a_packet_is_lost_after_the_retry_limit() {
    let mut hop = hop(1.0, 1);
    let mut outbox = Outbox::default();
    for _ in 0..8 {
        assert!(outbox.lost.is_empty());
        assert_eq!(hop.fill(limits(&config()), false).mpdus(), 1);
        assert!(!hop.complete(0, 7, &mut outbox).acknowledged);
    }
    assert_eq!(outbox.lost.len(), 1);
    assert!(hop.is_empty());
}

#[test]
fn a_collision_fails_all_mpdus_without_losing_packets() {
    let mut hop = hop(0.0, 5);
    let mut outbox = Outbox::default();
    hop.fill(limits(&config()), false);
    assert_eq!(hop.collide(7, &mut outbox).packets, 0);
    assert_eq!(hop.fill(limits(&config()), false).mpdus(), 5);
    assert_eq!(hop.complete(0, 7, &mut outbox).packets, 5);
    assert_eq!(outbox.arrived.len(), 5);
}

#[test]
fn the_oldest_failed_mpdu_limits_the_window() {
    let mut hop = hop(0.0, 2);
    let limits = limits(&config());
    let mut outbox = Outbox::default();
    hop.fill(limits, false);
    hop.collide(7, &mut outbox);
    // As if MPDU 0 had failed and all up to 60 had been received since.
    hop.next_seq = 61;
    push(&mut hop, 2..20);
    let ppdu = hop.fill(limits, false);
    assert_eq!(ppdu.mpdus(), 2 + 3);
}

#[test]
fn the_first_packet_after_idle_time_is_sent_alone() {
    let mut hop = hop(0.0, 5);
    assert_eq!(hop.fill(limits(&config()), true).mpdus(), 1);
}

#[test]
fn packets_of_an_amsdu_fail_and_arrive_together() {
    let config = WifiConfig {
        max_amsdu_bytes: Some(3839),
        ..config()
    };
    let mut hop = hop(0.5, 20);
    let mut outbox = Outbox::default();
    let ppdu = hop.fill(limits(&config), false);
    assert_eq!((ppdu.mpdus(), hop.oldest_mpdu_bytes()), (10, 3076));
    let outcome = hop.complete(0, 7, &mut outbox);
    assert_eq!(outcome.packets % 2, 0);
    assert!(outcome.packets > 0 && outcome.packets < 20);
    // Retransmitted MPDUs keep their sequence number and their packets.
    push(&mut hop, 20..21);
    let again = hop.fill(limits(&config), false);
    assert_eq!(again.mpdus() as usize, (20 - outcome.packets) / 2 + 1);
    while !hop.is_empty() {
        hop.complete(0, 1000, &mut outbox);
        hop.fill(limits(&config), false);
    }
    let bodies: Vec<usize> = outbox
        .arrived
        .iter()
        .map(|entry| entry.packet.body)
        .collect();
    assert_eq!(bodies, (0..21).collect::<Vec<_>>());
}
