use std::time::Duration;

use super::*;
use conformance::conformance;

use crate::scheduling::stream::Sharing;

/// The example of docs/tasks.md.
mod least_filled;

#[test]
fn every_path_scheduler_conforms() {
    SCHEDULERS.check_each(|make| conformance(|| make()));
    for variant in [EcfVariant::Linux, EcfVariant::Paper] {
        let ecf = EcfConfig {
            variant,
            ..EcfConfig::default()
        };
        conformance(|| Box::new(Ecf::new(ecf)));
        for cap in [false, true] {
            let config = SaEcfConfig {
                ecf,
                cap,
                unit: None,
            };
            conformance(|| Box::new(SaEcf::new(config)));
        }
    }
    for queue_model in [QueueModel::Paper, QueueModel::FreeWindow] {
        let config = HbesConfig {
            queue_model,
            packet: None,
        };
        conformance(|| Box::new(Hbes::new(config)));
    }
}

#[test]
fn an_unknown_path_scheduler_is_refused() {
    assert!(SCHEDULERS.make("minrtt").is_err());
}

const PACKET: u64 = 1450;

fn path(id: u32, rtt: u64, packets: u64) -> PathView {
    PathView {
        id: PathId(id),
        status: PathStatus::Available,
        smoothed_rtt: Some(Duration::from_millis(rtt)),
        rttvar: Duration::ZERO,
        window: packets * PACKET,
        in_flight: 0,
        queued: 0,
        mtu: PACKET,
        rate: None,
    }
}

fn full(path: PathView) -> PathView {
    PathView {
        in_flight: path.window,
        ..path
    }
}

fn backup(path: PathView) -> PathView {
    PathView {
        status: PathStatus::Backup,
        ..path
    }
}

fn unrated(path: PathView) -> PathView {
    PathView {
        smoothed_rtt: None,
        ..path
    }
}

fn stream(id: u64, remaining: u64) -> StreamView {
    StreamView {
        id: StreamId::from(id),
        remaining,
        weight: 1,
        previous: None,
    }
}

/// The plan for one stream that has `remaining` bytes.
fn plan(scheduler: &mut dyn PathScheduler, paths: &[PathView], remaining: u64) -> Plan {
    scheduler.plan(
        paths,
        &Work {
            streams: &[stream(0, remaining)],
            unsent: remaining,
            sharing: Sharing::Weighted,
        },
    )
}

fn choice(scheduler: &mut dyn PathScheduler, paths: &[PathView], remaining: u64) -> Option<u32> {
    plan(scheduler, paths, remaining).path().map(|path| path.0)
}

#[test]
fn round_robin_takes_turns() {
    let paths = [
        path(1, 20, 10),
        path(3, 200, 10),
        full(path(5, 1, 10)),
        path(7, 50, 10),
    ];
    let mut rr = Rr::default();
    let order: Vec<_> = (0..5).filter_map(|_| choice(&mut rr, &paths, 1)).collect();
    assert_eq!(order, [1, 3, 7, 1, 3]);
    assert_eq!(
        choice(&mut rr, &paths[..1], 1),
        Some(1),
        "the others were removed"
    );
}

#[test]
fn the_fastest_path_with_room_goes_first() {
    let (fast, slow) = (path(3, 20, 10), path(1, 50, 10));
    assert_eq!(choice(&mut Lrf, &[slow, fast], 1), Some(3));
    assert_eq!(choice(&mut Lrf, &[slow, full(fast)], 1), Some(1));
    assert_eq!(choice(&mut Lrf, &[slow, unrated(fast)], 1), Some(1));
    assert_eq!(choice(&mut Lrf, &[full(slow), unrated(fast)], 1), Some(3));
    assert_eq!(
        choice(&mut Lrf, &[path(1, 20, 10), fast], 1),
        Some(1),
        "equal paths in the order of their IDs"
    );
}

#[test]
fn backups_are_used_only_without_an_available_path() {
    let (wifi, lte) = (path(0, 20, 10), backup(path(1, 5, 10)));
    assert_eq!(choice(&mut Lrf, &[wifi, lte], 1), Some(0));
    assert_eq!(
        choice(&mut Lrf, &[full(wifi), lte], 1),
        None,
        "its window is only full"
    );
    assert_eq!(choice(&mut Lrf, &[lte], 1), Some(1));
}

#[test]
fn redundant_copies_each_packet_to_every_path_with_room() {
    let paths = [path(0, 50, 10), path(1, 20, 10)];
    let Plan::Send { path, copies, .. } = plan(&mut Redundant, &paths, 1) else {
        panic!("both paths have room");
    };
    assert_eq!((path, copies), (PathId(1), true));
}

#[test]
fn earliest_completion_waits_for_the_fast_path() {
    let paths = [full(path(0, 10, 10)), path(1, 100, 10)];
    let mut linux = Ecf::default();
    assert_eq!(
        choice(&mut linux, &paths, PACKET),
        None,
        "waiting completes the stream earlier"
    );
    assert!(linux.is_waiting());
    assert_eq!(
        choice(&mut linux, &paths, 100 * PACKET),
        None,
        "with hysteresis while waiting"
    );
    assert_eq!(
        choice(&mut linux, &paths, 200 * PACKET),
        Some(1),
        "waiting would complete it later"
    );
    assert!(!linux.is_waiting());
    let mut paper = Ecf::new(EcfConfig {
        variant: EcfVariant::Paper,
        ..EcfConfig::default()
    });
    assert_eq!(choice(&mut paper, &paths, PACKET), Some(1));
    assert_eq!(choice(&mut paper, &paths, 50 * PACKET), None);
}

#[test]
fn a_short_stream_waits_and_a_long_one_does_not() {
    let paths = [full(path(0, 10, 10)), path(1, 100, 10)];
    let streams = [stream(0, PACKET), stream(4, 1000 * PACKET)];
    let unsent = streams.iter().map(|stream| stream.remaining).sum();
    let work = Work {
        streams: &streams,
        unsent,
        sharing: Sharing::Weighted,
    };
    let mut scheduler = SaEcf::default();
    let plan = scheduler.plan(&paths, &work);
    assert_eq!(plan.stream(), Some(StreamId::from(4)));
    assert_eq!(plan.path(), Some(PathId(1)));
    assert!(scheduler.is_waiting(StreamId::from(0)));
    assert!(!scheduler.is_waiting(StreamId::from(4)));
}

#[test]
fn hbes_queues_on_a_full_path_if_the_packet_arrives_earlier_there() {
    // The paper's example: 20 ms by the full path, 40 ms by the other.
    let mut paths = [full(path(1, 20, 10)), path(3, 76, 38)];
    paths[0].queued = 4 * PACKET;
    let mut hbes = Hbes::default();
    assert_eq!(
        plan(&mut hbes, &paths, 1),
        Plan::Queue {
            stream: StreamId::from(0),
            path: PathId(1)
        }
    );
    for _ in 0..11 {
        paths[0].take(PACKET);
    }
    assert_eq!(
        choice(&mut hbes, &paths, 1),
        Some(3),
        "the queue is too long"
    );
    paths[1] = full(paths[1]);
    assert_eq!(
        plan(&mut hbes, &paths, 1),
        Plan::Wait,
        "every window is full"
    );
}

#[test]
fn with_free_window_hbes_counts_no_queue_where_packets_leave_at_once() {
    let (narrow, wide) = (path(1, 40, 2), path(3, 50, 100));
    let paths = [narrow, wide];
    assert_eq!(choice(&mut Hbes::default(), &paths, 1), Some(3));
    let mut free = Hbes::new(HbesConfig {
        queue_model: QueueModel::FreeWindow,
        packet: None,
    });
    assert_eq!(
        choice(&mut free, &paths, 1),
        Some(1),
        "two packets leave at once"
    );
    assert_eq!(choice(&mut free, &[full(narrow), wide], 1), Some(3));
}

#[test]
fn hbes_prefers_the_previous_path_among_equals() {
    let paths = [path(1, 20, 10), path(3, 20, 10)];
    let planned = |previous| {
        let streams = [StreamView {
            previous,
            ..stream(0, 1)
        }];
        let work = Work {
            streams: &streams,
            unsent: 1,
            sharing: Sharing::Weighted,
        };
        Hbes::default().plan(&paths, &work).path()
    };
    assert_eq!(planned(None), Some(PathId(1)));
    assert_eq!(planned(Some(PathId(3))), Some(PathId(3)));
    assert_eq!(planned(Some(PathId(5))), Some(PathId(1)));
}

#[test]
fn packets_are_planned_to_arrive_in_order() {
    let mut hbes = Hbes::default();
    let mut paths = [path(0, 10, 8), path(1, 80, 20), path(2, 300, 60)];
    let mut last = 0.0;
    while let Plan::Send { path, .. } | Plan::Queue { path, .. } = plan(&mut hbes, &paths, 1) {
        let path = &mut paths[path.0 as usize];
        let arrival = hbes.arrival(path).expect("all are rated");
        assert!(arrival >= last, "{arrival} s after {last} s");
        last = arrival;
        path.take(PACKET);
    }
    assert!(paths.iter().all(PathView::is_full));
    assert!(
        paths[0].queued > paths[1].queued,
        "the fastest has the longest queue: {paths:?}"
    );
}

#[test]
fn a_slower_path_fills_when_the_faster_ones_would_be_later() {
    // Full paths of one packet a millisecond each; the slow one delivers after 50 ms.
    let (fast, fair) = (full(path(0, 10, 10)), full(path(2, 20, 20)));
    let slow = path(1, 100, 100);
    let chosen = |paths: &[PathView], packets| choice(&mut WaterFilling, paths, packets * PACKET);
    assert_eq!(
        chosen(&[fast, slow], 45),
        None,
        "the slow path would not deliver earlier"
    );
    assert_eq!(chosen(&[fast, slow], 46), Some(1));
    assert_eq!(
        chosen(&[fast, slow, fair], 85),
        None,
        "45 here and 40 there"
    );
    assert_eq!(chosen(&[fast, slow, fair], 86), Some(1));
    assert_eq!(
        chosen(&[fast, slow, path(2, 20, 20)], 1),
        None,
        "15 are not enough"
    );
    assert_eq!(chosen(&[fast, slow, path(2, 20, 20)], 6), Some(2));
    let wavering = PathView {
        rttvar: Duration::from_millis(10),
        ..slow
    };
    assert_eq!(chosen(&[fast, wavering], 55), None);
    assert_eq!(chosen(&[fast, wavering], 56), Some(1));
    assert_eq!(
        chosen(&[fast, unrated(slow)], 1),
        Some(1),
        "a path without a sample may be faster"
    );
    assert_eq!(chosen(&[path(0, 10, 10), slow], 1000), Some(0));
}

#[test]
fn bytes_queued_on_a_faster_path_are_delivered_first() {
    let slow = path(1, 100, 100);
    let queued = |packets| PathView {
        queued: packets * PACKET,
        ..full(path(0, 10, 10))
    };
    let chosen = |paths: &[PathView], packets| choice(&mut WaterFilling, paths, packets * PACKET);
    assert_eq!(
        chosen(&[queued(10), slow], 35),
        None,
        "45, of which 10 wait"
    );
    assert_eq!(chosen(&[queued(10), slow], 36), Some(1));
    assert_eq!(chosen(&[queued(100), slow], 1), Some(1));
    let fair = full(path(2, 20, 20));
    assert_eq!(
        chosen(&[queued(100), slow, fair], 40),
        None,
        "the queue of one path does not delay another"
    );
    assert_eq!(chosen(&[queued(100), slow, fair], 41), Some(1));
}

#[test]
fn backups_do_not_count_among_the_faster_paths() {
    let (wifi, lte) = (path(1, 100, 100), backup(full(path(0, 10, 10))));
    let chosen = |paths: &[PathView], packets| choice(&mut WaterFilling, paths, packets * PACKET);
    assert_eq!(chosen(&[lte, wifi], 1), Some(1));
    assert_eq!(
        chosen(&[lte, full(wifi)], 1000),
        None,
        "its window is only full"
    );
    assert_eq!(
        chosen(&[lte, backup(wifi)], 45),
        None,
        "as among available paths"
    );
    assert_eq!(chosen(&[lte, backup(wifi)], 46), Some(1));
}

#[test]
fn a_path_without_a_faster_one_is_used_while_it_has_room() {
    let only = path(3, 50, 10);
    let chosen = |paths: &[PathView]| choice(&mut WaterFilling, paths, 1);
    for status in [PathStatus::Available, PathStatus::Backup] {
        let only = PathView { status, ..only };
        assert_eq!(chosen(&[only]), Some(3));
        assert_eq!(chosen(&[unrated(only)]), Some(3));
        assert_eq!(chosen(&[full(only)]), None);
    }
    assert_eq!(
        chosen(&[full(path(1, 50, 10)), only]),
        Some(3),
        "an equal path is not faster"
    );
    assert_eq!(
        chosen(&[full(unrated(path(1, 1, 10))), only]),
        Some(3),
        "no sample shows that it is faster"
    );
}

#[test]
fn bytes_of_siblings_count_as_the_stream_scheduler_shares() {
    let paths = [full(path(0, 10, 10)), path(1, 100, 100)];
    let streams = |weight| {
        [
            StreamView {
                weight,
                ..stream(0, 20 * PACKET)
            },
            stream(4, 1000 * PACKET),
        ]
    };
    let planned = |streams: &[StreamView], sharing| {
        let unsent = streams.iter().map(|stream| stream.remaining).sum();
        let work = Work {
            streams,
            unsent,
            sharing,
        };
        WaterFilling.plan(&paths, &work).stream().map(u64::from)
    };
    assert_eq!(
        planned(&streams(1), Sharing::Weighted),
        Some(4),
        "40 until it is done"
    );
    let mut three = streams(1).to_vec();
    three.push(stream(8, 1000 * PACKET));
    assert_eq!(
        planned(&three, Sharing::Weighted),
        Some(0),
        "60 until it is done"
    );
    three[0].weight = 2;
    assert_eq!(planned(&three, Sharing::Weighted), Some(4));
    assert_eq!(planned(&three, Sharing::InOrder), Some(4), "it is first");
    three.rotate_left(1);
    assert_eq!(planned(&three, Sharing::InOrder), Some(4));
    three.rotate_right(1);
    assert_eq!(planned(&three[..1], Sharing::InOrder), None);
}

#[test]
fn the_least_filled_window_goes_first() {
    let (narrow, wide) = (path(1, 20, 10), path(3, 50, 100));
    let half = |path: PathView| PathView {
        in_flight: path.window / 2,
        ..path
    };
    let mut scheduler = least_filled::LeastFilled;
    let choices = [[half(narrow), wide], [narrow, half(wide)]];
    assert_eq!(choice(&mut scheduler, &choices[0], 1), Some(3));
    assert_eq!(choice(&mut scheduler, &choices[1], 1), Some(1));
}

#[test]
fn the_scheduler_of_the_documentation_conforms() {
    use crate::settings::Policy;
    let make = least_filled::ENTRY.make_default();
    conformance(|| make());
}

/// The page shows a test and a diff that add a scheduler: the test is here, and the diff is about lines that are there.
#[test]
fn the_page_shows_the_test_and_what_to_change() {
    let page = include_str!("../../../../../docs/tasks.md");
    let (_, page) = page.split_once("## A path scheduler\n").unwrap();
    let blocks = |kind: &str| -> Vec<String> {
        let begin = format!("   ```{kind}\n");
        let blocks = page.split(&begin).skip(1);
        let inside = blocks.filter_map(|block| block.split("   ```").next());
        inside
            .map(|text| {
                let lines = text.lines().map(|line| line.strip_prefix("   "));
                let lines = lines.map(|line| format!("{}\n", line.unwrap_or_default()));
                lines.collect()
            })
            .collect()
    };
    let code = blocks("rust,ignore");
    assert!(include_str!("tests.rs").contains(&code[0]), "{}", code[0]);
    let source = include_str!("mod.rs");
    for line in blocks("diff")[0].lines() {
        if let Some(kept) = line.strip_prefix(' ') {
            assert!(source.contains(&format!("{kept}\n")), "{kept}");
        }
    }
}

/// A path of a rate-based controller: one packet a millisecond, no queue in the network, a window of twice what it holds.
fn rated(id: u32, rtt: u64, paced_for: u64) -> PathView {
    PathView {
        rate: Some(RateView {
            bandwidth: 1000 * PACKET,
            min_rtt: Duration::from_millis(rtt),
            paced_for: Duration::from_millis(paced_for),
        }),
        ..path(id, rtt, 2 * rtt)
    }
}

#[test]
fn a_path_whose_pacer_holds_packets_back_has_no_room() {
    assert!(!rated(0, 10, 0).is_full());
    assert!(rated(0, 10, 1).is_full());
    assert!(rated(0, 10, 1).has_window());
    let paths = [rated(0, 10, 1), rated(1, 100, 0)];
    assert_eq!(choice(&mut Lrf, &paths, 1), Some(1));
}

#[test]
fn rates_of_controllers_count_not_their_windows() {
    let paths = [rated(0, 10, 5), rated(1, 100, 0)];
    // The fast path delivers 40 packets until 50 ms: 5 ms for its pacer, 5 ms on the way.
    assert_eq!(choice(&mut WaterFilling, &paths, 39 * PACKET), None);
    assert_eq!(choice(&mut WaterFilling, &paths, 41 * PACKET), Some(1));
    assert_eq!(choice(&mut Ecf::default(), &paths, 39 * PACKET), None);
    assert_eq!(choice(&mut Ecf::default(), &paths, 60 * PACKET), Some(1));
    assert_eq!(
        plan(&mut Hbes::default(), &paths, 1),
        Plan::Queue {
            stream: StreamId::from(0),
            path: PathId(0)
        },
        "10 ms are less than 50"
    );
}

#[test]
fn a_queue_in_the_network_is_on_the_way_there() {
    let queued = PathView {
        smoothed_rtt: Some(Duration::from_millis(60)),
        ..rated(0, 20, 0)
    };
    // 20 ms there and back, and a queue of 40 ms: 50 ms there.
    let paths = [queued, rated(1, 80, 0)];
    assert_eq!(choice(&mut Hbes::default(), &paths, 1), Some(1));
    assert_eq!(choice(&mut WaterFilling, &paths, 1), Some(1));
}

#[test]
fn what_is_in_flight_on_a_narrow_path_arrives_first() {
    let narrow = PathView {
        in_flight: 100 * PACKET,
        ..rated(1, 40, 0)
    };
    let chosen = |narrow: PathView, packets| {
        choice(
            &mut WaterFilling,
            &[rated(0, 10, 5), narrow],
            packets * PACKET,
        )
    };
    let idle = rated(1, 40, 0);
    assert_eq!(
        chosen(idle, 12),
        Some(1),
        "20 ms, in which the fast path delivers 10 packets"
    );
    let narrow = PathView {
        window: 200 * PACKET,
        ..narrow
    };
    assert_eq!(
        chosen(narrow, 70),
        None,
        "81 ms: 101 packets less half a round trip"
    );
    assert_eq!(chosen(narrow, 72), Some(1));
}
