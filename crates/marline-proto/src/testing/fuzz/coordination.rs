//! Engines that decide for several connections: their rules hold for any sequence of events.

use std::time::Duration;

use super::{Script, Step};
use crate::Instant;
use crate::coordination::bundle::{
    BundleConfig, BundleScope, Coalesce, MAX_MEMBERS,
    owner::{Op as BundleOp, Owner, What},
};
use crate::coordination::careful_resume::{
    Capacity, CarefulResumeConfig,
    sender::{Op as ResumeOp, RTT, Sender},
};

/// Maximum number of steps of an input.
const MAX_STEPS: usize = 200;

/// Maximum saved window, in bytes: a sender fills half of it packet by packet.
const MAX_SAVED: u64 = 1 << 24;

/// Checks a bundle of real controllers. After each event, no window is below the minimum, their sum has not grown, each
/// member gets one directive that agrees with the decision, and a collapsed member does not participate.
///
/// Four bytes of configuration, and a [`Script`] of events.
///
/// # Panics
///
/// If one of these does not hold.
pub fn check_bundle(input: &[u8]) {
    let Some((config, script)) = input.split_first_chunk() else {
        return;
    };
    let mut owner = Owner::with(bundle_config(*config), 3, 30);
    for step in Script::new(script).take(MAX_STEPS) {
        owner.take(bundle_op(&step));
    }
}

fn bundle_config([switches, choices, growth, backoff]: [u8; 4]) -> BundleConfig {
    let is_set = |bit: u8| switches >> bit & 1 == 1;
    BundleConfig {
        split_initial_window: is_set(0),
        sync_windows: is_set(1),
        sync_state: is_set(2),
        backoff_on_delay: is_set(3),
        fair: is_set(4),
        scope: match is_set(5) {
            true => BundleScope::All,
            false => BundleScope::Active,
        },
        coalesce: match choices % 3 {
            0 => Coalesce::Never,
            1 => Coalesce::Member,
            _ => Coalesce::Bundle,
        },
        corroborated_by: (choices & 0x80 != 0).then_some(usize::from(choices >> 4 & 3)),
        floor_packets: 2 + u64::from(choices >> 2 & 3),
        imbalance: 1.0 + f64::from(growth >> 4) / 8.0,
        affected_growth: 0.9 + f64::from(growth & 0x0f) / 80.0,
        backoff: is_set(6).then_some(0.3 + f64::from(backoff) / 400.0),
        slow_start_growth: is_set(7).then_some(1.2 + f64::from(backoff) / 320.0),
        ..BundleConfig::published()
    }
}

fn bundle_op(step: &Step<'_>) -> BundleOp {
    let datagram = 1200 + step.value() % 300;
    let what = match step.action % 16 {
        0 => return BundleOp::Join(datagram, (step.len > 2).then(|| step.value())),
        1 => return BundleOp::Admit(datagram),
        2..=4 => return BundleOp::Rounds,
        5 | 6 => return BundleOp::Wait(step.value() % 100_000),
        7 | 8 => What::Lose,
        9 => What::Collapse,
        10 => What::Delay,
        11 => What::Round,
        12 => What::Active(step.len & 1 == 0),
        13 => What::Rtt(step.value() % 100_000),
        14 => What::Rate(step.value()),
        15 if step.len == 0 => What::Leave,
        _ => What::Window(step.value() % (1 << 32)),
    };
    BundleOp::To(usize::from(step.number) % MAX_MEMBERS, what)
}

/// Checks Careful Resume on a path with any saved capacity. There is one jump at most, to no more than half of the
/// saved window; a retreat halves the measured pipe size and discards the capacity; the phases follow each other as in
/// RFC 9959, and Careful Resume ends.
///
/// The saved capacity and the configuration, 19 bytes, and a [`Script`] of events.
///
/// # Panics
///
/// If one of these does not hold.
pub fn check_careful_resume(input: &[u8]) {
    let Some((&[window @ .., beta, options], rest)) = input.split_first_chunk::<10>() else {
        return;
    };
    let Some((&[rtt @ .., jump], script)) = rest.split_first_chunk::<9>() else {
        return;
    };
    let saved = Capacity {
        window: u64::from_le_bytes(window) % MAX_SAVED,
        rtt: Duration::from_nanos(u64::from_le_bytes(rtt)),
        at: Instant::EPOCH,
        model: None,
    };
    let config = CarefulResumeConfig {
        max_jump: (options & 1 != 0).then_some(u64::from(jump) << 12),
        lifetime: match options & 2 {
            0 => Duration::MAX,
            _ => Duration::from_secs(10),
        },
        beta: f64::from(beta) / 128.0,
        ..CarefulResumeConfig::default()
    };
    let mut sender = match options & 12 {
        0 => Sender::new(saved, config),
        4 => Sender::confirmed(saved, config),
        _ => Sender::after_handshake(saved, config, RTT),
    };
    for step in Script::new(script).take(MAX_STEPS) {
        sender.take(resume_op(&step));
    }
    sender.finish();
}

fn resume_op(step: &Step<'_>) -> ResumeOp {
    let packets = 1 + step.number % 64;
    match step.action % 16 {
        0 | 1 => ResumeOp::Send(packets.into()),
        2 | 3 => ResumeOp::Fill,
        4..=6 => ResumeOp::Limit,
        7..=9 => ResumeOp::Ack(packets.into()),
        10 => ResumeOp::Lose,
        11 => ResumeOp::Collapse,
        12 => ResumeOp::Mark,
        13 => match step.number & 1 {
            0 => ResumeOp::Move,
            _ => ResumeOp::Abandon,
        },
        14 => ResumeOp::Wait(step.value() % 100_000),
        _ => ResumeOp::Rtt(step.value() % 100_000),
    }
}
