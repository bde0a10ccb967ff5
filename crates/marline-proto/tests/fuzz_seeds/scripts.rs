//! Seeds that attack or drive the core: scripts of steps, tokens and records.

use super::{Seeds, hand_made_frames};

/// A step of a script: an action, a number, a length, and as many bytes.
pub(super) fn step(action: u8, number: u8, bytes: &[u8]) -> Vec<u8> {
    let len = u8::try_from(bytes.len()).expect("a step is short");
    [&[action, number, len], bytes].concat()
}

/// Scripts of the target `connection`, after the byte that selects the hostile end and its start.
pub(super) fn connections(seeds: &mut Seeds) {
    const INITIAL: u8 = 5;
    const HANDSHAKE: u8 = 6;
    const PASS: u8 = 7;
    const WRITE: u8 = 8;
    const READ: u8 = 9;
    const UPDATE_KEYS: u8 = 11;
    /// Bits of the first byte, and milliseconds.
    const SERVER: u8 = 1;
    const RESUMED: u8 = 2;
    let after = |millis: u8| millis << 2;
    let mut add = |name: &str, first: u8, steps: &[Vec<u8>]| {
        let script = [&[first][..], &steps.concat()].concat();
        seeds.insert(("connection", name.to_owned()), script);
    };

    let frames: Vec<_> = hand_made_frames();
    for (name, first) in [("by-client", 0), ("by-server", SERVER)] {
        let all: Vec<_> = frames.iter().map(|frame| step(0, 0, frame)).collect();
        for (half, steps) in all.chunks(all.len().div_ceil(2)).enumerate() {
            add(&format!("{name}-{half}"), first | after(60), steps);
        }
        let crypto = [0x06, 0, 4, 4, 0, 0, 0];
        add(
            &format!("{name}-in-handshake"),
            first | after(25),
            &[
                step(INITIAL, 0, &crypto),
                step(HANDSHAKE, 0, &crypto),
                step(HANDSHAKE, 0, &[0x02, 0, 0, 0, 0]),
                step(PASS, 50, &[]),
            ],
        );
        add(
            &format!("{name}-streams"),
            first | after(60),
            &[
                step(WRITE, 0, b"a request"),
                step(PASS, 20, &[]),
                step(0, 0, &[0x0b, first ^ 1, 5, b'h', b'e', b'l', b'l', b'o']),
                step(UPDATE_KEYS, 0, &[]),
                step(0, 0, &[0x0e, 3 ^ first, 0x47, 0xd0, 2, 1, 2]),
                step(READ, 0, &[]),
                step(PASS, 100, &[]),
            ],
        );
    }
    let early = step(0, 0, &[0x0a, 0, 5, b'h', b'e', b'l', b'l', b'o']);
    add("0-rtt", RESUMED | after(12), &[early, step(PASS, 50, &[])]);
    let ticket = [0x06, 0, 9, 4, 0, 0, 5, 0, 0, 0, 9, 1];
    let token = [0x07, 4, 1, 2, 3, 4];
    add(
        "ticket-and-token",
        SERVER | after(60),
        &[step(0, 0, &ticket), step(0, 0, &token)],
    );
}

/// Scripts of the targets `bundle` and `careful_resume`, after their configuration.
pub(super) fn engines(seeds: &mut Seeds) {
    const ROUNDS: u8 = 2;
    const LOSE: u8 = 7;
    for (name, switches, choices) in [
        ("published", 0b0000_0111, 0x00),
        ("fair", 0b0011_0001, 0x02),
        ("measured", 0b0000_1110, 0x91),
        ("windows-only", 0b1100_0010, 0x01),
    ] {
        let steps = [
            step(ROUNDS, 0, &[]),
            step(LOSE, 1, &[]),
            step(0, 0, &[44, 1]),
            step(5, 0, &[50]),
            step(LOSE, 2, &[]),
            step(10, 0, &[]),
            step(9, 1, &[]),
            step(14, 0, &[0, 0, 16]),
            step(ROUNDS, 0, &[]),
            step(1, 0, &[]),
            step(15, 2, &[]),
        ];
        let config = [switches, choices, 0x48, 0x80];
        seeds.insert(
            ("bundle", name.to_owned()),
            [&config[..], &steps.concat()].concat(),
        );
    }
    const SEND: u8 = 0;
    const FILL: u8 = 2;
    const LIMIT: u8 = 4;
    const ACK: u8 = 7;
    const RETREAT: u8 = 10;
    for (name, last) in [("jump", ACK), ("retreat", RETREAT), ("collapse", 11)] {
        let steps = [
            step(LIMIT, 0, &[]),
            step(SEND, 63, &[]),
            step(FILL, 0, &[]),
            step(14, 0, &[100]),
            step(last, 40, &[]),
            step(ACK, 63, &[]),
            step(FILL, 0, &[]),
            step(ACK, 63, &[]),
        ];
        let window = 300_000u64.to_le_bytes();
        let rtt = 100_000_000u64.to_le_bytes();
        // Half of the pipe size, a path whose initial window is acknowledged, no bound.
        let config = [&window[..], &[64, 4], &rtt, &[0]].concat();
        seeds.insert(
            ("careful_resume", name.to_owned()),
            [config, steps.concat()].concat(),
        );
    }
}

/// Content of address tokens (`crypto/token.rs`), after a byte that selects a bit.
pub(super) fn tokens(seeds: &mut Seeds) {
    let head = |kind: u8, age: u64| {
        let issued = (1_800_000_000 - age).to_be_bytes();
        [&[0x35, kind][..], &issued, &[4, 192, 0, 2, 1]].concat()
    };
    let port = 4433u16.to_be_bytes();
    let id = [8, 1, 2, 3, 4, 5, 6, 7, 8];
    let capacity = [
        &300_000u64.to_be_bytes()[..],
        &[0, 1, 0, 0],
        &[0; 7],
        &[9; 9],
    ]
    .concat();
    for (name, content) in [
        (
            "retry",
            [head(0, 5), port.to_vec(), id.to_vec(), id.to_vec()].concat(),
        ),
        ("new-token", head(1, 1000)),
        ("version-2", head(0x81, 1000)),
        ("expired", head(1, 10_000_000)),
        ("capacity", [head(2, 1000), capacity].concat()),
    ] {
        seeds.insert(("address_token", name.to_owned()), content);
    }
}

/// Keys, records and stored values (`marline-memory`), after the time at which they are read.
pub(super) fn history(seeds: &mut Seeds) {
    let time = 1_800_000_000u32.to_le_bytes();
    let stamp = 1_799_999_000_000u64.to_be_bytes();
    // Version, age, samples, capacity (window, round-trip time, age), windows.
    let capacity = [
        1, 0x40, 0x64, 3, 1, 0x80, 4, 0, 0, 0x85, 0xf5, 0xe1, 0, 0x40, 0x64,
    ];
    let record = |windows: &[u8]| [&capacity[..], windows].concat();
    let ewma = 60_000f64.to_bits().to_be_bytes();
    for (name, bytes) in [
        ("key", b"1/192.0.2.0/24/example.org".to_vec()),
        ("key-of-any", b"1/any/%C3%A4.example".to_vec()),
        ("record", record(&[0])),
        ("mean", record(&[1, 0x80, 1, 0, 0, 2])),
        ("latest", record(&[2, 2, 0x80, 1, 0, 0, 0x80, 2, 0, 0])),
        ("ewma", record(&[&[3][..], &ewma].concat())),
        ("value", [&stamp[..], &record(&[0])].concat()),
    ] {
        seeds.insert(("history", name.to_owned()), [&time[..], &bytes].concat());
    }
}
