//! The seeds of the fuzz targets, in `fuzz/seeds`: created from connections in virtual time and by hand, and
//! accepted by their targets (docs/fuzzing.md).
//!
//! `MARLINE_WRITE_SEEDS=1 cargo test -p marline-proto --features testing --test fuzz_seeds` writes them again. TLS keys
//! and random numbers differ each time, so only the names of hand-made seeds are compared with the committed ones.

mod files;
mod http;
mod http3;
mod scripts;
mod tunnel;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use marline_proto::observe::{Event, Observer};
use marline_proto::testing::fuzz::{
    FuzzedDatagram, check_address_token, check_bundle, check_careful_resume, check_connection,
    check_endpoint, check_frames, check_header, check_packet_number, check_record,
    check_transport_parameters,
};
use marline_proto::testing::{Direction, Pair, PairConfig, check_reassembly};
use marline_proto::{Dir, Instant, MakeObserver, MultipathConfig, RetryPolicy, TransportConfig};
use marline_wire::Frames;
use marline_wire::frame::Frame;

/// Maximum size of the targets' inputs (`-max_len` in fuzz/Makefile).
const MAX_LEN: usize = 4096;

/// Length of the connection IDs that endpoints choose.
const ID_LEN: u8 = 8;

/// Content by target and name.
type Seeds = BTreeMap<(&'static str, String), Vec<u8>>;

/// Datagrams, payloads and parameters of a connection.
#[derive(Default)]
struct Passed {
    datagrams: Vec<(Direction, Vec<u8>)>,
    /// Payloads of packets, decrypted.
    payloads: Vec<Vec<u8>>,
    /// Encoded transport parameters.
    parameters: Vec<Vec<u8>>,
}

struct Recorder(Arc<Mutex<Passed>>);

impl Observer for Recorder {
    fn on_event(&mut self, _now: Instant, event: &Event<'_>) {
        let mut passed = self.0.lock().expect("no observer panicked");
        match event {
            Event::PacketSent(sent) => passed.payloads.push(sent.payload.to_vec()),
            Event::ParametersSet(set) => {
                let mut bytes = Vec::new();
                set.parameters.encode(&mut bytes);
                passed.parameters.push(bytes);
            }
            _ => {}
        }
    }
}

fn recorder(passed: &Arc<Mutex<Passed>>) -> MakeObserver {
    let passed = Arc::clone(passed);
    Arc::new(move |_| Some(Box::new(Recorder(Arc::clone(&passed)))))
}

/// A connection over two paths with streams, datagrams, a key update and a close; or one whose client requests a
/// version that does not exist.
fn connection(retry: RetryPolicy, unknown_version: bool) -> Passed {
    let passed: Arc<Mutex<Passed>> = Arc::default();
    let transport = || TransportConfig {
        multipath: Some(MultipathConfig::default()),
        ..TransportConfig::default()
    };
    let observer = recorder(&passed);
    let mut pair = Pair::with(PairConfig {
        client: transport(),
        server: transport(),
        adjust_server: Box::new(move |server| {
            server.observer = Some(observer);
            server.retry = retry;
        }),
        ..PairConfig::default()
    });
    pair.client_config.observer = Some(recorder(&passed));
    let tap = Arc::clone(&passed);
    pair.network.filter = Some(Box::new(move |direction, datagram| {
        let mut passed = tap.lock().expect("no observer panicked");
        passed.datagrams.push((direction, datagram.bytes.clone()));
        false
    }));
    if unknown_version {
        pair.client_config.version = 0x1a2a_3a4a;
        pair.connect();
        pair.drive(Duration::from_millis(100));
    } else {
        exchange(&mut pair);
    }
    drop(pair);
    let mut passed = passed.lock().expect("no observer panicked");
    std::mem::take(&mut *passed)
}

fn exchange(pair: &mut Pair) {
    let ends = pair.establish();
    pair.drive(Duration::from_millis(100));
    let now = pair.now;
    let end = pair.client(ends.client);
    for (dir, len) in [(Dir::Bi, 100), (Dir::Uni, 3000), (Dir::Uni, 10)] {
        let stream = end.open(dir).expect("streams are allowed");
        end.write(stream, &vec![5; len])
            .expect("the window is open");
        end.finish(stream).expect("the stream is open");
    }
    let stream = end.open(Dir::Bi).expect("streams are allowed");
    end.write(stream, b"unfinished")
        .expect("the window is open");
    // The peer may not support datagrams.
    let _ = end.send_datagram(b"datagram".as_slice().into());
    end.ping();
    let remote = pair.server.address;
    let local = "198.51.100.1:40000".parse().expect("an address");
    let end = pair.client(ends.client);
    end.open_path(now, marline_proto::FourTuple { local, remote })
        .expect("the limit allows a second path");
    pair.flush();
    pair.drive(Duration::from_millis(200));

    let now = pair.now;
    let end = pair.client(ends.client);
    end.reset(stream, 7).expect("the stream is open");
    end.stop(stream, 8).expect("the stream is open");
    end.initiate_key_update(now);
    let end = pair.server(ends.server);
    end.set_path_status(
        marline_proto::PathId(1),
        marline_proto::scheduling::path::PathStatus::Backup,
    );
    while let Some(stream) = end.accept(Dir::Uni) {
        while let Ok(Some(_)) = end.read(|| now, stream, usize::MAX) {}
    }
    pair.flush();
    pair.drive(Duration::from_millis(200));
    let now = pair.now;
    pair.client(ends.client).close(now, 9, b"done");
    pair.flush();
    pair.drive(Duration::from_millis(100));
}

/// Values in the encoding of the crate `arbitrary`.
#[derive(Default)]
struct Input(Vec<u8>);

impl Input {
    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    fn bool(self, value: bool) -> Self {
        self.bytes(&[value.into()])
    }

    /// Adds the mark of one more element of a list.
    fn more(self) -> Self {
        self.bool(true)
    }

    /// Adds a list of bytes that is not the last value.
    fn list(self, bytes: &[u8]) -> Self {
        let each = |input: Self, byte: &u8| input.more().bytes(&[*byte]);
        bytes.iter().fold(self, each).bool(false)
    }

    /// Adds one of `count` variants.
    fn variant(self, nth: u64, count: u64) -> Self {
        let middle = ((2 * nth + 1) << 31) / count;
        self.bytes(&u32::try_from(middle).expect("below 2^32").to_le_bytes())
    }
}

fn decode<'a, T: Arbitrary<'a>>(bytes: &'a [u8]) -> T {
    T::arbitrary_take_rest(Unstructured::new(bytes)).expect("every input is a value")
}

fn seeds() -> Seeds {
    let mut seeds = Seeds::new();
    let plain = connection(RetryPolicy::Never, false);
    let retried = connection(RetryPolicy::Always, false);
    let unknown = connection(RetryPolicy::Never, true);
    headers(&mut seeds, &plain, &retried, &unknown);
    packet_numbers(&mut seeds);
    frames(&mut seeds, &plain);
    for (n, parameters) in plain.parameters.iter().enumerate() {
        seeds.insert(
            ("transport_parameters", format!("set-{n}")),
            parameters.clone(),
        );
    }
    endpoints(&mut seeds, &plain);
    paths(&mut seeds);
    reassembly(&mut seeds);
    http3::requests(&mut seeds);
    http3::connections(&mut seeds);
    http::tcp_requests(&mut seeds);
    http::responses(&mut seeds);
    http::proxies(&mut seeds);
    http::ranges(&mut seeds);
    scripts::connections(&mut seeds);
    scripts::engines(&mut seeds);
    scripts::tokens(&mut seeds);
    scripts::history(&mut seeds);
    files::qlogs(&mut seeds);
    files::server_configs(&mut seeds);
    files::scenarios(&mut seeds);
    tunnel::capsules(&mut seeds);
    tunnel::packets(&mut seeds);
    seeds
}

fn headers(seeds: &mut Seeds, plain: &Passed, retried: &Passed, unknown: &Passed) {
    for (name, passed, most) in [
        ("plain", plain, 8),
        ("retry", retried, 3),
        ("version", unknown, 2),
    ] {
        let first = passed.datagrams.iter().take(most).enumerate();
        for (n, (_, datagram)) in first {
            // The QUIC bit may be cleared: both ends permit it.
            let input = Input::default().bytes(&[ID_LEN]).bool(true).bytes(datagram);
            seeds.insert(("header", format!("{name}-{n}")), input.0);
        }
    }
}

fn packet_numbers(seeds: &mut Seeds) {
    for (name, number, largest) in [
        ("first", 0u64, None),
        ("next", 1001, Some(1000u64)),
        ("one-byte", 1127, Some(1000)),
        ("two-bytes", 30_000, Some(1000)),
        ("four-bytes", 654_360_564, Some(1000)),
        ("last", (1 << 62) - 1, Some((1 << 62) - 3)),
        ("overtaken", 5, Some(1000)),
    ] {
        let input = Input::default().bytes(&number.to_le_bytes());
        let input = match largest {
            Some(largest) => input.more().bytes(&largest.to_le_bytes()),
            None => input.bool(false),
        };
        let input = input.bytes(&0xac_5c02u32.to_le_bytes()).bytes(&[3]);
        seeds.insert(("packet_number", name.to_owned()), input.0);
    }
}

/// The shortest payload of each combination of frames, and a frame of each type.
fn frames(seeds: &mut Seeds, plain: &Passed) {
    let mut shortest: BTreeMap<String, &Vec<u8>> = BTreeMap::new();
    for payload in plain
        .payloads
        .iter()
        .filter(|payload| payload.len() <= MAX_LEN)
    {
        let types: BTreeSet<u64> = Frames::new(payload)
            .filter_map(|frame| Some(frame.ok()?.frame_type()))
            .collect();
        let types: Vec<String> = types.iter().map(|kind| format!("{kind:x}")).collect();
        let known = shortest.entry(types.join("-")).or_insert(payload);
        if payload.len() < known.len() {
            *known = payload;
        }
    }
    for (types, payload) in shortest {
        seeds.insert(("frames", format!("sent-{types}")), payload.clone());
    }
    for bytes in hand_made_frames() {
        let frame = Frames::new(&bytes).next().expect("it is not empty");
        let kind = frame.expect("the frame is valid").frame_type();
        seeds.insert(("frames", format!("type-{kind:x}")), bytes);
    }
}

fn hand_made_frames() -> Vec<Vec<u8>> {
    let id = [4, 1, 2, 3, 4];
    let token = [7; 16];
    let new_id = |prefix: &[u8]| [prefix, &id, &token].concat();
    vec![
        vec![0x00],
        vec![0x01],
        // Largest 10, delay 1, one further range, first range 2, gap 1, length 3; with marks 1, 2, 3.
        vec![0x02, 10, 1, 1, 2, 1, 3],
        vec![0x03, 10, 1, 1, 2, 1, 3, 1, 2, 3],
        vec![0x04, 4, 7, 20],
        vec![0x05, 4, 7],
        vec![0x06, 0, 3, 1, 2, 3],
        vec![0x07, 3, 1, 2, 3],
        vec![0x08, 4, 1, 2, 3],
        vec![0x0f, 4, 5, 3, 1, 2, 3],
        vec![0x10, 0x7f, 0xff],
        vec![0x11, 4, 0x7f, 0xff],
        vec![0x12, 16],
        vec![0x13, 16],
        vec![0x14, 60],
        vec![0x15, 4, 60],
        vec![0x16, 16],
        vec![0x17, 16],
        new_id(&[0x18, 2, 1]),
        vec![0x19, 1],
        [&[0x1a][..], &[9; 8]].concat(),
        [&[0x1b][..], &[9; 8]].concat(),
        vec![0x1c, 10, 6, 4, b'n', b'o', b'p', b'e'],
        vec![0x1d, 10, 4, b'n', b'o', b'p', b'e'],
        vec![0x1e],
        vec![0x31, 3, 1, 2, 3],
    ]
}

/// Datagrams of a connection, to endpoints at different stages of their handshake.
fn endpoints(seeds: &mut Seeds, plain: &Passed) {
    /// Replaces the destination by the ID of the open connection, and waits 10 ms.
    const REAL: u8 = 1 | 10 << 2;
    // Each byte takes two in an input.
    let fitting = |(_, bytes): &&(Direction, Vec<u8>)| bytes.len() < MAX_LEN / 2 - 20;
    let datagrams: Vec<_> = plain.datagrams.iter().filter(fitting).collect();
    for (n, (direction, bytes)) in datagrams.iter().enumerate().take(12) {
        for progress in [0, 15, 40] {
            let to_server = *direction == Direction::ToServer;
            let input = Input::default().bytes(&[progress]);
            let input = input.more().bool(to_server).bytes(&[REAL]).list(bytes);
            seeds.insert(
                ("endpoint", format!("real-{n}-after-{progress}")),
                input.bool(false).0,
            );
        }
    }
    let short = datagrams
        .iter()
        .filter(|(_, bytes)| bytes.len() < 100)
        .take(16);
    let all = short.fold(
        Input::default().bytes(&[40]),
        |input, (direction, bytes)| {
            let to_server = *direction == Direction::ToServer;
            input.more().bool(to_server).bytes(&[REAL]).list(bytes)
        },
    );
    seeds.insert(("endpoint", "short-ones".to_owned()), all.bool(false).0);
}

/// Turns of the target `paths`, in the order of its enumeration.
fn paths(seeds: &mut Seeds) {
    const TURNS: u64 = 9;
    let turn = |input: Input, nth: u64| input.more().variant(nth, TURNS);
    let open = |input, link: u8| turn(input, 0).bytes(&[link]);
    let abandon = |input, server, path: u8| turn(input, 1).bool(server).bytes(&[path]);
    let status =
        |input, server, path: u8, backup| turn(input, 2).bool(server).bytes(&[path]).bool(backup);
    let link = |input, link: u8, delay: u8, loss: u8, down| {
        turn(input, 3).bytes(&[link, delay, loss]).bool(down)
    };
    let rebind = |input, port: u16| turn(input, 4).u16(port);
    let update_keys = |input, server| turn(input, 5).bool(server);
    let inject = |input, server, path: u8, frames: &[u8]| {
        turn(input, 6).bool(server).bytes(&[path]).list(frames)
    };
    let frame = |input, server, path: u8, kind: u8, values: [u8; 6]| {
        turn(input, 7)
            .bool(server)
            .bytes(&[path, kind])
            .bytes(&values)
    };
    let pass = |input, millis: u8| turn(input, 8).bytes(&[millis]);

    for scheduler in 0..7u8 {
        let input = Input::default().bytes(&[1, scheduler]);
        let input = pass(open(open(input, 1), 2), 100);
        let input = pass(link(status(input, true, 1, true), 0, 5, 0, true), 200);
        let input = pass(link(abandon(input, false, 1), 0, 5, 20, false), 100);
        let input = pass(update_keys(open(input, 3), true), 100);
        seeds.insert(
            ("paths", format!("honest-{scheduler}")),
            input.bool(false).0,
        );
    }
    for kind in 0..10u8 {
        let input = Input::default().bytes(&[2, 0]);
        let input = pass(open(input, 1), 100);
        let input = frame(input, true, 0, kind, [1, 2, 0, 1, 0, 0]);
        let input = pass(frame(input, false, 1, kind, [1, 9, 1, 3, 1, 0]), 50);
        seeds.insert(("paths", format!("frame-{kind}")), input.bool(false).0);
    }
    let input = pass(open(Input::default().bytes(&[3, 2]), 1), 100);
    let input = rebind(
        inject(input, true, 1, &[0x01, 0x1a, 9, 9, 9, 9, 9, 9, 9, 9]),
        5000,
    );
    seeds.insert(
        ("paths", "rebinding".to_owned()),
        pass(input, 200).bool(false).0,
    );
}

fn reassembly(seeds: &mut Seeds) {
    for (name, pieces) in [
        (
            "in-order",
            [(0, 100, Some(50)), (100, 100, None), (200, 10, Some(1000))],
        ),
        (
            "reverse",
            [(200, 10, None), (100, 100, Some(1)), (0, 100, Some(1000))],
        ),
        (
            "overlapping",
            [(0, 100, None), (50, 100, Some(70)), (20, 2000, Some(3000))],
        ),
        (
            "with-gap",
            [(10, 10, Some(5)), (40, 10, None), (0, 10, Some(100))],
        ),
    ] {
        let input = pieces
            .iter()
            .fold(Input::default(), |input, &(offset, len, read)| {
                let input = input.more().u16(offset).u16(len);
                match read {
                    Some(bytes) => input.more().u16(bytes),
                    None => input.bool(false),
                }
            });
        seeds.insert(("reassembly", name.to_owned()), input.bool(false).0);
    }
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds")
}

/// Writes the seeds again if the variable is set, before any test reads them.
fn write_if_asked() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        if std::env::var_os("MARLINE_WRITE_SEEDS").is_none() {
            return;
        }
        // The directory may not exist yet.
        let _ = fs::remove_dir_all(directory());
        for ((target, name), bytes) in seeds() {
            let directory = directory().join(target);
            fs::create_dir_all(&directory).expect("the directory is writable");
            fs::write(directory.join(name), bytes).expect("the directory is writable");
        }
    });
}

/// The committed seeds.
fn committed() -> BTreeMap<(String, String), Vec<u8>> {
    write_if_asked();
    let mut found = BTreeMap::new();
    let name = |entry: &fs::DirEntry| entry.file_name().into_string().expect("names are ASCII");
    for target in fs::read_dir(directory()).expect("the seeds are committed") {
        let target = target.expect("the directory is readable");
        for seed in fs::read_dir(target.path()).expect("a directory for each target") {
            let seed = seed.expect("the directory is readable");
            let bytes = fs::read(seed.path()).expect("seeds are readable");
            found.insert((name(&target), name(&seed)), bytes);
        }
    }
    found
}

#[test]
fn committed_seeds_are_small_and_complete() {
    let committed = committed();
    let found: BTreeSet<_> = committed.keys().cloned().collect();
    let made: BTreeSet<_> = seeds()
        .into_keys()
        .map(|(target, name)| (target.to_owned(), name))
        .collect();
    let targets = |names: &BTreeSet<(String, String)>| -> BTreeSet<String> {
        names.iter().map(|(target, _)| target.clone()).collect()
    };
    assert_eq!(targets(&found), targets(&made));
    // The packets of a connection depend on its settings and its cryptographic library.
    let captured = ["plain-", "retry-", "version-", "sent-", "set-", "real-"];
    let is_captured = |name: &str| captured.iter().any(|prefix| name.starts_with(prefix));
    let missing: Vec<_> = made
        .difference(&found)
        .filter(|(_, name)| !is_captured(name))
        .collect();
    assert!(
        missing.is_empty(),
        "write the seeds again, {missing:?} are missing"
    );
    let longest = committed.values().map(Vec::len).max();
    assert!(
        longest.is_some_and(|longest| longest <= MAX_LEN),
        "{longest:?}"
    );
    let size: usize = committed.values().map(Vec::len).sum();
    assert!(size < 1 << 20, "{size} bytes");
}

#[test]
fn every_seed_passes_its_target() {
    for ((target, _), bytes) in committed() {
        match target.as_str() {
            "header" => {
                let (id_len, clear_fixed_bit, bytes): (u8, bool, &[u8]) = decode(&bytes);
                check_header(id_len, clear_fixed_bit, bytes);
            }
            "packet_number" => {
                let (number, largest, truncated, len) = decode(&bytes);
                check_packet_number(number, largest, truncated, len);
            }
            "frames" => check_frames(&bytes),
            "transport_parameters" => check_transport_parameters(&bytes),
            "endpoint" => {
                let (progress, datagrams): (u8, Vec<FuzzedDatagram>) = decode(&bytes);
                assert!(!datagrams.is_empty(), "the seed has lost its datagrams");
                check_endpoint(progress, datagrams);
            }
            "reassembly" => {
                let pieces: Vec<(u16, u16, Option<u16>)> = decode(&bytes);
                assert_eq!(pieces.len(), 3, "the seed has lost pieces");
                check_reassembly(&pieces);
            }
            "connection" => check_connection(&bytes),
            "bundle" => check_bundle(&bytes),
            "careful_resume" => check_careful_resume(&bytes),
            "address_token" => check_address_token(&bytes),
            "history" => check_record(&bytes[4..]),
            // Their code is in fuzz/fuzz_targets or other crates; `make fuzz` starts with these seeds.
            "paths" | "proxy" | "http3_request" | "http3_connection" | "tcp_request"
            | "http_client" | "range_request" | "qlog" | "server_config" | "scenario"
            | "tunnel_capsules" | "tunnel_packet" => {}
            other => panic!("no target: {other}"),
        }
    }
}

/// Captured seeds are valid packets and frames, not bytes that the target rejects.
#[test]
fn captured_seeds_hold_packets_and_frames() {
    let committed = committed();
    let of = |wanted: &'static str| {
        let seeds = committed.iter();
        seeds.filter(move |((target, _), _)| target == wanted)
    };
    for ((_, name), seed) in of("header") {
        let (id_len, clear, bytes): (u8, bool, &[u8]) = decode(seed);
        let parsed = marline_wire::packet::parse(bytes, id_len.into(), clear);
        assert!(parsed.is_ok(), "{name}: {parsed:?}");
    }
    for ((_, name), seed) in of("frames") {
        let frames: Result<Vec<Frame<'_>>, _> = Frames::new(seed).collect();
        assert!(frames.is_ok(), "{name}: {frames:?}");
    }
}
