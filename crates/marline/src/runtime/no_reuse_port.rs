//! Systems whose kernel does not distribute datagrams over the sockets of one address.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use marline_proto::{WorkerField, WorkerKey};

/// Binds one socket to `addr`.
///
/// # Errors
/// The system's error; [`io::ErrorKind::Unsupported`] if `count` is more than one.
pub fn bind(addr: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    match count {
        0 | 1 => Ok(vec![UdpSocket::bind(addr)?]),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Not possible on this system.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] if there have to be more sockets.
pub fn share(sockets: &mut Vec<UdpSocket>, count: usize) -> io::Result<()> {
    match sockets.len() >= count {
        true => Ok(()),
        false => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Not possible on this system.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`].
pub fn steer(
    socket: &UdpSocket,
    key: &WorkerKey,
    field: WorkerField,
    workers: u8,
) -> io::Result<()> {
    let _ = (socket, key, field, workers);
    Err(io::ErrorKind::Unsupported.into())
}
