//! Seeds of HTTP/3: scripts of a peer's actions.

use super::Seeds;

/// Scripts of the target `http3_request`: steps of an action, a stream, a length, and as many bytes.
pub(super) fn requests(seeds: &mut Seeds) {
    const FRAMES: u8 = 0;
    const PIECES: u8 = 2;
    const GET: u8 = 3;
    const POST: u8 = 4;
    const DATA: u8 = 5;
    const OTHER: u8 = 6;
    const FINISH: u8 = 7;
    const RESET: u8 = 8;
    const STOP: u8 = 9;
    const BLOCK: u8 = 10;
    const SHUT_DOWN: u8 = 11;
    /// Runs the server after the step.
    const TURN: u8 = 0x80;
    let settings: &[u8] = &[0x00, 0x04, 0x02, 0x06, 0x40];
    let scripts: &[(&str, &[&[u8]])] = &[
        ("get", &[&[GET, 0, 0], &[FINISH, TURN, 0]]),
        (
            "post",
            &[
                &[POST, 0, 0],
                &[DATA, TURN, 3, b'a', b'b', b'c'],
                &[FINISH, TURN, 0],
            ],
        ),
        (
            "two-at-once",
            &[
                &[GET, 0, 0],
                &[POST, 2, 0],
                &[FINISH, 0, 0],
                &[RESET, 2 | TURN, 7],
            ],
        ),
        (
            "stopped",
            &[&[BLOCK, 0, 0], &[GET, TURN, 0], &[STOP, TURN, 8]],
        ),
        (
            "unknown-frame",
            &[&[OTHER, 0, 2, 0x21, 1], &[GET, 0, 0], &[FINISH, TURN, 0]],
        ),
        (
            "shut-down",
            &[&[POST, TURN, 0], &[SHUT_DOWN, TURN, 0], &[FINISH, TURN, 0]],
        ),
        (
            "settings-in-pieces",
            &[&[PIECES, 1, 5], settings, &[GET, TURN, 0]],
        ),
        (
            "qpack",
            &[&[FRAMES, 3, 2, 0x02, 0x20], &[FRAMES, 5 | TURN, 1, 0x03]],
        ),
    ];
    for (name, steps) in scripts {
        // The first byte selects whether the control stream is opened before.
        let own_control = u8::from(*name == "settings-in-pieces");
        let script = [&[own_control][..], &steps.concat()].concat();
        seeds.insert(("http3_request", (*name).to_owned()), script);
    }
}

/// Scripts of the target `http3_connection`, whose first byte has options.
pub(super) fn connections(seeds: &mut Seeds) {
    const BYTES: u8 = 0;
    const DATA: u8 = 3;
    const HEADERS: u8 = 4;
    const OTHER: u8 = 5;
    const FINISH: u8 = 6;
    const RESET: u8 = 7;
    const MESSAGE: u8 = 8;
    const EXCHANGE: u8 = 9;
    const CALL: u8 = 10;
    const PRIORITY: u8 = 11;
    const SERVER: u8 = 0;
    const CLIENT: u8 = 1;
    /// Whether the peer's encoder refers to unacknowledged entries.
    const BLOCKING: u8 = 2;
    /// Whether nothing was exchanged before.
    const BARE: u8 = 32;
    let get: &[u8] = &[0x00, 0x00, 0xd1, 0xd7, 0x50, 0x01, b'a', 0xc1];
    let post: &[u8] = &[0x00, 0x00, 0xd4, 0xd7, 0x50, 0x01, b'a', 0xc1];
    let ok: &[u8] = &[0x00, 0x00, 0xd9];
    let early_hints: &[u8] = &[0x00, 0x00, 0xd8];
    let scripts: &[(&str, u8, &[&[u8]])] = &[
        ("get", SERVER, &[&[HEADERS, 0, 8], get, &[FINISH, 0, 0]]),
        (
            "post",
            SERVER,
            &[
                &[HEADERS, 0, 8],
                post,
                &[DATA, 0, 2, b'a', b'b'],
                &[DATA, 0, 0],
                &[DATA, 0, 1, b'c'],
                &[FINISH, 0, 0],
            ],
        ),
        (
            "response",
            CLIENT,
            &[
                &[HEADERS, 0, 3],
                early_hints,
                &[HEADERS, 0, 3],
                ok,
                &[DATA, 0, 1, b'a'],
                &[FINISH, 0, 0],
            ],
        ),
        (
            "blocked",
            SERVER | BLOCKING,
            &[
                &[MESSAGE, 0, 3, b'a', b'b', b'c'],
                &[MESSAGE, 2, 3, b'a', b'b', b'c'],
                &[RESET, 2, 8],
                &[EXCHANGE, 0, 0],
                &[FINISH, 0, 0],
                &[MESSAGE, 4, 3, b'a', b'b', b'c'],
            ],
        ),
        (
            "priority",
            SERVER,
            &[
                &[PRIORITY, 0, 3, b'u', b'=', b'1'],
                &[EXCHANGE, 0, 0],
                &[MESSAGE, 0, 1, b'a'],
                &[PRIORITY, 0, 1, b'i'],
                &[EXCHANGE, 0, 0],
            ],
        ),
        (
            "going-away",
            SERVER,
            &[
                &[MESSAGE, 0, 1, b'a'],
                &[CALL, 0, 0],
                &[EXCHANGE, 0, 0],
                &[MESSAGE, 2, 1, b'b'],
                &[CALL, 0, 1],
            ],
        ),
        (
            "settings",
            SERVER | BARE,
            &[
                &[BYTES, 1, 5],
                &[0x00, 0x04, 0x02, 0x06, 0x40],
                &[BYTES, 1, 3, 0x0d, 0x01, 0x04],
                &[OTHER, 1, 2, 0x21, 1],
                &[BYTES, 3, 3, 0x21, 1, 2],
            ],
        ),
        (
            "goaway",
            CLIENT | BARE,
            &[
                &[HEADERS, 2, 3],
                ok,
                &[BYTES, 1, 3, 0x00, 0x04, 0x00],
                &[BYTES, 1, 3, 0x07, 0x01, 0x00],
            ],
        ),
    ];
    for (name, options, steps) in scripts {
        let script = [&[*options][..], &steps.concat()].concat();
        seeds.insert(("http3_connection", (*name).to_owned()), script);
    }
}
