//! The streams of a client over HTTP/3 that the steps of an input stand for.

use std::time::Duration;

use bytes::Bytes;
use marline_proto::testing::fuzz::{Script, Step};
use tokio::sync::watch;
use tokio::time::sleep;

use super::http3_peer::Peer;

/// The start of the client's control stream: its type and empty SETTINGS.
pub const CONTROL: &[u8] = &[0x00, 0x04, 0x00];

/// Field sections of `https://a/`, encoded with QPACK's static table.
const GET: &[u8] = &[0x00, 0x00, 0xd1, 0xd7, 0x50, 0x01, b'a', 0xc1];
const POST: &[u8] = &[0x00, 0x00, 0xd4, 0xd7, 0x50, 0x01, b'a', 0xc1];

/// Executes the steps of an input: each is for one stream.
pub async fn play(peer: &Peer, stop: &watch::Sender<bool>, script: &[u8]) {
    for step in Script::new(script) {
        let Step {
            action,
            number: stream,
            len,
            bytes,
        } = step;
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
            8 => peer.reset(id, u64::from(len)),
            9 => peer.stop(id, u64::from(len)),
            10 => peer.block(id, len & 1 == 0),
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
