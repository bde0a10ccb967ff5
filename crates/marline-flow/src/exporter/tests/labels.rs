//! Names, as requested by the client, and labels, which require both ends.

use super::*;

/// Content of the client, or of the server.
type Turn<'a> = (bool, &'a [u8]);

/// The record of a connection whose ends take turns, with the packets of only some ends captured.
fn conversation(turns: &[Turn<'_>], [client, server]: [bool; 2]) -> Record {
    let mut run = Run::new();
    let mut connection = Connection::new(CLIENT, SERVER);
    let mut see = |of_client: bool, packet: Vec<u8>| {
        if of_client && client || !of_client && server {
            run.packet(&packet);
        }
    };
    see(true, connection.segment(true, flags::SYN, &[]));
    see(
        false,
        connection.segment(false, flags::SYN | flags::ACK, &[]),
    );
    see(true, connection.segment(true, flags::ACK, &[]));
    for (of_client, content) in turns {
        see(
            *of_client,
            connection.segment(*of_client, flags::ACK, content),
        );
    }
    run.records().remove(0)
}

const BOTH: [bool; 2] = [true, true];
const ONLY_SERVER: [bool; 2] = [false, true];
const ONLY_CLIENT: [bool; 2] = [true, false];

#[test]
fn tls_is_labelled_once_both_ends_have_completed_the_handshake() {
    let hello = tls_record(&client_hello("a.example", &["h2", "http/1.1"]));
    let chosen = tls_record(&server_hello(&["h2"]));
    let full = [&chosen[..], &tls_record(&SERVER_HELLO_DONE)].concat();
    let (finished, data) = (tls12_finished(), tls_data());
    let alert = [21, 3, 3, 0, 2, 2, 40];
    let change = &finished[..6];
    let (c, s) = (true, false);
    for (turns, seen, label) in [
        (&[(c, &hello[..])][..], BOTH, None),
        (&[(c, &hello), (s, &full)], BOTH, None),
        (&[(c, &hello), (s, &full), (c, &finished)], BOTH, None),
        (&[(c, &hello), (s, &chosen), (s, &finished)], BOTH, None),
        (
            &[(c, &hello), (s, &chosen), (s, &finished), (s, &data)],
            BOTH,
            None,
        ),
        (
            &[(c, &hello), (s, &full), (c, change), (s, change)],
            BOTH,
            None,
        ),
        (
            &[(c, &hello), (s, &full), (c, &alert), (s, &finished)],
            BOTH,
            None,
        ),
        (
            &[(c, &hello), (s, &full), (c, &finished), (s, &alert)],
            BOTH,
            None,
        ),
        (
            &[(c, &hello), (s, &full), (c, &finished), (s, &finished)],
            BOTH,
            Some("h2"),
        ),
        // A session that is resumed.
        (
            &[(c, &hello), (s, &chosen), (s, &finished), (c, &finished)],
            BOTH,
            Some("h2"),
        ),
        // A ClientHello that was not captured.
        (
            &[(s, &full), (c, &finished), (s, &finished)],
            BOTH,
            Some("h2"),
        ),
        (&[(s, &full)], BOTH, None),
        // Only one direction passes the place of the capture.
        (&[(s, &full)], ONLY_SERVER, None),
        (&[(s, &full), (s, &finished)], ONLY_SERVER, Some("h2")),
        (&[(s, &chosen), (s, &finished)], ONLY_SERVER, None),
        (
            &[(s, &chosen), (s, &finished), (s, &data)],
            ONLY_SERVER,
            Some("h2"),
        ),
        (
            &[(c, &hello), (c, &finished), (c, &data)],
            ONLY_CLIENT,
            None,
        ),
    ] {
        let record = conversation(turns, seen);
        assert_eq!(record.http_version, label, "{turns:?}");
        assert_eq!(record.label_source, label.map(|_| "handshake"));
        let [is_asked, is_chosen] = [&hello[..20], &chosen[..20]]
            .map(|start| turns.iter().any(|(_, content)| content.starts_with(start)));
        assert_eq!(record.sni.as_deref(), is_asked.then_some("a.example"));
        assert_eq!(record.alpn_chosen.as_deref(), is_chosen.then_some("h2"));
        assert_eq!(record.client.port, 40000, "{turns:?}");
    }
}

#[test]
fn cleartext_is_labelled_once_both_ends_speak_it() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100];
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\n";
    const BAD: &[u8] = b"HTTP/1.1 400 Bad Request\r\n";
    let get = b"GET / HTTP/1.1\r\n";
    let (c, s) = (true, false);
    for (turns, seen, label) in [
        (&[(c, &get[..])][..], BOTH, None),
        (&[(c, get), (s, b"220 mail ESMTP\r\n")], BOTH, None),
        (&[(c, get), (s, SETTINGS)], BOTH, None),
        (&[(c, get), (s, OK)], BOTH, Some("h1")),
        (
            &[(c, b"PROPFIND /a HTTP/1.1\r\n"), (s, OK)],
            BOTH,
            Some("h1"),
        ),
        (&[(c, b"X-OWN /a HTTP/1.0\r\n"), (s, OK)], BOTH, Some("h1")),
        // Whatever precedes the request, such as the header of a proxy.
        (
            &[(c, b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n"), (s, OK)],
            BOTH,
            Some("h1"),
        ),
        (&[(c, b"PROXY TCP4 1.1.1.1 2"), (s, OK)], BOTH, Some("h1")),
        (
            &[(c, b"PROXY UNKNOWN\r\n\x01\x02\r\n"), (s, OK)],
            BOTH,
            None,
        ),
        (
            &[
                (c, b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0GET / HTTP/1.1\r\n"),
                (s, OK),
            ],
            BOTH,
            Some("h1"),
        ),
        (&[(c, b"\r\nGET / HTTP/1.1\r\n"), (s, OK)], BOTH, Some("h1")),
        (&[(c, b"GET /begun"), (s, OK)], BOTH, Some("h1")),
        // No request, whole or begun, which some servers answer.
        (&[(c, b"\0\x01\x02"), (s, BAD)], BOTH, None),
        (&[(c, b"\0"), (s, BAD)], BOTH, None),
        (&[(c, b"\x9d\xff\xd8\n"), (s, BAD)], BOTH, None),
        (&[(c, b"hello world\r\n"), (s, BAD)], BOTH, None),
        (&[(c, b"\x16"), (s, BAD)], BOTH, None),
        (&[(c, PREFACE), (s, BAD)], BOTH, None),
        (&[(c, &PREFACE[..20]), (s, BAD)], BOTH, None),
        (&[(s, OK)], BOTH, None),
        // The acknowledgment of the server shows that the client sent content before.
        (&[(s, OK)], ONLY_SERVER, None),
        (&[(s, OK), (c, get)], ONLY_SERVER, None),
        (&[(s, OK), (c, get), (s, OK)], ONLY_SERVER, None),
        (&[(c, get), (s, OK)], ONLY_SERVER, Some("h1")),
        (
            &[(c, get), (s, &OK[..5]), (s, &OK[5..])],
            ONLY_SERVER,
            Some("h1"),
        ),
        (&[(c, get)], ONLY_CLIENT, None),
        (&[(c, PREFACE)], BOTH, None),
        (&[(c, PREFACE), (s, SETTINGS)], BOTH, Some("h2")),
        (&[(s, SETTINGS)], ONLY_SERVER, None),
        (&[(c, b"SSH-2.0-a\r\n")], BOTH, None),
        (
            &[(s, b"SSH-2.0-a\r\n"), (c, b"SSH-2.0-b\r\n")],
            BOTH,
            Some("other"),
        ),
        (&[(s, b"SSH-2.0-a\r\n"), (c, get)], BOTH, None),
    ] {
        let record = conversation(turns, seen);
        assert_eq!(record.http_version, label, "{turns:?}");
        assert_eq!(record.label_source, label.map(|_| "handshake"));
        assert_eq!(record.client.port, 40000, "{turns:?}");
    }
}

#[test]
fn a_response_to_a_client_that_closed_without_content_is_no_label() {
    let mut run = Run::new();
    let mut connection = Connection::new(CLIENT, SERVER);
    connection.segment(true, flags::SYN, &[]);
    run.packet(&connection.segment(false, flags::SYN | flags::ACK, &[]));
    connection.segment(true, flags::FIN | flags::ACK, &[]);
    connection.send(
        &mut run,
        false,
        b"HTTP/1.1 408 Request Timeout\r\n\r\n",
        100,
    );
    assert_eq!(run.records()[0].http_version, None);
}

#[test]
fn a_response_after_a_long_upload_is_a_label() {
    let mut run = Run::new();
    let mut connection = Connection::new(CLIENT, SERVER);
    connection.open(&mut run);
    connection.send(&mut run, true, b"POST / HTTP/1.1\r\n\r\n", 100);
    connection.send(&mut run, true, &[0; 1_000_000], 1000);
    assert!(run.exporter.inspector.held < 1000);
    connection.send(&mut run, false, b"HTTP/1.1 200 OK\r\n\r\n", 100);
    assert_eq!(run.records()[0].http_version, Some("h1"));
}

#[test]
fn a_response_to_a_long_request_line_is_a_label() {
    for length in [1000, 7900, 8170, 8192, 8300, 12_000] {
        for size in [100, 536, 1460, 65_000] {
            let line = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(length));
            let mut run = Run::new();
            let mut connection = Connection::new(CLIENT, SERVER);
            connection.open(&mut run);
            connection.send(&mut run, true, line.as_bytes(), size);
            connection.send(&mut run, false, b"HTTP/1.1 200 OK\r\n\r\n", 100);
            let version = run.records()[0].http_version;
            assert_eq!(version, Some("h1"), "{length} in pieces of {size}");
        }
    }
}

/// The version of a connection whose handshake was not captured.
fn of_rest(turns: &[Turn<'_>]) -> Option<&'static str> {
    let mut run = Run::new();
    let mut connection = Connection::new(CLIENT, SERVER);
    for (of_client, content) in turns {
        connection.send(&mut run, *of_client, content, 1000);
    }
    run.records()[0].http_version
}

#[test]
fn a_response_to_an_upload_that_began_before_the_capture_is_a_label() {
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
    let (c, s) = (true, false);
    let upload = [0x9d; 5000];
    for (i, (turns, label)) in [
        (&[(c, &upload[..]), (s, OK)][..], Some("h1")),
        (&[(c, b"\0"), (s, OK)], Some("h1")),
        (&[(c, b"a line of a text\n"), (s, OK)], Some("h1")),
        (
            &[
                (c, &upload),
                (s, b"HTTP/1.1 100 Continue\r\n\r\n"),
                (c, &upload),
                (s, OK),
            ],
            Some("h1"),
        ),
        (&[(c, &upload), (s, &OK[..7]), (s, &OK[7..])], Some("h1")),
        // Only one end speaks HTTP, or what it says answers nothing.
        (&[(c, &upload)], None),
        (&[(c, &upload), (s, b"220 mail ESMTP\r\n")], None),
        (&[(c, &upload), (s, &upload), (s, OK)], None),
        (&[(c, b"SSH-2.0-a\r\n"), (s, OK)], None),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(of_rest(turns), label, "{i}");
    }
    // The response acknowledges nothing of what the client sent.
    let mut run = Run::new();
    let mut connection = Connection::new(CLIENT, SERVER);
    let early = connection.segment(false, flags::ACK, OK);
    connection.send(&mut run, true, &upload, 1000);
    run.packet(&early);
    assert_eq!(run.records()[0].http_version, None);
}

proptest! {
    #[test]
    fn content_of_one_end_is_never_a_label(
        pieces in prop::collection::vec(
            prop_oneof![
                Just(tls_record(&client_hello("a.example", &["h2"]))),
                Just(tls_record(&server_hello(&["h2"]))),
                Just(tls_record(&SERVER_HELLO_DONE)),
                Just(tls12_finished()),
                Just(tls_data()),
                Just(b"GET / HTTP/1.1\r\n\r\n".to_vec()),
                Just(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
                Just(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
                Just(b"SSH-2.0-x\r\n".to_vec()),
                prop::collection::vec(any::<u8>(), 1..60),
            ],
            1..8,
        ),
        of_client in any::<bool>(),
    ) {
        let turns: Vec<Turn<'_>> = pieces.iter().map(|piece| (of_client, &piece[..])).collect();
        let record = conversation(&turns, BOTH);
        prop_assert_eq!(record.http_version, None);
        prop_assert_eq!(record.label_source, None);
    }
}

#[test]
fn names_and_versions_are_found_in_handshakes_of_any_segmentation() {
    let hello = tls_record(&client_hello("WWW.Example.org", &["h2", "http/1.1"]));
    for (chosen, version) in [
        (&["h2"][..], Some("h2")),
        (&["http/1.1"], Some("h1")),
        (&["imap"], Some("other")),
    ] {
        for size in [1, 7, 10_000] {
            let mut run = Run::new();
            let mut connection = Connection::new(CLIENT, SERVER);
            connection.open(&mut run);
            connection.send(&mut run, true, &hello, size.max(3));
            let answer = tls_record(&server_hello(chosen));
            connection.send(&mut run, false, &answer, size.max(3));
            connection.send(&mut run, true, &tls12_finished(), size.max(3));
            connection.send(&mut run, false, &tls12_finished(), size.max(3));
            let record = run.records().pop().unwrap();
            assert_eq!(record.sni.as_deref(), Some("www.example.org"));
            assert_eq!(record.alpn_offered.as_deref(), Some("h2,http/1.1"));
            assert_eq!(record.alpn_chosen.as_deref(), Some(chosen[0]));
            assert_eq!(record.http_version, version);
            assert_eq!(record.label_source, Some("handshake"));
        }
    }
}

#[test]
fn a_handshake_is_read_though_its_segments_are_reordered_and_repeated() {
    let hello = tls_record(&client_hello("a.example", &["h2"]));
    let mut run = Run::new();
    let mut connection = Connection::new(CLIENT, SERVER);
    connection.open(&mut run);
    let mut segments: Vec<_> = hello
        .chunks(20)
        .map(|piece| connection.segment(true, flags::ACK, piece))
        .collect();
    segments.reverse();
    segments.extend_from_within(..3);
    for segment in &segments {
        run.packet(segment);
    }
    connection.send(&mut run, false, &tls_record(&server_hello(&["h2"])), 30);
    connection.send(&mut run, true, &tls12_finished(), 30);
    connection.send(&mut run, false, &tls12_finished(), 30);
    let record = run.records().pop().unwrap();
    assert_eq!(record.sni.as_deref(), Some("a.example"));
    assert_eq!(record.http_version, Some("h2"));
}

#[test]
fn names_and_protocols_of_any_length_take_little_memory() {
    let protocol = "p".repeat(100);
    for (length, is_name) in [(255, true), (256, false), (10_000, false)] {
        let mut run = Run::new();
        let mut connection = Connection::new(CLIENT, SERVER);
        connection.open(&mut run);
        let hello = client_hello(&"a".repeat(length), &[protocol.as_str(); 20]);
        connection.send(&mut run, true, &tls_record(&hello), 1000);
        let record = run.records().pop().unwrap();
        assert_eq!(record.sni.is_some(), is_name, "{length} bytes");
        let offered = record.alpn_offered.unwrap();
        assert_eq!(offered.split(',').count(), 2, "{offered}");
    }
}

#[test]
fn hostile_names_stay_one_value_of_a_table() {
    let mut run = Run::new();
    let mut connection = Connection::new(CLIENT, SERVER);
    connection.open(&mut run);
    let hello = client_hello("a\n\",%\u{e9}", &["h2", "x,y", "\u{a}\u{a}"]);
    connection.send(&mut run, true, &tls_record(&hello), 1000);
    let record = run.records().pop().unwrap();
    assert_eq!(record.sni.as_deref(), Some("a%0a%22%2c%25%c3%a9"));
    assert_eq!(record.alpn_offered.as_deref(), Some("h2,x%2Cy"));
}

#[test]
fn the_access_log_labels_what_handshakes_do_not_show() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("access.log");
    let line = r#"{"time":1700000001.0,"client":"10.0.0.1:40000","http_version":"2"}"#;
    std::fs::write(&path, line).unwrap();
    let sources = Sources {
        keys: None,
        server_log: Some(ServerLog::read(&path).unwrap()),
    };
    let mut run = Run::with(Options::default(), sources);
    let mut connection = Connection::new(CLIENT, SERVER);
    connection.open(&mut run);
    connection.send(&mut run, true, b"request", 100);
    connection.send(&mut run, false, b"response", 100);
    // A connection of another port, a datagram of the same one, and a connection in which only the client sends content.
    Connection::new("10.0.0.1:40001", SERVER).open(&mut run);
    let other = "192.0.2.2:443";
    run.packet(&udp(address(CLIENT), address(other), b"query"));
    run.packet(&udp(address(other), address(CLIENT), b"answer"));
    let mut unanswered = Connection::new(CLIENT, "192.0.2.3:443");
    unanswered.open(&mut run);
    unanswered.send(&mut run, true, b"request", 100);
    let records = run.records();
    assert_eq!(records[0].http_version, Some("h2"));
    assert_eq!(records[0].label_source, Some("server_log"));
    for record in &records[1..] {
        assert_eq!(record.label_source, None, "{record:?}");
    }
}
