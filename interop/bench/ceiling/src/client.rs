//! The receiver: decrypts packets, counts bytes, and reports the count periodically.

use std::time::Duration;

use anyhow::ensure;
use bench_kit::batches::Socket;
use bench_kit::{ClientArgs, Meter, socket};
use rustls::Side;

use crate::packet;

/// Bytes between two reports to the sender.
const REPORT: u64 = 1 << 18;
/// Timeout after which the sender is considered dead.
const SILENCE: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &ClientArgs) -> anyhow::Result<()> {
    let mut socket = Socket::bind(socket::client_address(args.server))?;
    let keys = packet::keys(Side::Client)?;
    let meter = Meter::start();
    let request = args.bytes.to_be_bytes();
    socket.send(args.server, &request, request.len())?;
    let (mut received, mut reported) = (0, 0);
    while received < args.bytes {
        ensure!(socket.wait(SILENCE)?, "timed out waiting for data");
        while socket.receive(|_, datagram| {
            received += packet::open(&keys.remote, datagram).unwrap_or(0) as u64;
        })? {
            if received >= reported + REPORT {
                let report = packet::report(received);
                socket.send(args.server, &report, report.len())?;
                reported = received;
            }
        }
    }
    let done = packet::report(received);
    socket.send(args.server, &done, done.len())?;
    meter.report(1, received).print();
    Ok(())
}
