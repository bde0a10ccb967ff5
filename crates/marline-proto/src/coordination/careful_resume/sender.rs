//! A sender whose window follows the steps, with checks of the invariants.

use std::collections::VecDeque;
use std::time::Duration;

use super::*;
use crate::Instant;
use crate::samples::{AckSample, LossSample, RttView, SentSample};

pub(crate) const DATAGRAM: u64 = 1000;
pub(crate) const RTT: Duration = Duration::from_millis(100);
pub(crate) const INITIAL: u64 = 10 * DATAGRAM;

/// An event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// Sends this many packets.
    Send(u64),
    Fill,
    Limit,
    /// The oldest packets are acknowledged, this many.
    Ack(usize),
    Lose,
    Collapse,
    Mark,
    Move,
    Abandon,
    /// Milliseconds pass.
    Wait(u64),
    /// The round-trip time, in milliseconds.
    Rtt(u64),
}

/// Sends full datagrams that arrive in order; grows its window as slow start does.
pub(crate) struct Sender {
    pub(crate) resume: CarefulResume,
    pub(crate) now: Instant,
    pub(crate) rtt: Duration,
    pub(crate) window: u64,
    pub(crate) ssthresh: Option<u64>,
    pub(crate) in_slow_start: bool,
    pub(crate) forgotten: bool,
    pub(crate) transitions: Vec<ResumeTransition>,
    min_rtt: Duration,
    pub(super) next: u64,
    in_flight: VecDeque<u64>,
    /// An ACK-only packet, which is acknowledged together with the next others.
    pub(super) ack_only: Option<u64>,
    saved: Capacity,
    jumps: usize,
    /// The least window after a retreat, in bytes.
    least: u64,
}

impl Sender {
    pub(crate) fn new(saved: Capacity, config: CarefulResumeConfig) -> Self {
        Self {
            resume: CarefulResume::new(saved, config, INITIAL),
            now: Instant::EPOCH + Duration::from_secs(1),
            rtt: RTT,
            window: INITIAL,
            ssthresh: None,
            in_slow_start: true,
            forgotten: false,
            transitions: Vec::new(),
            min_rtt: Duration::MAX,
            next: 0,
            in_flight: VecDeque::new(),
            ack_only: None,
            saved,
            jumps: 0,
            least: 0,
        }
    }

    /// A sender with a rate-based controller, whose handshake took `rtt`.
    pub(crate) fn after_handshake(
        saved: Capacity,
        config: CarefulResumeConfig,
        rtt: Duration,
    ) -> Self {
        let mut sender = Self::new(saved, config);
        (sender.rtt, sender.min_rtt) = (rtt, rtt);
        let resume = sender.resume.clone().judging_losses();
        sender.resume = resume.after_handshake(sender.rtt_view());
        if sender.resume.is_confirmed() {
            sender.least = INITIAL;
        }
        sender
    }

    /// A sender whose initial window is acknowledged; 29 packets are in flight and fill the window.
    pub(crate) fn confirmed(saved: Capacity, config: CarefulResumeConfig) -> Self {
        let mut sender = Self::new(saved, config);
        sender.send(10);
        sender.ack(10);
        sender.send(20);
        sender.ack(9);
        sender.send(18);
        assert_eq!((sender.window, sender.in_flight()), (29_000, 29_000));
        sender
    }

    /// Applies an event, and checks the rules that hold after each.
    pub(crate) fn take(&mut self, op: Op) {
        match op {
            Op::Send(packets) => self.send(packets),
            Op::Fill => self.fill(),
            Op::Limit => self.limit(),
            Op::Ack(packets) => self.ack(packets),
            Op::Lose => self.lose(false),
            Op::Collapse => self.lose(true),
            Op::Mark => self.mark(),
            Op::Move => self.move_away(),
            Op::Abandon => self.abandon(),
            Op::Wait(millis) => self.wait(millis),
            Op::Rtt(millis) => self.rtt = Duration::from_millis(millis),
        }
    }

    /// Makes more data wait, which ends Careful Resume.
    pub(crate) fn finish(&mut self) {
        for _ in 0..20 {
            if self.resume.is_over() {
                break;
            }
            self.wait(1001);
            self.window = self.window.max(2 * DATAGRAM);
            self.send(1);
            self.fill();
            self.limit();
            self.wait(1001);
            self.ack(usize::MAX);
        }
        assert!(self.resume.is_over());
        assert!(self.transitions.len() <= 4);
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.len() as u64 * DATAGRAM
    }

    pub(crate) fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    pub(crate) fn send(&mut self, packets: u64) {
        for _ in 0..packets {
            self.in_flight.push_back(self.next);
            let sent = SentSample {
                packet_number: self.next,
                bytes: DATAGRAM,
                bytes_in_flight: self.in_flight(),
                app_limited: false,
            };
            self.next += 1;
            let step = self.resume.on_sent(self.now, &sent);
            self.apply(step);
        }
    }

    /// Sends as many packets as the window allows.
    pub(crate) fn fill(&mut self) {
        while self.in_flight() + DATAGRAM <= self.window {
            self.send(1);
        }
    }

    fn rtt_view(&self) -> RttView {
        RttView {
            latest: self.rtt,
            adjusted: self.rtt,
            smoothed: self.rtt,
            min: self.min_rtt,
            variance: Duration::ZERO,
        }
    }

    /// An ACK frame acknowledges the oldest packets.
    pub(crate) fn ack(&mut self, packets: usize) {
        let packets = packets.min(self.in_flight.len());
        let prior_in_flight = self.in_flight();
        let Some(largest_acked) = self.in_flight.drain(..packets).next_back() else {
            return;
        };
        let largest_acked = largest_acked.max(self.ack_only.take().unwrap_or(0));
        self.min_rtt = self.min_rtt.min(self.rtt);
        let bytes = packets as u64 * DATAGRAM;
        if self.in_slow_start {
            self.window += bytes;
        }
        let ack = AckSample {
            bytes,
            bytes_in_flight: self.in_flight(),
            prior_in_flight,
            largest_acked,
            largest_sent: self.next - 1,
            largest_acked_sent_at: self.now - self.rtt,
            rtt: self.rtt_view(),
            rtt_updated: true,
            rate: None,
            app_limited: false,
        };
        let step = self.resume.on_ack(self.now, &ack);
        self.apply(step);
    }

    /// The oldest packet is lost.
    pub(crate) fn lose(&mut self, persistent: bool) {
        let Some(largest_lost) = self.in_flight.pop_front() else {
            return;
        };
        self.window /= 2;
        self.in_slow_start = false;
        if persistent {
            self.window = 2 * DATAGRAM;
        }
        let step = self.resume.on_loss(&LossSample {
            bytes: DATAGRAM,
            packets: 1,
            largest_lost,
            latest_sent_at: self.now - self.rtt,
            largest_sent: self.next - 1,
            bytes_in_flight: self.in_flight(),
            persistent,
        });
        self.apply(step);
    }

    pub(crate) fn mark(&mut self) {
        self.window /= 2;
        self.in_slow_start = false;
        let step = self.resume.on_ce();
        self.apply(step);
    }

    /// Data waits because the window is full.
    pub(crate) fn limit(&mut self) {
        let limited = WindowLimited {
            bytes_in_flight: self.in_flight(),
            window: self.window,
            in_slow_start: self.in_slow_start,
        };
        let step = self.resume.on_window_limited(self.now, &limited);
        self.apply(step);
    }

    pub(crate) fn move_away(&mut self) {
        let step = self.resume.on_path_changed();
        self.apply(step);
    }

    pub(crate) fn abandon(&mut self) {
        let step = self.resume.abandon();
        self.apply(step);
    }

    fn apply(&mut self, step: ResumeStep) {
        let (before, pipe) = (self.window, self.resume.pipe_size());
        match step.window {
            Some(ResumeWindow::To(bytes)) => {
                self.jumps += 1;
                assert!(bytes > before, "a jump makes the window larger");
                assert_eq!(pipe, self.in_flight(), "the pipe size is what is in flight");
                self.window = bytes;
            }
            Some(ResumeWindow::AtMost(bytes)) => self.window = self.window.min(bytes),
            None => {}
        }
        self.in_slow_start &= !step.exit_slow_start;
        if let Some(ssthresh) = step.ssthresh {
            assert!(
                ssthresh <= pipe.max(self.least),
                "the threshold stays below the pipe size"
            );
            self.ssthresh = Some(ssthresh);
        }
        self.forgotten |= step.forget;
        assert!(self.jumps <= 1, "one jump");
        match self.resume.phase() {
            ResumePhase::Unvalidated => {
                assert!(
                    self.window <= self.saved.window / 2,
                    "half of the remembered window"
                );
                assert!(self.resume.pacing_rate().is_some(), "paced");
            }
            ResumePhase::SafeRetreat => {
                let entered = step.phase.is_some();
                assert!(
                    !entered || self.window <= (pipe / 2).max(self.least),
                    "half of the pipe size"
                );
                assert!(entered || self.window <= before, "no growth");
                assert!(self.forgotten, "the capacity is forgotten");
            }
            _ => assert!(self.resume.pacing_rate().is_none()),
        }
        if let Some(transition) = step.phase {
            let old = self
                .transitions
                .last()
                .map_or(ResumePhase::Reconnaissance, |last| last.new);
            assert_eq!(transition.old, old, "transitions are contiguous");
            assert_ne!(transition.old, transition.new);
            self.transitions.push(transition);
        }
    }
}
