//! What a connection learns from earlier ones, and what it leaves for later ones.

use super::Connection;
use super::path::Recovery;
use super::slots::Slot;
use crate::congestion::{ConnectionKind, PathSample, SampleEvent};
use crate::coordination::careful_resume::Phase;
use crate::limits::MIN_DATAGRAM_SIZE;
use crate::observe::Event;
use crate::observe::events::InitialWindowChosen;
use crate::samples::RttView;
use crate::time::Instant;

/// The window that a path begins with.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstWindow {
    pub(super) bytes: u64,
    /// That of somebody who knows nothing of the path.
    pub(super) default: u64,
}

impl FirstWindow {
    fn is_learnt(&self) -> bool {
        self.bytes > self.default
    }
}

/// The packets that leave within the first window's worth of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstFlight {
    window: FirstWindow,
    /// Bytes sent so far.
    sent: u64,
    /// When the last of it left.
    until: Instant,
    /// Whether any of it was lost, or marked.
    suffered: bool,
}

impl FirstFlight {
    pub(super) fn new(window: FirstWindow) -> Self {
        Self {
            window,
            sent: 0,
            until: Instant::EPOCH,
            suffered: false,
        }
    }

    /// The window that the path began with, in bytes.
    pub(super) fn window(&self) -> u64 {
        self.window.bytes
    }

    fn is_leaving(&self) -> bool {
        self.sent < self.window.bytes
    }

    /// A packet that counts as in flight left.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64) {
        if self.is_leaving() {
            self.sent = self.sent.saturating_add(bytes);
            self.until = now;
        }
    }

    /// A packet sent at `sent_at` was lost or marked.
    pub(super) fn on_congestion(&mut self, sent_at: Instant) {
        self.suffered |= sent_at <= self.until;
    }

    /// While a learnt window leaves: so many bytes per second that it takes a round trip, or that the
    /// `window` does which a loss or a bundle has left of it.
    pub(super) fn pacing_rate(&self, rtt: &RttView, window: u64) -> Option<u64> {
        let spreads = self.window.is_learnt() && self.is_leaving();
        let bytes = self.window.bytes.min(window);
        let nanos = u64::try_from(rtt.smoothed.as_nanos()).unwrap_or(u64::MAX);
        spreads.then(|| (bytes.saturating_mul(1_000_000_000) / nanos.max(1)).max(1))
    }
}

impl Recovery {
    /// A packet sent at `sent_at` was lost or marked.
    pub(super) fn note_congestion(&mut self, sent_at: Instant) {
        self.suffered = true;
        self.first_flight.on_congestion(sent_at);
    }

    /// What it has seen of the path.
    pub(super) fn sample(&self, event: SampleEvent) -> PathSample {
        let window = self.controller.window();
        let window = match &self.resume {
            // A jump that nothing has confirmed is no capacity.
            Some(resume) if resume.phase() != Phase::Reconnaissance => {
                window.min(resume.pipe_size())
            }
            _ => window,
        };
        PathSample {
            event,
            window,
            initial_window: self.first_flight.window(),
            rtt: self.rtt.min(),
            delivered: self.rate.delivered() - self.delivered_elsewhere,
            app_limited: !self.window_limited,
            lost_at_first: self.first_flight.suffered,
        }
    }
}

impl Connection {
    /// Who the connection is, as the handshake has told. What a session knew of the way holds for its
    /// first one, not after it `moved`.
    pub(super) fn kind(&self, now: Instant, moved: bool) -> ConnectionKind<'_> {
        ConnectionKind {
            now,
            peer: self.remote_address(),
            server_name: self.server_name(),
            resumed: !moved && self.is_resumed(),
            max_datagram_size: MIN_DATAGRAM_SIZE.into(),
        }
    }

    /// The handshake has told who the peer is: begins with what was learnt, unless the handshake itself
    /// met congestion or has opened the window further.
    pub(super) fn learn_first_window(&mut self, now: Instant) {
        let bytes = self.config.initial_window.window(&self.kind(now, false));
        let main = self.paths.main();
        let recovery = &mut self.paths[main].recovery;
        let opened = recovery.controller.window();
        let begun = recovery.first_flight.window();
        if bytes > opened.max(begun) && !recovery.suffered {
            recovery.controller.set_window(bytes);
            recovery.first_flight.window.bytes = bytes;
        }
        self.tell_first_window(now, main);
    }

    /// Says with which window a path begins.
    pub(super) fn tell_first_window(&mut self, now: Instant, at: Slot) {
        let path = &self.paths[at];
        let first = path.recovery.first_flight.window;
        let event = InitialWindowChosen {
            path: path.id.0,
            window: first.bytes,
            default: first.default,
        };
        self.tell(now, &Event::InitialWindowChosen(event));
    }

    /// The window that the present path began with, in bytes; a bundle may have shared it out since. It is
    /// settled when the handshake is complete.
    pub fn initial_window(&self) -> u64 {
        self.main().recovery.first_flight.window()
    }

    /// The first window after the peer has moved.
    pub(super) fn first_window_elsewhere(&self, now: Instant) -> FirstWindow {
        let kind = ConnectionKind {
            max_datagram_size: self.main().tuples.active.mtu.current().into(),
            ..self.kind(now, true)
        };
        let policy = &self.config.initial_window;
        FirstWindow {
            bytes: policy.window(&kind),
            default: policy.window_before_handshake(&kind),
        }
    }

    /// The path is the one before again: what was learnt of the other does not hold here.
    pub(super) fn begin_here_again(&mut self, now: Instant) {
        let first = self.first_window_elsewhere(now);
        let main = self.paths.main();
        let recovery = &mut self.paths[main].recovery;
        if recovery.first_flight.window.is_learnt() && first.bytes < recovery.controller.window() {
            recovery.controller.set_window(first.bytes);
            recovery.first_flight = FirstFlight::new(first);
            self.tell_first_window(now, main);
        }
    }

    /// Leaves what it has seen of the present path to those that come after.
    pub(super) fn tell_history(&mut self, now: Instant) {
        self.tell_sample(now, SampleEvent::Closed);
    }

    /// The peer resumes the session in another connection: tells
    /// [`TransportConfig::initial_window`](crate::TransportConfig::initial_window) what it has seen of the
    /// path so far, if anything.
    pub fn tell_resumed(&mut self, now: Instant) {
        self.tell_sample(now, SampleEvent::Resumed);
    }

    /// An address that is not proven may be anybody's: of such a path it tells nothing.
    fn tell_sample(&self, now: Instant, event: SampleEvent) {
        let path = self.main();
        let is_proven = path.tuples.active.amplification.is_validated();
        if self.lifecycle.is_open()
            && self.handshake_took.is_some()
            && is_proven
            && path.recovery.rtt.has_sample()
        {
            let kind = self.kind(now, self.moved);
            let mut sample = path.recovery.sample(event);
            self.add_group_to(&mut sample);
            self.config.initial_window.observe(&kind, &sample);
        }
    }
}
