//! Named sets of policies.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use marline_proto::ack::{AsAsked, DEFAULT_MAX_ACK_DELAY, Decimation, EveryN, UntilAsked};
use marline_proto::congestion::slow_start::{ConfirmedExit, HyStartPp, HybridSlowStart};
use marline_proto::congestion::{Algorithm, FixedWindow};
use marline_proto::coordination::bundle::BundleConfig;
use marline_proto::coordination::history::{HistoryConfig, HistoryPolicy, MemoryStore, PathStore};
use marline_proto::recovery::INITIAL_RTT;
use marline_proto::recovery::loss::{Adaptive, AdaptiveLimits, Fixed};
use marline_proto::settings::{Named, Word, unknown};
use marline_proto::{AckFrequencyConfig, MultipathConfig, TransportConfig};

/// A named set of policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// The stack's defaults.
    #[default]
    Plain,
    /// The baseline of published measurements, which gQUIC set: an initial window of 32 packets,
    /// hybrid slow start with a delay factor of 1/8, fixed thresholds of loss.
    Published,
    /// The baseline of today's RFCs: an initial window of 10 packets (RFC 9002, section 7.2),
    /// HyStart++ (RFC 9406), CUBIC (RFC 9438), fixed thresholds of loss.
    Today,
    /// [`Plain`](Self::Plain) with CUBIC and usual acknowledgments, and connections of one bundle are coordinated
    /// ([`marline_proto::coordination::bundle`]).
    Bundle,
    /// [`Plain`](Self::Plain) with CUBIC and usual acknowledgments, and connections begin with the capacity that earlier ones found
    /// ([`marline_proto::coordination::history`]), by [`HistoryPolicy::default`].
    History,
    /// [`Plain`](Self::Plain) with CUBIC and usual acknowledgments, and a connection may have several paths, if both ends want it
    /// ([`MultipathConfig`]). Each path has a controller of its own.
    Multipath,
    /// [`Plain`](Self::Plain) with CUBIC for Wi-Fi, where acknowledgments compete with data, delays vary by milliseconds and packets
    /// may arrive out of order. It follows BQUIC (J. Manzoor, 2019, section 6.3): an acknowledgment for ten packets or 25 ms, asked of
    /// the peer as well; a slow start that does not take jitter for a queue; a time threshold of loss without a
    /// packet threshold. Either end may have it alone.
    Wifi,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 7] = [
        Self::Plain,
        Self::Published,
        Self::Today,
        Self::Bundle,
        Self::History,
        Self::Multipath,
        Self::Wifi,
    ];

    /// The name that [`FromStr`] reads.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Published => "published",
            Self::Today => "today",
            Self::Bundle => "bundle",
            Self::History => "history",
            Self::Multipath => "multipath",
            Self::Wifi => "wifi",
        }
    }

    /// A one-line description.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Plain => {
                "the stack's defaults, as without a profile: the controller `wireless`, adaptive loss detection, fewer acknowledgments of large windows"
            }
            Self::Published => {
                "gQUIC as measured in the papers that experiments repeat: initial window 32 packets, hybrid slow start, fixed loss thresholds"
            }
            Self::Today => {
                "QUIC as in its RFCs, as a baseline: initial window 10 packets, HyStart++, CUBIC"
            }
            Self::Bundle => {
                "plain with CUBIC and usual acknowledgments, and the congestion control of a client's connections is coordinated (a bundle)"
            }
            Self::History => {
                "plain with CUBIC and usual acknowledgments, and a server's connections begin with what earlier ones from the client's network learned"
            }
            Self::Multipath => {
                "plain with CUBIC and usual acknowledgments, and a connection may use several paths, Wi-Fi and mobile at once"
            }
            Self::Wifi => {
                "plain with CUBIC, for Wi-Fi: rare acknowledgments, patience with varying delays and late packets"
            }
        }
    }

    const fn word(self) -> Word<Self> {
        Word {
            name: self.name(),
            about: self.about(),
            value: self,
        }
    }

    /// The profile's settings. Each call for [`History`](Self::History) makes a [`MemoryStore`] of its own,
    /// which is dropped with the settings.
    pub fn config(self) -> TransportConfig {
        match self {
            Self::Plain => TransportConfig::default(),
            Self::Published => TransportConfig {
                initial_window: Arc::new(FixedWindow { packets: 32 }),
                slow_start_exit: Arc::new(|| Box::new(HybridSlowStart::default())),
                ..baseline()
            },
            Self::Today => TransportConfig {
                initial_window: Arc::new(FixedWindow { packets: 10 }),
                slow_start_exit: Arc::new(|| Box::new(HyStartPp::default())),
                ..baseline()
            },
            Self::Bundle => TransportConfig {
                bundle: Some(Arc::new(BundleConfig::default())),
                ..plain_with_cubic()
            },
            Self::History => self.with_history(
                HistoryPolicy::default(),
                HistoryConfig::default(),
                Arc::new(MemoryStore::default()),
            ),
            Self::Multipath => TransportConfig {
                multipath: Some(MultipathConfig::default()),
                ..plain_with_cubic()
            },
            Self::Wifi => wifi(),
        }
    }

    /// The profile's settings, with connections that record their paths in `store`
    /// ([`TransportConfig::set_history`]). The profile's own initial window applies to paths that the store
    /// does not know.
    pub fn with_history(
        self,
        policy: HistoryPolicy,
        history: HistoryConfig,
        store: Arc<dyn PathStore>,
    ) -> TransportConfig {
        let mut transport = match self {
            Self::History => plain_with_cubic(),
            other => other.config(),
        };
        transport.set_history(policy, history, store);
        transport
    }
}

/// What both baselines share: CUBIC, pacing, packet threshold 3 and time threshold 9/8, an ACK for
/// every second packet or after 25 ms, lost handshakes repaired by probe timeouts alone.
fn baseline() -> TransportConfig {
    TransportConfig {
        controller: Arc::new(Algorithm::Cubic),
        loss_detector: Arc::new(|| Box::new(Fixed::rfc9002())),
        ack_policy: Arc::new(|| Box::new(AsAsked::new(EveryN::default()))),
        ack_frequency: None,
        pacing: true,
        stream_receive_window: Some(512 << 10),
        receive_window: Some(1 << 20),
        initial_rtt: INITIAL_RTT,
        first_flight_copy: None,
        early_repeats: false,
        finished_copy: false,
        request_copy: false,
        tail_copies: false,
        remember_rtt: false,
        two_probes: false,
        late_mtu_probes: false,
        ..TransportConfig::default()
    }
}

/// [`Profile::Plain`] with CUBIC and usual acknowledgments: the profiles that add to it were measured so, and the engine of a
/// bundle sets windows.
fn plain_with_cubic() -> TransportConfig {
    TransportConfig {
        controller: Arc::new(Algorithm::Cubic),
        ack_frequency: None,
        ..TransportConfig::default()
    }
}

/// What [`Profile::Wifi`] changes. The values were swept in the experiments `wifi/factors` and `wifi/slow-start`; bursts
/// for aggregates gain nothing in `wifi/quantum`.
fn wifi() -> TransportConfig {
    TransportConfig {
        ack_policy: Arc::new(|| Box::new(UntilAsked::new(Decimation::default()))),
        // Eight ACKs are what a round of slow start is judged by. Time alone decides about losses, so that no gap
        // needs to be reported at once.
        ack_frequency: Some(AckFrequencyConfig {
            threshold: 9,
            max_delay: DEFAULT_MAX_ACK_DELAY,
            reordering_threshold: 0,
            acks_per_window: 8,
            rtt_fraction: 0.25,
            start_after: 0,
        }),
        slow_start_exit: Arc::new(|| Box::new(ConfirmedExit::default())),
        loss_detector: Arc::new(|| {
            Box::new(Adaptive::new(AdaptiveLimits {
                from_packets: None,
                ..AdaptiveLimits::default()
            }))
        }),
        ..plain_with_cubic()
    }
}

impl Named for Profile {
    const WORDS: &'static [Word<Self>] = &[
        Self::Plain.word(),
        Self::Published.word(),
        Self::Today.word(),
        Self::Bundle.word(),
        Self::History.word(),
        Self::Multipath.word(),
        Self::Wifi.word(),
    ];
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.name() == name)
            .ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}

/// No profile has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownProfile(pub String);

impl fmt::Display for UnknownProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Profile::ALL.map(Profile::name);
        f.write_str(&unknown("profile", &self.0, known))
    }
}

impl std::error::Error for UnknownProfile {}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    use marline_proto::Instant;
    use marline_proto::congestion::{ConnectionKind, SlowStartExit};

    use super::*;

    const UNKNOWN_PEER: ConnectionKind<'_> = ConnectionKind {
        now: Instant::EPOCH,
        peer: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 443),
        server_name: None,
        resumed: false,
        max_datagram_size: 1200,
    };

    #[test]
    fn names_are_read_back() {
        for profile in Profile::ALL {
            assert_eq!(profile.to_string().parse(), Ok(profile));
        }
        let error = "plan".parse::<Profile>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown profile \"plan\"; did you mean plain? known: plain, published, today, bundle, history, multipath, wifi"
        );
    }

    #[test]
    fn only_the_plain_profile_has_the_default_controller_and_the_others_cubic() {
        for profile in Profile::ALL {
            let controller = profile.config().controller.spec().to_string();
            let expected = match profile {
                Profile::Plain => TransportConfig::default().controller.spec().to_string(),
                _ => Algorithm::Cubic.to_string(),
            };
            assert_eq!(controller, expected, "{profile}");
        }
    }

    #[test]
    fn only_the_multipath_profile_enables_multipath() {
        for profile in Profile::ALL {
            let several = profile.config().multipath.is_some();
            assert_eq!(several, profile == Profile::Multipath, "{profile}");
        }
    }

    #[test]
    fn profiles_that_were_measured_with_usual_acknowledgments_keep_them() {
        for profile in Profile::ALL {
            let asks = matches!(profile, Profile::Plain | Profile::Wifi);
            assert_eq!(profile.config().ack_frequency.is_some(), asks, "{profile}");
        }
    }

    #[test]
    fn only_the_wifi_profile_counts_no_packets_to_find_losses() {
        for profile in Profile::ALL {
            let config = profile.config();
            let is_wifi = profile == Profile::Wifi;
            let packets = (config.loss_detector)().packet_threshold();
            assert_eq!(packets.is_none(), is_wifi, "{profile}");
        }
    }

    #[test]
    fn only_the_history_profile_has_history_and_only_the_average_reads_the_store() {
        for profile in Profile::ALL {
            let learns = profile.config().history.is_some();
            assert_eq!(learns, profile == Profile::History, "{profile}");
        }
        let store = Arc::new(MemoryStore::default());
        for policy in HistoryPolicy::ALL {
            let config =
                Profile::Published.with_history(policy, HistoryConfig::default(), store.clone());
            assert_eq!(config.initial_window.window(&UNKNOWN_PEER), 32 * 1200);
        }
        assert_eq!(
            store.statistics().misses,
            1,
            "only the average reads the store"
        );
    }

    #[test]
    fn baselines_have_their_published_settings() {
        for (profile, packets, exit) in [
            (Profile::Published, 32, HybridSlowStart::default().name()),
            (Profile::Today, 10, HyStartPp::default().name()),
        ] {
            let config = profile.config();
            assert_eq!(config.initial_window.window(&UNKNOWN_PEER), packets * 1200);
            assert_eq!((config.slow_start_exit)().name(), exit);
            assert_eq!((config.loss_detector)().packet_threshold(), Some(3));
            assert_eq!((config.ack_policy)().max_ack_delay().as_millis(), 25);
            assert!(config.pacing);
        }
    }
}
