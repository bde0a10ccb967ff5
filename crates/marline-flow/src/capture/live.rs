//! Packets of a network interface of this machine, by a packet socket of Linux (packet(7)).

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind,
    recvmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;

use super::{LinkType, Packet};
use crate::limits::{MAX_PACKET, RECEIVE_BUFFER};

/// Types of hardware (`linux/if_arp.h`): Ethernet, loopback, nothing before IP as TUN devices and tunnels of IP have it, and 802.11
/// of interfaces that monitor.
const ARPHRD_ETHER: u16 = 1;
const ARPHRD_LOOPBACK: u16 = 772;
const ARPHRD_NONE: u16 = 0xfffe;
const ARPHRD_RAWIP: u16 = 519;
const ARPHRD_TUNNEL: u16 = 768;
const ARPHRD_TUNNEL6: u16 = 769;
const ARPHRD_SIT: u16 = 776;
const ARPHRD_IEEE80211: u16 = 801;
const ARPHRD_IEEE80211_RADIOTAP: u16 = 803;

/// The type of a packet that this machine sends (`linux/if_packet.h`).
const PACKET_OUTGOING: u8 = 4;

/// An interface whose packets are captured: those that this machine sends and receives.
#[derive(Debug)]
pub struct Live {
    socket: OwnedFd,
    link: LinkType,
    index: usize,
    /// Whether each packet is captured twice.
    is_loopback: bool,
    buffer: Vec<u8>,
    control: Vec<u8>,
    dropped: Dropped,
}

/// Packets that the kernel dropped, by a counter of 32 bits.
#[derive(Debug, Default)]
struct Dropped {
    total: u64,
    counter: u32,
}

/// An interface cannot be captured; the message names the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// There is no interface of this name.
    #[error("there is no interface `{name}`; there are {}", known.join(", "))]
    NoInterface {
        /// The name.
        name: String,
        /// Names of the existing interfaces.
        known: Vec<String>,
    },
    /// The capture is not permitted.
    #[error(
        "capturing on {name} is not permitted; run it as root, or give the program CAP_NET_RAW"
    )]
    NotPermitted {
        /// Its name.
        name: String,
    },
    /// Its packets begin with an unsupported header.
    #[error(
        "{name} is of hardware type {hardware}, whose packets cannot be read; capture on another interface"
    )]
    LinkType {
        /// Its name.
        name: String,
        /// The type (`linux/if_arp.h`).
        hardware: u16,
    },
    /// A system call failed, as when the interface goes down.
    #[error("capturing failed: {0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for LiveError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl Live {
    /// Begins to capture.
    ///
    /// # Errors
    ///
    /// [`LiveError`] if there is no such interface, or it cannot be captured.
    pub fn open(name: &str) -> Result<Self, LiveError> {
        let address = address(name)?;
        let link = match address.hatype() {
            ARPHRD_ETHER | ARPHRD_LOOPBACK => LinkType::Ethernet,
            ARPHRD_NONE | ARPHRD_RAWIP | ARPHRD_TUNNEL | ARPHRD_TUNNEL6 | ARPHRD_SIT => {
                LinkType::Raw
            }
            ARPHRD_IEEE80211 => LinkType::Wifi,
            ARPHRD_IEEE80211_RADIOTAP => LinkType::Radiotap,
            hardware => {
                let name = name.to_owned();
                return Err(LiveError::LinkType { name, hardware });
            }
        };
        let socket = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::EthAll,
        )
        .map_err(|error| match error {
            Errno::EPERM | Errno::EACCES => LiveError::NotPermitted {
                name: name.to_owned(),
            },
            error => error.into(),
        })?;
        // The system's limit is enough for most.
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER)?;
        }
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        bind(socket.as_raw_fd(), &address)?;
        Ok(Self {
            socket,
            link,
            index: address.ifindex(),
            is_loopback: address.hatype() == ARPHRD_LOOPBACK,
            buffer: vec![0; MAX_PACKET],
            control: cmsg_space!([TimeSpec; 1], [u32; 1]),
            dropped: Dropped::default(),
        })
    }

    /// The next packet; `None` if there is none within `wait`.
    ///
    /// # Errors
    ///
    /// [`LiveError::Io`] if the interface cannot be read any more.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Packet<'_>>, LiveError> {
        let mut has_waited = false;
        let received = loop {
            match self.receive()? {
                Some(received) if received.is_wanted => break received,
                Some(_) => {}
                None if has_waited => return Ok(None),
                None => {
                    let mut socket = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
                    let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
                    match poll(&mut socket, timeout) {
                        Ok(_) | Err(Errno::EINTR) => has_waited = true,
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        };
        Ok(Some(Packet {
            time_ns: received.time_ns,
            link: self.link,
            length: received.length,
            data: &self.buffer[..received.length.min(self.buffer.len())],
        }))
    }

    /// The number of packets lost because they were not read in time.
    pub fn dropped(&self) -> u64 {
        self.dropped.total
    }

    fn receive(&mut self) -> Result<Option<Received>, LiveError> {
        let mut buffers = [IoSliceMut::new(&mut self.buffer)];
        // The length is that on the link, whatever fits.
        let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
        let socket = self.socket.as_raw_fd();
        let message =
            match recvmsg::<LinkAddr>(socket, &mut buffers, Some(&mut self.control), flags) {
                Ok(message) => message,
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        // Packets of other interfaces may have come before the socket was bound.
        let is_wanted = message.address.is_some_and(|address| {
            let is_second = self.is_loopback && address.pkttype() == PACKET_OUTGOING;
            address.ifindex() == self.index && !is_second
        });
        let mut received = Received {
            time_ns: 0,
            length: message.bytes,
            is_wanted,
        };
        let mut counter = self.dropped.counter;
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::ScmTimestampns(time) => {
                    let seconds = u64::try_from(time.tv_sec()).unwrap_or_default();
                    let part = u64::try_from(time.tv_nsec()).unwrap_or_default();
                    received.time_ns = seconds * 1_000_000_000 + part;
                }
                ControlMessageOwned::RxqOvfl(dropped) => counter = dropped,
                _ => {}
            }
        }
        self.dropped.total += u64::from(counter.wrapping_sub(self.dropped.counter));
        self.dropped.counter = counter;
        Ok(Some(received))
    }
}

/// A packet in the buffer.
#[derive(Clone, Copy)]
struct Received {
    time_ns: u64,
    length: usize,
    is_wanted: bool,
}

/// The address of an interface on its link.
fn address(name: &str) -> Result<LinkAddr, LiveError> {
    let mut known = Vec::new();
    for interface in getifaddrs()? {
        let address = interface.address.as_ref();
        if let Some(address) = address.and_then(|address| address.as_link_addr()) {
            if interface.interface_name == name {
                return Ok(*address);
            }
            known.push(interface.interface_name);
        }
    }
    let name = name.to_owned();
    Err(LiveError::NoInterface { name, known })
}
