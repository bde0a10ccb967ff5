//! Servers whose responses do not come, or do not end.

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
