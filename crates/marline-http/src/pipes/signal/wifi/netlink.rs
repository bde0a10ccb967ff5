//! Dumps over generic netlink.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLA_HEADER_SIZE, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST,
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NlasIterator, ParseableParametrized,
};
use netlink_packet_generic::constants::GENL_ID_CTRL;
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use nix::errno::Errno;
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, connect, recv, send,
    setsockopt, socket,
};
use nix::sys::time::TimeVal;

use crate::limits::{MAX_NETLINK_MESSAGES, RADIO_ANSWER_TIMEOUT};

/// The most that the kernel puts into one datagram of a dump.
const DATAGRAM: usize = 32 << 10;

const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// `NL80211_ATTR_IFINDEX`.
const IFINDEX: u16 = 3;

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NetlinkError {
    /// The kernel's answer is an error, or there is none.
    #[error("netlink: {0}")]
    System(#[from] io::Error),
    /// It cannot be read.
    #[error("netlink: an answer cannot be decoded: {0}")]
    Malformed(#[from] DecodeError),
    #[error("netlink: an answer has more than {MAX_NETLINK_MESSAGES} messages")]
    TooLong,
}

impl NetlinkError {
    /// Whether the kernel reports that the requested object does not exist.
    pub(super) fn is_missing(&self) -> bool {
        let missing = [Errno::ENOENT, Errno::EPROTONOSUPPORT, Errno::EAFNOSUPPORT];
        match self {
            Self::System(error) => missing
                .iter()
                .any(|missing| error.raw_os_error() == Some(*missing as i32)),
            _ => false,
        }
    }
}

/// A message of a family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    command: u8,
    attributes: Vec<u8>,
}

impl Message {
    /// A request with attributes.
    fn new(command: u8, attributes: &[DefaultNla]) -> Self {
        let mut bytes = vec![0; attributes.buffer_len()];
        attributes.emit(&mut bytes);
        Self {
            command,
            attributes: bytes,
        }
    }

    /// The value of its first attribute of a kind.
    pub(super) fn get(&self, kind: u16) -> Option<&[u8]> {
        attribute(&self.attributes, kind)
    }
}

/// An attribute and its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attribute<'a> {
    pub(super) kind: u16,
    value: &'a [u8],
}

/// Attributes in a message, or in another attribute, up to the first that cannot be read.
pub(super) fn attributes(bytes: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    NlasIterator::new(bytes).map_while(|found| {
        let found = found.ok()?;
        let (kind, length) = (found.kind(), usize::from(found.length()));
        let value = found.into_inner().get(NLA_HEADER_SIZE..length)?;
        Some(Attribute { kind, value })
    })
}

/// The value of the first attribute of a kind.
pub(super) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    let mut found = attributes(bytes).filter(|attribute| attribute.kind == kind);
    found.next().map(|attribute| attribute.value)
}

impl GenlFamily for Message {
    // Families are known by the numbers that the kernel has given to them.
    fn family_name() -> &'static str {
        ""
    }

    fn command(&self) -> u8 {
        self.command
    }

    fn version(&self) -> u8 {
        1
    }
}

impl Emitable for Message {
    fn buffer_len(&self) -> usize {
        self.attributes.len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.attributes);
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Message {
    fn parse_with_param(attributes: &[u8], header: GenlHeader) -> Result<Self, DecodeError> {
        Ok(Self {
            command: header.cmd,
            attributes: attributes.to_vec(),
        })
    }
}

/// The messages of an answer, as its datagrams arrive.
#[derive(Debug, Default)]
pub(super) struct Answer {
    messages: Vec<Message>,
    /// Whether it is complete.
    pub(super) is_done: bool,
}

impl Answer {
    /// Takes a datagram; messages that do not answer request `sequence` are ignored.
    pub(super) fn take(&mut self, sequence: u32, datagram: &[u8]) -> Result<(), NetlinkError> {
        let mut rest = datagram;
        while !rest.is_empty() && !self.is_done {
            let message = NetlinkMessage::<GenlMessage<Message>>::deserialize(rest)?;
            // The kernel aligns messages.
            let length = (message.header.length as usize).next_multiple_of(4);
            rest = rest.get(length..).unwrap_or_default();
            if message.header.sequence_number != sequence {
                continue;
            }
            match message.payload {
                NetlinkPayload::InnerMessage(message) => {
                    if self.messages.len() >= MAX_NETLINK_MESSAGES {
                        return Err(NetlinkError::TooLong);
                    }
                    self.messages.push(message.payload);
                }
                NetlinkPayload::Error(error) if error.code.is_some() => {
                    return Err(error.to_io().into());
                }
                // A dump that fails ends with a negative number.
                NetlinkPayload::Done(done) if done.code < 0 => {
                    return Err(io::Error::from_raw_os_error(done.code.saturating_neg()).into());
                }
                NetlinkPayload::Done(_) | NetlinkPayload::Error(_) => self.is_done = true,
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn into_messages(self) -> Vec<Message> {
        self.messages
    }
}

/// A socket for the requests of one family.
pub(super) struct Socket {
    socket: OwnedFd,
    family: u16,
    sequence: u32,
}

impl Socket {
    /// Opens a socket, and requests the number of `family`.
    pub(super) fn open(family: &str) -> Result<Self, NetlinkError> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkGeneric,
        )
        .map_err(io::Error::from)?;
        let timeout = TimeVal::new(RADIO_ANSWER_TIMEOUT.as_secs().cast_signed(), 0);
        setsockopt(&socket, ReceiveTimeout, &timeout).map_err(io::Error::from)?;
        // Accepts only the kernel's messages.
        connect(socket.as_raw_fd(), &NetlinkAddr::new(0, 0)).map_err(io::Error::from)?;
        let mut opened = Self {
            socket,
            family: GENL_ID_CTRL,
            sequence: 0,
        };
        let mut name = family.as_bytes().to_vec();
        name.push(0);
        let request = Message::new(GET_FAMILY, &[DefaultNla::new(FAMILY_NAME, name)]);
        let answer = opened.ask(request, NLM_F_ACK)?;
        let found = answer.iter().find_map(|message| message.get(FAMILY_ID));
        let number = found.and_then(|bytes| bytes.try_into().ok());
        let number = number.ok_or_else(|| DecodeError::from("it has no number of a family"))?;
        opened.family = u16::from_ne_bytes(number);
        Ok(opened)
    }

    /// All messages that answer `command`; `about` is the index of an interface, or none.
    pub(super) fn dump(
        &mut self,
        command: u8,
        about: Option<u32>,
    ) -> Result<Vec<Message>, NetlinkError> {
        let about = about.map(|index| DefaultNla::new(IFINDEX, index.to_ne_bytes().to_vec()));
        self.ask(Message::new(command, about.as_slice()), NLM_F_DUMP)
    }

    fn ask(&mut self, request: Message, flags: u16) -> Result<Vec<Message>, NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = request.written(self.family, self.sequence, flags);
        send(self.socket.as_raw_fd(), &bytes, MsgFlags::empty()).map_err(io::Error::from)?;
        let mut answer = Answer::default();
        let mut datagram = vec![0; DATAGRAM];
        // One datagram has at least one message.
        for _ in 0..=MAX_NETLINK_MESSAGES {
            let length = recv(self.socket.as_raw_fd(), &mut datagram, MsgFlags::empty());
            let length = length.map_err(io::Error::from)?;
            answer.take(self.sequence, &datagram[..length])?;
            if answer.is_done {
                return Ok(answer.into_messages());
            }
        }
        Err(NetlinkError::TooLong)
    }
}

impl Message {
    /// As it is sent.
    fn written(self, family: u16, sequence: u32, flags: u16) -> Vec<u8> {
        let mut message = GenlMessage::from_payload(self);
        message.set_resolved_family_id(family);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = sequence;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_answers_and_names_no_family_that_it_has_not_got() {
        // Every kernel has the family of families.
        let mut socket = Socket::open("nlctrl").unwrap();
        assert_eq!(socket.family, GENL_ID_CTRL);
        let families = socket.dump(GET_FAMILY, None).unwrap();
        let mut names = families.iter().filter_map(|family| family.get(FAMILY_NAME));
        assert!(names.any(|name| name == b"nlctrl\0"));
        let error = Socket::open("none-such").err().unwrap();
        assert!(error.is_missing(), "{error}");
    }

    #[test]
    fn a_request_for_stations_is_written_as_the_kernel_reads_it() {
        // struct nlmsghdr (linux/netlink.h), struct genlmsghdr (linux/genetlink.h), NL80211_ATTR_IFINDEX = 4.
        let index = DefaultNla::new(IFINDEX, 4_u32.to_ne_bytes().to_vec());
        let bytes = Message::new(17, &[index]).written(0x1c, 2, NLM_F_DUMP);
        let wanted = [
            28_u32.to_ne_bytes(),
            (u32::from(0x1c_u16) | (0x301 << 16)).to_ne_bytes(),
            2_u32.to_ne_bytes(),
            [0; 4],
            [17, 1, 0, 0],
            (8_u32 | (3 << 16)).to_ne_bytes(),
            4_u32.to_ne_bytes(),
        ];
        // Two numbers of 16 bits in one of 32 are in this order on machines with the low byte first.
        if cfg!(target_endian = "little") {
            assert_eq!(bytes, wanted.concat());
        }
    }
}
