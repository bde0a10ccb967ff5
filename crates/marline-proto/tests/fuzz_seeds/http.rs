//! Seeds of HTTP/1.1, HTTP/2, ranges, and of servers.

use super::Seeds;
use super::scripts::step;

/// Scripts of the target `tcp_request`: over HTTP/1.1 if the first byte is even, over HTTP/2 otherwise.
pub(super) fn tcp_requests(seeds: &mut Seeds) {
    const HTTP1: u8 = 0;
    const HTTP2: u8 = 1;
    /// Runs the server after the step.
    const TURN: u8 = 0x80;
    /// Ends the stream.
    const LAST: u8 = 0x80;
    let scripts: &[(&str, u8, &[Vec<u8>])] = &[
        (
            "pipelined",
            HTTP1,
            &[
                step(0, 0, b"Accept: */*"),
                step(1, 0, b"hello"),
                step(0, 0, b"A: b"),
            ],
        ),
        (
            "chunked",
            HTTP1,
            &[step(2, 0, b"hello"), step(0, 0, b"A: b")],
        ),
        (
            "raw",
            HTTP1,
            &[step(
                4,
                0,
                b"GET http://a/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            )],
        ),
        (
            "two-lengths",
            HTTP1,
            &[step(
                0,
                0,
                b"Content-Length: 1\r\nTransfer-Encoding: chunked",
            )],
        ),
        (
            "http2-get",
            HTTP2,
            &[step(TURN, 0, &[]), step(TURN, 1, &[])],
        ),
        (
            "http2-post",
            HTTP2,
            &[
                step(1, 0, &[]),
                step(2 | TURN, 0, b"hello"),
                step(2 | TURN, LAST, b"you"),
            ],
        ),
        (
            "http2-control",
            HTTP2,
            &[
                step(4, 0, &[0, 4, 0, 0, 0, 1]),
                step(TURN, 0, &[]),
                step(6, 0, &[0, 0, 0, 9]),
                step(5, 0, &[0; 8]),
                step(3 | TURN, 0, &[]),
            ],
        ),
    ];
    for (name, version, steps) in scripts {
        let script = [&[*version][..], &steps.concat()].concat();
        seeds.insert(("tcp_request", (*name).to_owned()), script);
    }
}

/// Scripts of the target `http_client`: the responses of a server, after the version and options.
pub(super) fn responses(seeds: &mut Seeds) {
    const CONTENT: u8 = 2;
    const CONTROL: u8 = 7;
    const CLOSE: u8 = 9;
    const END: u8 = 11;
    /// Statuses, and fields.
    const OK: u8 = 0;
    const PARTIAL: u8 = 1;
    const UNSATISFIABLE: u8 = 3;
    const EARLY_HINTS: u8 = 6;
    const LENGTH: u8 = 1 << 3;
    const RANGE: u8 = 1 << 4;
    const TAG: u8 = 1 << 5;
    let content = step(CONTENT, 0, b"0123456789");
    let end = step(END, 0, &[]);
    let scripts: &[(&str, &[Vec<u8>])] = &[
        (
            "whole",
            &[step(0, OK | LENGTH, &[10]), content.clone(), end.clone()],
        ),
        (
            "truncated",
            &[
                step(0, OK | LENGTH | TAG, &[20, 0, 0, 0, 7]),
                content.clone(),
                step(CLOSE, 0, &[]),
                step(0, PARTIAL | LENGTH | RANGE | TAG, &[10, 10, 19, 20, 7]),
                content.clone(),
                end.clone(),
            ],
        ),
        (
            "ranges",
            &[
                step(0, PARTIAL | LENGTH | RANGE | TAG, &[10, 0, 9, 20, 7]),
                content.clone(),
                end.clone(),
                step(0, PARTIAL | LENGTH | RANGE | TAG, &[10, 10, 19, 20, 7]),
                content,
                end.clone(),
            ],
        ),
        (
            "interim",
            &[
                step(CONTROL, 0, &[]),
                step(0, EARLY_HINTS, &[]),
                step(0, UNSATISFIABLE | LENGTH, &[0]),
                end,
            ],
        ),
    ];
    for (name, steps) in scripts {
        // HTTP/1.1, 2 and 3; resumed, split into ranges over two connections.
        for choice in [4, 1, 2, 2 | 4 | 8 | 16] {
            let script = [&[choice][..], &steps.concat()].concat();
            seeds.insert(("http_client", format!("{name}-{choice}")), script);
        }
    }
}

/// Scripts of the target `proxy`, made of those of clients and servers: a byte that selects the versions of client and origin, the
/// length of the steps of a hostile origin, these, and the steps of the client.
pub(super) fn proxies(seeds: &mut Seeds) {
    const CLIENT_HTTP3: u8 = 2;
    const HOSTILE: u8 = 4;
    const ORIGIN_HTTP2: u8 = 8;
    let of = |wanted: &str| -> Vec<(String, Vec<u8>)> {
        let found = seeds.iter().filter(|((target, _), _)| *target == wanted);
        found
            .map(|((_, name), script)| (name.clone(), script.clone()))
            .collect()
    };
    let (over_tcp, over_http3, origins) =
        (of("tcp_request"), of("http3_request"), of("http_client"));
    let mut add = |name: String, choice: u8, origin: &[u8], client: &[u8]| {
        let length = u8::try_from(origin.len()).expect("the steps are short");
        let script = [&[choice, length], origin, client].concat();
        seeds.insert(("proxy", name), script);
    };
    for (name, script) in &over_tcp {
        add(format!("tcp-{name}-http1"), script[0], &[], &script[1..]);
        let choice = script[0] | ORIGIN_HTTP2;
        add(format!("tcp-{name}-http2"), choice, &[], &script[1..]);
    }
    for (name, script) in &over_http3 {
        add(format!("http3-{name}"), CLIENT_HTTP3, &[], &script[1..]);
    }
    let client = step(0, 0, b"Accept: */*");
    for (name, script) in &origins {
        let choice = match script[0] & 3 {
            1 => HOSTILE | ORIGIN_HTTP2,
            _ => HOSTILE,
        };
        add(format!("hostile-{name}"), choice, &script[1..], &client);
    }
}

/// Values of `Range`, after a byte that selects the file, `If-Range`, and whether the unit is written.
pub(super) fn ranges(seeds: &mut Seeds) {
    for (name, first, value) in [
        ("one", 2, "0-499"),
        ("to-the-end", 3, "9500-"),
        ("last", 2 | 4, "-500"),
        ("several", 3, "0-0,-1, 100-199,5000-"),
        ("overlapping", 2, "0-900,100-999"),
        ("outdated", 2 | 8, "0-5"),
        ("empty-file", 0, "0-"),
        ("beyond", 1, "99999999999999999999-"),
        ("unit", 2 | 16, "Bytes=5-9"),
    ] {
        let input = [&[first][..], value.as_bytes()].concat();
        seeds.insert(("range_request", name.to_owned()), input);
    }
}
