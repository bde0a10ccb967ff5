//! The listeners of this host's kernel that connections are rewritten to.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use marline_http::tcp::socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

use super::segment::{ACK, Ends, RST, SYN, Segment, bare};
use crate::device::Burst;
use crate::device::{Device, Tun};
use crate::link::read;
use crate::packet::Header;
use crate::routing::{Family, Routing};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// The time for the kernel to answer, which takes an address into use when it has time.
const ANSWER: Duration = Duration::from_secs(3);

/// The interval at which it is asked.
const ASK: Duration = Duration::from_millis(100);

/// The pause after a connection could not be accepted: descriptors are missing.
const PAUSE: Duration = Duration::from_millis(100);

/// The port of the peer that tries a listener. Those of connections are others by their numbers of sequence at least.
const TRIAL: u16 = 1;

/// Why no listener can be used.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The system refuses address or socket.
    #[error("{0}")]
    System(#[from] io::Error),
    /// Packets to it do not arrive.
    #[error(
        "a firewall of this machine drops incoming connections on {device}; allow them, as with `nft add rule inet filter input \
         iifname {device} accept`"
    )]
    Unreachable {
        /// The device.
        device: String,
    },
}

/// A listener, and the address of the peer that its connections seem to come from. Both are of the device's link only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) own: SocketAddr,
    pub(super) peer: IpAddr,
}

/// Connections that are rewritten and not accepted yet, by the port of the peer.
type Waiting = Arc<Mutex<HashMap<u16, oneshot::Sender<TcpStream>>>>;

/// The listeners of a device.
pub(super) struct Local {
    sides: Vec<Side>,
    waiting: Waiting,
    /// Those who accept.
    _tasks: JoinSet<()>,
}

impl Local {
    /// Gives the device addresses, and listens at them.
    pub(super) async fn open(tun: &Tun, families: &[Family]) -> Result<Self, LocalError> {
        let mut local = Self {
            sides: Vec::new(),
            waiting: Waiting::default(),
            _tasks: JoinSet::new(),
        };
        for family in families {
            let (own, peer): (IpNet, IpAddr) = match family {
                Family::V4 => {
                    let own = ipnet::Ipv4Net::new_assert(Ipv4Addr::new(169, 254, 77, 1), 30);
                    (own.into(), Ipv4Addr::new(169, 254, 77, 2).into())
                }
                Family::V6 => {
                    let address = |last| Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, last);
                    let own = ipnet::Ipv6Net::new_assert(address(1), 64);
                    (own.into(), address(2).into())
                }
            };
            match Routing::open()?.add_address(tun.index(), own) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                added => added?,
            }
            let listener = listen(tun, own.addr())?;
            let own = SocketAddr::new(own.addr(), listener.local_addr()?.port());
            let side = Side { own, peer };
            if !answers(tun, side).await? {
                let device = tun.name().to_owned();
                return Err(LocalError::Unreachable { device });
            }
            local.sides.push(side);
            let waiting = Arc::clone(&local.waiting);
            local._tasks.spawn(accept(listener, waiting));
        }
        Ok(local)
    }

    /// The side for an address of this family.
    pub(super) fn side(&self, address: IpAddr) -> Option<Side> {
        let is_same = |side: &&Side| side.peer.is_ipv4() == address.is_ipv4();
        self.sides.iter().find(is_same).copied()
    }

    /// The connection from this port of the peer, once it is accepted.
    pub(super) fn expect(&self, port: u16) -> oneshot::Receiver<TcpStream> {
        let (accepted, stream) = oneshot::channel();
        lock(&self.waiting).insert(port, accepted);
        stream
    }

    /// The connection from this port is not expected any more.
    pub(super) fn forget(&self, port: u16) {
        lock(&self.waiting).remove(&port);
    }
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens at an address of the device, for packets from it only.
fn listen(tun: &Tun, own: IpAddr) -> io::Result<TcpListener> {
    let address = match own {
        IpAddr::V4(_) => SocketAddr::new(own, 0),
        IpAddr::V6(own) => SocketAddrV6::new(own, 0, 0, tun.index()).into(),
    };
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.bind_device(Some(tun.name().as_bytes()))?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Whether the kernel answers a connection to this side. Other packets of the device are dropped meanwhile.
async fn answers(tun: &Tun, side: Side) -> io::Result<bool> {
    let ends = Ends {
        source: SocketAddr::new(side.peer, TRIAL),
        destination: side.own,
    };
    let send = |packet: Option<Vec<u8>>| packet.map_or(Ok(()), |packet| tun.send(&packet));
    let mut burst = Burst::default();
    let mut asking = interval(ASK);
    let answered = timeout(ANSWER, async {
        loop {
            tokio::select! {
                _ = asking.tick() => {
                    send(bare(ends, 0, 0, SYN))?;
                    continue;
                }
                read = read(tun, &mut burst) => read?,
            }
            let packet = burst.packet();
            let header = Header::parse(packet);
            let segment = header.map(|header| Segment::parse(packet, &header));
            if let Ok(Some(segment)) = segment
                && segment.ends == ends.reversed()
            {
                return io::Result::Ok(segment);
            }
        }
    });
    let Ok(answer) = answered.await else {
        return Ok(false);
    };
    let answer = answer?;
    send(bare(ends, answer.acknowledgment, 0, RST))?;
    Ok(answer.flags & (SYN | ACK) == SYN | ACK)
}

async fn accept(listener: TcpListener, waiting: Waiting) {
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let expected = lock(&waiting).remove(&peer.port());
        let unexpected = match expected {
            Some(expected) => expected.send(stream).err(),
            None => Some(stream),
        };
        if let Some(stream) = unexpected {
            // It is reset. That fails if it has ended.
            let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
        }
    }
}
