//! Arbitrary bytes of a client of HTTP/1.1 and HTTP/2, cut anywhere, for the server over a stream in memory, in virtual time.
//! Checks for panics and termination, that content is complete, and that the server's answers over HTTP/1.1, as far as they
//! go, do not depend on how the bytes are cut.
#![no_main]

mod http2;
mod tcp_client;
mod web;

use std::time::Duration;

use http::Version;
use libfuzzer_sys::fuzz_target;
use marline_http::server::testing;
use marline_proto::testing::fuzz::Script;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, duplex, split};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use self::tcp_client::{PREFACE, over_http1, over_http2};

/// Size in bytes of the buffer of each direction.
const BUFFER: usize = 1 << 16;

fuzz_target!(|input: &[u8]| {
    let Some((&first, script)) = input.split_first() else {
        return;
    };
    if first & 1 == 0 {
        let bytes: Vec<u8> = Script::new(script).flat_map(over_http1).collect();
        let whole = exchange(vec![bytes.clone()]);
        let each = bytes.chunks(1).map(<[u8]>::to_vec).collect();
        let each = exchange(each);
        let (whole, each) = (answered(&whole), answered(&each));
        // A connection whose content was not read ends sooner if the rest of it has not arrived yet.
        assert!(whole.starts_with(&each) || each.starts_with(&whole));
    } else {
        web::runtime().block_on(play(script));
    }
});

/// The server's answers over HTTP/1.1 to these pieces, each of which it reads alone.
fn exchange(pieces: Vec<Vec<u8>>) -> Vec<u8> {
    web::runtime().block_on(async {
        let (ours, theirs) = duplex(BUFFER);
        let (_stop, stopping) = watch::channel(false);
        let server = testing::serve_stream(theirs, Version::HTTP_11, web::site(), stopping);
        let client = async {
            let (mut read, mut write) = split(ours);
            let writing = async {
                for piece in pieces {
                    // The server may have closed the connection.
                    let _ = write.write_all(&piece).await;
                    tokio::task::yield_now().await;
                }
                // A client that closes its direction is taken to have left: wait for all answers first.
                sleep(Duration::from_secs(1)).await;
                let _ = write.shutdown().await;
            };
            tokio::join!(writing, collect(&mut read)).1
        };
        let both = async { tokio::join!(server, client) };
        timeout(web::END, both).await.expect("the server ends").1
    })
}

async fn collect(read: &mut ReadHalf<DuplexStream>) -> Vec<u8> {
    let mut answers = Vec::new();
    // An error is the end.
    let _ = read.read_to_end(&mut answers).await;
    answers
}

/// The answers to valid requests, without the fields that show the time of day. Whether bytes that are not a request are
/// answered before the connection ends depends on how many of them have arrived.
fn answered(answers: &[u8]) -> Vec<u8> {
    const MALFORMED: &[u8] = b"HTTP/1.1 400 Bad Request\r\n";
    let mut places = answers.windows(MALFORMED.len());
    let end = places.position(|bytes| bytes == MALFORMED);
    let lines = answers[..end.unwrap_or(answers.len())].split(|byte| *byte == b'\n');
    let is_kept = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"date: ");
    let lines: Vec<_> = lines.filter(is_kept).collect();
    // Content need not end a line: the answer after it begins in its last one.
    lines.join(&b'\n')
}

/// Executes the steps of an input over HTTP/2.
async fn play(script: &[u8]) {
    let (ours, theirs) = duplex(BUFFER);
    let (stop, stopping) = watch::channel(false);
    let server = testing::serve_stream(theirs, Version::HTTP_2, web::site(), stopping);
    let (mut read, mut write) = split(ours);
    let client = async {
        let _ = write.write_all(PREFACE).await;
        for step in Script::new(script) {
            let _ = write.write_all(&over_http2(step)).await;
            if step.action & 0x80 != 0 {
                let seconds = if step.action & 0x40 != 0 { 20 } else { 0 };
                sleep(Duration::from_secs(seconds) + Duration::from_millis(1)).await;
            }
        }
        let _ = stop.send_replace(true);
        let _ = write.shutdown().await;
    };
    let all = async { tokio::join!(server, client, collect(&mut read)) };
    timeout(web::END, all).await.expect("the server ends");
}
