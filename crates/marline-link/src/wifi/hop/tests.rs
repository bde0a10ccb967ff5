use super::{Entry, Outbox, Pipe};
use crate::wifi::aggregate::Limits;
use crate::wifi::errors::{Channel, Errors};
use crate::wifi::{Phy, StationConfig, Width, WifiConfig};
use crate::{Packet, Seed};

fn config() -> WifiConfig {
    WifiConfig::new(Phy::ht(Width::Ht40, 15, true), 1)
}

fn limits(config: &WifiConfig) -> Limits {
    Limits::new(config, &StationConfig::DEFAULT)
}

/// A pipe that fails `errors` of its MPDUs, with `packets` numbered packets of 1,500 bytes in it.
fn pipe(errors: f64, packets: usize) -> Pipe<usize> {
    let errors = Errors {
        mpdu: errors,
        ..Errors::default()
    };
    let mut pipe = Pipe::new(Channel::new(errors, Seed::new(1)), Some(100_000_000));
    push(&mut pipe, 0..packets);
    pipe
}

fn push(pipe: &mut Pipe<usize>, packets: std::ops::Range<usize>) {
    for body in packets {
        pipe.push(Entry::new(0, 1, Packet::new(1500, body)));
    }
}

#[test]
fn what_failed_goes_again_and_keeps_its_number() {
    let mut pipe = pipe(0.5, 10);
    let limits = limits(&config());
    let mut outbox = Outbox::default();
    assert_eq!(pipe.fill(limits, false).mpdus(), 10);
    let settled = pipe.settle(0, 7, &mut outbox);
    let failed = 10 - settled.packets;
    assert!(settled.heard && failed > 0 && failed < 10);
    assert_eq!(settled.bytes, 1500 * settled.packets as u64);
    push(&mut pipe, 10..12);
    assert_eq!(pipe.fill(limits, false).mpdus() as usize, failed + 2);
    while !pipe.is_empty() {
        pipe.settle(0, 1000, &mut outbox);
        pipe.fill(limits, false);
    }
    let bodies: Vec<usize> = outbox
        .arrived
        .iter()
        .map(|entry| entry.packet.body)
        .collect();
    assert_eq!(bodies, (0..12).collect::<Vec<_>>());
}

#[test]
fn a_packet_is_lost_with_its_eighth_try() {
    let mut pipe = pipe(1.0, 1);
    let mut outbox = Outbox::default();
    for _ in 0..8 {
        assert!(outbox.lost.is_empty());
        assert_eq!(pipe.fill(limits(&config()), false).mpdus(), 1);
        assert!(!pipe.settle(0, 7, &mut outbox).heard);
    }
    assert_eq!(outbox.lost.len(), 1);
    assert!(pipe.is_empty());
}

#[test]
fn a_collision_fails_all_and_loses_none() {
    let mut pipe = pipe(0.0, 5);
    let mut outbox = Outbox::default();
    pipe.fill(limits(&config()), false);
    assert_eq!(pipe.collide(7, &mut outbox).packets, 0);
    assert_eq!(pipe.fill(limits(&config()), false).mpdus(), 5);
    assert_eq!(pipe.settle(0, 7, &mut outbox).packets, 5);
    assert_eq!(outbox.arrived.len(), 5);
}

#[test]
fn the_oldest_that_failed_limits_what_is_new() {
    let mut pipe = pipe(0.0, 2);
    let limits = limits(&config());
    let mut outbox = Outbox::default();
    pipe.fill(limits, false);
    pipe.collide(7, &mut outbox);
    // As if 0 had failed and all up to 60 had been received since.
    pipe.next_seq = 61;
    push(&mut pipe, 2..20);
    let ppdu = pipe.fill(limits, false);
    assert_eq!(ppdu.mpdus(), 2 + 3);
}

#[test]
fn the_first_of_a_burst_goes_alone() {
    let mut pipe = pipe(0.0, 5);
    assert_eq!(pipe.fill(limits(&config()), true).mpdus(), 1);
}

#[test]
fn an_amsdu_fails_and_arrives_as_one() {
    let config = WifiConfig {
        max_amsdu_bytes: Some(3839),
        ..config()
    };
    let mut pipe = pipe(0.5, 20);
    let mut outbox = Outbox::default();
    let ppdu = pipe.fill(limits(&config), false);
    assert_eq!((ppdu.mpdus(), pipe.oldest_mpdu_bytes()), (10, 3076));
    let settled = pipe.settle(0, 7, &mut outbox);
    assert_eq!(settled.packets % 2, 0);
    assert!(settled.packets > 0 && settled.packets < 20);
    // Their number stays, and so do their companions.
    push(&mut pipe, 20..21);
    let again = pipe.fill(limits(&config), false);
    assert_eq!(again.mpdus() as usize, (20 - settled.packets) / 2 + 1);
    while !pipe.is_empty() {
        pipe.settle(0, 1000, &mut outbox);
        pipe.fill(limits(&config), false);
    }
    let bodies: Vec<usize> = outbox
        .arrived
        .iter()
        .map(|entry| entry.packet.body)
        .collect();
    assert_eq!(bodies, (0..21).collect::<Vec<_>>());
}
