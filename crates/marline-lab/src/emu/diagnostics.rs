//! The TCP connections of a namespace, by netlink (`sock_diag(7)`).
//!
//! Replaces `ss`, without a program for each sample of the windows.

use std::io;

use netlink_packet_core::{NLM_F_DUMP, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags,
};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use super::netlink;
use crate::execution::{AcceptedConnections, TcpState};

/// Room for one part of a listing: the kernel's own limit of a part.
const PART: usize = 32 * 1024;

/// A listing of the connections that were accepted at some ports of a namespace.
pub(super) struct Diagnostics {
    socket: Socket,
    ports: Vec<u16>,
    part: Vec<u8>,
}

impl Diagnostics {
    /// Opens a socket for requests in the namespace of the calling thread.
    ///
    /// # Errors
    /// The system refuses a socket.
    pub(super) fn open(ports: Vec<u16>) -> io::Result<Self> {
        Ok(Self {
            socket: netlink::open(NETLINK_SOCK_DIAG)?,
            ports,
            part: Vec::with_capacity(PART),
        })
    }

    /// Adds the connections of sockets of a family to `states`.
    fn add(&mut self, family: u8, states: &mut Vec<TcpState>) -> io::Result<()> {
        let request = InetRequest {
            family,
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO,
            states: StateFlags::ESTABLISHED,
            socket_id: SocketId::new_v4(),
        };
        let request = SockDiagMessage::InetRequest(request);
        netlink::send(&self.socket, 0, NLM_F_DUMP, request)?;
        loop {
            self.part.clear();
            self.socket.recv(&mut self.part, 0)?;
            let mut rest = &self.part[..];
            while !rest.is_empty() {
                let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest);
                let message = message.map_err(io::Error::other)?;
                match message.payload {
                    NetlinkPayload::Done(done) if done.code == 0 => return Ok(()),
                    NetlinkPayload::Done(done) => {
                        return Err(io::Error::from_raw_os_error(-done.code));
                    }
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                        let port = response.header.socket_id.source_port;
                        let is_accepted = self.ports.contains(&port);
                        states.extend(is_accepted.then(|| state(&response)).flatten());
                    }
                    _ => {}
                }
                // Messages begin at multiples of four bytes.
                let len = (message.header.length as usize).next_multiple_of(4);
                rest = rest.get(len..).unwrap_or_default();
            }
        }
    }
}

impl AcceptedConnections for Diagnostics {
    fn list(&mut self) -> io::Result<Vec<TcpState>> {
        let mut states = Vec::new();
        // A server that listens for both has sockets of the second family for both.
        for family in [AF_INET, AF_INET6] {
            self.add(family, &mut states)?;
        }
        Ok(states)
    }
}

fn state(response: &InetResponse) -> Option<TcpState> {
    let id = &response.header.socket_id;
    let info = response.nlas.iter().find_map(|attribute| match attribute {
        Nla::TcpInfo(info) => Some(info),
        _ => None,
    })?;
    Some(TcpState {
        peer: (id.destination_address.to_canonical(), id.destination_port).into(),
        window: u64::from(info.snd_cwnd) * u64::from(info.snd_mss),
    })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};

    use super::*;

    /// The listing for a server that listens at `address` when a client has connected over IPv4.
    fn listed(address: SocketAddr) -> Option<(SocketAddr, Vec<TcpState>)> {
        let Ok(listener) = TcpListener::bind(address) else {
            println!("skipped: no sockets at {address}");
            return None;
        };
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let _accepted = listener.accept().unwrap();
        let connections = Diagnostics::open(vec![port]);
        match connections.and_then(|mut connections| connections.list()) {
            Ok(states) => Some((client.local_addr().unwrap(), states)),
            Err(error) => {
                println!("skipped: this kernel does not list its connections: {error}");
                None
            }
        }
    }

    #[test]
    fn accepted_connections_are_listed_with_their_windows() {
        for address in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::UNSPECIFIED.into()] {
            let Some((client, states)) = listed(SocketAddr::new(address, 0)) else {
                continue;
            };
            let [state] = states[..] else {
                panic!("one connection, listed: {states:?}");
            };
            assert_eq!(state.peer, client);
            assert!(state.window > 0);
        }
    }
}
