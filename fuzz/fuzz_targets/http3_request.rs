//! Arbitrary bytes on a client's control, QPACK and request streams, split and terminated arbitrarily, for
//! the HTTP/3 server in virtual time. Checks for panics, bounded memory, and termination.
#![no_main]

mod http3_peer;

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Limited};
use libfuzzer_sys::fuzz_target;
use marline_http::Body;
use marline_http::server::{Site, testing};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tower::util::BoxCloneSyncService;

use self::http3_peer::Peer;

/// Virtual time that exceeds the sum of all timeouts of a server.
const END: Duration = Duration::from_secs(3600);

/// Maximum size of the content of a request, in bytes.
const MOST_CONTENT: usize = 1024;

/// The start of the client's control stream: its type and empty SETTINGS.
const CONTROL: &[u8] = &[0x00, 0x04, 0x00];

/// Field sections of `https://a/`, encoded with QPACK's static table.
const GET: &[u8] = &[0x00, 0x00, 0xd1, 0xd7, 0x50, 0x01, b'a', 0xc1];
const POST: &[u8] = &[0x00, 0x00, 0xd4, 0xd7, 0x50, 0x01, b'a', 0xc1];

fuzz_target!(|input: &[u8]| {
    let Some((&first, script)) = input.split_first() else {
        return;
    };
    runtime().block_on(async {
        let peer = Peer::default();
        if first & 1 == 0 {
            peer.send(2, Bytes::from_static(CONTROL));
        }
        let (stop, stopping) = watch::channel(false);
        let server = testing::serve(peer.clone(), site(), stopping);
        let client = async {
            play(&peer, &stop, script).await;
            peer.close();
        };
        let both = async { tokio::join!(server, client) };
        timeout(END, both).await.expect("the server ends");
    });
});

fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build();
    runtime.expect("a runtime starts")
}

/// Executes steps: a byte for the action, one for the stream, one for a length, and as many bytes.
async fn play(peer: &Peer, stop: &watch::Sender<bool>, mut script: &[u8]) {
    while let [action, stream, length, rest @ ..] = script {
        let (bytes, rest) = rest.split_at(rest.len().min((*length).into()));
        script = rest;
        // Client-initiated: 0, 2, 4, 6, ...; bit 1 is set on unidirectional ones.
        let id = u64::from(stream % 16) * 2;
        match action % 12 {
            0 | 1 => peer.send(id, Bytes::copy_from_slice(bytes)),
            // One chunk per byte.
            2 => bytes.chunks(1).for_each(|byte| {
                peer.send(id, Bytes::copy_from_slice(byte));
            }),
            3 => peer.send(id, frame(0x01, &[GET, bytes].concat())),
            4 => peer.send(id, frame(0x01, &[POST, bytes].concat())),
            5 => peer.send(id, frame(0x00, bytes)),
            6 => match bytes.split_first() {
                Some((kind, bytes)) => peer.send(id, frame(kind & 0x3f, bytes)),
                None => peer.send(id, Bytes::new()),
            },
            7 => peer.finish(id),
            8 => peer.reset(id, u64::from(*length)),
            9 => peer.stop(id, u64::from(*length)),
            10 => peer.block(id, length & 1 == 0),
            _ => drop(stop.send_replace(true)),
        }
        // Lets the server run, with or without time passing.
        if stream & 0x80 != 0 {
            let seconds = if stream & 0x40 != 0 { 20 } else { 0 };
            sleep(Duration::from_secs(seconds) + Duration::from_millis(1)).await;
        }
    }
}

fn frame(kind: u8, payload: &[u8]) -> Bytes {
    let length = u16::try_from(payload.len()).expect("a step is short") | 0x4000;
    [&[kind], &length.to_be_bytes()[..], payload]
        .concat()
        .into()
}

/// Echoes the content of POST, answers GET, and rejects other methods without reading content.
fn site() -> Site {
    BoxCloneSyncService::new(tower::service_fn(answer))
}

async fn answer(request: Request<Body>) -> Result<Response<Body>, std::convert::Infallible> {
    let status = |status: u16| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = http::StatusCode::from_u16(status).expect("a status");
        response
    };
    Ok(match *request.method() {
        Method::GET => Response::new(Body::full("hello")),
        Method::POST => match Limited::new(request.into_body(), MOST_CONTENT)
            .collect()
            .await
        {
            Ok(content) => Response::new(Body::full(content.to_bytes())),
            Err(_) => status(400),
        },
        _ => status(405),
    })
}
