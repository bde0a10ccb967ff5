//! A sender with a real controller on a bottleneck with a queue, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::*;
use crate::Instant;
use crate::congestion::{
    Algorithm, Controller, ControllerConfig, ControllerFactory, MINIMUM_WINDOW_PACKETS, Pacer,
};
use crate::samples::{AckSample, LossSample, RateSample, RttView, SentSample};

pub(super) const DATAGRAM: u64 = 1200;

/// Packets acknowledged beyond a missing one that make it lost (RFC 9002, section 6.1.1).
const REORDERING: u64 = 3;

/// The bottleneck between the ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bottleneck {
    /// Bytes per second.
    pub(super) rate: u64,
    /// Round-trip time with an empty queue, transmission not counted.
    pub(super) rtt: Duration,
    /// Capacity of the queue, in bytes.
    pub(super) queue: u64,
}

impl Bottleneck {
    /// The bandwidth-delay product, in bytes.
    pub(super) fn product(&self) -> u64 {
        (u128::from(self.rate) * self.rtt.as_nanos() / 1_000_000_000) as u64
    }
}

/// The course of a transfer.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) took: Duration,
    /// Bytes dropped in the flight of the jump, and in all.
    pub(super) dropped_by_jump: u64,
    pub(super) dropped: u64,
    pub(super) transitions: Vec<ResumeTransition>,
    pub(super) jump: Option<u64>,
    /// PipeSize at the retreat, and the largest window until its end.
    pub(super) retreat: Option<(u64, u64)>,
    /// PipeSize at the end of the retreat, and the threshold then.
    pub(super) threshold: Option<(u64, Option<u64>)>,
    pub(super) forgotten: bool,
    /// Bytes sent in the unvalidated phase.
    pub(super) burst: u64,
    pub(super) window: u64,
}

impl Course {
    pub(super) fn phases(&self) -> Vec<ResumePhase> {
        self.transitions.iter().map(|t| t.new).collect()
    }
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u64,
    sent_at: Instant,
    delivered: u64,
    delivered_at: Instant,
}

/// A future event at the sender.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// More data, in bytes.
    Data(u64),
    /// A packet is acknowledged.
    Ack(u64),
    /// The pacer allows more packets.
    Paced,
}

pub(super) struct Pipe {
    bottleneck: Bottleneck,
    controller: Box<dyn Controller>,
    resume: Option<CarefulResume>,
    pacer: Pacer,
    /// When the pacer allows the next packet, if one waits for it.
    paced_at: Option<Instant>,
    now: Instant,
    events: BTreeMap<(Instant, u64), Event>,
    order: u64,
    /// Data that waits, and data that has yet to arrive at the other end.
    waiting: u64,
    missing: u64,
    next: u64,
    sent: VecDeque<Packet>,
    delivered: u64,
    delivered_at: Instant,
    rtt: Option<RttView>,
    /// When the queue of the bottleneck becomes empty.
    free_at: Instant,
    course: Course,
}

impl Pipe {
    pub(super) fn new(
        algorithm: Algorithm,
        bottleneck: Bottleneck,
        saved: Option<Capacity>,
    ) -> Self {
        let config = ControllerConfig::new(DATAGRAM);
        let initial = config.initial_window;
        let now = Instant::EPOCH + Duration::from_secs(60);
        let resume = |saved| CarefulResume::new(saved, CarefulResumeConfig::default(), initial);
        Self {
            bottleneck,
            controller: algorithm.build(config),
            resume: saved.map(resume),
            pacer: Pacer::new(DATAGRAM),
            paced_at: None,
            now,
            events: BTreeMap::new(),
            order: 0,
            waiting: 0,
            missing: 0,
            next: 0,
            sent: VecDeque::new(),
            delivered: 0,
            delivered_at: now,
            rtt: None,
            free_at: now,
            course: Course {
                took: Duration::ZERO,
                dropped_by_jump: 0,
                dropped: 0,
                transitions: Vec::new(),
                jump: None,
                retreat: None,
                threshold: None,
                forgotten: false,
                burst: 0,
                window: 0,
            },
        }
    }

    /// Adds bytes to send after a time.
    pub(super) fn data(&mut self, after: Duration, bytes: u64) {
        self.missing += bytes;
        self.plan(self.now + after, Event::Data(bytes));
    }

    /// Sends until everything has arrived.
    pub(super) fn run(mut self) -> Course {
        let began = self.now;
        while self.missing > 0 {
            assert!(
                self.now - began < Duration::from_secs(600),
                "it does not end"
            );
            match self.events.pop_first() {
                Some(((at, _), event)) => {
                    self.now = at;
                    match event {
                        Event::Data(bytes) => self.waiting += bytes,
                        Event::Ack(number) => self.on_ack(number),
                        Event::Paced => self.paced_at = None,
                    }
                }
                None => self.on_timeout(),
            }
            self.send();
        }
        self.course.took = self.now - began;
        self.course.window = self.controller.window();
        self.course
    }

    fn plan(&mut self, at: Instant, event: Event) {
        self.events.insert((at, self.order), event);
        self.order += 1;
    }

    fn in_flight(&self) -> u64 {
        self.sent.len() as u64 * DATAGRAM
    }

    fn rate(&self) -> u64 {
        let first = RttView {
            latest: Duration::from_millis(333),
            adjusted: Duration::from_millis(333),
            smoothed: Duration::from_millis(333),
            min: Duration::from_millis(333),
            variance: Duration::ZERO,
        };
        let unvalidated = self.resume.as_ref().and_then(CarefulResume::pacing_rate);
        unvalidated.unwrap_or_else(|| self.controller.pacing_rate(&self.rtt.unwrap_or(first)))
    }

    fn send(&mut self) {
        while self.waiting > 0 {
            if self.in_flight() + DATAGRAM > self.controller.window() {
                let limited = WindowLimited {
                    bytes_in_flight: self.in_flight(),
                    window: self.controller.window(),
                    in_slow_start: self.controller.in_slow_start(),
                };
                let now = self.now;
                self.resume(|resume| resume.on_window_limited(now, &limited));
                if self.in_flight() + DATAGRAM > self.controller.window() {
                    return;
                }
            }
            let rate = self.rate();
            if let Some(at) = self.pacer.next_send(self.now, rate, DATAGRAM) {
                if self.paced_at.is_none() {
                    self.paced_at = Some(at);
                    self.plan(at, Event::Paced);
                }
                return;
            }
            self.pacer.on_sent(self.now, rate, DATAGRAM);
            self.waiting = self.waiting.saturating_sub(DATAGRAM);
            self.send_packet();
        }
    }

    fn send_packet(&mut self) {
        let number = self.next;
        self.next += 1;
        if self.sent.is_empty() {
            self.delivered_at = self.now;
        }
        self.sent.push_back(Packet {
            number,
            sent_at: self.now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
        });
        let unvalidated = self.phase() == Some(ResumePhase::Unvalidated);
        self.course.burst += if unvalidated { DATAGRAM } else { 0 };
        let sent = SentSample {
            packet_number: number,
            bytes: DATAGRAM,
            bytes_in_flight: self.in_flight(),
            app_limited: self.waiting == 0,
        };
        self.controller.on_sent(self.now, &sent);
        let now = self.now;
        self.resume(|resume| resume.on_sent(now, &sent));

        let starts_at = self.free_at.max(self.now);
        let wait = (starts_at - self.now).as_nanos() * u128::from(self.bottleneck.rate);
        if wait > u128::from(self.bottleneck.queue) * 1_000_000_000 {
            self.course.dropped += DATAGRAM;
            self.course.dropped_by_jump += if unvalidated { DATAGRAM } else { 0 };
            return;
        }
        let nanos = DATAGRAM * 1_000_000_000 / self.bottleneck.rate;
        self.free_at = starts_at + Duration::from_nanos(nanos);
        self.plan(self.free_at + self.bottleneck.rtt, Event::Ack(number));
    }

    fn phase(&self) -> Option<ResumePhase> {
        self.resume.as_ref().map(CarefulResume::phase)
    }

    fn on_ack(&mut self, number: u64) {
        let Some(place) = self.sent.iter().position(|sent| sent.number == number) else {
            // A packet that was declared lost: its data has been sent again.
            return;
        };
        let prior_in_flight = self.in_flight();
        let packet = self.sent.remove(place).expect("it has just been found");
        self.update_rtt(self.now - packet.sent_at);
        self.delivered += DATAGRAM;
        self.missing = self.missing.saturating_sub(DATAGRAM);
        self.delivered_at = self.now;
        let lost = self
            .sent
            .iter()
            .take_while(|sent| sent.number + REORDERING <= number)
            .count();
        if lost > 0 {
            self.lose(lost);
        }
        let ack = AckSample {
            bytes: DATAGRAM,
            bytes_in_flight: self.in_flight(),
            prior_in_flight,
            largest_acked: number,
            largest_sent: self.next - 1,
            largest_acked_sent_at: packet.sent_at,
            rtt: self.rtt.expect("it was just measured"),
            rtt_updated: true,
            rate: Some(RateSample {
                delivered: self.delivered - packet.delivered,
                interval: self.now - packet.delivered_at,
                prior_delivered: packet.delivered,
                delivered_total: self.delivered,
                in_flight_at_send: 0,
                lost: 0,
                app_limited: self.waiting == 0,
            }),
            app_limited: self.waiting == 0
                && prior_in_flight + DATAGRAM <= self.controller.window(),
        };
        self.controller.on_ack(self.now, &ack);
        let now = self.now;
        self.resume(|resume| resume.on_ack(now, &ack));
    }

    /// The oldest packets are lost.
    fn lose(&mut self, packets: usize) {
        let lost = self
            .sent
            .drain(..packets)
            .next_back()
            .expect("some are lost");
        let bytes = packets as u64 * DATAGRAM;
        self.waiting += bytes;
        let loss = LossSample {
            bytes,
            packets: packets as u64,
            largest_lost: lost.number,
            latest_sent_at: lost.sent_at,
            largest_sent: self.next - 1,
            bytes_in_flight: self.in_flight(),
            persistent: false,
        };
        self.controller.on_loss(self.now, &loss);
        self.resume(|resume| resume.on_loss(&loss));
    }

    /// All packets in flight were dropped.
    fn on_timeout(&mut self) {
        self.now += self.bottleneck.rtt * 3;
        self.lose(self.sent.len());
    }

    fn update_rtt(&mut self, latest: Duration) {
        let smoothed = self
            .rtt
            .map_or(latest, |rtt| (rtt.smoothed * 7 + latest) / 8);
        let min = self.rtt.map_or(latest, |rtt| rtt.min.min(latest));
        self.rtt = Some(RttView {
            latest,
            adjusted: latest,
            smoothed,
            min,
            variance: Duration::ZERO,
        });
    }

    /// Calls the engine, if there is one, and applies its step to the controller.
    fn resume(&mut self, ask: impl FnOnce(&mut CarefulResume) -> ResumeStep) {
        let Some(resume) = &mut self.resume else {
            return;
        };
        let retreated = resume.phase() == ResumePhase::SafeRetreat;
        let step = ask(resume);
        let pipe = resume.pipe_size();
        step.apply(self.controller.as_mut());
        let course = &mut self.course;
        if let Some(ResumeWindow::To(bytes)) = step.window {
            assert_eq!(
                self.controller.window(),
                bytes,
                "the controller takes the window"
            );
            assert_eq!(course.jump.replace(bytes), None, "one jump");
        }
        if resume.phase() == ResumePhase::SafeRetreat {
            let window = self.controller.window();
            let least = 2 * MINIMUM_WINDOW_PACKETS * DATAGRAM;
            let (_, most) = course.retreat.get_or_insert((pipe, 0));
            assert!(!retreated || window <= (*most).max(least), "no growth");
            *most = window.max(*most);
        } else if retreated {
            course.threshold = Some((pipe, self.controller.ssthresh()));
        }
        course.forgotten |= step.forget;
        course.transitions.extend(step.phase);
    }
}
