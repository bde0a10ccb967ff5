use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::Instant;
use crate::congestion::Rfc9002Window;
use crate::coordination::history::{Average, MemoryStore, StoreLimits};

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

mod first_windows {
    use super::*;

    #[test]
    fn without_history_the_default_holds() {
        let history = history(mean());
        assert_eq!(history.window(&kind(1)), DEFAULT);
        assert_eq!(history.average(&kind(1)), None);
        assert_eq!(history.resumption(&kind(1)), None);
    }

    #[test]
    fn the_larger_of_default_and_average_is_taken() {
        let history = history(mean());
        history.observe(&kind(1), &closed(50_001));
        history.observe(&kind(1), &closed(30_000));
        assert_eq!(history.first_window(&kind(1)), 40_000.5);
        assert_eq!(history.window(&kind(1)), 40_000);
        for _ in 0..20 {
            history.observe(&kind(1), &closed(2400));
        }
        assert_eq!(history.window(&kind(1)), DEFAULT);
    }

    #[test]
    fn a_cap_holds_for_averages_and_not_for_the_default() {
        for (cap, window) in [(100_000, 100_000), (20_000, 20_000), (5000, DEFAULT)] {
            let history = history(HistoryConfig {
                cap: Some(cap),
                ..mean()
            });
            history.observe(&kind(1), &closed(300_000));
            assert_eq!(history.window(&kind(1)), window);
        }
    }

    #[test]
    fn neighbors_learn_from_each_other_and_strangers_do_not() {
        let history = history(mean());
        history.observe(&kind(1), &closed(50_000));
        assert_eq!(history.window(&kind(2)), 50_000);
        let stranger = ConnectionKind {
            peer: SocketAddr::from(([192, 0, 3, 1], 443)),
            ..kind(1)
        };
        assert_eq!(history.window(&stranger), DEFAULT);
    }

    #[test]
    fn server_names_count_where_they_are_asked_for() {
        for (per_server_name, other) in [(true, DEFAULT), (false, 50_000)] {
            let history = history(HistoryConfig {
                per_server_name,
                ..mean()
            });
            let named = |name| ConnectionKind {
                server_name: Some(name),
                ..kind(1)
            };
            history.observe(&named("a.example"), &closed(50_000));
            assert_eq!(history.window(&named("a.example")), 50_000);
            assert_eq!(history.window(&named("b.example")), other);
        }
    }

    #[test]
    fn what_is_too_old_is_forgotten_and_counted_no_more() {
        let history = history(mean());
        history.observe(&kind(1), &closed(50_000));
        let almost = HOUR - Duration::from_nanos(1);
        assert_eq!(history.window(&after(almost, kind(1))), 50_000);
        assert_eq!(history.window(&after(HOUR, kind(1))), DEFAULT);
        assert_eq!(history.resumption(&after(HOUR, kind(1))), None);
        history.observe(&after(HOUR, kind(1)), &closed(30_000));
        assert_eq!(history.average(&after(HOUR, kind(1))), Some(30_000.0));
    }

    #[test]
    fn resumed_sessions_begin_as_they_are_told() {
        for (zero_rtt, window) in [
            (ZeroRtt::Carry, 80_000),
            (ZeroRtt::History, 60_000),
            (ZeroRtt::Default, DEFAULT),
        ] {
            let history = history(HistoryConfig { zero_rtt, ..mean() });
            history.observe(&kind(1), &closed(40_000));
            history.observe(&resumed(1), &alive(80_000));
            assert_eq!(history.window(&resumed(1)), window, "{zero_rtt:?}");
            assert_eq!(history.window(&kind(1)), 60_000);
        }
    }

    #[test]
    fn a_window_is_carried_while_its_connection_lives_and_to_its_peer_only() {
        for scope in [Scope::default(), Scope::Address, Scope::Global] {
            let history = history(HistoryConfig {
                zero_rtt: ZeroRtt::Carry,
                scope,
                ..mean()
            });
            history.observe(&kind(1), &closed(40_000));
            history.observe(&resumed(1), &alive(80_000));
            assert_eq!(history.window(&resumed(1)), 80_000);
            let neighbor = if scope == Scope::Address {
                DEFAULT
            } else {
                60_000
            };
            assert_eq!(history.window(&resumed(2)), neighbor);
            history.observe(&kind(1), &closed(90_000));
            assert_eq!(history.window(&resumed(1)), 70_000);
        }
    }
}

mod samples {
    use super::*;

    #[test]
    fn a_window_that_was_never_the_limit_only_raises() {
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
    fn who_delivered_less_than_its_first_window_says_nothing() {
        let history = history(mean());
        history.observe(&kind(1), &closed(50_000));
        let seen = PathSample {
            delivered: DEFAULT - 1,
            ..closed(DEFAULT)
        };
        let later = after(HOUR / 2, kind(1));
        history.observe(&later, &seen);
        assert_eq!(history.average(&later), Some(50_000.0));
        // Nor does it keep alive what others said.
        assert_eq!(history.average(&after(HOUR, kind(1))), None);
    }

    #[test]
    fn no_window_is_beyond_the_largest() {
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
        let capacity = history.resumption(&kind(1)).unwrap();
        assert_eq!(capacity.window, MAXIMUM_WINDOW);
    }
}

mod capacity {
    use super::*;

    /// The capacity after samples a second apart, and when it was seen.
    fn after_all(samples: &[PathSample]) -> Option<(u64, u64)> {
        let history = history(HistoryConfig::default());
        for (n, seen) in samples.iter().enumerate() {
            history.observe(&after(Duration::from_secs(n as u64), kind(1)), seen);
        }
        let now = after(Duration::from_secs(samples.len() as u64), kind(1));
        history
            .resumption(&now)
            .map(|known| (known.window, (known.at - Instant::EPOCH).as_secs()))
    }

    fn delivered(delivered: u64, seen: PathSample) -> PathSample {
        PathSample { delivered, ..seen }
    }

    fn lost(seen: PathSample) -> PathSample {
        PathSample {
            lost_at_first: true,
            ..seen
        }
    }

    #[test]
    fn it_is_what_was_acknowledged_of_a_window() {
        let seen = closed(200_000);
        assert_eq!(after_all(&[seen]), Some((200_000, 0)));
        assert_eq!(after_all(&[delivered(90_000, seen)]), Some((90_000, 0)));
        assert_eq!(after_all(&[delivered(DEFAULT - 1, seen)]), None);
        let without_rtt = PathSample {
            rtt: Duration::ZERO,
            ..seen
        };
        assert_eq!(after_all(&[without_rtt]), None);
    }

    #[test]
    fn the_newer_replaces_the_older() {
        assert_eq!(
            after_all(&[closed(200_000), closed(90_000)]),
            Some((90_000, 1))
        );
        assert_eq!(
            after_all(&[closed(90_000), limited(200_000)]),
            Some((200_000, 1))
        );
    }

    #[test]
    fn who_was_short_of_data_does_not_lower_it() {
        assert_eq!(
            after_all(&[closed(200_000), limited(90_000)]),
            Some((200_000, 0))
        );
    }

    #[test]
    fn a_loss_of_the_first_flight_lowers_it_at_once() {
        let little = delivered(3000, lost(limited(8400)));
        assert_eq!(after_all(&[closed(200_000), little]), Some((8400, 1)));
        assert_eq!(after_all(&[little]), None);
        let but_more = lost(closed(300_000));
        assert_eq!(after_all(&[closed(200_000), but_more]), Some((300_000, 1)));
        assert_eq!(
            after_all(&[closed(200_000), delivered(3000, but_more)]),
            Some((200_000, 0))
        );
    }

    #[test]
    fn its_round_trip_time_is_that_of_the_same_connection() {
        let history = history(HistoryConfig::default());
        history.observe(&kind(1), &closed(90_000));
        let slower = PathSample {
            rtt: 3 * RTT,
            ..closed(200_000)
        };
        history.observe(&kind(1), &slower);
        let known = history.resumption(&kind(1)).unwrap();
        assert_eq!((known.window, known.rtt), (200_000, 3 * RTT));
    }

    #[test]
    fn it_grows_old_though_the_record_does_not() {
        let history = history(HistoryConfig::default());
        history.observe(&kind(1), &closed(200_000));
        for _ in 0..9 {
            history.observe(&after(HOUR / 4, kind(1)), &closed(20_000));
        }
        history.observe(&after(HOUR / 2, kind(1)), &limited(100_000));
        let before = history.resumption(&after(HOUR, kind(1))).unwrap();
        assert_eq!(before.window, 100_000);
        history.observe(&after(HOUR, kind(1)), &limited(90_000));
        let last = after(HOUR * 3 / 2, kind(1));
        assert_eq!(history.resumption(&last), None);
        assert!(history.average(&last).is_some());
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
        PathSample { event, window, initial_window, rtt, delivered, app_limited, lost_at_first }
    }
}

prop_compose! {
    fn any_config()(
        average in prop_oneof![
            Just(Average::Mean),
            (1..5_usize).prop_map(Average::Window),
            (0.01..=1.0).prop_map(|weight| Average::Ewma { weight }),
        ],
        scope in prop_oneof![Just(Scope::default()), Just(Scope::Address), Just(Scope::Global)],
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
    fn whatever_is_seen_windows_stay_within_their_bounds(
        config in any_config(),
        seen in prop::collection::vec((0..4_u8, 0..600_u64, any_sample()), 1..40),
    ) {
        let most = config.cap.unwrap_or(MAXIMUM_WINDOW).max(DEFAULT);
        let history = history(config.clone());
        let mut now = Duration::ZERO;
        for (host, seconds, seen) in seen {
            now += Duration::from_secs(seconds);
            let (kind, resumed) = (after(now, kind(host)), after(now, resumed(host)));
            let before = history.resumption(&kind);
            history.observe(&kind, &seen);
            let window = history.window(&kind);
            prop_assert!((DEFAULT..=most).contains(&window));
            prop_assert_eq!(window, history.first_window(&kind) as u64);
            match config.zero_rtt {
                ZeroRtt::Carry if seen.event == SampleEvent::Resumed => {
                    prop_assert_eq!(history.window(&resumed), seen.window.min(MAXIMUM_WINDOW));
                }
                ZeroRtt::Default => prop_assert_eq!(history.window(&resumed), DEFAULT),
                _ => prop_assert_eq!(history.window(&resumed), window),
            }
            if let Some(known) = history.resumption(&kind) {
                let changed = before != Some(known);
                let before = before.map_or(0, |before| before.window);
                prop_assert!(known.window <= seen.delivered.max(before));
                prop_assert!(!changed || known.at == kind.now);
                prop_assert!(!known.rtt.is_zero());
            }
        }
    }

    #[test]
    fn what_others_see_changes_nothing_for_a_stranger(
        config in any_config(),
        seen in prop::collection::vec((any::<u32>(), any_sample()), 1..40),
    ) {
        prop_assume!(config.scope != Scope::Global);
        let history = history(config);
        history.observe(&kind(1), &alive(70_000));
        let all = |kind| (history.average(&kind), history.resumption(&kind));
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
