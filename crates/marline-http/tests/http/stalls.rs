//! Servers whose responses do not arrive, or do not end.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use marline_http::client::testing;
use marline_http::client::{Client, ClientConfig, FetchOptions, HttpVersion, ObjectReport};
use tokio::io::{AsyncWriteExt, DuplexStream, WriteHalf, duplex, sink, split};
use tokio::time::{Instant, sleep};

use crate::common::discarded;

const LIMIT: Duration = Duration::from_secs(20);

/// An empty frame SETTINGS.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// A frame HEADERS with the status 103 on the first stream of a client.
const EARLY_HINTS: &[u8] = b"\x00\x00\x05\x01\x04\x00\x00\x00\x01\x08\x03103";

/// A client whose connections `serve` answers; what the client sends is discarded.
fn client<F>(version: HttpVersion, serve: fn(WriteHalf<DuplexStream>) -> F) -> Arc<Client>
where
    F: Future<Output = ()> + Send + 'static,
{
    let config = ClientConfig {
        version,
        stall_timeout: Some(LIMIT),
        fallback: false,
        ..ClientConfig::default()
    };
    let dial = move || {
        let (near, far) = duplex(64 * 1024);
        let (mut reader, writer) = split(far);
        tokio::spawn(async move { tokio::io::copy(&mut reader, &mut sink()).await });
        tokio::spawn(async move {
            // The client has sent its request by then.
            sleep(Duration::from_millis(1)).await;
            serve(writer).await;
        });
        near
    };
    Arc::new(testing::client(config, dial).unwrap())
}

async fn fetch(client: &Arc<Client>, options: FetchOptions) -> ObjectReport {
    let scheme = match client.config().version {
        HttpVersion::Http11Cleartext => "http",
        _ => "https",
    };
    let target = discarded(format!("{scheme}://127.0.0.1:1/"));
    let progress = Arc::default();
    let fetched = client.fetch(vec![target], options, &progress);
    fetched.await.objects.remove(0)
}

/// Fetches, and expects an error with `words` between these times.
async fn fails(client: Arc<Client>, words: &str, times: [Duration; 2]) -> ObjectReport {
    let start = Instant::now();
    let object = fetch(&client, FetchOptions::default()).await;
    let error = object.error.as_deref().unwrap_or_default();
    assert!(error.contains(words), "{object:?}");
    let elapsed = start.elapsed();
    assert!((times[0]..=times[1]).contains(&elapsed), "{elapsed:?}");
    object
}

const AT_THE_LIMIT: [Duration; 2] = [LIMIT, Duration::from_secs(26)];

#[tokio::test(start_paused = true)]
async fn a_response_that_never_comes_is_not_waited_for_longer_than_the_limit() {
    for version in [HttpVersion::Http11Cleartext, HttpVersion::Http2] {
        let client = client(version, |mut server| async move {
            server.write_all(b"").await.unwrap();
            pending::<()>().await;
        });
        fails(client, "nothing arrived for 20 s", AT_THE_LIMIT).await;
    }
}

#[tokio::test(start_paused = true)]
async fn interim_responses_are_no_progress() {
    let client = client(HttpVersion::Http11Cleartext, |mut server| async move {
        while server
            .write_all(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            .await
            .is_ok()
        {
            sleep(Duration::from_secs(1)).await;
        }
    });
    fails(client, "nothing arrived for 20 s", AT_THE_LIMIT).await;
}

#[tokio::test(start_paused = true)]
async fn interim_responses_without_end_are_an_error() {
    let soon = [Duration::ZERO, Duration::from_secs(1)];
    let http1 = client(HttpVersion::Http11Cleartext, |mut server| async move {
        while server
            .write_all(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            .await
            .is_ok()
        {}
    });
    fails(http1, "without a response", soon).await;
    let http2 = client(HttpVersion::Http2, |mut server| async move {
        server.write_all(SETTINGS).await.unwrap();
        let frames = EARLY_HINTS.repeat(1000);
        while server.write_all(&frames).await.is_ok() {}
    });
    fails(http2, "without a response", soon).await;
}

#[tokio::test(start_paused = true)]
async fn content_that_stops_arriving_is_not_waited_for_longer_than_the_limit() {
    let client = client(HttpVersion::Http11Cleartext, |mut server| async move {
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
        server.write_all(response).await.unwrap();
        pending::<()>().await;
    });
    let object = fails(client, "nothing arrived for 20 s", AT_THE_LIMIT).await;
    assert_eq!(object.bytes, 5);
}

#[tokio::test(start_paused = true)]
async fn slow_content_may_take_longer_than_the_limit() {
    let client = client(HttpVersion::Http11Cleartext, |mut server| async move {
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
        server.write_all(response).await.unwrap();
        for _ in 0..10 {
            sleep(LIMIT - Duration::from_secs(1)).await;
            server.write_all(b"x").await.unwrap();
        }
    });
    let object = fetch(&client, FetchOptions::default()).await;
    assert_eq!((object.bytes, object.error), (10, None));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_complete_at_the_time_limit_fails() {
    let client = client(HttpVersion::Http11Cleartext, |mut server| async move {
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
        server.write_all(response).await.unwrap();
        while server.write_all(b"x").await.is_ok() {
            sleep(Duration::from_secs(1)).await;
        }
    });
    let options = FetchOptions {
        time_limit: Some(Duration::from_secs(30)),
        ..FetchOptions::default()
    };
    let start = Instant::now();
    let object = fetch(&client, options).await;
    assert_eq!(start.elapsed().as_secs(), 30);
    let error = object.error.unwrap();
    assert!(error.contains("after 30 s, the time limit"), "{error}");
}

/// A server that writes `beginning`, and then `rest` again and again, with `pause` between.
fn repeating(
    version: HttpVersion,
    beginning: Vec<u8>,
    rest: &[u8],
    pause: Duration,
) -> Arc<Client> {
    let rest = match pause.is_zero() {
        true => rest.repeat(1 + (16 << 10) / rest.len()),
        false => rest.to_vec(),
    };
    let config = ClientConfig {
        version,
        stall_timeout: Some(LIMIT),
        fallback: false,
        ..ClientConfig::default()
    };
    let dial = move || {
        let (near, far) = duplex(64 * 1024);
        let (mut reader, mut writer) = split(far);
        tokio::spawn(async move { tokio::io::copy(&mut reader, &mut sink()).await });
        let (beginning, rest) = (beginning.clone(), rest.clone());
        tokio::spawn(async move {
            // The client has sent its request by then.
            sleep(Duration::from_millis(1)).await;
            let mut written = writer.write_all(&beginning).await;
            while written.is_ok() {
                written = writer.write_all(&rest).await;
                if pause.is_zero() {
                    tokio::task::yield_now().await;
                } else {
                    sleep(pause).await;
                }
            }
        });
        near
    };
    Arc::new(testing::client(config, dial).unwrap())
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const UNKNOWN: u8 = 0xfe;
const END_HEADERS: u8 = 4;

/// The beginning of a server of HTTP/2 whose response has begun.
fn begun() -> Vec<u8> {
    [SETTINGS.to_vec(), frame(HEADERS, END_HEADERS, 1, b"\x88")].concat()
}

#[tokio::test(start_paused = true)]
async fn what_never_ends_over_http2_is_an_error() {
    // Large ones, fewer of which reach the limit.
    let goaway = [&b"\x7f\xff\xff\xff\x00\x00\x00\x00"[..], &[0; 4000]].concat();
    let goaway = frame(GOAWAY, 0, 0, &goaway);
    let settings = frame(4, 0, 0, &[0xff; 6].repeat(600));
    // A field of 100 bytes that is not added to the dynamic table.
    let field = [&b"\x00\x01a\x60"[..], &[b'x'; 96]].concat();
    for (name, beginning, rest) in [
        ("GOAWAY", begun(), goaway.clone()),
        ("GOAWAY before a response", SETTINGS.to_vec(), goaway),
        ("empty DATA", begun(), frame(DATA, 0, 1, b"")),
        ("unknown frames", begun(), frame(UNKNOWN, 0, 1, &[0; 4000])),
        ("SETTINGS", begun(), settings),
        (
            "CONTINUATION",
            [SETTINGS.to_vec(), frame(HEADERS, 0, 1, b"\x88")].concat(),
            frame(CONTINUATION, 0, 1, &field),
        ),
        (
            "empty CONTINUATION",
            [SETTINGS.to_vec(), frame(HEADERS, 0, 1, b"\x88")].concat(),
            frame(CONTINUATION, 0, 1, b""),
        ),
        (
            "trailers",
            [begun(), frame(HEADERS, 1, 1, b"")].concat(),
            frame(CONTINUATION, 0, 1, &field),
        ),
    ] {
        let client = repeating(HttpVersion::Http2, beginning, &rest, Duration::ZERO);
        let start = Instant::now();
        let object = fetch(&client, FetchOptions::default()).await;
        assert!(object.error.is_some(), "{name}: {object:?}");
        assert!(
            start.elapsed() <= Duration::from_secs(1),
            "{name}: {object:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_never_ends_over_http1_is_an_error() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (name, beginning, rest) in [
        ("header", b"HTTP/1.1 200 OK\r\n".to_vec(), &b"a: b\r\n"[..]),
        ("field", b"HTTP/1.1 200 OK\r\na: ".to_vec(), b"bbbbbbbb"),
        ("status line", b"HTTP/1.1 200 ".to_vec(), b"OK"),
        ("empty lines", Vec::new(), b"\r\n"),
        ("trailers", [&chunked[..], b"0\r\n"].concat(), b"a: b\r\n"),
        ("extension", [&chunked[..], b"5;"].concat(), b"a=b;"),
        ("chunk size", chunked.to_vec(), b"0"),
    ] {
        // At once, and in single bytes with pauses.
        for pause in [Duration::ZERO, Duration::from_secs(1)] {
            let version = HttpVersion::Http11Cleartext;
            let client = repeating(version, beginning.clone(), rest, pause);
            let start = Instant::now();
            let object = fetch(&client, FetchOptions::default()).await;
            assert!(object.error.is_some(), "{name}: {object:?}");
            assert!(start.elapsed() <= AT_THE_LIMIT[1], "{name}: {object:?}");
        }
    }
}
