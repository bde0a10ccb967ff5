//! Named sets of policies.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use marline_proto::ack::{Decimation, EveryN, PeerRequested};
use marline_proto::congestion::slow_start::{HyStartPp, HybridConfig, HybridSlowStart};
use marline_proto::congestion::{Algorithm, FixedWindow};
use marline_proto::coordination::bundle::BundleConfig;
use marline_proto::coordination::history::{HistoryConfig, HistoryPolicy, MemoryStore, PathStore};
use marline_proto::recovery::INITIAL_RTT;
use marline_proto::recovery::loss::{Adaptive, Fixed, Thresholds};
use marline_proto::scheduling::path::Hbes;
use marline_proto::scheduling::stream::Wrr;
use marline_proto::settings::{FormerName, Named, Word};
use marline_proto::{MtuConfig, MultipathConfig, TransportConfig};

/// A named set of policies: a *product* for users of the stack, which is the default with at most one system on top of
/// it, or a *baseline* for experiments, which reproduces other stacks or the setup of a paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// The stack's defaults.
    #[default]
    Default,
    /// [`Default`](Self::Default), and connections of one client are coordinated ([`marline_proto::coordination::bundle`]).
    Bundle,
    /// [`Default`](Self::Default), and connections begin with the capacity that earlier ones found
    /// ([`marline_proto::coordination::history`]), by [`HistoryPolicy::default`].
    History,
    /// [`Default`](Self::Default), and a connection may have several paths, if both ends want it ([`MultipathConfig`]).
    /// Each path has a controller of its own.
    Multipath,
    /// The baseline of the RFCs: an initial window of 10 packets (RFC 9002, section 7.2), HyStart++ (RFC 9406), CUBIC
    /// (RFC 9438), fixed thresholds of loss.
    Rfc,
    /// The baseline of published measurements, which gQUIC set: an initial window of 32 packets, hybrid slow start with a
    /// delay factor of 1/8, fixed thresholds of loss.
    Gquic,
    /// mQUIC as published (Qian et al., IEEE Access 2018): gQUIC with the paper's beta of 0.7, controllers that back off and
    /// grow like two connections, and [`BundleConfig::published`].
    BundlePublished,
    /// The initial window of Electronics 2019, 8(10), 1204, algorithm 1, on gQUIC: the mean of the final windows of earlier
    /// connections, without a limit.
    HistoryPublished,
    /// BQUIC as published (J. Manzoor, 2019, section 6.3), on gQUIC: an acknowledgment for ten packets or 25 ms, a slow start
    /// and a time threshold of loss that tolerate half a round trip more.
    BquicPublished,
    /// HBES as published (Xing et al., 2022), on mp-quic: OLIA, the scheduler of arrival times, scattered weighted round
    /// robin, windows of 32 packets, packets of 1,350 bytes, small windows of credit that are widened.
    HbesPublished,
}

impl Profile {
    /// Every profile, the products first.
    pub const ALL: [Self; 10] = [
        Self::Default,
        Self::Bundle,
        Self::History,
        Self::Multipath,
        Self::Rfc,
        Self::Gquic,
        Self::BundlePublished,
        Self::HistoryPublished,
        Self::BquicPublished,
        Self::HbesPublished,
    ];

    /// The name that [`FromStr`] reads.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Bundle => "bundle",
            Self::History => "history",
            Self::Multipath => "multipath",
            Self::Rfc => "rfc",
            Self::Gquic => "gquic",
            Self::BundlePublished => "bundle-published",
            Self::HistoryPublished => "history-published",
            Self::BquicPublished => "bquic-published",
            Self::HbesPublished => "hbes-published",
        }
    }

    /// A one-line description.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Default => {
                "as without a profile: the controller `wireless`, adaptive loss detection, fewer acknowledgments of large windows"
            }
            Self::Bundle => {
                "the default, and the connections of a client are coordinated; pays where each connection is limited by itself"
            }
            Self::History => {
                "the default, and a server's connections begin with what earlier ones from the client's network learned; pays from the second visit on"
            }
            Self::Multipath => {
                "the default, and a connection may use several paths, Wi-Fi and mobile at once; pays from some hundred kilobytes on, and when a network fails"
            }
            Self::Rfc => {
                "baseline: QUIC as in its RFCs, initial window 10 packets, HyStart++, CUBIC"
            }
            Self::Gquic => {
                "baseline: gQUIC as measured in the papers that experiments repeat, initial window 32 packets, hybrid slow start, fixed loss thresholds"
            }
            Self::BundlePublished => "baseline: mQUIC as published (Qian et al., 2018), on gQUIC",
            Self::HistoryPublished => {
                "baseline: the average window of earlier connections as published (Electronics 2019, 1204), on gQUIC"
            }
            Self::BquicPublished => "baseline: BQUIC as published (Manzoor, 2019), on gQUIC",
            Self::HbesPublished => "baseline: HBES as published (Xing et al., 2022), on mp-quic",
        }
    }

    /// Whether it is for experiments alone.
    pub const fn is_baseline(self) -> bool {
        !matches!(
            self,
            Self::Default | Self::Bundle | Self::History | Self::Multipath
        )
    }

    const fn word(self) -> Word<Self> {
        Word {
            name: self.name(),
            about: self.about(),
            value: self,
        }
    }

    /// The profile's settings. Each call for [`History`](Self::History) and [`HistoryPublished`](Self::HistoryPublished)
    /// makes a [`MemoryStore`] of its own, which is dropped with the settings.
    pub fn config(self) -> TransportConfig {
        match self {
            Self::Default => TransportConfig::default(),
            Self::Bundle => TransportConfig {
                bundle: Some(Arc::new(BundleConfig::default())),
                ..TransportConfig::default()
            },
            Self::History => self.with_history(
                HistoryPolicy::default(),
                HistoryConfig::default(),
                Arc::new(MemoryStore::default()),
            ),
            Self::Multipath => TransportConfig {
                multipath: Some(MultipathConfig::default()),
                ..TransportConfig::default()
            },
            Self::Rfc => TransportConfig {
                initial_window: Arc::new(FixedWindow { packets: 10 }),
                slow_start_exit: Arc::new(|| Box::new(HyStartPp::default())),
                ..baseline()
            },
            Self::Gquic => gquic(),
            Self::BundlePublished => TransportConfig {
                backoff: Some(0.7),
                emulated_flows: 2,
                bundle: Some(Arc::new(BundleConfig::published())),
                ..gquic()
            },
            Self::HistoryPublished => self.with_history(
                HistoryPolicy::Average,
                HistoryConfig::published(),
                Arc::new(MemoryStore::default()),
            ),
            Self::BquicPublished => bquic_published(),
            Self::HbesPublished => hbes_published(),
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
            Self::History => TransportConfig::default(),
            Self::HistoryPublished => gquic(),
            other => other.config(),
        };
        transport.set_history(policy, history, store);
        transport
    }
}

/// The settings that the baselines share: CUBIC, pacing, packet threshold 3 and time threshold 9/8, an ACK for
/// every second packet or after 25 ms, lost handshakes repaired by probe timeouts alone.
fn baseline() -> TransportConfig {
    TransportConfig {
        controller: Arc::new(Algorithm::Cubic),
        loss_detector: Arc::new(|| Box::new(Fixed::rfc9002())),
        ack_policy: Arc::new(|| Box::new(PeerRequested::new(EveryN::default()))),
        ack_frequency: None,
        pacing: true,
        stream_receive_window: Some(512 << 10),
        receive_window: Some(1 << 20),
        initial_rtt: INITIAL_RTT,
        first_flight_copy: None,
        handshake_retransmission: false,
        finished_copy: false,
        request_copy: false,
        tail_duplication: false,
        remember_rtt: false,
        two_probes: false,
        late_mtu_probes: false,
        ..TransportConfig::default()
    }
}

/// gQUIC as the papers measured it.
fn gquic() -> TransportConfig {
    TransportConfig {
        initial_window: Arc::new(FixedWindow { packets: 32 }),
        slow_start_exit: Arc::new(|| Box::new(HybridSlowStart::default())),
        ..baseline()
    }
}

/// Section 6.3 of the thesis gives no values for the later exit of slow start and the longer time threshold of loss
/// detection: half a round trip each, which `wifi/sensitivity` varies. Chromium's controllers back off and grow like
/// two connections.
fn bquic_published() -> TransportConfig {
    TransportConfig {
        emulated_flows: 2,
        ack_policy: Arc::new(|| Box::new(Decimation::default())),
        slow_start_exit: Arc::new(|| {
            Box::new(HybridSlowStart::new(HybridConfig {
                factor: 0.5,
                max_rise: None,
                ..HybridConfig::default()
            }))
        }),
        loss_detector: Arc::new(|| {
            Box::new(Fixed::new(
                "gquic",
                Thresholds {
                    packets: None,
                    patience: 0.5,
                    ..Thresholds::RFC9002
                },
            ))
        }),
        ..gquic()
    }
}

/// The windows and packets of mp-quic, on which the paper builds; its loss detection and acknowledgments are the stack's.
fn hbes_published() -> TransportConfig {
    TransportConfig {
        controller: Arc::new(Algorithm::Olia),
        slow_start_exit: Arc::new(|| Box::new(HybridSlowStart::default())),
        initial_window: Arc::new(FixedWindow { packets: 32 }),
        mtu: MtuConfig {
            ceiling: 1350,
            discover: true,
        },
        stream_receive_window: Some(32 << 10),
        receive_window: Some(48 << 10),
        max_stream_receive_window: 6 << 20,
        max_receive_window: 15 << 20,
        stream_scheduler: Arc::new(|| Box::new(Wrr::scattered())),
        multipath: Some(MultipathConfig {
            max_paths: MultipathConfig::MAX_PATHS,
            scheduler: Arc::new(|| Box::new(Hbes::default())),
            reinjection: None,
            ..MultipathConfig::default()
        }),
        loss_detector: Arc::new(|| Box::new(Adaptive::default())),
        ack_policy: Arc::new(|| Box::new(PeerRequested::default())),
        ..baseline()
    }
}

impl Named for Profile {
    const WORDS: &'static [Word<Self>] = &[
        Self::Default.word(),
        Self::Bundle.word(),
        Self::History.word(),
        Self::Multipath.word(),
        Self::Rfc.word(),
        Self::Gquic.word(),
        Self::BundlePublished.word(),
        Self::HistoryPublished.word(),
        Self::BquicPublished.word(),
        Self::HbesPublished.word(),
    ];

    const FORMER: &'static [FormerName] = &[
        FormerName::refused("plain", "default"),
        FormerName::refused("today", "rfc"),
        FormerName::refused("published", "gquic"),
        FormerName::refused("wifi", "default"),
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
        f.write_str(&Profile::refusal("profile", &self.0))
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
        let error = "multpath".parse::<Profile>().unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("unknown profile \"multpath\"; did you mean multipath?"),
            "{error}"
        );
    }

    #[test]
    fn former_names_are_refused_with_the_present_ones() {
        for former in Profile::FORMER {
            let error = former.name.parse::<Profile>().unwrap_err().to_string();
            assert!(error.ends_with(former.now), "{error}");
            let now = former.now;
            assert!(now.parse::<Profile>().is_ok(), "{now}");
        }
    }

    /// Settings as results show them, without the keys in `system`.
    fn shown_without(config: &TransportConfig, system: &[&str]) -> Vec<String> {
        TransportConfig::SETTINGS
            .iter()
            .filter(|setting| !system.contains(&setting.key()))
            .map(|setting| format!("{}: {:?}", setting.key(), setting.show(config)))
            .collect()
    }

    #[test]
    fn a_product_is_the_default_and_one_system() {
        let default = TransportConfig::default();
        for (product, system) in [
            (Profile::Default, &[][..]),
            (Profile::Bundle, &["bundle"]),
            (Profile::History, &["initial_window"]),
            (Profile::Multipath, &["multipath"]),
        ] {
            assert!(!product.is_baseline());
            assert_eq!(
                shown_without(&product.config(), system),
                shown_without(&default, system),
                "{product}"
            );
        }
    }

    #[test]
    fn only_products_have_the_default_controller() {
        let default = TransportConfig::default().controller.spec();
        for profile in Profile::ALL {
            let is_default = profile.config().controller.spec() == default;
            assert_eq!(is_default, !profile.is_baseline(), "{profile}");
        }
    }

    #[test]
    fn only_profiles_of_several_paths_enable_multipath() {
        for profile in Profile::ALL {
            let several = profile.config().multipath.is_some();
            let expected = matches!(profile, Profile::Multipath | Profile::HbesPublished);
            assert_eq!(several, expected, "{profile}");
        }
    }

    #[test]
    fn only_profiles_of_history_have_it_and_only_the_average_reads_the_store() {
        for profile in Profile::ALL {
            let learns = profile.config().history.is_some();
            let expected = matches!(profile, Profile::History | Profile::HistoryPublished);
            assert_eq!(learns, expected, "{profile}");
        }
        let store = Arc::new(MemoryStore::default());
        for policy in HistoryPolicy::ALL {
            let config =
                Profile::Gquic.with_history(policy, HistoryConfig::default(), store.clone());
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
            (Profile::Gquic, 32, HybridSlowStart::default().name()),
            (Profile::Rfc, 10, HyStartPp::default().name()),
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
