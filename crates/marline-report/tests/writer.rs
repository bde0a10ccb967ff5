//! The report reads what the core's qlog writer writes.

use std::time::Duration;

use marline_proto::Instant;
use marline_proto::observe::events::{
    BundleAction, BundlePhase, BundleTrigger, BundleUpdated, CongestionStateUpdated, Ecn,
    LossTrigger, MetricsUpdated, PacketKind, PacketLost, PacketReceived, PacketSent, SpuriousLoss,
};
use marline_proto::observe::qlog::{Header, VantagePoint};
use marline_proto::observe::{Event, Observer, QlogWriter};
use marline_report::{Summary, Timeline};
use marline_wire::{ConnectionId, PathId, Side};

const START: Instant = Instant::from_nanos(77);

fn at(ms: u64) -> Instant {
    START + Duration::from_millis(ms)
}

fn write_log(file: std::fs::File) {
    let header = Header {
        title: "transfer",
        vantage_point: VantagePoint {
            name: "marline",
            side: Side::Server,
        },
        original_destination_connection_id: ConnectionId::new(&[0xc0, 0xde]).unwrap_or_default(),
        reference: START,
        wall_clock: None,
    };
    let mut log = QlogWriter::new(file, &header);
    for path in [PathId(0), PathId(1)] {
        log.on_event(
            at(0),
            &Event::CongestionStateUpdated(CongestionStateUpdated {
                path,
                old: None,
                new: "slow_start",
                trigger: None,
            }),
        );
    }
    for number in 0..100 {
        let now = at(10 * number);
        let path = PathId((number % 2) as u32);
        log.on_event(
            now,
            &Event::PacketSent(PacketSent {
                path,
                kind: PacketKind::OneRtt,
                number: Some(number),
                size: 1200,
                payload: &[0x01, 0, 0],
                ecn: Ecn::NotEct,
                datagram: number as u32,
                is_mtu_probe: false,
                trigger: None,
            }),
        );
        log.on_event(
            now,
            &Event::MetricsUpdated(MetricsUpdated {
                path,
                min_rtt: Some(Duration::from_millis(20)),
                smoothed_rtt: Duration::from_millis(25),
                latest_rtt: Some(Duration::from_micros(20_000 + number)),
                congestion_window: 12_000 + number * 1200,
                bytes_in_flight: 1200,
                ..MetricsUpdated::default()
            }),
        );
        if number % 10 == 9 {
            log.on_event(
                now,
                &Event::PacketLost(PacketLost {
                    path,
                    kind: PacketKind::OneRtt,
                    number,
                    size: 1200,
                    is_mtu_probe: false,
                    trigger: LossTrigger::TimeThreshold,
                }),
            );
        }
    }
    log.on_event(
        at(995),
        &Event::SpuriousLoss(SpuriousLoss {
            path: PathId(1),
            kind: PacketKind::OneRtt,
            number: 99,
            reordering: 0,
            elapsed: Duration::from_millis(5),
        }),
    );
    log.on_event(
        at(997),
        &Event::BundleUpdated(BundleUpdated {
            bundle: 3,
            path: None,
            trigger: BundleTrigger::Loss,
            action: BundleAction::Synchronized,
            phase: BundlePhase::SlowStart,
            affected: Some(1),
            own: 0,
            gamma: 1.25,
            fluctuations: 2,
            before: &[30_000, 21_000],
            after: &[20_000, 20_000],
        }),
    );
    log.on_event(
        at(1000),
        &Event::PacketReceived(PacketReceived {
            path: PathId::INITIAL,
            kind: PacketKind::OneRtt,
            number: Some(0),
            size: 40,
            payload: &[0x01],
            ecn: Ecn::Ce,
            datagram: 0,
        }),
    );
}

#[test]
fn a_log_of_the_core_is_summarized_and_charted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c0de_server.sqlog");
    write_log(std::fs::File::create(&path).unwrap());

    let summary = Summary::read(&path).unwrap();
    assert_eq!(summary.skipped, 0, "{:?}", summary.first_error);
    let [connection] = &summary.connections[..] else {
        panic!("one connection, not {summary}");
    };
    assert_eq!(connection.group, "c0de");
    assert_eq!(connection.source.vantage_point, "server");
    let total = &connection.total;
    assert_eq!(total.duration_s, 1.0);
    assert_eq!((total.packets_sent, total.bytes_sent), (100, 120_000));
    assert_eq!((total.packets_received, total.bytes_received), (1, 40));
    assert_eq!(total.lost["time_threshold"], 10);
    assert_eq!(total.spurious_losses, 1);
    assert_eq!(total.max_congestion_window, Some(12_000 + 99 * 1200));
    assert_eq!(total.rtt_s.unwrap().max, 0.020_099);
    let paths: Vec<_> = connection.paths.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(paths, ["0", "1"]);
    assert_eq!(connection.paths[1].1.packets_lost(), 10);
    assert_eq!(
        connection.paths[0].1.states,
        [("slow_start".to_owned(), 1.0)]
    );
    let bundle = &connection.bundles[0];
    assert_eq!((bundle.number, bundle.fluctuations()), (3, 2));
    let decision = &bundle.decisions[0];
    assert_eq!(
        (&*decision.trigger, &*decision.action, &*decision.phase),
        ("loss", "synchronized", "slow_start")
    );
    assert_eq!((decision.affected, decision.own), (Some(1), Some(0)));
    assert_eq!(decision.gamma, Some(1.25));
    assert_eq!(decision.before, [30_000, 21_000]);
    assert_eq!(decision.after, [20_000, 20_000]);

    let timeline = Timeline::read(&path).unwrap();
    assert_eq!(timeline.decisions, [(0.997, "synchronized".to_owned())]);
    let window = timeline.charts()[0].to_html();
    assert!(window.contains("synced: windows and slow start synchronized"));
    assert!(!window.contains("exited"), "the action did not occur");
    assert_eq!(timeline.paths[0].congestion_window.len(), 50);
    assert_eq!(timeline.paths[1].losses.len(), 10);
    assert_eq!(timeline.paths[1].spurious_losses, [0.995]);
    assert_eq!(timeline.charts().len(), 4);
}
