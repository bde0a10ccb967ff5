//! Spans and events of the `tracing` crate from what connections report.
//!
//! [`observer`] makes, for each connection, an [`Observer`] that owns a span `connection` with its side, the
//! connection ID by which logs name it, and the peer's address. What happens to the connection is an event in
//! that span:
//!
//! | level | target | event |
//! | --- | --- | --- |
//! | info | `marline::connection` | the connection started or closed |
//! | info | `marline::path` | a path has other addresses or none any more, steps of a migration |
//! | debug | `marline::connection` | states of the connection, ACK frequency |
//! | debug | `marline::path` | datagram sizes, ECN validation |
//! | debug | `marline::keys` | keys became available or were discarded |
//! | debug | `marline::recovery` | losses, states of congestion control, initial windows, careful resume |
//! | debug | `marline::bundle` | decisions of a bundle's engine |
//! | trace | `marline::packet` | packets sent, received, dropped, acknowledged |
//! | trace | `marline::recovery` | round-trip times, windows, timers |
//! | trace | `marline::stream` | states of streams, received data that waits for earlier data |
//!
//! Values are formatted only if the subscriber enables the event. A connection that starts while no subscriber
//! enables the level info is not observed at all.
//!
//! ```
//! # fn configure(mut config: marline::ServerConfig) {
//! config.observer = Some(marline::trace::observer());
//! # }
//! ```
//!
//! With another observer, such as one that writes qlog: [`both_observers`](crate::both_observers).

use std::sync::Arc;

use ::tracing::level_filters::LevelFilter;
use ::tracing::{Span, debug, info, info_span, trace};

use crate::observe::{Event, Observer};
use crate::{ConnectionInfo, Instant, MakeObserver, Side};

/// Makes the observers of connections.
pub fn observer() -> MakeObserver {
    Arc::new(|connection| {
        let is_wanted = LevelFilter::current() >= LevelFilter::INFO;
        is_wanted.then(|| Box::new(Tracer::new(connection)) as Box<dyn Observer>)
    })
}

/// The targets of all spans and events.
pub const TARGETS: [&str; 7] = [
    "marline::bundle",
    "marline::connection",
    "marline::keys",
    "marline::packet",
    "marline::path",
    "marline::recovery",
    "marline::stream",
];

/// The span of one connection.
struct Tracer {
    span: Span,
}

impl Tracer {
    fn new(connection: &ConnectionInfo) -> Self {
        let side = match connection.side {
            Side::Client => "client",
            Side::Server => "server",
        };
        Self {
            span: info_span!(
                target: "marline::connection",
                "connection",
                side,
                id = %connection.original_destination,
                remote = %connection.remote,
            ),
        }
    }
}

/// Emits an event in the span of a [`Tracer`].
macro_rules! emit {
    ($level:ident, $tracer:expr, $target:literal, $message:literal $(, $($field:tt)+)?) => {
        $level!(target: $target, parent: &$tracer.span, $($($field)+,)? $message)
    };
}

impl Observer for Tracer {
    fn on_event(&mut self, _now: Instant, event: &Event<'_>) {
        match event {
            Event::ConnectionStarted(e) => emit!(info, self, "marline::connection", "started",
                remote = %e.remote, local_cid = %e.local_cid, remote_cid = %e.remote_cid),
            Event::ConnectionClosed(e) => emit!(info, self, "marline::connection", "closed",
                initiator = ?e.initiator, error = ?e.error, reason = e.reason, trigger = ?e.trigger),
            Event::PathAssigned(e) => emit!(info, self, "marline::path", "path assigned",
                path = e.path.0, local = ?e.local, remote = ?e.remote),
            Event::MigrationStateUpdated(e) => emit!(info, self, "marline::path", "migration",
                path = e.path.0, old = ?e.old, new = ?e.new),

            Event::ConnectionStateUpdated(e) => emit!(debug, self, "marline::connection", "state",
                old = ?e.old, new = ?e.new),
            Event::ConnectionIdUpdated(e) => {
                emit!(debug, self, "marline::connection", "connection ID",
                path = e.path.map(|path| path.0), initiator = ?e.initiator, old = ?e.old, new = ?e.new);
            }
            Event::VersionInformation(e) => emit!(
                debug,
                self,
                "marline::connection",
                "version",
                chosen = e.chosen
            ),
            Event::AlpnInformation(e) => emit!(
                debug,
                self,
                "marline::connection",
                "ALPN",
                chosen = e
                    .chosen
                    .map(|name| String::from_utf8_lossy(name).into_owned())
            ),
            Event::ParametersSet(e) => {
                emit!(debug, self, "marline::connection", "transport parameters",
                initiator = ?e.initiator, cipher = e.tls_cipher, parameters = ?e.parameters);
            }
            Event::ParametersRestored(parameters) => emit!(debug, self, "marline::connection",
                "remembered transport parameters", parameters = ?parameters),
            Event::AckFrequencyUpdated(e) => {
                emit!(debug, self, "marline::connection", "ACK frequency",
                path = e.path.0, initiator = ?e.initiator, threshold = e.ack_eliciting_threshold,
                max_ack_delay = ?e.requested_max_ack_delay, reordering = e.reordering_threshold);
            }
            Event::MtuUpdated(e) => emit!(
                debug,
                self,
                "marline::path",
                "datagram size",
                path = e.path.0,
                old = e.old,
                new = e.new,
                done = e.done
            ),
            Event::EcnStateUpdated(e) => emit!(debug, self, "marline::path", "ECN",
                path = e.path.0, old = ?e.old, new = ?e.new),
            Event::KeyUpdated(e) => emit!(debug, self, "marline::keys", "keys available",
                sender = ?e.sender, kind = ?e.kind, phase = e.key_phase, trigger = ?e.trigger),
            Event::KeyDiscarded(e) => emit!(debug, self, "marline::keys", "keys discarded",
                sender = ?e.sender, kind = ?e.kind, phase = e.key_phase, trigger = ?e.trigger),
            Event::PacketLost(e) => emit!(debug, self, "marline::recovery", "packet lost",
                path = e.path.0, kind = ?e.kind, number = e.number, size = e.size,
                mtu_probe = e.is_mtu_probe, trigger = ?e.trigger),
            Event::SpuriousLoss(e) => emit!(debug, self, "marline::recovery", "spurious loss",
                path = e.path.0, kind = ?e.kind, number = e.number, reordering = e.reordering,
                elapsed = ?e.elapsed),
            Event::CongestionStateUpdated(e) => emit!(
                debug,
                self,
                "marline::recovery",
                "congestion",
                path = e.path.0,
                old = e.old,
                new = e.new,
                trigger = e.trigger
            ),
            Event::InitialWindowChosen(e) => emit!(
                debug,
                self,
                "marline::recovery",
                "initial window",
                path = e.path.0,
                window = e.window,
                default = e.default
            ),
            Event::RecoveryParametersSet(e) => {
                emit!(debug, self, "marline::recovery", "parameters",
                path = e.path.0, controller = e.controller, parameters = ?e);
            }
            Event::CarefulResumePhaseUpdated(e) => {
                emit!(debug, self, "marline::recovery", "careful resume",
                path = e.path.0, old = ?e.old, new = ?e.new, pipe_size = e.pipe_size);
            }
            Event::BundleUpdated(e) => emit!(debug, self, "marline::bundle", "decision",
                bundle = e.bundle, trigger = ?e.trigger, action = ?e.action, phase = ?e.phase,
                own = e.own, before = ?e.before, after = ?e.after),

            Event::PacketSent(e) => emit!(trace, self, "marline::packet", "sent",
                path = e.path.0, kind = ?e.kind, number = e.number, size = e.size, trigger = ?e.trigger),
            Event::PacketReceived(e) => emit!(trace, self, "marline::packet", "received",
                path = e.path.0, kind = ?e.kind, number = e.number, size = e.size, ecn = ?e.ecn),
            Event::PacketDropped(e) => emit!(trace, self, "marline::packet", "dropped",
                path = e.path.map(|path| path.0), kind = ?e.kind, size = e.size, trigger = ?e.trigger),
            Event::PacketsAcked(e) => emit!(trace, self, "marline::packet", "acknowledged",
                path = e.path.0, packets = ?e),
            Event::MetricsUpdated(e) => emit!(trace, self, "marline::recovery", "metrics",
                path = e.path.0, smoothed_rtt = ?e.smoothed_rtt, latest_rtt = ?e.latest_rtt,
                congestion_window = e.congestion_window, bytes_in_flight = e.bytes_in_flight,
                pto_count = e.pto_count, pacing_rate = e.pacing_rate),
            Event::TimerUpdated(e) => emit!(trace, self, "marline::recovery", "timer",
                path = e.path.map(|path| path.0), timer = ?e.timer, space = ?e.space, change = ?e.change),
            Event::StreamStateUpdated(e) => emit!(trace, self, "marline::stream", "state",
                id = ?e.id, half = ?e.half, old = ?e.old, new = ?e.new, trigger = ?e.trigger),
            Event::ReassemblyUpdated(e) => emit!(
                trace,
                self,
                "marline::stream",
                "reassembly",
                out_of_order_bytes = e.out_of_order_bytes
            ),
            event => emit!(trace, self, "marline::connection", "other", event = ?event),
        }
    }
}
