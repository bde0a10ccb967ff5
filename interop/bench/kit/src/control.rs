//! The runner's queries of a server's resource use: a line in, a line of JSON out.

use std::io;
use std::net::SocketAddr;
use std::process;
use std::thread;

use serde::Serialize;

use crate::meter;

/// The resources that a server has used so far.
#[derive(Serialize)]
struct Stats {
    /// CPU time, user and system, seconds.
    cpu_s: f64,
    /// Resident memory, bytes.
    resident_bytes: u64,
}

/// Prints that the server listens on `local`; from then on answers each line of standard input with its statistics, and
/// ends the process at the end of the input.
pub fn serve(local: SocketAddr) {
    eprintln!("listening on {local}");
    thread::spawn(|| {
        for _ in io::stdin().lines().map_while(Result::ok) {
            meter::print_json(&Stats {
                cpu_s: meter::cpu_seconds(),
                resident_bytes: meter::resident_bytes(),
            });
        }
        process::exit(0);
    });
}

/// Waits until standard input ends.
///
/// # Errors
/// If it cannot be read.
pub fn wait_for_end() -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map(|_| ())
}
