//! Sockets of TCP and of Multipath TCP (RFC 8684).

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

pub use socket2;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

#[cfg_attr(not(target_os = "linux"), path = "tcp/no_acknowledged.rs")]
mod acknowledged;
#[cfg(target_os = "linux")]
mod multipath;

pub(crate) use self::acknowledged::Acknowledged;

/// Connections that wait to be accepted; what std and tokio use.
pub(crate) const BACKLOG: u32 = 1024;

/// The transport of HTTP over TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TcpProtocol {
    /// TCP.
    #[default]
    Tcp,
    /// Multipath TCP of the kernel.
    Multipath,
}

/// Creates the sockets of clients and servers, for example in another network namespace, or with options.
pub trait TcpSockets: fmt::Debug + Send + Sync + 'static {
    /// A socket of the family of `address`, neither bound nor connected.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::Unsupported`] if there is no Multipath TCP.
    fn socket(&self, address: SocketAddr, protocol: TcpProtocol) -> io::Result<Socket>;
}

/// Sockets of the network namespace of the calling thread, with the system's default options.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemSockets;

impl TcpSockets for SystemSockets {
    fn socket(&self, address: SocketAddr, protocol: TcpProtocol) -> io::Result<Socket> {
        let protocol = match protocol {
            TcpProtocol::Tcp => Protocol::TCP,
            TcpProtocol::Multipath => multipath_protocol()?,
        };
        Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))
    }
}

/// Whether `error` means that this system has no Multipath TCP, or that it is disabled.
pub(crate) fn has_no_multipath(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let known = [Errno::PROTONOSUPPORT, Errno::NOPROTOOPT, Errno::INVAL];
    error.kind() == io::ErrorKind::Unsupported
        || Errno::from_io_error(error).is_some_and(|errno| known.contains(&errno))
}

/// Connects a new socket of `sockets` to `remote`, from the address `local` if it is given.
pub(crate) async fn connect(
    sockets: &dyn TcpSockets,
    local: Option<IpAddr>,
    remote: SocketAddr,
    protocol: TcpProtocol,
) -> io::Result<TcpStream> {
    let socket = usable(sockets.socket(remote, protocol)?)?;
    if let Some(local) = local {
        socket.bind(SocketAddr::new(local, 0))?;
    }
    socket.connect(remote).await
}

/// Listens at `address`.
pub(crate) fn listen(
    sockets: &dyn TcpSockets,
    address: SocketAddr,
    protocol: TcpProtocol,
) -> io::Result<TcpListener> {
    bind_one(sockets, address, protocol, false)?.listen(BACKLOG)
}

/// Binds `count` sockets to `address`, at least one; the kernel distributes connections over those that listen. Port 0 selects
/// a free one for all.
pub(crate) fn bind(
    sockets: &dyn TcpSockets,
    address: SocketAddr,
    protocol: TcpProtocol,
    count: usize,
) -> io::Result<Vec<TcpSocket>> {
    let first = bind_one(sockets, address, protocol, false)?;
    let address = first.local_addr()?;
    if count > 1 {
        // Only now, for a socket that may share an address when it is bound does not find out that it is in use.
        share_port(&first)?;
    }
    let mut bound = vec![first];
    for _ in 1..count {
        bound.push(bind_one(sockets, address, protocol, true)?);
    }
    Ok(bound)
}

fn bind_one(
    sockets: &dyn TcpSockets,
    address: SocketAddr,
    protocol: TcpProtocol,
    shares_port: bool,
) -> io::Result<TcpSocket> {
    let socket = usable(sockets.socket(address, protocol)?)?;
    // As std does: a server can be started again while connections of the last one are closing.
    if cfg!(unix) {
        socket.set_reuseaddr(true)?;
    }
    if shares_port {
        share_port(&socket)?;
    }
    socket.bind(address)?;
    Ok(socket)
}

#[cfg(target_os = "linux")]
fn share_port(socket: &TcpSocket) -> io::Result<()> {
    socket.set_reuseport(true)
}

#[cfg(not(target_os = "linux"))]
fn share_port(_: &TcpSocket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A handle of the socket of `stream`, by which its subflows can be counted.
pub(crate) fn handle(stream: &TcpStream) -> io::Result<Socket> {
    socket2::SockRef::from(stream).try_clone()
}

/// The subflows of a connection over Multipath TCP.
///
/// # Errors
/// The connection is one of TCP: the peer has no Multipath TCP, or the network removes its options.
pub(crate) fn subflows(socket: &Socket) -> io::Result<u32> {
    #[cfg(target_os = "linux")]
    return multipath::subflows(socket);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = socket;
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn usable(socket: Socket) -> io::Result<TcpSocket> {
    socket.set_nonblocking(true)?;
    Ok(TcpSocket::from_std_stream(socket.into()))
}

fn multipath_protocol() -> io::Result<Protocol> {
    #[cfg(target_os = "linux")]
    return Ok(Protocol::MPTCP);
    #[cfg(not(target_os = "linux"))]
    Err(io::ErrorKind::Unsupported.into())
}
