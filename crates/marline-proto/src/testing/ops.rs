//! Random operations of applications and networks.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::network::{Conditions, Direction};
use marline_wire::{Dir, Side};

/// An operation. A stream is named by its position among those that an end opened or accepted, modulo their number,
/// so that every sequence is valid, after shrinking too.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Open(Side, Dir),
    Write(Side, usize, usize),
    Finish(Side, usize),
    Reset(Side, usize),
    Stop(Side, usize),
    Read(Side, usize, usize),
    Datagram(Side, usize),
    Ping(Side),
    UpdateKeys(Side),
    Close(Side),
    Network(Direction, Conditions),
    /// All packets in one direction are lost for a while.
    Outage(Direction, Duration),
    /// The NAT replaces its binding.
    RebindNat,
    /// The client migrates to another address.
    Migrate,
    Pass(Duration),
}

/// A case: the configuration of the ends, and the operations.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    /// Receive window of the connection in bytes; that of each stream is half of it.
    pub(crate) window: u64,
    pub(crate) streams: u64,
    pub(crate) send_buffer: u64,
    pub(crate) pacing: bool,
    pub(crate) ops: Vec<Op>,
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Client), Just(Side::Server)]
}

fn dir() -> impl Strategy<Value = Dir> {
    prop_oneof![Just(Dir::Bi), Just(Dir::Uni)]
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::ToServer), Just(Direction::ToClient)]
}

fn millis(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

/// A share of datagrams, often zero.
fn share(most: f64) -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..most]
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let rate = prop_oneof![Just(None), (50_000..5_000_000u64).prop_map(Some)];
    let faults = (share(0.2), 1..4u32, share(0.1), share(0.1), share(0.3));
    (
        millis(1..150),
        millis(0..60),
        faults,
        rate,
        3_000..200_000u64,
    )
        .prop_map(
            |(delay, jitter, (loss, burst, duplicate, corrupt, mark), rate, queue)| Conditions {
                delay,
                jitter,
                loss,
                burst,
                duplicate,
                corrupt,
                mark,
                rate,
                queue,
                ..Conditions::default()
            },
        )
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (side(), dir()).prop_map(|(side, dir)| Op::Open(side, dir)),
        10 => (side(), any::<u8>(), 0..60_000usize)
            .prop_map(|(side, n, len)| Op::Write(side, n.into(), len)),
        4 => (side(), any::<u8>()).prop_map(|(side, n)| Op::Finish(side, n.into())),
        1 => (side(), any::<u8>()).prop_map(|(side, n)| Op::Reset(side, n.into())),
        1 => (side(), any::<u8>()).prop_map(|(side, n)| Op::Stop(side, n.into())),
        8 => (side(), any::<u8>(), 1..100_000usize)
            .prop_map(|(side, n, max)| Op::Read(side, n.into(), max)),
        2 => (side(), 0..1400usize).prop_map(|(side, len)| Op::Datagram(side, len)),
        1 => side().prop_map(Op::Ping),
        1 => side().prop_map(Op::UpdateKeys),
        3 => (direction(), conditions()).prop_map(|(direction, now)| Op::Network(direction, now)),
        1 => (direction(), millis(1..4000)).prop_map(|(direction, time)| Op::Outage(direction, time)),
        1 => Just(Op::RebindNat),
        1 => Just(Op::Migrate),
        12 => millis(0..400).prop_map(Op::Pass),
    ]
}

/// Cases of up to `most` operations; one in eight ends in a close.
pub(crate) fn case(most: usize) -> impl Strategy<Value = Case> {
    let close = prop_oneof![7 => Just(None), 1 => side().prop_map(|side| Some(Op::Close(side)))];
    (
        any::<u64>(),
        2_000..400_000u64,
        1..20u64,
        2_000..500_000u64,
        any::<bool>(),
        vec(op(), 1..most),
        close,
    )
        .prop_map(
            |(seed, window, streams, send_buffer, pacing, mut ops, close)| {
                ops.extend(close);
                Case {
                    seed,
                    window,
                    streams,
                    send_buffer,
                    pacing,
                    ops,
                }
            },
        )
}
