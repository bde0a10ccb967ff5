//! Settings of every connection, whichever side opens it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::MultipathConfig;
use crate::ack::{self, AckPolicy};
use crate::congestion::slow_start::{HyStartPp, SlowStartExit};
use crate::congestion::{Algorithm, ControllerFactory, InitialWindow, Rfc9002Window};
use crate::coordination::bundle::BundleConfig;
use crate::coordination::careful_resume::CarefulResumeConfig;
use crate::coordination::history::{
    HistoryConfig, HistoryParts, HistoryPolicy, PathHistory, PathStore,
};
use crate::recovery::loss::{Adaptive, LossDetector};
use crate::scheduling::stream::{Rfc9218, StreamScheduler};

type Make<T> = Arc<dyn Fn() -> Box<T> + Send + Sync>;

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
    /// The round-trip time assumed before the first sample.
    pub initial_rtt: Duration,

    /// Streams that the peer may have open at once, in both directions.
    pub max_concurrent_bidi_streams: u64,
    /// Streams that the peer may have open at once, from it to us.
    pub max_concurrent_uni_streams: u64,
    /// What the peer may send on one stream before we read, at first.
    pub stream_receive_window: u64,
    /// What the peer may send on all streams before we read, at first.
    pub receive_window: u64,
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
    /// Makes what decides that packets are lost.
    pub loss_detector: Make<dyn LossDetector>,
    /// Makes what decides when to acknowledge.
    pub ack_policy: Make<dyn AckPolicy>,
    /// Makes what chooses among streams.
    pub stream_scheduler: Make<dyn StreamScheduler>,
    /// Whether packets are spread over the round trip.
    pub pacing: bool,
    /// What to ask of the peer's acknowledgments, if it supports the extension.
    pub ack_frequency: Option<AckFrequencyConfig>,

    /// How what this end sends is coordinated with the other connections of a bundle; `None` leaves every
    /// connection on its own.
    pub bundle: Option<Arc<BundleConfig>>,

    /// How the connection uses several paths at once; `None` is one path.
    pub multipath: Option<MultipathConfig>,

    /// How large datagrams may become.
    pub mtu: MtuConfig,
    /// Whether to mark packets ECT(0) and react to marks.
    pub ecn: bool,
    /// Whether to send reserved transport parameters and clear the fixed bit where the peer allows
    /// it, so that the network does not learn to expect otherwise (RFC 9287).
    pub grease: bool,
    /// Whether to leave out packet numbers now and then, to catch peers that acknowledge blindly
    /// (RFC 9000, section 21.4).
    pub skip_packet_numbers: bool,
    /// Packets sealed with one key before a key update; `None` updates only as the AEAD requires.
    pub key_update_interval: Option<u64>,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            max_idle_timeout: Some(Duration::from_secs(30)),
            handshake_timeout: Duration::from_secs(10),
            keep_alive: None,
            initial_rtt: Duration::from_millis(333),
            max_concurrent_bidi_streams: 256,
            max_concurrent_uni_streams: 256,
            stream_receive_window: 512 << 10,
            receive_window: 1 << 20,
            max_stream_receive_window: 16 << 20,
            max_receive_window: 24 << 20,
            send_buffer: 8 << 20,
            datagram_receive_buffer: Some(1 << 20),
            datagram_send_buffer: 1 << 20,
            controller: Arc::new(Algorithm::Cubic),
            slow_start_exit: Arc::new(|| Box::new(HyStartPp::default())),
            initial_window: Arc::new(Rfc9002Window),
            history: None,
            careful_resume: CarefulResumeConfig::default(),
            backoff: None,
            loss_detector: Arc::new(|| Box::new(Adaptive::default())),
            ack_policy: Arc::new(|| Box::new(ack::AsAsked::default())),
            stream_scheduler: Arc::new(|| Box::new(Rfc9218::default())),
            pacing: true,
            ack_frequency: None,
            bundle: None,
            multipath: None,
            mtu: MtuConfig::default(),
            ecn: true,
            grease: true,
            skip_packet_numbers: true,
            key_update_interval: None,
        }
    }
}

impl TransportConfig {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequencyConfig {
    /// Ack-eliciting packets that may come without an immediate ACK.
    pub threshold: u64,
    /// The longest an ACK may wait.
    pub max_delay: Duration,
    /// How far a gap reaches back before it is reported at once; 0 is never.
    pub reordering_threshold: u64,
}
