//! What a connection learns from earlier ones, and what it leaves for later ones.

use super::Connection;
use crate::congestion::ConnectionKind;
use crate::coordination::history::SampleEvent;
use crate::limits::MIN_DATAGRAM_SIZE;
use crate::observe::Event;
use crate::observe::events::InitialWindowChosen;
use crate::paths::Slot;
use crate::recovery::FirstWindow;
use crate::time::Instant;

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
        let main = self.paths.main_slot();
        self.paths[main].recovery.learn_first_window(bytes);
        self.report_first_window(now, main);
    }

    /// Says with which window a path begins.
    pub(super) fn report_first_window(&mut self, now: Instant, at: Slot) {
        let path = &self.paths[at];
        let first = path.recovery.first_window();
        let event = InitialWindowChosen {
            path: path.id,
            window: first.bytes,
            default: first.default,
        };
        self.tell(now, &Event::InitialWindowChosen(event));
    }

    /// The window that the present path began with, in bytes; a bundle may have shared it out since. It is
    /// settled when the handshake is complete.
    pub fn initial_window(&self) -> u64 {
        self.paths.main().recovery.first_window().bytes
    }

    /// The first window after the peer has moved.
    pub(super) fn first_window_elsewhere(&self, now: Instant) -> FirstWindow {
        let kind = ConnectionKind {
            max_datagram_size: self.paths.main().tuples.active.mtu.current().into(),
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
        let main = self.paths.main_slot();
        if self.paths[main].recovery.return_to(first) {
            self.report_first_window(now, main);
        }
    }

    /// Leaves what it has seen of the present path to those that come after.
    pub(super) fn leave_history(&mut self, now: Instant) {
        self.tell_sample(now, SampleEvent::Closed);
    }

    /// The peer resumes the session in another connection: reports to
    /// [`TransportConfig::history`](crate::TransportConfig::history) what it has observed of the path so
    /// far, if anything.
    pub fn tell_resumed(&mut self, now: Instant) {
        self.tell_sample(now, SampleEvent::Resumed);
    }

    /// An address that is not proven may be anybody's: of such a path it tells nothing.
    fn tell_sample(&self, now: Instant, event: SampleEvent) {
        let Some(history) = &self.config.history else {
            return;
        };
        let path = self.paths.main();
        let is_proven = path.tuples.active.amplification.is_validated();
        if self.lifecycle.is_open()
            && self.progress.is_complete()
            && is_proven
            && path.recovery.rtt().has_sample()
        {
            let kind = self.kind(now, self.paths.has_moved());
            let mut sample = path.sample(event);
            self.add_bundled_paths(&mut sample);
            history.observe(&kind, &sample);
        }
    }
}
