//! Settings of every connection, whichever side opens it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{EcnMode, MultipathConfig};
use crate::ack::{self, AckPolicy};
use crate::congestion::slow_start::{self, HyStartPp, SlowStartExit};
use crate::congestion::{
    Bbr3Config, CONTROLLERS, ControllerFactory, INITIAL_WINDOWS, InitialWindow, Rfc9002Window,
};
use crate::coordination::bundle::BundleConfig;
use crate::coordination::careful_resume::CarefulResumeConfig;
use crate::coordination::history::{
    HistoryConfig, HistoryParts, HistoryPolicy, PathHistory, PathStore,
};
use crate::limits::MIN_DATAGRAM_SIZE;
use crate::paths::MAX_CEILING;
use crate::recovery::loss::{Adaptive, DETECTORS, LossDetector};
use crate::scheduling::stream::{self, Rfc9218, StreamScheduler};
use crate::settings::{Choice, Derived, Domain, Field, FieldValue, Make, Settings, Table, Value};
use crate::tuple::EcnCodepoint;

/// How a connection behaves.
///
/// Windows are bytes. The defaults suit the open Internet; each field can be set on its own:
///
/// ```
/// # use marline_proto::TransportConfig;
/// let config = TransportConfig { max_concurrent_bidi_streams: 1000, ..TransportConfig::default() };
/// # assert!(config.pacing);
/// ```
#[derive(Clone)]
pub struct TransportConfig {
    /// The connection closes silently after this long without a packet; `None` is never. The
    /// smaller of both ends' values counts (RFC 9000, section 10.1).
    pub max_idle_timeout: Option<Duration>,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
    /// A PING leaves after this long without a packet; `None` is never.
    pub keep_alive: Option<Duration>,
    /// Client: a PING is sent when nothing was received for this long, and for three probe timeouts, while a
    /// bidirectional stream of the client is not received in full; then at doubling intervals up to 15 s. Without it a
    /// client that only receives notices neither a NAT rebinding nor a restarted server. `None` is never.
    pub response_ping: Option<Duration>,
    /// The round-trip time assumed before the first sample: a first probe timeout is three times that. RFC 9002,
    /// section 6.2.2 recommends 333 ms.
    pub initial_rtt: Duration,
    /// Client: the first flight leaves again after this long without an answer, and after three and seven times as long,
    /// before its probe timeout; `None` is never.
    pub first_flight_copy: Option<Duration>,
    /// Whether a flight of the handshake is repeated before its probe timeout when what arrives shows that the peer
    /// misses some of it (RFC 9002, section 6.2.3), at most twice in a connection, and a client's first flight once
    /// more. Client: the first request too, once, when a round trip and the peer's delay of acknowledgments pass
    /// without one.
    pub early_repeats: bool,
    /// Client: the first datagram with application data after the handshake carries the Finished message again.
    pub finished_copy: bool,
    /// Client: the first request leaves again a quarter of a round trip later, if it is short; with [`Self::early_repeats`].
    pub request_copy: bool,
    /// With one path: whether what repeats lost data leaves twice if nothing else waits, up to four frames.
    pub tail_copies: bool,
    /// Client: whether the round-trip time of the last connection to a server is assumed instead of
    /// [`Self::initial_rtt`], for ten minutes.
    pub remember_rtt: bool,
    /// Whether both probes of a probe timeout repeat a packet of application data, the two oldest; otherwise the second
    /// is a PING.
    pub two_probes: bool,
    /// Whether the first probe for larger datagrams waits for a round trip after the handshake, and for a probe timeout more
    /// if no bidirectional stream is opened: before data, it takes an eighth of the initial window from them.
    pub late_mtu_probes: bool,

    /// Streams that the peer may have open at once, in both directions.
    pub max_concurrent_bidi_streams: u64,
    /// Streams that the peer may have open at once, from it to us.
    pub max_concurrent_uni_streams: u64,
    /// What the peer may send on one stream before we read, at first; `None` is 8 MiB at a client, which asked for it,
    /// and 512 KiB at a server.
    pub stream_receive_window: Option<u64>,
    /// What the peer may send on all streams before we read, at first; `None` is 16 MiB at a client, and 1 MiB at a
    /// server.
    pub receive_window: Option<u64>,
    /// How far auto-tuning may widen [`Self::stream_receive_window`].
    pub max_stream_receive_window: u64,
    /// How far auto-tuning may widen [`Self::receive_window`].
    pub max_receive_window: u64,
    /// What streams hold of data written and not yet acknowledged, before writes block.
    pub send_buffer: u64,
    /// Bytes of received datagrams kept for the application; `None` refuses datagrams (RFC 9221).
    pub datagram_receive_buffer: Option<usize>,
    /// Bytes of datagrams that wait to be sent.
    pub datagram_send_buffer: usize,

    /// Makes the congestion controller.
    pub controller: Arc<dyn ControllerFactory>,
    /// Makes what ends slow start.
    pub slow_start_exit: Make<dyn SlowStartExit>,
    /// Chooses the initial congestion window.
    pub initial_window: Arc<dyn InitialWindow>,
    /// Learns what connections observe of their paths, and offers saved capacities to careful resume;
    /// `None` keeps connections independent of earlier ones. [`Self::set_history`] sets all that belongs
    /// to it.
    pub history: Option<Arc<dyn PathHistory>>,
    /// How a path resumes the capacity that [`Self::history`] or the client's address token has saved. Not
    /// in a bundle, whose engine owns the windows.
    pub careful_resume: CarefulResumeConfig,
    /// What is left of the window after a loss; `None` is the controller's own.
    pub backoff: Option<f64>,
    /// How many connections a window-based controller backs off and grows like: see
    /// [`ControllerConfig::emulated_flows`](crate::congestion::ControllerConfig::emulated_flows).
    pub emulated_flows: u32,
    /// Factor by which the window grows in a round trip of slow start, above 1 and at most 2.
    pub slow_start_growth: f64,
    /// Makes what decides that packets are lost.
    pub loss_detector: Make<dyn LossDetector>,
    /// Makes what decides when to acknowledge.
    pub ack_policy: Make<dyn AckPolicy>,
    /// Makes what chooses among streams.
    pub stream_scheduler: Make<dyn StreamScheduler>,
    /// Whether packets are spread over the round trip.
    pub pacing: bool,
    /// Packets that the pacer lets leave together, if the window holds four times as many; 1 spreads them evenly.
    /// Links that send several packets as fast as one, as Wi-Fi does with its aggregates, need fewer turns for them;
    /// a short queue overflows sooner.
    pub send_quantum: u64,
    /// What to request of the peer's acknowledgments, if it supports ACK_FREQUENCY; nothing of what is marked with ECT(1)
    /// ([`EcnMode::L4s`]).
    pub ack_frequency: Option<AckFrequencyConfig>,

    /// How the congestion control of what this end sends is coordinated with the other connections of a bundle; `None` leaves every
    /// connection on its own.
    pub bundle: Option<Arc<BundleConfig>>,

    /// How the connection uses several paths at once; `None` is one path.
    pub multipath: Option<MultipathConfig>,

    /// How large datagrams may become.
    pub mtu: MtuConfig,
    /// The largest UDP payload that the peer is told to send, in bytes: 1200 to 65527, which is no limit (RFC 9000, section
    /// 18.2). It keeps a peer that does not notice when a path stops carrying its datagrams from making them larger; datagrams
    /// that are larger all the same are taken.
    pub max_udp_payload_size: u16,
    /// What packets are marked with, and how marks count.
    pub ecn: EcnMode,
    /// Whether to send reserved transport parameters and clear the fixed bit where the peer allows
    /// it, so that the network does not learn to expect otherwise (RFC 9287).
    pub grease: bool,
    /// Whether to leave out packet numbers now and then, to catch peers that acknowledge blindly
    /// (RFC 9000, section 21.4).
    pub skip_packet_numbers: bool,
    /// Packets sealed with one key before a key update; `None` updates only as the AEAD requires.
    pub key_update_interval: Option<u64>,
}

/// Times that a connection can wait for something: a day at most.
const WAIT: Domain = Domain::time(Duration::from_millis(1), Duration::from_secs(24 * 3600));

/// Streams that may be open at once.
const STREAMS: Domain = Domain::integer(0, 1 << 20);

/// A window of flow control, or a buffer.
const WINDOW: Domain = Domain::bytes(1, 16 << 30);

/// Buffers of datagrams.
const DATAGRAMS: Domain = Domain::bytes(1, 1 << 30);

impl TransportConfig {
    /// Its keys in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Choice {
            key: "cc",
            about: "The congestion controller",
            registry: &CONTROLLERS,
            get: |c: &Self| c.controller.spec(),
            field: |c: &mut Self| &mut c.controller,
        },
        &Choice {
            key: "slow_start_exit",
            about: "What ends slow start before a loss does",
            registry: &slow_start::EXITS,
            get: |c: &Self| (c.slow_start_exit)().spec(),
            field: |c: &mut Self| &mut c.slow_start_exit,
        },
        &Choice {
            key: "initial_window",
            about: "The initial congestion window",
            registry: &INITIAL_WINDOWS,
            get: |c: &Self| c.initial_window.spec(),
            field: |c: &mut Self| &mut c.initial_window,
        },
        &Field::new(
            "backoff",
            Domain::PART.or("own"),
            "The part of the window that remains after a loss; own is the controller's value",
            |c: &mut Self| &mut c.backoff,
        ),
        &Field::new(
            "emulated_flows",
            Domain::integer(1, 16),
            "How many connections newreno and cubic back off and grow like",
            |c: &mut Self| &mut c.emulated_flows,
        ),
        &Field::new(
            "slow_start_growth",
            Domain::number(1.1, 2.0),
            "Factor by which the window grows in a round trip of slow start",
            |c: &mut Self| &mut c.slow_start_growth,
        ),
        &Choice {
            key: "loss_detection",
            about: "What decides that packets are lost",
            registry: &DETECTORS,
            get: |c: &Self| (c.loss_detector)().spec(),
            field: |c: &mut Self| &mut c.loss_detector,
        },
        &Choice {
            key: "ack",
            about: "When received packets are acknowledged",
            registry: &ack::POLICIES,
            get: |c: &Self| (c.ack_policy)().spec(),
            field: |c: &mut Self| &mut c.ack_policy,
        },
        &Choice {
            key: "stream_scheduler",
            about: "What chooses among the streams that have something to send",
            registry: &stream::SCHEDULERS,
            get: |c: &Self| (c.stream_scheduler)().spec(),
            field: |c: &mut Self| &mut c.stream_scheduler,
        },
        &Field::new(
            "pacing",
            Domain::SWITCH,
            "Whether packets are spread over the round trip",
            |c: &mut Self| &mut c.pacing,
        ),
        &Field::new(
            "send_quantum",
            Domain::integer(1, 64),
            "Packets that the pacer lets leave together, if the window holds four times as many",
            |c: &mut Self| &mut c.send_quantum,
        ),
        &Field::new(
            "ecn",
            Domain::switch_or(EcnMode::L4S),
            "Whether packets are marked ECT(0), and marks count as congestion; l4s marks them ECT(1) for short queues, with bbr3, prague and wireless",
            |c: &mut Self| &mut c.ecn,
        ),
        &Derived {
            key: "mtu",
            domain: Domain::bytes(MIN_DATAGRAM_SIZE as u64, 9000),
            about: "The largest UDP payload to probe for; 1200B does not probe",
            get: |c: &Self| {
                let MtuConfig { ceiling, discover } = c.mtu;
                Some(if discover { ceiling } else { MIN_DATAGRAM_SIZE }.to_value())
            },
            set: |c: &mut Self, value: &Value| {
                if let Some(ceiling) = u16::from_value(value) {
                    c.mtu = MtuConfig {
                        ceiling,
                        discover: ceiling > MIN_DATAGRAM_SIZE,
                    };
                }
                Ok(())
            },
        },
        &Field::new(
            "max_udp_payload_size",
            Domain::bytes(MIN_DATAGRAM_SIZE as u64, MAX_CEILING as u64),
            "The largest UDP payload that the peer is told to send (RFC 9000, section 18.2)",
            |c: &mut Self| &mut c.max_udp_payload_size,
        ),
        &Field::new(
            "initial_rtt",
            Domain::time(Duration::from_millis(1), Duration::from_secs(60)),
            "The round-trip time assumed before the first sample",
            |c: &mut Self| &mut c.initial_rtt,
        ),
        &Field::new(
            "first_flight_copy",
            Domain::time(Duration::from_millis(1), Duration::from_secs(60)).or("never"),
            "A client's first flight leaves again after this long without an answer, and after three and seven times as long",
            |c: &mut Self| &mut c.first_flight_copy,
        ),
        &Field::new(
            "early_repeats",
            Domain::SWITCH,
            "Whether a flight of the handshake, or a client's first request, is repeated before its probe timeout when it seems lost",
            |c: &mut Self| &mut c.early_repeats,
        ),
        &Field::new(
            "finished_copy",
            Domain::SWITCH,
            "Whether a client's first datagram with application data after the handshake carries the Finished message again",
            |c: &mut Self| &mut c.finished_copy,
        ),
        &Field::new(
            "request_copy",
            Domain::SWITCH,
            "Whether a client's first request, if it is short, leaves again a quarter of a round trip later; with early_repeats",
            |c: &mut Self| &mut c.request_copy,
        ),
        &Field::new(
            "tail_copies",
            Domain::SWITCH,
            "Whether what repeats lost data leaves twice if nothing else waits, with one path",
            |c: &mut Self| &mut c.tail_copies,
        ),
        &Field::new(
            "remember_rtt",
            Domain::SWITCH,
            "Whether a client assumes the round-trip time of its last connection to the server before the first sample",
            |c: &mut Self| &mut c.remember_rtt,
        ),
        &Field::new(
            "two_probes",
            Domain::SWITCH,
            "Whether both probes of a probe timeout repeat application data; otherwise the second is a PING",
            |c: &mut Self| &mut c.two_probes,
        ),
        &Field::new(
            "late_mtu_probes",
            Domain::SWITCH,
            "Whether the first probe for larger datagrams waits for a round trip after the handshake, and up to a probe timeout more for a request",
            |c: &mut Self| &mut c.late_mtu_probes,
        ),
        &Field::new(
            "max_idle_timeout",
            WAIT.or("never"),
            "The connection closes after this long without a packet; the smaller of both ends' counts",
            |c: &mut Self| &mut c.max_idle_timeout,
        ),
        &Field::new(
            "handshake_timeout",
            WAIT,
            "How long a handshake may take",
            |c: &mut Self| &mut c.handshake_timeout,
        ),
        &Field::new(
            "keep_alive",
            WAIT.or("never"),
            "How long a connection may be idle before it is pinged",
            |c: &mut Self| &mut c.keep_alive,
        ),
        &Field::new(
            "response_ping",
            WAIT.or("never"),
            "How long a client that awaits a response receives nothing before it sends a PING",
            |c: &mut Self| &mut c.response_ping,
        ),
        &Field::new(
            "max_concurrent_bidi_streams",
            STREAMS,
            "Streams that the peer may have open at once, in both directions",
            |c: &mut Self| &mut c.max_concurrent_bidi_streams,
        ),
        &Field::new(
            "max_concurrent_uni_streams",
            STREAMS,
            "Streams that the peer may have open at once, from it to us",
            |c: &mut Self| &mut c.max_concurrent_uni_streams,
        ),
        &Field::new(
            "stream_receive_window",
            WINDOW.or("by_role"),
            "What the peer may send on one stream before we read, at first; by_role is 8 MiB at a client, 512 KiB at a server",
            |c: &mut Self| &mut c.stream_receive_window,
        ),
        &Field::new(
            "receive_window",
            WINDOW.or("by_role"),
            "What the peer may send on all streams before we read, at first; by_role is 16 MiB at a client, 1 MiB at a server",
            |c: &mut Self| &mut c.receive_window,
        ),
        &Field::new(
            "max_stream_receive_window",
            WINDOW,
            "How far auto-tuning may widen stream_receive_window",
            |c: &mut Self| &mut c.max_stream_receive_window,
        ),
        &Field::new(
            "max_receive_window",
            WINDOW,
            "How far auto-tuning may widen receive_window",
            |c: &mut Self| &mut c.max_receive_window,
        ),
        &Field::new(
            "send_buffer",
            WINDOW,
            "What streams hold of data written and not yet acknowledged, before writes block",
            |c: &mut Self| &mut c.send_buffer,
        ),
        &Field::new(
            "datagram_receive_buffer",
            DATAGRAMS.or("none"),
            "Received datagrams kept for the application; none refuses datagrams",
            |c: &mut Self| &mut c.datagram_receive_buffer,
        ),
        &Field::new(
            "datagram_send_buffer",
            DATAGRAMS,
            "Datagrams that wait to be sent",
            |c: &mut Self| &mut c.datagram_send_buffer,
        ),
        &Field::new(
            "grease",
            Domain::SWITCH,
            "Whether to send reserved transport parameters and clear the fixed bit (RFC 9287)",
            |c: &mut Self| &mut c.grease,
        ),
        &Field::new(
            "skip_packet_numbers",
            Domain::SWITCH,
            "Whether to leave out packet numbers now and then (RFC 9000, section 21.4)",
            |c: &mut Self| &mut c.skip_packet_numbers,
        ),
        &Field::new(
            "key_update_interval",
            Domain::integer(1, 1 << 40).or("never"),
            "Packets sealed with one key before a key update, beside those that the AEAD requires",
            |c: &mut Self| &mut c.key_update_interval,
        ),
        &Table {
            key: "ack_frequency",
            about: "What to request of the peer's acknowledgments, if it supports ACK_FREQUENCY and packets do not carry ECT(1)",
            settings: AckFrequencyConfig::SETTINGS,
            bases: &[],
            get: |c: &Self| c.ack_frequency.as_ref(),
            open: |c: &mut Self| c.ack_frequency.get_or_insert_default(),
            off: Some(|c: &mut Self| c.ack_frequency = None),
        },
        &Table {
            key: "careful_resume",
            about: "How a connection returns to the saved capacity of its path (Careful Resume, RFC 9959)",
            settings: CarefulResumeConfig::SETTINGS,
            bases: &[],
            get: |c: &Self| Some(&c.careful_resume),
            open: |c: &mut Self| &mut c.careful_resume,
            off: None,
        },
        &Table {
            key: "bundle",
            about: "How the congestion control of what this end sends is coordinated with the other connections of a bundle; published: as in the paper on mQUIC",
            settings: BundleConfig::SETTINGS,
            bases: BundleConfig::BASES,
            get: |c: &Self| c.bundle.as_deref(),
            open: |c: &mut Self| Arc::make_mut(c.bundle.get_or_insert_default()),
            off: Some(|c: &mut Self| c.bundle = None),
        },
        &Table {
            key: "multipath",
            about: "How the connection uses several paths at once, if both ends want it",
            settings: MultipathConfig::SETTINGS,
            bases: &[],
            get: |c: &Self| c.multipath.as_ref(),
            open: |c: &mut Self| c.multipath.get_or_insert_default(),
            off: Some(|c: &mut Self| c.multipath = None),
        },
    ];
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            max_idle_timeout: Some(Duration::from_secs(30)),
            handshake_timeout: Duration::from_secs(10),
            keep_alive: None,
            response_ping: Some(Duration::from_secs(1)),
            initial_rtt: Duration::from_millis(100),
            first_flight_copy: Some(Duration::from_millis(50)),
            early_repeats: true,
            finished_copy: true,
            request_copy: true,
            tail_copies: true,
            remember_rtt: true,
            two_probes: true,
            late_mtu_probes: true,
            max_concurrent_bidi_streams: 256,
            max_concurrent_uni_streams: 256,
            stream_receive_window: None,
            receive_window: None,
            max_stream_receive_window: 16 << 20,
            max_receive_window: 24 << 20,
            send_buffer: 8 << 20,
            datagram_receive_buffer: Some(1 << 20),
            datagram_send_buffer: 1 << 20,
            controller: Arc::new(Bbr3Config::WIRELESS),
            slow_start_exit: Arc::new(|| Box::new(HyStartPp::default())),
            initial_window: Arc::new(Rfc9002Window),
            history: None,
            careful_resume: CarefulResumeConfig::default(),
            backoff: None,
            emulated_flows: 1,
            slow_start_growth: 2.0,
            loss_detector: Arc::new(|| Box::new(Adaptive::default())),
            ack_policy: Arc::new(|| Box::new(ack::AsAsked::default())),
            stream_scheduler: Arc::new(|| Box::new(Rfc9218::default())),
            pacing: true,
            send_quantum: 1,
            ack_frequency: Some(AckFrequencyConfig::default()),
            bundle: None,
            multipath: None,
            mtu: MtuConfig::default(),
            max_udp_payload_size: MAX_CEILING,
            ecn: EcnMode::Classic,
            grease: true,
            skip_packet_numbers: true,
            key_update_interval: None,
        }
    }
}

impl TransportConfig {
    /// What packets are to be marked with.
    pub(crate) fn ect(&self) -> Option<EcnCodepoint> {
        match self.ecn {
            EcnMode::Off => None,
            EcnMode::L4s if self.controller.is_scalable() => Some(EcnCodepoint::Ect1),
            EcnMode::Classic | EcnMode::L4s => Some(EcnCodepoint::Ect0),
        }
    }

    /// Has connections learn of their paths into `store`, and use what earlier ones have learnt as `policy`
    /// says. The present [`Self::initial_window`] stays that of paths of which nothing is known.
    pub fn set_history(
        &mut self,
        policy: HistoryPolicy,
        config: HistoryConfig,
        store: Arc<dyn PathStore>,
    ) {
        self.careful_resume.lifetime = config.lifetime;
        let fallback = Arc::clone(&self.initial_window);
        let HistoryParts {
            initial_window,
            history,
        } = policy.build(config, store, fallback);
        self.initial_window = initial_window;
        self.history = Some(history);
    }
}

impl fmt::Debug for TransportConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportConfig")
            .field("max_idle_timeout", &self.max_idle_timeout)
            .field("controller", &self.controller)
            .field("initial_window", &self.initial_window)
            .field("history", &self.history)
            .field("mtu", &self.mtu)
            .field("max_udp_payload_size", &self.max_udp_payload_size)
            .finish_non_exhaustive()
    }
}

/// Sizes of datagrams (RFC 9000, section 14; RFC 8899).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MtuConfig {
    /// The largest UDP payload to probe for, in bytes.
    pub ceiling: u16,
    /// Whether to probe for more than the 1200 bytes that every path carries.
    pub discover: bool,
}

impl Default for MtuConfig {
    /// 1200 bytes at first, up to 1472: an Ethernet frame less IPv4 and UDP headers.
    fn default() -> Self {
        Self {
            ceiling: 1472,
            discover: true,
        }
    }
}

/// What ACK_FREQUENCY asks of the peer (draft-ietf-quic-ack-frequency-14).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckFrequencyConfig {
    /// Ack-eliciting packets that may come without an immediate ACK.
    pub threshold: u64,
    /// The longest an ACK may wait.
    pub max_delay: Duration,
    /// The reordering, in packet numbers, at which an ACK is sent at once; with 0 none is.
    pub reordering_threshold: u64,
    /// ACKs that a congestion window gets at least: small windows ask for fewer packets than `threshold` allows, down
    /// to one ACK for two packets within `max_delay`, as every receiver does by itself. With 0 the window does not matter.
    pub acks_per_window: u64,
    /// An ACK waits no longer than this part of the smoothed round-trip time, nor than `max_delay`; 0 is no such limit.
    pub rtt_fraction: f64,
    /// Packets to send before anything is requested.
    pub start_after: u64,
}

impl AckFrequencyConfig {
    /// Its keys in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Field::new(
            "threshold",
            Domain::integer(0, 1_000_000),
            "Ack-eliciting packets that may come without an immediate ACK",
            |c: &mut Self| &mut c.threshold,
        ),
        &Field::new(
            "max_delay",
            Domain::time(Duration::from_micros(1), Duration::from_secs(16)),
            "The longest an ACK may wait",
            |c: &mut Self| &mut c.max_delay,
        ),
        &Field::new(
            "reordering_threshold",
            Domain::integer(0, 1_000_000),
            "The reordering, in packet numbers, at which an ACK is sent at once; with 0 none is",
            |c: &mut Self| &mut c.reordering_threshold,
        ),
        &Field::new(
            "acks_per_window",
            Domain::integer(0, 1000),
            "ACKs that a congestion window gets at least, so that small windows ask for more; with 0 the window does not matter",
            |c: &mut Self| &mut c.acks_per_window,
        ),
        &Field::new(
            "rtt_fraction",
            Domain::number(0.0, 1.0),
            "An ACK waits no longer than this part of the smoothed round-trip time; 0 is no such limit",
            |c: &mut Self| &mut c.rtt_fraction,
        ),
        &Field::new(
            "start_after",
            Domain::integer(0, 1_000_000),
            "Packets to send before anything is requested",
            |c: &mut Self| &mut c.start_after,
        ),
    ];
}

impl Default for AckFrequencyConfig {
    /// An ACK for up to ten packets, sixteen of them at least for a window of more than 32, within a quarter of a round trip, and at once
    /// for a gap. On a radio that carries one packet at a time, ACKs take the time of data.
    fn default() -> Self {
        Self {
            threshold: 9,
            max_delay: ack::DEFAULT_MAX_ACK_DELAY,
            reordering_threshold: 1,
            acks_per_window: 16,
            rtt_fraction: 0.25,
            start_after: 0,
        }
    }
}
