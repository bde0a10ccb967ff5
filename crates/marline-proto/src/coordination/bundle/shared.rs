//! One controller for all rate-based members of a bundle: together they send what one connection would.
//!
//! Each member has a handle in the place of its controller. The controller behind it sees the members as one sender:
//! their bytes in flight, delivery rate and losses in sum. So bandwidth, smallest round-trip time, startup and what losses
//! have shown are known to all, a joining member continues where the others are, and idle members hold back nothing.
//!
//! Members that have data share the window and the pacing rate equally as long as each can use its part; what one leaves,
//! the others take.

mod sending;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::sending::{MemberId, Sending};
use super::MAX_MEMBERS;
use crate::congestion::{Controller, Coordinated, DeliveryRate, PathModel, Phase};
use crate::samples::{AckSample, CeSample, LossSample, PacketLoss, RttView, SentSample};
use crate::settings::Spec;
use crate::time::Instant;

/// The controller of a bundle whose members are rate-based; clones share it.
#[derive(Clone, Default)]
pub struct SharedController(Arc<Mutex<Shared>>);

impl PartialEq for SharedController {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for SharedController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedController").finish_non_exhaustive()
    }
}

/// A member when it joins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joins {
    /// Its bytes in flight.
    pub(crate) in_flight: u64,
    /// Size of its full datagrams, in bytes.
    pub(crate) datagram: u64,
    /// Its delivery rate so far.
    pub(crate) rate: DeliveryRate,
    /// Its smoothed round-trip time.
    pub(crate) rtt: Duration,
}

#[derive(Debug, Default)]
struct Shared {
    /// The first member's controller; `None` before there is one.
    controller: Option<Box<dyn Controller>>,
    sending: Sending,
}

impl SharedController {
    /// The window of all members together, in bytes; `None` before the first joined.
    pub(crate) fn window(&self) -> Option<u64> {
        let shared = self.lock();
        shared.controller.as_ref().map(|shared| shared.window())
    }

    /// Adds a member with a controller of its `own`, which a handle replaces; the first member's becomes the one that all
    /// share. Returns whether there was room: there are no more than [`MAX_MEMBERS`].
    pub(crate) fn add(&self, own: &mut Box<dyn Controller>, joins: &Joins) -> bool {
        let mut shared = self.lock();
        if shared.sending.len() == MAX_MEMBERS {
            return false;
        }
        let is_first = shared.controller.is_none();
        let member = shared.sending.join(joins, is_first);
        let handle = SharingMember {
            shared: self.clone(),
            member,
        };
        let own = std::mem::replace(own, Box::new(handle));
        if is_first {
            shared.controller = Some(own);
        } else {
            // It may be a handle itself, which leaves when it is dropped.
            drop(shared);
            drop(own);
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a member's controller: passes on what it sees, and answers with the member's part.
#[derive(Debug)]
struct SharingMember {
    shared: SharedController,
    member: MemberId,
}

impl Drop for SharingMember {
    fn drop(&mut self) {
        self.shared.lock().sending.leave(self.member);
    }
}

impl SharingMember {
    /// Has the shared controller, which is there as long as it has members, do something; `absent` without it.
    fn with<R>(
        &self,
        absent: R,
        act: impl FnOnce(&mut dyn Controller, &mut Sending, MemberId) -> R,
    ) -> R {
        let shared = &mut *self.shared.lock();
        match &mut shared.controller {
            Some(controller) => act(&mut **controller, &mut shared.sending, self.member),
            None => absent,
        }
    }

    fn tell(&self, act: impl FnOnce(&mut dyn Controller, &mut Sending, MemberId)) {
        self.with((), act);
    }

    fn ask<R>(&self, absent: R, ask: impl FnOnce(&dyn Controller) -> R) -> R {
        self.with(absent, |controller, _, _| ask(controller))
    }
}

impl Controller for SharingMember {
    fn on_sent(&mut self, now: Instant, sent: &SentSample) {
        self.tell(|controller, sending, member| {
            let sample = sending.on_sent(now, member, sent);
            controller.on_sent(now, &sample);
        });
    }

    fn on_ack(&mut self, now: Instant, ack: &AckSample) {
        self.tell(|controller, sending, member| {
            let sample = sending.on_ack(now, member, ack);
            controller.on_ack(now, &sample);
        });
    }

    fn on_packet_lost(&mut self, now: Instant, lost: &PacketLoss) {
        self.tell(|controller, sending, member| {
            let sample = sending.on_packet_lost(member, lost);
            controller.on_packet_lost(now, &sample);
        });
    }

    fn on_loss(&mut self, now: Instant, loss: &LossSample) {
        self.tell(|controller, sending, member| {
            let sample = sending.on_loss(now, member, loss);
            controller.on_loss(now, &sample);
        });
    }

    fn on_ce(&mut self, now: Instant, ce: &CeSample) {
        self.tell(|controller, _, _| controller.on_ce(now, ce));
    }

    fn on_spurious_loss(&mut self, now: Instant, sent_at: Instant) {
        self.tell(|controller, _, _| controller.on_spurious_loss(now, sent_at));
    }

    /// The members together are idle only if none has anything in flight.
    fn on_idle(&mut self, now: Instant, idle: Duration) {
        self.tell(|controller, sending, _| {
            if let Some(idle) = sending.idle(now, idle) {
                controller.on_idle(now, idle);
            }
        });
    }

    fn on_mtu(&mut self, mtu: u64) {
        self.tell(|controller, sending, member| controller.on_mtu(sending.on_mtu(member, mtu)));
    }

    fn window(&self) -> u64 {
        self.with(0, |controller, sending, member| {
            sending.part_of_window(member, controller.window())
        })
    }

    fn pacing_rate(&self, rtt: &RttView) -> u64 {
        self.with(1, |controller, sending, member| {
            sending.part_of_rate(member, controller.pacing_rate(rtt))
        })
    }

    fn phase(&self) -> Phase {
        self.ask(Phase::Startup, |shared| shared.phase())
    }

    fn in_slow_start(&self) -> bool {
        self.ask(true, |shared| shared.in_slow_start())
    }

    fn ssthresh(&self) -> Option<u64> {
        self.ask(None, |shared| shared.ssthresh())
    }

    fn is_rate_based(&self) -> bool {
        true
    }

    fn bandwidth(&self) -> Option<u64> {
        self.ask(None, |shared| shared.bandwidth())
    }

    fn is_scalable(&self) -> bool {
        self.ask(true, |shared| shared.is_scalable())
    }

    fn name(&self) -> &'static str {
        self.ask("shared", |shared| shared.name())
    }

    fn spec(&self) -> Spec {
        self.ask(Spec::named("shared"), |shared| shared.spec())
    }
}

impl Coordinated for SharingMember {
    fn set_window(&mut self, bytes: u64) {
        self.tell(|controller, _, _| controller.set_window(bytes));
    }

    fn enter_slow_start(&mut self) {
        self.tell(|controller, _, _| controller.enter_slow_start());
    }

    fn exit_slow_start(&mut self) {
        self.tell(|controller, _, _| controller.exit_slow_start());
    }

    fn set_bandwidth(&mut self, bytes_per_second: u64) {
        self.tell(|controller, _, _| controller.set_bandwidth(bytes_per_second));
    }

    fn model(&self) -> Option<PathModel> {
        self.ask(None, |shared| shared.model())
    }

    fn seed(&mut self, now: Instant, model: &PathModel, first_rate: u64) -> bool {
        self.with(false, |shared, _, _| shared.seed(now, model, first_rate))
    }
}

#[cfg(test)]
mod tests;
