//! Sockets with the buffer sizes of all stacks.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use socket2::SockRef;

/// Requested size of the send and receive buffers, bytes. The system may grant less (`net.core.rmem_max`).
pub const BUFFER: usize = 4 << 20;

/// A socket bound to `address`.
///
/// # Errors
/// If it cannot be bound.
pub fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    let options = SockRef::from(&socket);
    options.set_send_buffer_size(BUFFER)?;
    options.set_recv_buffer_size(BUFFER)?;
    Ok(socket)
}

/// A client's address of the family of `server`, with any port: on the loopback interface if the server is there.
#[must_use]
pub fn client_address(server: SocketAddr) -> SocketAddr {
    match (server, server.ip().is_loopback()) {
        (SocketAddr::V4(_), true) => (Ipv4Addr::LOCALHOST, 0).into(),
        (SocketAddr::V4(_), false) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        (SocketAddr::V6(_), true) => (Ipv6Addr::LOCALHOST, 0).into(),
        (SocketAddr::V6(_), false) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}
