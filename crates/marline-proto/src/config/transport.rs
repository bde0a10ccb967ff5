//! Settings of connections of both roles.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{EcnMode, MultipathConfig};
use crate::ack::{self, AckFrequencyConfig, AckPolicy};
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
use crate::recovery::loss::{Adaptive, DETECTORS, LossDetector};
use crate::scheduling::stream::{self, Rfc9218, StreamScheduler};
use crate::settings::{Choice, Derived, Domain, FieldValue, Make, Settings, Table, Value, field};
use crate::tuple::{EcnCodepoint, MAX_CEILING};

/// Configuration of a connection.
///
/// Windows are in bytes. The defaults suit the open Internet; each field can be set on its own:
///
/// ```
/// # use marline_proto::TransportConfig;
/// let config = TransportConfig { max_concurrent_bidi_streams: 1000, ..TransportConfig::default() };
/// # assert!(config.pacing);
/// ```
#[derive(Clone)]
pub struct TransportConfig {
    /// Idle timeout, after which the connection closes silently; `None` disables it. The smaller
    /// value of both ends applies (RFC 9000, section 10.1).
    pub max_idle_timeout: Option<Duration>,
    /// Timeout of the handshake.
    pub handshake_timeout: Duration,
    /// Keep-alive: time without a packet after which a PING is sent; `None` disables it.
    pub keep_alive: Option<Duration>,
    /// Client: a PING is sent when nothing was received for this long, and for three probe timeouts, while a
    /// bidirectional stream of the client is not fully received; then at doubling intervals up to 15 s. Otherwise a
    /// client that only receives notices neither a NAT rebinding nor a restarted server. `None` disables it.
    pub response_ping: Option<Duration>,
    /// Round-trip time assumed before the first sample: the first probe timeout is three times that. RFC 9002,
    /// section 6.2.2 recommends 333 ms.
    pub initial_rtt: Duration,
    /// Client: the first flight is retransmitted after this long without an answer, and after three and seven times as
    /// long, before its probe timeout; `None` disables that.
    pub first_flight_copy: Option<Duration>,
    /// Whether a flight of the handshake is retransmitted before its probe timeout when arriving packets show that
    /// the peer lacks part of it (RFC 9002, section 6.2.3), at most twice per connection, and a client's first
    /// flight once more. Client: also the first request, once, if it is not acknowledged within a round trip and
    /// the peer's acknowledgment delay.
    pub handshake_retransmission: bool,
    /// Client: whether the first datagram with application data after the handshake repeats the Finished message.
    pub finished_copy: bool,
    /// Client: whether a short first request is sent again a quarter of a round trip later; requires
    /// [`Self::handshake_retransmission`].
    pub request_copy: bool,
    /// Whether retransmitted data is sent twice, up to four frames, if nothing else waits.
    pub tail_duplication: bool,
    /// Client: whether the round-trip time of the last connection to a server replaces
    /// [`Self::initial_rtt`], for ten minutes.
    pub remember_rtt: bool,
    /// Whether both probes of a probe timeout repeat the oldest packets of application data; otherwise the second is a
    /// PING.
    pub two_probes: bool,
    /// Whether the first PMTU probe waits for a round trip after the handshake, and for another probe timeout if no
    /// bidirectional stream is opened: sent before data, it takes an eighth of the initial window.
    pub late_mtu_probes: bool,

    /// Maximum number of bidirectional streams that the peer may have open.
    pub max_concurrent_bidi_streams: u64,
    /// Maximum number of unidirectional streams that the peer may have open.
    pub max_concurrent_uni_streams: u64,
    /// Initial flow control window of a stream; `None` is 8 MiB at a client, which requested the data, and 512 KiB at
    /// a server.
    pub stream_receive_window: Option<u64>,
    /// Initial flow control window of all streams; `None` is 16 MiB at a client, and 1 MiB at a server.
    pub receive_window: Option<u64>,
    /// Limit up to which auto-tuning widens [`Self::stream_receive_window`].
    pub max_stream_receive_window: u64,
    /// Limit up to which auto-tuning widens [`Self::receive_window`].
    pub max_receive_window: u64,
    /// Limit on written, unacknowledged data of streams, beyond which writes block.
    pub send_buffer: u64,
    /// Receive buffer for datagrams, in bytes; `None` refuses datagrams (RFC 9221).
    pub datagram_receive_buffer: Option<usize>,
    /// Send buffer for datagrams, in bytes.
    pub datagram_send_buffer: usize,

    /// Creates the congestion controller.
    pub controller: Arc<dyn ControllerFactory>,
    /// Creates the algorithm that ends slow start.
    pub slow_start_exit: Make<dyn SlowStartExit>,
    /// Chooses the initial congestion window.
    pub initial_window: Arc<dyn InitialWindow>,
    /// Store of path observations, which offers saved capacities to careful resume; `None` keeps
    /// connections independent of earlier ones. [`Self::set_history`] sets all that belongs to it.
    pub history: Option<Arc<dyn PathHistory>>,
    /// Resumption of the capacity saved in [`Self::history`] or in the client's address token. Not in
    /// a bundle, whose engine owns the windows.
    pub careful_resume: CarefulResumeConfig,
    /// Factor applied to the window after a loss; `None` uses the controller's own.
    pub backoff: Option<f64>,
    /// Number of connections that a window-based controller emulates when it backs off and grows:
    /// see
    /// [`ControllerConfig::emulated_flows`](crate::congestion::ControllerConfig::emulated_flows).
    pub emulated_flows: u32,
    /// Growth factor of the window per round trip of slow start, above 1 and at most 2.
    pub slow_start_growth: f64,
    /// Creates the loss detection algorithm.
    pub loss_detector: Make<dyn LossDetector>,
    /// Creates the acknowledgment policy.
    pub ack_policy: Make<dyn AckPolicy>,
    /// Creates the stream scheduler.
    pub stream_scheduler: Make<dyn StreamScheduler>,
    /// Whether packets are paced over the round trip.
    pub pacing: bool,
    /// Pacing burst in packets, if the window is at least four times as large; 1 paces evenly. Links that aggregate
    /// packets, such as Wi-Fi, then need fewer channel accesses; a short queue overflows sooner.
    pub send_quantum: u64,
    /// Time for which packets are gathered once pacing holds them back, so that one system call sends several; not for packets
    /// marked with ECT(1). Endpoints set it as their socket needs.
    pub send_gather: Duration,
    /// Acknowledgment frequency to request of the peer, if it supports ACK_FREQUENCY; not for packets marked with
    /// ECT(1) ([`EcnMode::L4s`]).
    pub ack_frequency: Option<AckFrequencyConfig>,

    /// Coordination of this end's congestion control with the other connections of a bundle; with `None` connections
    /// are independent.
    pub bundle: Option<Arc<BundleConfig>>,

    /// Multipath settings; `None` disables multipath.
    pub multipath: Option<MultipathConfig>,

    /// Sizes of sent datagrams.
    pub mtu: MtuConfig,
    /// The announced `max_udp_payload_size`, in bytes: 1200 to 65527, which means no limit (RFC 9000, section 18.2). It
    /// bounds the datagrams of peers that do not detect when a path stops carrying large ones; larger datagrams are
    /// accepted nevertheless.
    pub max_udp_payload_size: u16,
    /// ECN marking of sent packets, and the response to CE marks.
    pub ecn: EcnMode,
    /// Whether to send reserved transport parameters and to clear the QUIC bit if the peer permits
    /// it, against ossification (RFC 9287).
    pub grease: bool,
    /// Whether to skip packet numbers occasionally, to detect optimistic ACK attacks (RFC 9000, section 21.4).
    pub skip_packet_numbers: bool,
    /// Packets protected with one key before a key update; `None` updates only at the AEAD's limit.
    pub key_update_interval: Option<u64>,
}

/// Range of timeouts of a connection: at most a day.
const WAIT: Domain = Domain::time(Duration::from_millis(1), Duration::from_secs(24 * 3600));

/// Range of stream limits.
const STREAMS: Domain = Domain::integer(0, 1 << 20);

/// Range of flow control windows and buffers.
const WINDOW: Domain = Domain::bytes(1, 16 << 30);

/// Range of datagram buffers.
const DATAGRAMS: Domain = Domain::bytes(1, 1 << 30);

impl TransportConfig {
    /// The keys in settings.
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
            about: "Algorithm that ends slow start before a loss",
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
        field!(
            backoff: Domain::PART.or("own"),
            "Factor applied to the window after a loss; own is the controller's value"
        ),
        field!(emulated_flows: Domain::integer(1, 16), "Number of connections that newreno and cubic emulate when they back off and grow"),
        field!(slow_start_growth: Domain::number(1.1, 2.0), "Growth factor of the window per round trip of slow start"),
        &Choice {
            key: "loss_detection",
            about: "Loss detection algorithm",
            registry: &DETECTORS,
            get: |c: &Self| (c.loss_detector)().spec(),
            field: |c: &mut Self| &mut c.loss_detector,
        },
        &Choice {
            key: "ack",
            about: "Acknowledgment policy",
            registry: &ack::POLICIES,
            get: |c: &Self| (c.ack_policy)().spec(),
            field: |c: &mut Self| &mut c.ack_policy,
        },
        &Choice {
            key: "stream_scheduler",
            about: "Scheduler that selects among streams with data to send",
            registry: &stream::SCHEDULERS,
            get: |c: &Self| (c.stream_scheduler)().spec(),
            field: |c: &mut Self| &mut c.stream_scheduler,
        },
        field!(pacing: Domain::SWITCH, "Whether packets are paced over the round trip"),
        field!(
            send_quantum: Domain::integer(1, 64),
            "Pacing burst in packets, if the window is at least four times as large"
        ),
        field!(
            ecn: Domain::switch_or(EcnMode::L4S),
            "Whether packets are marked ECT(0), and marks count as congestion; l4s marks them ECT(1) for short queues, with bbr3, prague and wireless"
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
        field!(
            max_udp_payload_size: Domain::bytes(MIN_DATAGRAM_SIZE as u64, MAX_CEILING as u64),
            "The announced max_udp_payload_size (RFC 9000, section 18.2)"
        ),
        field!(
            initial_rtt: Domain::time(Duration::from_millis(1), Duration::from_secs(60)),
            "The round-trip time assumed before the first sample"
        ),
        field!(
            first_flight_copy: Domain::time(Duration::from_millis(1), Duration::from_secs(60)).or("never"),
            "Time without an answer after which a client retransmits its first flight, and again after three and seven times as long"
        ),
        field!(
            handshake_retransmission (formerly "early_repeats"): Domain::SWITCH,
            "Whether a flight of the handshake, or a client's first request, is retransmitted before its probe timeout when it seems lost"
        ),
        field!(
            finished_copy: Domain::SWITCH,
            "Whether a client's first datagram with application data after the handshake repeats the Finished message"
        ),
        field!(
            request_copy: Domain::SWITCH,
            "Whether a client's first request, if it is short, is sent again a quarter of a round trip later; requires handshake_retransmission"
        ),
        field!(tail_duplication (formerly "tail_copies"): Domain::SWITCH, "Whether retransmitted data is sent twice if nothing else waits"),
        field!(
            remember_rtt: Domain::SWITCH,
            "Whether a client assumes the round-trip time of its last connection to the server until the first sample"
        ),
        field!(
            two_probes: Domain::SWITCH,
            "Whether both probes of a probe timeout repeat application data; otherwise the second is a PING"
        ),
        field!(
            late_mtu_probes: Domain::SWITCH,
            "Whether the first PMTU probe waits for a round trip after the handshake, and up to another probe timeout for a request"
        ),
        field!(
            max_idle_timeout: WAIT.or("never"),
            "Idle timeout, after which the connection closes; the smaller value of both ends applies"
        ),
        field!(handshake_timeout: WAIT, "Timeout of the handshake"),
        field!(keep_alive: WAIT.or("never"), "Time without a packet after which a PING is sent"),
        field!(
            response_ping: WAIT.or("never"),
            "Time without a received packet after which a client that awaits a response sends a PING"
        ),
        field!(max_concurrent_bidi_streams: STREAMS, "Maximum number of bidirectional streams that the peer may have open"),
        field!(max_concurrent_uni_streams: STREAMS, "Maximum number of unidirectional streams that the peer may have open"),
        field!(
            stream_receive_window: WINDOW.or("by_role"),
            "Initial flow control window of a stream; by_role is 8 MiB at a client, 512 KiB at a server"
        ),
        field!(
            receive_window: WINDOW.or("by_role"),
            "Initial flow control window of all streams; by_role is 16 MiB at a client, 1 MiB at a server"
        ),
        field!(max_stream_receive_window: WINDOW, "Limit up to which auto-tuning widens stream_receive_window"),
        field!(max_receive_window: WINDOW, "Limit up to which auto-tuning widens receive_window"),
        field!(send_buffer: WINDOW, "Limit on written, unacknowledged data of streams, at which writes block"),
        field!(
            datagram_receive_buffer: DATAGRAMS.or("none"),
            "Receive buffer for datagrams; none refuses datagrams"
        ),
        field!(datagram_send_buffer: DATAGRAMS, "Send buffer for datagrams"),
        field!(grease: Domain::SWITCH, "Whether to send reserved transport parameters and clear the QUIC bit (RFC 9287)"),
        field!(skip_packet_numbers: Domain::SWITCH, "Whether to skip packet numbers occasionally (RFC 9000, section 21.4)"),
        field!(
            key_update_interval: Domain::integer(1, 1 << 40).or("never"),
            "Packets protected with one key before a key update, besides updates at the AEAD's limit"
        ),
        &Table {
            key: "ack_frequency",
            about: "Acknowledgment frequency to request of the peer, if it supports ACK_FREQUENCY and packets do not carry ECT(1)",
            settings: AckFrequencyConfig::SETTINGS,
            bases: &[],
            get: |c: &Self| c.ack_frequency.as_ref(),
            open: |c: &mut Self| c.ack_frequency.get_or_insert_default(),
            off: Some(|c: &mut Self| c.ack_frequency = None),
        },
        &Table {
            key: "careful_resume",
            about: "Resumption of the saved capacity of a path (Careful Resume, RFC 9959)",
            settings: CarefulResumeConfig::SETTINGS,
            bases: &[],
            get: |c: &Self| Some(&c.careful_resume),
            open: |c: &mut Self| &mut c.careful_resume,
            off: None,
        },
        &Table {
            key: "bundle",
            about: "Coordination of this end's congestion control with the other connections of a bundle; published: as in the paper on mQUIC",
            settings: BundleConfig::SETTINGS,
            bases: BundleConfig::BASES,
            get: |c: &Self| c.bundle.as_deref(),
            open: |c: &mut Self| Arc::make_mut(c.bundle.get_or_insert_default()),
            off: Some(|c: &mut Self| c.bundle = None),
        },
        &Table {
            key: "multipath",
            about: "Multipath, if both ends enable it",
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
            handshake_retransmission: true,
            finished_copy: true,
            request_copy: true,
            tail_duplication: true,
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
            ack_policy: Arc::new(|| Box::new(ack::PeerRequested::default())),
            stream_scheduler: Arc::new(|| Box::new(Rfc9218::default())),
            pacing: true,
            send_quantum: 1,
            send_gather: Duration::ZERO,
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
    /// ECN codepoint of sent packets.
    pub(crate) fn ect(&self) -> Option<EcnCodepoint> {
        match self.ecn {
            EcnMode::Off => None,
            EcnMode::L4s if self.controller.is_scalable() => Some(EcnCodepoint::Ect1),
            EcnMode::Classic | EcnMode::L4s => Some(EcnCodepoint::Ect0),
        }
    }

    /// Records observations of paths in `store`, and uses earlier ones according to `policy`. The present
    /// [`Self::initial_window`] remains that of unknown paths.
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
    /// Whether to probe for more than 1200 bytes, which every path carries.
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
