//! Reads the initial window learnt from earlier connections, and reports samples of this one for later ones.

use super::Connection;
use crate::congestion::ConnectionKind;
use crate::coordination::history::SampleEvent;
use crate::limits::MIN_DATAGRAM_SIZE;
use crate::observe::Event;
use crate::observe::events::InitialWindowChosen;
use crate::paths::Slot;
use crate::recovery::InitialWindowChoice;
use crate::time::Instant;

impl Connection {
    /// The facts that initial windows may depend on. A resumed session speaks for its first path, not for the one after it
    /// `moved`.
    pub(super) fn kind(&self, now: Instant, moved: bool) -> ConnectionKind<'_> {
        ConnectionKind {
            now,
            peer: self.remote_address(),
            server_name: self.server_name(),
            resumed: !moved && self.is_resumed(),
            max_datagram_size: MIN_DATAGRAM_SIZE.into(),
        }
    }

    /// After the handshake: takes the learnt initial window, unless the handshake itself met congestion or has grown
    /// the window further.
    pub(super) fn learn_initial_window(&mut self, now: Instant) {
        let bytes = self.config.initial_window.window(&self.kind(now, false));
        let main = self.paths.main_slot();
        self.paths[main].recovery.learn_initial_window(bytes);
        self.report_initial_window(now, main);
    }

    /// Reports the initial window of a path.
    pub(super) fn report_initial_window(&mut self, now: Instant, at: Slot) {
        let path = &self.paths[at];
        let first = path.recovery.initial_window();
        let event = InitialWindowChosen {
            path: path.id,
            window: first.bytes,
            default: first.default,
        };
        self.telemetry.emit(now, &Event::InitialWindowChosen(event));
    }

    /// The initial window of the present path, in bytes; a bundle may have split it since. It is final when the
    /// handshake is complete.
    pub fn initial_window(&self) -> u64 {
        self.paths.main().recovery.initial_window().bytes
    }

    /// The initial window of the main path after a migration.
    pub(super) fn initial_window_after_move(&self, now: Instant) -> InitialWindowChoice {
        let kind = ConnectionKind {
            max_datagram_size: self.paths.main().tuples.active.mtu.current().into(),
            ..self.kind(now, true)
        };
        let policy = &self.config.initial_window;
        InitialWindowChoice {
            bytes: policy.window(&kind),
            default: policy.window_before_handshake(&kind),
        }
    }

    /// The main path returns to its previous 4-tuple: takes an initial window of its own again.
    pub(super) fn restore_initial_window(&mut self, now: Instant) {
        let first = self.initial_window_after_move(now);
        let main = self.paths.main_slot();
        if self.paths[main].recovery.return_to(first) {
            self.report_initial_window(now, main);
        }
    }

    /// Reports the final sample of the present path to the history.
    pub(super) fn report_final_sample(&mut self, now: Instant) {
        self.report_sample(now, SampleEvent::Closed);
    }

    /// The peer resumes the session in another connection: reports to
    /// [`TransportConfig::history`](crate::TransportConfig::history) what it has observed of the path so
    /// far, if anything.
    pub fn report_resumed(&mut self, now: Instant) {
        self.report_sample(now, SampleEvent::Resumed);
    }

    /// Reports a sample of the main path, unless its address is not validated and may be spoofed.
    fn report_sample(&self, now: Instant, event: SampleEvent) {
        let Some(history) = &self.config.history else {
            return;
        };
        let path = self.paths.main();
        let is_validated = path.tuples.active.amplification.is_validated();
        if self.lifecycle.is_open()
            && self.establishment.progress().is_complete()
            && is_validated
            && path.recovery.rtt().has_sample()
        {
            let kind = self.kind(now, self.paths.has_moved());
            let mut sample = path.sample(event);
            self.add_bundled_paths(&mut sample);
            history.observe(&kind, &sample);
        }
    }
}
