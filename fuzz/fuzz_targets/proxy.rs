//! Arbitrary bytes of a client over HTTP/1.1, HTTP/2 or HTTP/3, for a proxy whose origin speaks HTTP/1.1 or HTTP/2 and is
//! honest or answers with steps of the input, in virtual time. Checks for panics and termination, and that an honest origin
//! gets complete requests only, whose content has the announced length.
#![no_main]

mod http2;
mod http3_client;
mod http3_peer;
mod http_server;
mod tcp_client;
mod web;

use bytes::Bytes;
use http::Version;
use libfuzzer_sys::fuzz_target;
use marline_http::client::{ClientConfig, HttpVersion, Trust, testing as client};
use marline_http::proxy::{GatewayConfig, Hosts, gateway};
use marline_http::server::{Site, testing as server};
use marline_proto::testing::fuzz::Script;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
use tokio::sync::watch;
use tokio::time::{Duration, sleep, timeout};

use self::http_server::{NAME, Replies};
use self::http3_client::CONTROL;
use self::http3_peer::Peer;
use self::tcp_client::{PREFACE, over_http1, over_http2};

/// Size in bytes of the buffer of each direction.
const BUFFER: usize = 1 << 16;

fuzz_target!(|input: &[u8]| {
    let [choice, length, rest @ ..] = input else {
        return;
    };
    let (replies, script) = rest.split_at(rest.len().min(usize::from(*length)));
    web::runtime().block_on(async {
        let replies = Replies::new(replies);
        if choice & 4 == 0 {
            replies.become_honest();
        }
        let site = proxy(replies, choice & 8 != 0);
        let (stop, stopping) = watch::channel(false);
        let all = async {
            match choice & 3 {
                0 | 1 => over_tcp(script, choice & 1 != 0, site, stop, stopping).await,
                _ => over_http3(script, site, stop, stopping).await,
            }
        };
        timeout(web::END, all).await.expect("the proxy ends");
    });
});

/// A proxy to `replies`.
fn proxy(replies: Replies, is_http2: bool) -> Site {
    let (version, scheme) = match is_http2 {
        true => (HttpVersion::Http2, "https"),
        false => (HttpVersion::Http11Cleartext, "http"),
    };
    let config = ClientConfig {
        version,
        trust: Trust::Insecure,
        fallback: false,
        ..ClientConfig::default()
    };
    let dial = move || {
        replies.dial(match is_http2 {
            true => Version::HTTP_2,
            false => Version::HTTP_11,
        })
    };
    let client = client::client(config, dial).expect("a client");
    let mut config = GatewayConfig::to(format!("{scheme}://{NAME}"));
    config.hosts = Hosts::Any;
    gateway(client, &config).expect("a valid origin")
}

async fn over_tcp(
    script: &[u8],
    is_http2: bool,
    site: Site,
    stop: watch::Sender<bool>,
    stopping: watch::Receiver<bool>,
) {
    let (ours, theirs) = duplex(BUFFER);
    let version = match is_http2 {
        true => Version::HTTP_2,
        false => Version::HTTP_11,
    };
    let server = server::serve_stream(theirs, version, site, stopping);
    let (mut read, mut write) = split(ours);
    let client = async {
        if is_http2 {
            // The proxy may have closed the connection, here and below.
            let _ = write.write_all(PREFACE).await;
        }
        for step in Script::new(script) {
            let action = step.action;
            let bytes = match is_http2 {
                true => over_http2(step),
                false => over_http1(step),
            };
            let _ = write.write_all(&bytes).await;
            if action & 0x80 != 0 {
                sleep(Duration::from_millis(1)).await;
            }
        }
        sleep(Duration::from_secs(1)).await;
        let _ = stop.send_replace(true);
        let _ = write.shutdown().await;
    };
    let mut answers = Vec::new();
    // An error is the end.
    let collect = async { read.read_to_end(&mut answers).await.is_ok() };
    tokio::join!(server, client, collect);
}

async fn over_http3(
    script: &[u8],
    site: Site,
    stop: watch::Sender<bool>,
    stopping: watch::Receiver<bool>,
) {
    let peer = Peer::default();
    peer.send(2, Bytes::from_static(CONTROL));
    let server = server::serve(peer.clone(), site, stopping);
    let client = async {
        http3_client::play(&peer, &stop, script).await;
        sleep(Duration::from_secs(1)).await;
        peer.close();
    };
    tokio::join!(server, client);
}
