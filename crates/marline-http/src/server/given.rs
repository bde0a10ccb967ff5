//! Sockets that a server is given instead of binding them.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use socket2::SockRef;

/// Sockets that listen already: those of a manager of services, or of the process that this one replaces. Servers take what is
/// at their addresses ([`Server::bind_given`](super::Server::bind_given)).
#[derive(Debug, Default)]
pub struct GivenSockets {
    tcp: Vec<GivenSocket<TcpListener>>,
    udp: Vec<GivenSocket<UdpSocket>>,
    /// Whether another process uses them until it is asked to stop.
    are_in_use: bool,
}

#[derive(Debug)]
struct GivenSocket<S> {
    socket: S,
    address: SocketAddr,
    name: Option<String>,
}

/// A socket that no server has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedSocket {
    /// TCP or UDP.
    pub protocol: &'static str,
    /// The address that it is bound to.
    pub address: SocketAddr,
    /// Its name, if it has one.
    pub name: Option<String>,
}

impl fmt::Display for UnusedSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.protocol, self.address)?;
        match &self.name {
            Some(name) => write!(f, " ({name})"),
            None => Ok(()),
        }
    }
}

impl GivenSockets {
    /// None yet, of a process that still uses them.
    #[cfg(target_os = "linux")]
    pub(super) fn of_predecessor() -> Self {
        Self {
            are_in_use: true,
            ..Self::default()
        }
    }

    /// Whether another process uses them until it is asked to stop.
    pub(super) fn are_in_use(&self) -> bool {
        self.are_in_use
    }

    /// One that another process uses at an address that covers `address`, or is covered by it: all addresses of its port.
    pub(super) fn overlapping(&self, address: SocketAddr) -> Option<SocketAddr> {
        let addresses = self.addresses();
        if !self.are_in_use || addresses.contains(&address) {
            return None;
        }
        // [::] may have IPv4 as well.
        let covers = |all: SocketAddr, one: SocketAddr| {
            all.ip().is_unspecified() && (all.is_ipv6() || one.is_ipv4())
        };
        let is_overlapping = |other: &SocketAddr| {
            other.port() == address.port() && (covers(*other, address) || covers(address, *other))
        };
        addresses.into_iter().find(is_overlapping)
    }

    /// Adds a socket of TCP, which messages call `name`.
    ///
    /// # Errors
    /// It does not listen, or the system's error.
    pub fn add_tcp(&mut self, socket: TcpListener, name: Option<String>) -> io::Result<()> {
        // Whether it listens is not known everywhere.
        if matches!(SockRef::from(&socket).is_listener(), Ok(false)) {
            let problem = "it does not listen; a unit has Accept=no for it";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        self.tcp.push(GivenSocket {
            socket,
            address,
            name,
        });
        Ok(())
    }

    /// Adds a bound socket of UDP, which messages call `name`.
    ///
    /// # Errors
    /// The system's error.
    pub fn add_udp(&mut self, socket: UdpSocket, name: Option<String>) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        self.udp.push(GivenSocket {
            socket,
            address,
            name,
        });
        Ok(())
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.tcp.is_empty() && self.udp.is_empty()
    }

    /// The addresses of those that are left, each once.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let mut all = Vec::new();
        for UnusedSocket { address, .. } in self.unused() {
            if !all.contains(&address) {
                all.push(address);
            }
        }
        all
    }

    /// Those that no server has taken.
    pub fn unused(&self) -> Vec<UnusedSocket> {
        let tcp = self.tcp.iter().map(|given| given.unused("TCP"));
        let udp = self.udp.iter().map(|given| given.unused("UDP"));
        tcp.chain(udp).collect()
    }

    /// The most of one protocol at one address: a server needs a worker for each.
    pub(super) fn workers(&self) -> usize {
        let tcp = self.tcp.iter().map(|given| count(&self.tcp, given.address));
        let udp = self.udp.iter().map(|given| count(&self.udp, given.address));
        tcp.chain(udp).max().unwrap_or(0)
    }

    /// Takes the sockets of TCP at `address`, whose port 0 is any.
    pub(super) fn take_tcp(&mut self, address: SocketAddr) -> Vec<TcpListener> {
        take(&mut self.tcp, address)
    }

    /// Takes the sockets of UDP at `address`, whose port 0 is any.
    pub(super) fn take_udp(&mut self, address: SocketAddr) -> Vec<UdpSocket> {
        take(&mut self.udp, address)
    }
}

impl<S> GivenSocket<S> {
    fn unused(&self, protocol: &'static str) -> UnusedSocket {
        UnusedSocket {
            protocol,
            address: self.address,
            name: self.name.clone(),
        }
    }
}

fn count<S>(given: &[GivenSocket<S>], address: SocketAddr) -> usize {
    given.iter().filter(|one| one.address == address).count()
}

fn take<S>(given: &mut Vec<GivenSocket<S>>, wanted: SocketAddr) -> Vec<S> {
    let is_wanted = |address: SocketAddr| match wanted.port() {
        0 => address.ip() == wanted.ip(),
        _ => address == wanted,
    };
    let first = given.iter().find(|one| is_wanted(one.address));
    let Some(address) = first.map(|one| one.address) else {
        return Vec::new();
    };
    let taken = given.extract_if(.., |one| one.address == address);
    taken.map(|one| one.socket).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::*;

    const LOOPBACK: &str = "127.0.0.1:0";

    #[test]
    fn a_socket_is_taken_once_by_its_address_and_protocol() {
        let tcp = TcpListener::bind(LOOPBACK).unwrap();
        let address = tcp.local_addr().unwrap();
        let mut given = GivenSockets::default();
        given.add_tcp(tcp.try_clone().unwrap(), None).unwrap();
        given.add_tcp(tcp, None).unwrap();
        let other = UdpSocket::bind(LOOPBACK).unwrap();
        let elsewhere = other.local_addr().unwrap();
        given.add_udp(other, Some("web".to_owned())).unwrap();
        assert_eq!(given.addresses(), [address, elsewhere]);
        assert_eq!(given.workers(), 2);
        assert!(given.take_udp(address).is_empty() || address == elsewhere);
        assert_eq!(given.take_tcp(address).len(), 2);
        assert!(given.take_tcp(address).is_empty());
        let unused: Vec<_> = given.unused().iter().map(ToString::to_string).collect();
        assert_eq!(unused, [format!("UDP {elsewhere} (web)")]);
        assert_eq!(given.take_udp(LOOPBACK.parse().unwrap()).len(), 1);
        assert!(given.is_empty() && given.workers() == 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_address_that_covers_one_in_use_is_found() {
        let in_use = TcpListener::bind(LOOPBACK).unwrap();
        let one = in_use.local_addr().unwrap();
        let (v4, v6) = (Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED);
        let all = [v4.into(), v6.into()].map(|ip: IpAddr| SocketAddr::new(ip, one.port()));
        let others = ["[::1]:0", "127.0.0.2:0"].map(|other| {
            let other: SocketAddr = other.parse().unwrap();
            SocketAddr::new(other.ip(), one.port())
        });
        let mut given = GivenSockets::of_predecessor();
        given.add_tcp(in_use, None).unwrap();
        assert_eq!(all.map(|all| given.overlapping(all)), [Some(one); 2]);
        assert_eq!(others.map(|other| given.overlapping(other)), [None; 2]);
        assert_eq!(given.overlapping(one), None);
        given.are_in_use = false;
        assert_eq!(all.map(|all| given.overlapping(all)), [None; 2]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_socket_that_does_not_listen_is_refused() {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let refused = GivenSockets::default().add_tcp(socket.unwrap().into(), None);
        assert!(refused.unwrap_err().to_string().contains("does not listen"));
    }
}
