//! The sender, with a window of the size of the receiver's buffer.

use std::net::SocketAddr;
use std::time::Duration;

use bench_kit::batches::{MAX_BATCH, Socket};
use bench_kit::{ServerArgs, control};
use rustls::Side;
use rustls::quic::Keys;

use crate::packet::{self, PACKET, PAYLOAD};

/// Bytes in flight.
const WINDOW: u64 = 1 << 20;
/// Time after which bytes in flight are considered lost.
const LOST: Duration = Duration::from_millis(100);

/// A download in progress.
struct Download {
    to: SocketAddr,
    sent: u64,
    received: u64,
    /// Bytes considered lost.
    lost: u64,
    number: u64,
}

pub(crate) fn run(args: &ServerArgs) -> anyhow::Result<()> {
    let mut socket = Socket::bind(args.listen)?;
    let keys = packet::keys(Side::Server)?;
    control::serve(socket.local_addr()?);
    loop {
        let mut request = None;
        while request.is_none() {
            while !socket.wait(LOST)? {}
            while socket.receive(|from, datagram| {
                let bytes = <[u8; 8]>::try_from(&*datagram).map(u64::from_be_bytes);
                request = bytes.ok().map(|bytes| (from, bytes));
            })? {}
        }
        if let Some((to, bytes)) = request {
            send(&mut socket, &keys, to, bytes)?;
        }
    }
}

fn send(socket: &mut Socket, keys: &Keys, to: SocketAddr, bytes: u64) -> anyhow::Result<()> {
    let segments = socket.max_segments().min(MAX_BATCH / PACKET);
    let mut batch = vec![0x5a; segments * PACKET];
    let mut download = Download {
        to,
        sent: 0,
        received: 0,
        lost: 0,
        number: 0,
    };
    while download.received < bytes {
        while download.sent < download.received + download.lost + WINDOW {
            let (packets, _) = batch.as_chunks_mut::<PACKET>();
            for packet in packets {
                packet::seal(&keys.local, download.number, packet)?;
                download.number += 1;
            }
            socket.send(download.to, &batch, PACKET)?;
            download.sent += (segments * PAYLOAD) as u64;
        }
        let mut count = download.received;
        while socket.receive(|_, datagram| {
            count = packet::reported(datagram).unwrap_or(0).max(count);
        })? {}
        if count == download.received && !socket.wait(LOST)? {
            download.lost = download.sent - download.received;
        }
        download.received = count;
    }
    Ok(())
}
