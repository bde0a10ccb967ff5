mod capacity;
mod initial_windows;

use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::Instant;
use crate::congestion::Rfc9002Window;
use crate::coordination::history::{Average, MemoryStore, PathScope, SampleEvent, StoreLimits};

const DEFAULT: u64 = 12_000;
const RTT: Duration = Duration::from_millis(50);
const HOUR: Duration = Duration::from_secs(3600);

fn history(config: HistoryConfig) -> HistoryWindow {
    let store = MemoryStore::new(StoreLimits {
        lifetime: Duration::MAX,
        ..StoreLimits::default()
    });
    HistoryWindow::new(config, Arc::new(store), Arc::new(Rfc9002Window))
}

fn mean() -> HistoryConfig {
    HistoryConfig {
        average: Average::Mean,
        ..HistoryConfig::default()
    }
}

fn kind(host: u8) -> ConnectionKind<'static> {
    ConnectionKind {
        now: Instant::EPOCH,
        peer: SocketAddr::from(([192, 0, 2, host], 443)),
        server_name: None,
        resumed: false,
        max_datagram_size: 1200,
    }
}

fn resumed(host: u8) -> ConnectionKind<'static> {
    ConnectionKind {
        resumed: true,
        ..kind(host)
    }
}

fn after(time: Duration, kind: ConnectionKind<'_>) -> ConnectionKind<'_> {
    ConnectionKind {
        now: kind.now + time,
        ..kind
    }
}

fn closed(window: u64) -> PathSample {
    PathSample {
        event: SampleEvent::Closed,
        window,
        initial_window: DEFAULT,
        rtt: RTT,
        delivered: 10_000_000,
        app_limited: false,
        lost_at_first: false,
        model: None,
    }
}

fn alive(window: u64) -> PathSample {
    PathSample {
        event: SampleEvent::Resumed,
        ..closed(window)
    }
}

fn limited(window: u64) -> PathSample {
    PathSample {
        app_limited: true,
        ..closed(window)
    }
}

mod samples {
    use super::*;

    #[test]
    fn an_app_limited_window_only_raises_the_average() {
        for (raise_only_when_limited, averages) in [
            (true, [50_000.0, 50_000.0, 70_000.0]),
            (false, [50_000.0, 35_000.0, 53_333.0]),
        ] {
            let history = history(HistoryConfig {
                raise_only_when_limited,
                ..mean()
            });
            let seen = [closed(50_000), limited(20_000), limited(90_000)];
            for (seen, average) in seen.iter().zip(averages) {
                history.observe(&kind(1), seen);
                let now = history.average(&kind(1)).unwrap();
                assert_eq!(now.floor(), average);
            }
        }
    }

    #[test]
    fn a_connection_that_delivered_less_than_its_initial_window_counts_for_nothing() {
        let history = history(mean());
        history.observe(&kind(1), &closed(50_000));
        let seen = PathSample {
            delivered: DEFAULT - 1,
            ..closed(DEFAULT)
        };
        let later = after(HOUR / 2, kind(1));
        history.observe(&later, &seen);
        assert_eq!(history.average(&later), Some(50_000.0));
        // It does not prolong the lifetime of the record either.
        assert_eq!(history.average(&after(HOUR, kind(1))), None);
    }

    #[test]
    fn windows_are_limited_to_the_maximum() {
        let config = HistoryConfig {
            cap: None,
            zero_rtt: ZeroRtt::Carry,
            ..mean()
        };
        let history = history(config);
        let seen = PathSample {
            delivered: u64::MAX,
            ..alive(u64::MAX)
        };
        history.observe(&kind(1), &seen);
        assert_eq!(history.window(&kind(1)), MAXIMUM_WINDOW);
        assert_eq!(history.window(&resumed(1)), MAXIMUM_WINDOW);
        assert_eq!(
            history.learner.capacity(&kind(1)),
            None,
            "an open connection uses it"
        );
        let event = SampleEvent::Closed;
        history.observe(&kind(1), &PathSample { event, ..seen });
        let capacity = history.learner.capacity(&kind(1)).unwrap();
        assert_eq!(capacity.window, MAXIMUM_WINDOW);
    }
}

prop_compose! {
    fn any_sample()(
        event in prop_oneof![Just(SampleEvent::Closed), Just(SampleEvent::Resumed)],
        window in prop_oneof![1200..2_000_000_u64, any::<u64>()],
        initial_window in prop_oneof![1200..100_000_u64, any::<u64>()],
        rtt in (0..1000_u64).prop_map(Duration::from_millis),
        delivered in prop_oneof![0..10_000_000_u64, any::<u64>()],
        app_limited: bool,
        lost_at_first: bool,
    ) -> PathSample {
        PathSample { event, window, initial_window, rtt, delivered, app_limited, lost_at_first, model: None }
    }
}

prop_compose! {
    fn any_config()(
        average in prop_oneof![
            Just(Average::Mean),
            (1..5_usize).prop_map(Average::Window),
            (0.01..=1.0).prop_map(|weight| Average::Ewma { weight }),
        ],
        scope in prop_oneof![Just(PathScope::default()), Just(PathScope::Address), Just(PathScope::Global)],
        zero_rtt in prop_oneof![
            Just(ZeroRtt::Carry),
            Just(ZeroRtt::History),
            Just(ZeroRtt::Default),
        ],
        cap in prop::option::of(0..1_000_000_u64),
        raise_only_when_limited: bool,
    ) -> HistoryConfig {
        HistoryConfig {
            average,
            scope,
            zero_rtt,
            cap,
            raise_only_when_limited,
            ..HistoryConfig::default()
        }
    }
}

proptest! {
    #[test]
    fn windows_stay_within_their_bounds(
        config in any_config(),
        seen in prop::collection::vec((0..4_u8, 0..600_u64, any_sample()), 1..40),
    ) {
        let most = config.cap.unwrap_or(MAXIMUM_WINDOW).max(DEFAULT);
        let history = history(config.clone());
        let mut now = Duration::ZERO;
        for (host, seconds, seen) in seen {
            now += Duration::from_secs(seconds);
            let (kind, resumed) = (after(now, kind(host)), after(now, resumed(host)));
            let before = history.learner.capacity(&kind);
            history.observe(&kind, &seen);
            let window = history.window(&kind);
            prop_assert!((DEFAULT..=most).contains(&window));
            prop_assert_eq!(window, history.initial_window(&kind) as u64);
            match config.zero_rtt {
                ZeroRtt::Carry if seen.event == SampleEvent::Resumed => {
                    prop_assert_eq!(history.window(&resumed), seen.window.min(MAXIMUM_WINDOW));
                }
                ZeroRtt::Default => prop_assert_eq!(history.window(&resumed), DEFAULT),
                _ => prop_assert_eq!(history.window(&resumed), window),
            }
            if let Some(known) = history.learner.capacity(&kind) {
                let changed = before != Some(known);
                let before = before.map_or(0, |before| before.window);
                prop_assert!(known.window <= seen.delivered.max(before));
                prop_assert!(!changed || known.at == kind.now);
                prop_assert!(!known.rtt.is_zero());
            }
        }
    }

    #[test]
    fn samples_of_other_networks_change_nothing(
        config in any_config(),
        seen in prop::collection::vec((any::<u32>(), any_sample()), 1..40),
    ) {
        prop_assume!(config.scope != PathScope::Global);
        let history = history(config);
        history.observe(&kind(1), &alive(70_000));
        let all = |kind| (history.average(&kind), history.learner.capacity(&kind));
        let before = (all(kind(1)), history.window(&resumed(1)));
        for (address, seen) in seen {
            let peer = SocketAddr::from((std::net::Ipv4Addr::from_bits(address), 443));
            if peer.ip() == kind(1).peer.ip() || address >> 8 == 0x00c0_0002 {
                continue;
            }
            history.observe(&ConnectionKind { peer, ..kind(1) }, &seen);
        }
        prop_assert_eq!((all(kind(1)), history.window(&resumed(1))), before);
    }
}
