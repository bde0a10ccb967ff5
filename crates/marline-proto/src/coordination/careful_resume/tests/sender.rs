//! A sender whose window follows the steps, with checks of the invariants.

use std::collections::VecDeque;
use std::time::Duration;

use super::*;
use crate::Instant;
use crate::samples::{AckSample, LossSample, RttView, SentSample};

pub(super) const DATAGRAM: u64 = 1000;
pub(super) const RTT: Duration = Duration::from_millis(100);
pub(super) const INITIAL: u64 = 10 * DATAGRAM;

/// The remembered capacity of appendix B: 300 packets, with the present round-trip time.
pub(super) const SAVED: Capacity = Capacity {
    window: 300 * DATAGRAM,
    rtt: RTT,
    at: Instant::EPOCH,
};

pub(super) const fn transition(
    old: ResumePhase,
    new: ResumePhase,
    trigger: Option<ResumeTrigger>,
) -> ResumeTransition {
    ResumeTransition { old, new, trigger }
}

/// Sends full datagrams that arrive in order; grows its window as slow start does.
pub(super) struct Sender {
    pub(super) resume: CarefulResume,
    pub(super) now: Instant,
    pub(super) rtt: Duration,
    pub(super) window: u64,
    pub(super) ssthresh: Option<u64>,
    pub(super) in_slow_start: bool,
    pub(super) forgotten: bool,
    pub(super) transitions: Vec<ResumeTransition>,
    min_rtt: Duration,
    next: u64,
    in_flight: VecDeque<u64>,
    /// An ACK-only packet, which is acknowledged together with the next others.
    ack_only: Option<u64>,
    saved: Capacity,
    jumps: usize,
}

impl Sender {
    pub(super) fn new(saved: Capacity, config: CarefulResumeConfig) -> Self {
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
        }
    }

    /// A sender whose initial window is acknowledged; 29 packets are in flight and fill the window.
    pub(super) fn confirmed(saved: Capacity, config: CarefulResumeConfig) -> Self {
        let mut sender = Self::new(saved, config);
        sender.send(10);
        sender.ack(10);
        sender.send(20);
        sender.ack(9);
        sender.send(18);
        assert_eq!((sender.window, sender.in_flight()), (29_000, 29_000));
        sender
    }

    /// A sender that has jumped from 29 packets to 150.
    pub(super) fn jumped() -> Self {
        let mut sender = Self::confirmed(SAVED, CarefulResumeConfig::default());
        sender.limit();
        assert_eq!(sender.resume.phase(), ResumePhase::Unvalidated);
        sender
    }

    /// A sender that has sent all 121 packets that its jump allows.
    pub(super) fn validating() -> Self {
        let mut sender = Self::jumped();
        sender.send(121);
        assert_eq!(sender.resume.phase(), ResumePhase::Validating);
        sender
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight.len() as u64 * DATAGRAM
    }

    pub(super) fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    pub(super) fn send(&mut self, packets: u64) {
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

    /// Sends an ACK-only packet.
    pub(super) fn send_ack_only(&mut self) {
        self.ack_only = Some(self.next);
        self.next += 1;
    }

    /// Sends as many packets as the window allows.
    pub(super) fn fill(&mut self) {
        while self.in_flight() + DATAGRAM <= self.window {
            self.send(1);
        }
    }

    /// An ACK frame acknowledges the oldest packets.
    pub(super) fn ack(&mut self, packets: usize) {
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
            rtt: RttView {
                latest: self.rtt,
                smoothed: self.rtt,
                min: self.min_rtt,
                variance: Duration::ZERO,
            },
            rtt_updated: true,
            rate: None,
            app_limited: false,
        };
        let step = self.resume.on_ack(self.now, &ack);
        self.apply(step);
    }

    /// The oldest packet is lost.
    pub(super) fn lose(&mut self, persistent: bool) {
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

    pub(super) fn mark(&mut self) {
        self.window /= 2;
        self.in_slow_start = false;
        let step = self.resume.on_ce();
        self.apply(step);
    }

    /// Data waits because the window is full.
    pub(super) fn limit(&mut self) {
        let limited = WindowLimited {
            bytes_in_flight: self.in_flight(),
            window: self.window,
            in_slow_start: self.in_slow_start,
        };
        let step = self.resume.on_window_limited(self.now, &limited);
        self.apply(step);
    }

    pub(super) fn move_away(&mut self) {
        let step = self.resume.on_path_changed();
        self.apply(step);
    }

    pub(super) fn abandon(&mut self) {
        let step = self.resume.abandon();
        self.apply(step);
    }

    /// The latest transition, which led to the present phase.
    pub(super) fn latest(&self) -> ResumeTransition {
        let latest = self.transitions.last().expect("something happened");
        assert_eq!(latest.new, self.resume.phase());
        *latest
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
            assert!(ssthresh <= pipe, "the threshold stays below the pipe size");
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
                assert!(!entered || self.window <= pipe / 2, "half of the pipe size");
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
