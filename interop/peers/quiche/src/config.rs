//! Settings of both roles.

use std::io;

use mio::net::UdpSocket;
use quiche::{Config, ConnectionId};
use rand::RngExt as _;

/// UDP payloads are this long at most, bytes.
pub(crate) const MAX_DATAGRAM: usize = 1350;
/// Receive buffer, bytes: any UDP payload.
pub(crate) const MAX_RECEIVE: usize = 65_536;
/// Length of connection IDs, bytes.
pub(crate) const ID_LENGTH: usize = 16;
/// Idle timeout, milliseconds.
const IDLE_MS: u64 = 30_000;
/// Flow control of a connection and a stream, bytes.
const CONNECTION_WINDOW: u64 = 16 << 20;
const STREAM_WINDOW: u64 = 4 << 20;
/// Streams a peer may have open of each kind.
const STREAMS: u64 = 128;

/// Settings for `version`; `early` allows 0-RTT.
pub(crate) fn config(version: u32, early: bool) -> quiche::Result<Config> {
    let mut config = Config::new(version)?;
    config.verify_peer(false);
    config.set_application_protos(quiche::h3::APPLICATION_PROTOCOL)?;
    config.set_max_idle_timeout(IDLE_MS);
    config.set_max_recv_udp_payload_size(MAX_DATAGRAM);
    config.set_max_send_udp_payload_size(MAX_DATAGRAM);
    config.set_initial_max_data(CONNECTION_WINDOW);
    config.set_initial_max_stream_data_bidi_local(STREAM_WINDOW);
    config.set_initial_max_stream_data_bidi_remote(STREAM_WINDOW);
    config.set_initial_max_stream_data_uni(STREAM_WINDOW);
    config.set_initial_max_streams_bidi(STREAMS);
    config.set_initial_max_streams_uni(STREAMS);
    config.set_active_connection_id_limit(4);
    if early {
        config.enable_early_data();
    }
    Ok(config)
}

/// A random connection ID.
pub(crate) fn random_id() -> ConnectionId<'static> {
    ConnectionId::from_vec(rand::rng().random::<[u8; ID_LENGTH]>().to_vec())
}

/// Issues as many connection IDs as the peer permits and returns them.
pub(crate) fn issue_ids(connection: &mut quiche::Connection) -> Vec<ConnectionId<'static>> {
    let mut issued = Vec::new();
    while connection.scids_left() > 0 {
        let id = random_id();
        if connection
            .new_scid(&id, rand::rng().random(), false)
            .is_err()
        {
            break;
        }
        issued.push(id);
    }
    issued
}

/// Sends all that `connection` has to send, each datagram from the socket it belongs to.
pub(crate) fn send_all(
    connection: &mut quiche::Connection,
    sockets: &[UdpSocket],
) -> anyhow::Result<()> {
    let mut buffer = [0; MAX_DATAGRAM];
    loop {
        let (length, info) = match connection.send(&mut buffer) {
            Ok(sent) => sent,
            Err(quiche::Error::Done) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let from = |socket: &&UdpSocket| socket.local_addr().is_ok_and(|addr| addr == info.from);
        let socket = sockets.iter().find(from).or(sockets.last());
        match socket.map(|socket| socket.send_to(&buffer[..length], info.to)) {
            // A full socket drops datagrams, as a network does.
            Some(Err(error)) if error.kind() != io::ErrorKind::WouldBlock => {
                return Err(error.into());
            }
            _ => {}
        }
    }
}
