//! Requests to the kernel by netlink (`netlink(7)`).

use std::io;

use netlink_packet_core::{
    NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};

/// Opens a socket for requests of a protocol, in the namespace of the calling thread.
///
/// # Errors
/// The system refuses a socket.
pub(super) fn open(protocol: isize) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

/// Sends a request with this number.
///
/// # Errors
/// That of the system.
pub(super) fn send<T: NetlinkSerializable>(
    socket: &Socket,
    number: u32,
    flags: u16,
    request: T,
) -> io::Result<()> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    header.sequence_number = number;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(request));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    Ok(())
}
