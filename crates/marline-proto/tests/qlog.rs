//! The logs of the qlog observer.

mod schema;

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use marline_proto::Instant;
use marline_proto::observe::events::*;
use marline_proto::observe::qlog::{Header, VantagePoint};
use marline_proto::observe::{Event, Observer, QlogWriter};
use marline_wire::frame::{
    Ack, EcnCounts, MaxData, MaxPathId, NewConnectionId, PathAbandon, PathAck, PathCidsBlocked,
    PathNewConnectionId, PathRetireConnectionId, PathStatusAvailable, PathStatusBackup,
    PathsBlocked, Stream,
};
use marline_wire::{
    ConnectionId, Dir, ErrorCode, Frame, PathId, Side, StreamId, TransportParameters,
};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

/// A sink that can be read while it is written to.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .expect("no writer panicked")
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const REFERENCE: Instant = Instant::from_nanos(5_000_000_000);

fn header() -> Header<'static> {
    Header {
        title: "a \"title\"\n",
        vantage_point: VantagePoint {
            name: "marline",
            side: Side::Server,
        },
        original_destination_connection_id: ConnectionId::new(&[0xab, 0x01])
            .expect("two bytes are few"),
        reference: REFERENCE,
        wall_clock: Some(Duration::from_millis(1_553_986_553_572)),
    }
}

/// Logs `events` one millisecond and one nanosecond apart; returns the records, which are valid.
fn log(events: &[Event<'_>]) -> Vec<Json> {
    let sink = Shared::default();
    let mut writer = QlogWriter::new(sink.clone(), &header());
    let mut now = REFERENCE;
    for event in events {
        now += Duration::from_nanos(1_000_001);
        writer.on_event(now, event);
    }
    drop(writer);
    let bytes = sink.0.lock().expect("no writer panicked").clone();
    assert_eq!(bytes[0], 0x1e);
    let faults = schema::faults(&bytes);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    bytes[1..]
        .split(|&byte| byte == 0x1e)
        .map(|record| {
            assert_eq!(record.last(), Some(&b'\n'));
            serde_json::from_slice(record).expect("a record is JSON")
        })
        .collect()
}

fn packet<'a>(payload: &'a [u8]) -> PacketSent<'a> {
    PacketSent {
        path: PathId(3),
        kind: PacketKind::OneRtt,
        number: Some(17),
        size: 1200,
        payload,
        ecn: Ecn::Ect0,
        datagram: 9,
        is_mtu_probe: false,
        trigger: Some(SendTrigger::PtoProbe),
    }
}

#[test]
fn the_header_names_the_format_and_the_trace() {
    let records = log(&[]);
    assert_eq!(
        records,
        [json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": "a \"title\"\n",
            "trace": {
                "common_fields": {
                    "group_id": "ab01",
                    "time_format": "relative_to_epoch",
                    "reference_time": {
                        "clock_type": "monotonic",
                        "epoch": "unknown",
                        "wall_clock_time": "2019-03-30T22:55:53.572Z",
                    },
                },
                "vantage_point": { "name": "marline", "type": "server" },
                "event_schemas": [
                    "urn:ietf:params:qlog:events:quic-13",
                    "https://github.com/marline/marline/112026/qlog/quic#extensions",
                    "https://github.com/marline/marline/112026/qlog/marline",
                    "https://github.com/marline/marline/112026/qlog/recovery",
                ],
            },
        })]
    );
}

#[test]
fn a_packet_is_logged_with_its_frames() {
    let mut payload = Vec::new();
    Ack::encode(
        [7..=9, 4..=4].into_iter(),
        125,
        Some(EcnCounts {
            ect0: 4,
            ect1: 0,
            ce: 1,
        }),
        &mut payload,
    );
    Frame::MaxData(MaxData { maximum: 1 << 60 }).encode(&mut payload);
    Frame::Stream(Stream {
        id: StreamId::new(Side::Client, Dir::Bi, 1),
        offset: 1000,
        fin: true,
        data: b"secret",
    })
    .encode(&mut payload);
    payload.extend([0; 5]);
    let records = log(&[Event::PacketSent(packet(&payload))]);
    assert_eq!(
        records[1],
        json!({
            "time": 1.000001,
            "name": "quic:packet_sent",
            "tuple": "3",
            "data": {
                "header": { "packet_type": "1RTT", "packet_number": 17 },
                "frames": [
                    {
                        "frame_type": "ack",
                        "ack_delay": 1.0,
                        "acked_ranges": [[7, 9], [4]],
                        "ect1": 0, "ect0": 4, "ce": 1,
                    },
                    { "frame_type": "max_data", "maximum": 1_u64 << 60 },
                    {
                        "frame_type": "stream",
                        "stream_id": 4,
                        "offset": 1000,
                        "fin": true,
                        "raw": { "length": 6 },
                    },
                    { "frame_type": "padding", "raw": { "payload_length": 5 } },
                ],
                "raw": { "length": 1200 },
                "trigger": "pto_probe",
            },
            "datagram_id": 9,
            "ecn": "ECT(0)",
        })
    );
}

#[test]
fn multipath_frames_are_logged_with_their_path() {
    let mut payload = Vec::new();
    let path_id = PathId(3);
    PathAck::encode(path_id, [7..=9].into_iter(), 125, None, &mut payload);
    for frame in [
        Frame::PathAbandon(PathAbandon {
            path_id,
            error_code: ErrorCode::PATH_UNSTABLE_OR_POOR,
        }),
        Frame::PathStatusBackup(PathStatusBackup {
            path_id,
            sequence: 8,
        }),
        Frame::PathStatusAvailable(PathStatusAvailable {
            path_id,
            sequence: 9,
        }),
        Frame::PathNewConnectionId(PathNewConnectionId {
            path_id,
            issued: NewConnectionId {
                sequence: 2,
                retire_prior_to: 1,
                id: ConnectionId::new(&[0xc1, 0xd2]).expect("short"),
                reset_token: [7; 16],
            },
        }),
        Frame::PathRetireConnectionId(PathRetireConnectionId {
            path_id,
            sequence: 1,
        }),
        Frame::MaxPathId(MaxPathId { maximum: PathId(5) }),
        Frame::PathsBlocked(PathsBlocked { limit: PathId(4) }),
        Frame::PathCidsBlocked(PathCidsBlocked {
            path_id,
            next_sequence: 6,
        }),
    ] {
        frame.encode(&mut payload);
    }
    let records = log(&[Event::PacketSent(packet(&payload))]);
    assert_eq!(
        records[1]["data"]["frames"],
        json!([
            {
                "frame_type": "path_ack",
                "path_id": 3,
                "ack_delay": 1.0,
                "acked_ranges": [[7, 9]],
            },
            { "frame_type": "path_abandon", "path_id": 3, "error": "path_unstable_or_poor" },
            {
                "frame_type": "path_status_backup",
                "path_id": 3,
                "path_status_sequence_number": 8,
            },
            {
                "frame_type": "path_status_available",
                "path_id": 3,
                "path_status_sequence_number": 9,
            },
            {
                "frame_type": "path_new_connection_id",
                "path_id": 3,
                "sequence_number": 2,
                "retire_prior_to": 1,
                "connection_id": "c1d2",
            },
            { "frame_type": "path_retire_connection_id", "path_id": 3, "sequence_number": 1 },
            { "frame_type": "max_path_id", "maximum_path_id": 5 },
            { "frame_type": "paths_blocked", "maximum_path_id": 4 },
            { "frame_type": "path_cids_blocked", "path_id": 3, "next_sequence_number": 6 },
        ])
    );
}

#[test]
fn ack_delays_scale_by_the_exponent_of_their_sender() {
    let mut payload = Vec::new();
    Ack::encode([0..=0].into_iter(), 10, None, &mut payload);
    let parameters = TransportParameters {
        ack_delay_exponent: 10,
        ..TransportParameters::default()
    };
    let set = Event::ParametersSet(ParametersSet {
        initiator: Initiator::Local,
        tls_cipher: None,
        parameters: &parameters,
    });
    let mut initial = packet(&payload);
    initial.kind = PacketKind::Initial;
    let records = log(&[
        set,
        Event::PacketSent(packet(&payload)),
        Event::PacketSent(initial),
    ]);
    let delay = |record: &Json| record["data"]["frames"][0]["ack_delay"].clone();
    assert_eq!(delay(&records[2]), json!(10.24));
    assert_eq!(delay(&records[3]), json!(0.08));
}

#[test]
fn metrics_contain_what_changed_on_their_path() {
    let ms = Duration::from_millis;
    let first = MetricsUpdated {
        path: PathId::INITIAL,
        min_rtt: Some(ms(20)),
        smoothed_rtt: ms(20),
        latest_rtt: Some(ms(20)),
        rtt_variance: ms(10),
        congestion_window: 12_000,
        bytes_in_flight: 1200,
        packets_in_flight: 1,
        pacing_rate: Some(1_000_000),
        ..MetricsUpdated::default()
    };
    let other_path = MetricsUpdated {
        path: PathId(1),
        ..first
    };
    let second = MetricsUpdated {
        congestion_window: 13_200,
        latest_rtt: Some(Duration::from_nanos(21_500_700)),
        ..first
    };
    let records = log(&[
        Event::MetricsUpdated(first),
        Event::MetricsUpdated(first),
        Event::MetricsUpdated(other_path),
        Event::MetricsUpdated(second),
    ]);
    assert_eq!(records.len(), 4);
    assert_eq!(
        records[1]["data"],
        json!({
            "min_rtt": 20.0, "latest_rtt": 20.0, "smoothed_rtt": 20.0, "rtt_variance": 10.0,
            "pto_count": 0, "congestion_window": 12_000, "bytes_in_flight": 1200,
            "packets_in_flight": 1, "pacing_rate": 8_000_000,
        })
    );
    assert_eq!(records[2]["tuple"], "1");
    assert_eq!(records[2]["data"], records[1]["data"]);
    assert_eq!(
        records[3]["data"],
        json!({ "latest_rtt": 21.5007, "congestion_window": 13_200 })
    );
}

#[test]
fn path_ids_are_logged_if_multipath_is_negotiated() {
    let several = TransportParameters {
        initial_max_path_id: Some(3),
        ..TransportParameters::default()
    };
    let set = |initiator, parameters| {
        Event::ParametersSet(ParametersSet {
            initiator,
            tls_cipher: None,
            parameters,
        })
    };
    let lost = Event::PacketLost(PacketLost {
        path: PathId(3),
        kind: PacketKind::OneRtt,
        number: 17,
        size: 1200,
        is_mtu_probe: false,
        trigger: LossTrigger::TimeThreshold,
    });
    let mut initial = packet(&[]);
    initial.kind = PacketKind::Initial;
    let path_id = |record: &Json| record.get("path_id").cloned();
    let one_end = [set(Initiator::Local, &several), lost];
    assert_eq!(path_id(log(&one_end).last().unwrap()), None);
    let both_ends = [
        set(Initiator::Local, &several),
        set(Initiator::Remote, &several),
        lost,
        Event::PacketSent(packet(&[])),
        Event::PacketSent(initial),
    ];
    let ids: Vec<_> = log(&both_ends)[3..].iter().map(path_id).collect();
    assert_eq!(ids, [Some(json!(3)), Some(json!(3)), None]);
}

#[test]
fn queued_bytes_are_logged_once_there_are_some() {
    let waits = |bytes_queued| {
        Event::MetricsUpdated(MetricsUpdated {
            bytes_queued,
            ..MetricsUpdated::default()
        })
    };
    let records = log(&[waits(0), waits(5000), waits(0)]);
    let shown: Vec<_> = records[1..]
        .iter()
        .map(|record| record.get("bytes_queued").cloned())
        .collect();
    assert_eq!(shown, [None, Some(json!(5000)), Some(json!(0))]);
}

#[test]
fn text_of_the_peer_is_escaped() {
    let reason = "\"},\u{1e}\n\\ \u{0}\u{7f} é";
    let records = log(&[Event::ConnectionClosed(ConnectionClosed {
        initiator: Initiator::Remote,
        error: ClosedWith::Transport(ErrorCode::crypto(0x28)),
        reason,
        trigger: CloseTrigger::Error,
    })]);
    assert_eq!(
        records[1]["data"],
        json!({
            "initiator": "remote",
            "connection_error": "crypto_error_0x128",
            "reason": reason,
            "trigger": "error",
        })
    );
}

#[test]
fn errors_that_the_schema_has_no_name_for_are_logged_by_number() {
    let records = log(&[Event::ConnectionClosed(ConnectionClosed {
        initiator: Initiator::Local,
        error: ClosedWith::Transport(ErrorCode::VERSION_NEGOTIATION_ERROR),
        reason: "",
        trigger: CloseTrigger::Error,
    })]);
    assert_eq!(records[1]["data"]["connection_error"], "unknown");
    assert_eq!(records[1]["data"]["error_code"], 0x11);
}

#[test]
fn numbers_above_the_limits_of_the_schema_are_logged_as_the_limit() {
    let records = log(&[
        Event::RecoveryParametersSet(RecoveryParametersSet {
            path: PathId::INITIAL,
            reordering_threshold: Some(1 << 20),
            time_threshold: 2.0,
            timer_granularity: Duration::from_micros(1500),
            initial_rtt: Duration::from_millis(333),
            max_datagram_size: 1200,
            initial_congestion_window: 12_000,
            minimum_congestion_window: 2400,
            controller: "cubic",
        }),
        Event::MetricsUpdated(MetricsUpdated {
            pto_count: 1 << 20,
            ..MetricsUpdated::default()
        }),
    ]);
    let parameters = &records[1]["data"];
    assert_eq!(parameters["reordering_threshold"], 65_535);
    assert_eq!(parameters["timer_granularity"], 2);
    assert_eq!(records[2]["data"]["pto_count"], 65_535);
}

fn careful_resume(trigger: Option<CarefulResumeTrigger>) -> CarefulResumePhaseUpdated {
    CarefulResumePhaseUpdated {
        path: PathId(2),
        old: None,
        new: CarefulResumePhase::Reconnaissance,
        pipe_size: 0,
        first_unvalidated_packet: 0,
        last_unvalidated_packet: 0,
        congestion_window: None,
        ssthresh: None,
        restored: None,
        trigger,
    }
}

#[test]
fn careful_resume_events_use_the_names_of_their_definition() {
    use CarefulResumeTrigger::*;
    let retreat = Event::CarefulResumePhaseUpdated(CarefulResumePhaseUpdated {
        old: Some(CarefulResumePhase::Validating),
        new: CarefulResumePhase::SafeRetreat,
        pipe_size: 63_000,
        first_unvalidated_packet: 30,
        last_unvalidated_packet: 150,
        congestion_window: Some(31_500),
        ssthresh: Some(75_000),
        restored: Some(CarefulResumeRestored {
            congestion_window: 300_000,
            rtt: Duration::from_micros(40_250),
        }),
        ..careful_resume(Some(EcnCe))
    });
    let records = log(&[retreat]);
    assert_eq!(records[1]["name"], "recovery:careful_resume_phase_updated");
    assert_eq!(
        records[1]["data"],
        json!({
            "old": "validating",
            "new": "safe_retreat",
            "state_data": {
                "pipesize": 63_000,
                "first_unvalidated_packet": 30,
                "last_unvalidated_packet": 150,
                "congestion_window": 31_500,
                "ssthresh": 75_000,
            },
            "restored_data": { "saved_congestion_window": 300_000, "saved_rtt": 40.25 },
            "trigger": "ECN_CE",
        })
    );
    let words = [
        (CongestionWindowLimited, "congestion_window_limited"),
        (RttNotValidated, "rtt_not_validated"),
        (LastUnvalidatedPacketSent, "last_unvalidated_packet_sent"),
        (
            FirstUnvalidatedPacketAcknowledged,
            "first_unvalidated_packet_acknowledged",
        ),
        (RttExceeded, "rtt_exceeded"),
        (RateLimited, "rate_limited"),
        (
            LastUnvalidatedPacketAcknowledged,
            "last_unvalidated_packet_acknowledged",
        ),
        (PathChanged, "path_changed"),
        (PacketLoss, "packet_loss"),
        (EcnCe, "ECN_CE"),
        (ExitRecovery, "exit_recovery"),
    ];
    for (trigger, word) in words {
        let records = log(&[Event::CarefulResumePhaseUpdated(careful_resume(Some(
            trigger,
        )))]);
        assert_eq!(records[1]["data"]["trigger"], word);
        assert!(records[1]["data"].get("restored_data").is_none());
    }
}

#[test]
fn an_initial_window_is_logged_with_the_default_one() {
    let chosen = |window| {
        Event::InitialWindowChosen(InitialWindowChosen {
            path: PathId::INITIAL,
            window,
            default: 12_000,
        })
    };
    let records = log(&[chosen(240_000), chosen(12_000)]);
    assert_eq!(records[1]["name"], "marline:initial_window_chosen");
    for (record, window, learnt) in [(&records[1], 240_000, true), (&records[2], 12_000, false)] {
        let data = json!({ "window": window, "default": 12_000, "learnt": learnt });
        assert_eq!(record["data"], data);
    }
}

#[test]
fn every_event_is_logged_as_one_record() {
    let parameters = TransportParameters {
        initial_source_connection_id: Some(ConnectionId::EMPTY),
        stateless_reset_token: Some([7; 16]),
        ..TransportParameters::default()
    };
    let address = "[::1]:443".parse().unwrap();
    let events = [
        Event::ConnectionStarted(ConnectionStarted {
            local: None,
            remote: address,
            local_cid: ConnectionId::EMPTY,
            remote_cid: ConnectionId::new(&[1, 2]).unwrap(),
        }),
        Event::ConnectionStateUpdated(ConnectionStateUpdated {
            old: None,
            new: ConnectionState::Attempted,
        }),
        Event::ConnectionIdUpdated(ConnectionIdUpdated {
            path: Some(PathId(1)),
            initiator: Initiator::Local,
            old: None,
            new: Some(ConnectionId::new(&[5]).unwrap()),
        }),
        Event::VersionInformation(VersionInformation {
            client: &[1],
            chosen: Some(1),
            ..VersionInformation::default()
        }),
        Event::AlpnInformation(AlpnInformation {
            client: &[b"h3", b"\xff"],
            chosen: Some(b"h3"),
            ..AlpnInformation::default()
        }),
        Event::ParametersSet(ParametersSet {
            initiator: Initiator::Remote,
            tls_cipher: Some("AES_128_GCM_SHA256"),
            parameters: &parameters,
        }),
        Event::ParametersRestored(&parameters),
        Event::PacketReceived(PacketReceived {
            path: PathId::INITIAL,
            kind: PacketKind::Retry,
            number: None,
            size: 99,
            payload: b"no frames here",
            ecn: Ecn::NotEct,
            datagram: 0,
        }),
        Event::PacketDropped(PacketDropped {
            path: None,
            kind: PacketKind::Unknown,
            size: 20,
            trigger: DropTrigger::KeyUnavailable,
        }),
        Event::PacketsAcked(PacketsAcked {
            path: PathId::INITIAL,
            space: PacketNumberSpace::Handshake,
            numbers: &[1, 2, u64::MAX],
        }),
        Event::PacketLost(PacketLost {
            path: PathId::INITIAL,
            kind: PacketKind::OneRtt,
            number: 4,
            size: 1200,
            is_mtu_probe: true,
            trigger: LossTrigger::TimeThreshold,
        }),
        Event::SpuriousLoss(SpuriousLoss {
            path: PathId::INITIAL,
            kind: PacketKind::OneRtt,
            number: 4,
            reordering: 6,
            elapsed: Duration::from_millis(31),
        }),
        Event::RecoveryParametersSet(RecoveryParametersSet {
            path: PathId::INITIAL,
            reordering_threshold: Some(3),
            time_threshold: 1.125,
            timer_granularity: Duration::from_millis(1),
            initial_rtt: Duration::from_millis(333),
            max_datagram_size: 1200,
            initial_congestion_window: 12_000,
            minimum_congestion_window: 2400,
            controller: "cubic",
        }),
        Event::CongestionStateUpdated(CongestionStateUpdated {
            path: PathId::INITIAL,
            old: Some("slow_start"),
            new: "recovery",
            trigger: None,
        }),
        Event::TimerUpdated(TimerUpdated {
            path: Some(PathId::INITIAL),
            timer: Timer::Pto,
            space: Some(PacketNumberSpace::ApplicationData),
            change: TimerChange::Set(Duration::from_micros(1500)),
        }),
        Event::KeyUpdated(KeyUpdated {
            sender: Side::Client,
            kind: KeyKind::OneRtt,
            key_phase: Some(0),
            trigger: KeyTrigger::Tls,
        }),
        Event::KeyDiscarded(KeyDiscarded {
            sender: Side::Server,
            kind: KeyKind::Initial,
            key_phase: None,
            trigger: KeyTrigger::Tls,
        }),
        Event::PathAssigned(PathAssigned {
            path: PathId(2),
            local: None,
            remote: Some(address),
        }),
        Event::MtuUpdated(MtuUpdated {
            path: PathId::INITIAL,
            old: 1200,
            new: 1452,
            done: true,
        }),
        Event::EcnStateUpdated(EcnStateUpdated {
            path: PathId::INITIAL,
            old: Some(EcnState::Testing),
            new: EcnState::Capable,
        }),
        Event::MigrationStateUpdated(MigrationStateUpdated {
            path: PathId::INITIAL,
            old: None,
            new: MigrationState::ProbingStarted,
        }),
        Event::StreamStateUpdated(StreamStateUpdated {
            id: StreamId::new(Side::Server, Dir::Uni, 0),
            half: StreamHalf::Sending,
            old: None,
            new: StreamState::Ready,
            trigger: Some(Initiator::Local),
        }),
        Event::AckFrequencyUpdated(AckFrequencyUpdated {
            path: PathId::INITIAL,
            initiator: Initiator::Remote,
            ack_eliciting_threshold: 10,
            requested_max_ack_delay: Duration::from_millis(25),
            reordering_threshold: 1,
        }),
        Event::ReassemblyUpdated(ReassemblyUpdated {
            out_of_order_bytes: 40_000,
        }),
        Event::CarefulResumePhaseUpdated(careful_resume(None)),
        Event::InitialWindowChosen(InitialWindowChosen {
            path: PathId::INITIAL,
            window: 240_000,
            default: 12_000,
        }),
    ];
    let records = log(&events);
    assert_eq!(records.len(), 1 + events.len());
    for (record, event) in records[1..].iter().zip(&events) {
        assert!(record["time"].is_number() && record["data"].is_object());
        let name = record["name"].as_str().unwrap();
        let known = ["quic:", "marline:", "recovery:careful_resume_"];
        assert!(known.iter().any(|known| name.starts_with(known)), "{name}");
        let tuple = event.path().map(|path| json!(path.to_string()));
        assert_eq!(record.get("tuple"), tuple.as_ref());
    }
    let text = serde_json::to_string(&records).unwrap();
    assert!(!text.contains("070707"), "a reset token was logged");
}

/// A sink that accepts `left` bytes, then fails.
struct Full {
    left: usize,
}

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self
            .left
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_write_error_ends_the_log_and_nothing_else() {
    let mut writer = QlogWriter::new(Full { left: 40_000 }, &header());
    for _ in 0..10_000 {
        writer.on_event(REFERENCE, &Event::PacketSent(packet(&[1; 20])));
    }
    assert_eq!(
        writer.error().map(io::Error::kind),
        Some(io::ErrorKind::StorageFull)
    );
}

/// An event with text that the peer chooses.
const fn closed(reason: &str) -> Event<'_> {
    Event::ConnectionClosed(ConnectionClosed {
        initiator: Initiator::Remote,
        error: ClosedWith::Nothing,
        reason,
        trigger: CloseTrigger::Unspecified,
    })
}

proptest! {
    #[test]
    fn any_payload_gives_a_valid_record(payload in proptest::collection::vec(any::<u8>(), 0..300)) {
        let records = log(&[Event::PacketSent(packet(&payload))]);
        prop_assert!(records[1]["data"]["frames"].is_array());
    }

    #[test]
    fn any_time_is_read_back_as_it_was_written(nanos in 0..1_u64 << 50) {
        let timer = TimerUpdated {
            path: None,
            timer: Timer::Idle,
            space: None,
            change: TimerChange::Set(Duration::from_nanos(nanos)),
        };
        let records = log(&[Event::TimerUpdated(timer)]);
        let delta = records[1]["data"]["delta"].as_f64().unwrap();
        prop_assert_eq!((delta * 1e6).round() as u64, nanos);
    }

    #[test]
    fn any_text_is_read_back_as_it_was_written(text in "\\PC*|[\\x00-\\x7f]*") {
        let records = log(&[closed(&text)]);
        prop_assert_eq!(&records[1]["data"]["reason"], &text);
    }
}
