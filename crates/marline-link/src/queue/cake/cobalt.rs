//! COBALT: CoDel and BLUE for one queue (`sch_cake`; BLUE: Feng et al., University of Michigan CSE-TR-387-99, 1999).

use std::time::Duration;

use rand::Rng;
use rand_pcg::Pcg64Mcg;

use crate::{Ecn, Packet, Time};

/// The settings of COBALT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CobaltConfig {
    /// Acceptable delay.
    target: Duration,
    /// The time for which it may be exceeded.
    interval: Duration,
    /// Transmission time of a full packet.
    mtu: Duration,
}

/// By how much BLUE's drop probability, in 2^-32, grows when the queue is full.
const INCREASE: u32 = 1 << 24;

/// By how much it falls when the queue is empty.
const DECREASE: u32 = 1 << 20;

impl CobaltConfig {
    /// For a round-trip time of 100 ms, and a rate in bits per second at which full packets have `mtu` bytes: the target
    /// is 5 ms, or one and a half packets.
    pub(super) fn new(rate: u64, mtu: u64) -> Self {
        const TARGET: Duration = Duration::from_millis(5);
        const INTERVAL: Duration = Duration::from_millis(100);
        let mtu = Duration::from_nanos(mtu.saturating_mul(8_000_000_000) / rate.max(1));
        let target = TARGET.max(mtu * 3 / 2);
        let interval = (INTERVAL + target - TARGET).max(target * 2);
        Self {
            target,
            interval,
            mtu,
        }
    }
}

#[cfg(test)]
impl CobaltConfig {
    pub(super) const fn target(&self) -> Duration {
        self.target
    }
}

/// The state for one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cobalt {
    /// `count`: strength of CoDel's signal.
    count: u32,
    dropping: bool,
    /// `drop_next`: time of the next signal.
    next: Time,
    /// `p_drop`: BLUE's drop probability, in 2^-32.
    probability: u32,
    /// `blue_timer`: last change of that.
    changed: Time,
}

/// The action for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) drops: bool,
}

impl Cobalt {
    /// Judges a packet that waited for `age`, and marks it if that is the signal. `bulk` is the number of flows that
    /// fill their queues.
    pub(super) fn judge<B>(
        &mut self,
        now: Time,
        age: Duration,
        bulk: u32,
        config: &CobaltConfig,
        packet: &mut Packet<B>,
        rng: &mut Pcg64Mcg,
    ) -> Verdict {
        let is_late = age > config.target
            && age > config.mtu.saturating_mul(bulk.saturating_mul(2))
            && age > config.mtu * 4;
        let mut is_due = self.count > 0 && self.next <= now;
        let mut drops = false;
        if is_late {
            if !self.dropping {
                self.dropping = true;
                self.next = self.after(now, config);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        if is_due && self.dropping {
            drops = !mark(packet);
            self.count = self.count.saturating_add(1);
            self.next = self.after(self.next, config);
        } else {
            while is_due {
                self.count -= 1;
                self.next = self.after(self.next, config);
                is_due = self.count > 0 && self.next <= now;
            }
        }
        if self.probability > 0 {
            drops |= ((rng.next_u64() >> 32) as u32) < self.probability;
        }
        if self.count == 0 {
            self.next = now + config.interval;
        } else if self.next < now && !drops {
            self.next = now;
        }
        Verdict { drops }
    }

    /// The queue overflowed.
    pub(super) fn on_full(&mut self, now: Time, config: &CobaltConfig) {
        if now.since(self.changed) > config.target {
            self.probability = self.probability.saturating_add(INCREASE);
            self.changed = now;
        }
        self.dropping = true;
        self.next = now;
        self.count = self.count.max(1);
    }

    /// The queue is empty. Returns whether the state has not decayed to rest yet.
    pub(super) fn on_empty(&mut self, now: Time, config: &CobaltConfig) -> bool {
        if self.probability > 0 && now.since(self.changed) > config.target {
            self.probability = self.probability.saturating_sub(DECREASE);
            self.changed = now;
        }
        self.dropping = false;
        if self.count > 0 && self.next <= now {
            self.count -= 1;
            self.next = self.after(self.next, config);
        }
        self.probability > 0 || self.count > 0
    }

    /// CoDel's control law.
    fn after(&self, at: Time, config: &CobaltConfig) -> Time {
        let interval = config.interval.as_nanos() as f64;
        at + Duration::from_nanos((interval / f64::from(self.count.max(1)).sqrt()) as u64)
    }
}

/// Marks an ECN-capable packet; returns whether it is one.
fn mark<B>(packet: &mut Packet<B>) -> bool {
    let is_capable = packet.ecn.is_capable();
    if is_capable {
        packet.ecn = Ecn::Ce;
    }
    is_capable
}
