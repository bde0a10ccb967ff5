//! The messages of an upgrade.
//!
//! | from | message | has |
//! | --- | --- | --- |
//! | old | hello | how many sockets follow, and the secret of keys |
//! | old | sockets | file descriptors; the new process starts after these messages are sent |
//! | new | ready | it has read its configuration, and has its sockets: the addresses where it will read datagrams |
//! | old | go | it reads no more datagrams there |
//! | new | serving | it begins to read datagrams |
//! | new | datagram | one of a connection that the new process does not have |
//! | new | running | it accepts connections, on all of its workers |
//!
//! Until `running`, the old process accepts connections as well, and serves as before if the new one ends. If the old one ends
//! at any time, the new one serves alone.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use marline::PassedDatagram;
use marline::proto::{EcnCodepoint, FourTuple};
use serde::{Deserialize, Serialize};

/// The protocol of these messages. Another one is refused, and the old process goes on.
const FORMAT: u32 = 2;

/// The largest message: a datagram of the greatest length, with its addresses.
pub(super) const MAX_MESSAGE: usize = (1 << 16) + HEAD;

/// Kind, ECN codepoint, and three addresses.
const HEAD: usize = 2 + 3 * ADDRESS;

/// Family, IP, port, and the zone of a link-local address.
const ADDRESS: usize = 1 + 16 + 2 + 4;

pub(super) const SOCKETS: &[u8] = b"s";
pub(super) const GO: &[u8] = b"g";
pub(super) const SERVING: &[u8] = b"v";
pub(super) const RUNNING: &[u8] = b"u";
const HELLO: u8 = b'h';
const READY: u8 = b'r';
const DATAGRAM: u8 = b'd';

/// The first message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// Sockets that follow.
    pub(super) sockets: usize,
    /// The secret of which keys are made that are in no directory.
    pub(super) secret: [u8; 32],
}

#[derive(Serialize, Deserialize)]
struct WrittenHello {
    format: u32,
    sockets: usize,
    secret: String,
}

/// A datagram for the other process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OfEndpoint {
    /// The address that its endpoint is bound to.
    pub(super) bound: SocketAddr,
    pub(super) datagram: PassedDatagram,
}

fn malformed(problem: &str) -> io::Error {
    let problem = format!("a message of the other process cannot be read: {problem}");
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

impl Hello {
    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        let written = WrittenHello {
            format: FORMAT,
            sockets: self.sockets,
            secret: STANDARD.encode(self.secret),
        };
        let mut message = vec![HELLO];
        serde_json::to_writer(&mut message, &written)?;
        Ok(message)
    }

    pub(super) fn decode(message: &[u8]) -> io::Result<Self> {
        let Some((&HELLO, text)) = message.split_first() else {
            return Err(malformed("it is not the first one"));
        };
        let written: WrittenHello =
            serde_json::from_slice(text).map_err(|error| malformed(&error.to_string()))?;
        if written.format != FORMAT {
            return Err(malformed("it is of another release"));
        }
        let secret = STANDARD.decode(written.secret).ok();
        let secret = secret.and_then(|secret| secret.try_into().ok());
        Ok(Self {
            sockets: written.sockets,
            secret: secret.ok_or_else(|| malformed("its secret"))?,
        })
    }
}

/// Encodes the message that the endpoints at the addresses `taken` will be read.
pub(super) fn encode_ready(taken: impl IntoIterator<Item = SocketAddr>) -> Vec<u8> {
    let mut message = vec![READY];
    for address in taken {
        encode_address(address, &mut message);
    }
    message
}

/// The addresses of [`encode_ready`].
pub(super) fn decode_ready(message: &[u8]) -> io::Result<Vec<SocketAddr>> {
    let Some((&READY, addresses)) = message.split_first() else {
        return Err(malformed("it does not say that the process is ready"));
    };
    let mut addresses = addresses.chunks_exact(ADDRESS);
    let decoded: Option<_> = addresses.by_ref().map(decode_address).collect();
    decoded
        .filter(|_| addresses.remainder().is_empty())
        .ok_or_else(|| malformed("its addresses"))
}

/// Encodes `datagram` of the endpoint that is bound to `bound` into parts of a message.
pub(super) fn encode_datagram<T>(
    bound: SocketAddr,
    datagram: &PassedDatagram,
    send: impl FnOnce(&[IoSlice<'_>]) -> T,
) -> T {
    let mut head = Vec::with_capacity(HEAD);
    head.push(DATAGRAM);
    head.push(datagram.ecn.map_or(0, |ecn| ecn as u8));
    for address in [bound, datagram.tuple.local, datagram.tuple.remote] {
        encode_address(address, &mut head);
    }
    send(&[IoSlice::new(&head), IoSlice::new(&datagram.payload)])
}

/// Decodes a datagram; `None` if the message is not a datagram.
pub(super) fn decode_datagram(message: &[u8]) -> Option<OfEndpoint> {
    let (head, payload) = message.split_at_checked(HEAD)?;
    let (&[DATAGRAM, ecn], addresses) = head.split_first_chunk()? else {
        return None;
    };
    let ecn = match ecn {
        0 => None,
        ecn => {
            let all = [EcnCodepoint::Ect0, EcnCodepoint::Ect1, EcnCodepoint::Ce];
            Some(all.into_iter().find(|known| *known as u8 == ecn)?)
        }
    };
    let mut addresses = addresses.chunks_exact(ADDRESS).map(decode_address);
    let mut next = || addresses.next().flatten();
    Some(OfEndpoint {
        bound: next()?,
        datagram: PassedDatagram {
            tuple: FourTuple {
                local: next()?,
                remote: next()?,
            },
            ecn,
            payload: payload.to_vec(),
        },
    })
}

fn encode_address(address: SocketAddr, out: &mut Vec<u8>) {
    let (family, ip, zone) = match address {
        SocketAddr::V4(address) => (4, address.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(address) => (6, *address.ip(), address.scope_id()),
    };
    out.push(family);
    out.extend(ip.octets());
    out.extend(address.port().to_be_bytes());
    out.extend(zone.to_be_bytes());
}

fn decode_address(bytes: &[u8]) -> Option<SocketAddr> {
    let (&[family], rest) = bytes.split_first_chunk()?;
    let (ip, rest) = rest.split_first_chunk::<16>()?;
    let (port, zone) = rest.split_first_chunk()?;
    let port = u16::from_be_bytes(*port);
    let zone = u32::from_be_bytes(zone.try_into().ok()?);
    match (family, IpAddr::from(*ip)) {
        (4, ip) => Some(SocketAddr::new(ip.to_canonical(), port)),
        (6, IpAddr::V6(ip)) => Some(SocketAddrV6::new(ip, port, 0, zone).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_message_is_read_as_it_was_written() {
        let hello = Hello {
            sockets: 7,
            secret: [9; 32],
        };
        let message = hello.encode().unwrap();
        assert_eq!(Hello::decode(&message).unwrap(), hello);
        let text = String::from_utf8(message).unwrap();
        for other in [
            text.replace("\"format\":2", "\"format\":1"),
            text.replace("CQkJ", ""),
            text[1..].to_owned(),
            "h{}".to_owned(),
            String::new(),
        ] {
            assert!(Hello::decode(other.as_bytes()).is_err(), "{other}");
        }
    }

    #[test]
    fn the_addresses_that_are_taken_are_read_as_they_were_written() {
        let taken: Vec<SocketAddr> = ["192.0.2.1:443", "[fe80::1%7]:65535"]
            .map(|text| text.parse().unwrap())
            .into();
        let message = encode_ready(taken.clone());
        assert_eq!(decode_ready(&message).unwrap(), taken);
        assert_eq!(decode_ready(&encode_ready([])).unwrap(), []);
        assert!(decode_ready(&message[..message.len() - 1]).is_err());
        assert!(decode_ready(SERVING).is_err() && decode_ready(&[]).is_err());
    }

    #[test]
    fn datagrams_are_read_as_they_were_written() {
        for (text, ecn) in [
            ("192.0.2.1:443", None),
            ("[2001:db8::1]:1", Some(EcnCodepoint::Ce)),
            ("[fe80::1%7]:65535", Some(EcnCodepoint::Ect0)),
            ("[::ffff:192.0.2.1]:443", Some(EcnCodepoint::Ect1)),
        ] {
            let address: SocketAddr = text.parse().unwrap();
            let datagram = PassedDatagram {
                tuple: FourTuple {
                    local: address,
                    remote: "198.51.100.1:9".parse().unwrap(),
                },
                ecn,
                payload: vec![1, 2, 3],
            };
            let message = encode_datagram(address, &datagram, |parts| {
                let parts: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
                parts.concat()
            });
            let expected = OfEndpoint {
                bound: address,
                datagram,
            };
            assert_eq!(decode_datagram(&message), Some(expected));
            for len in 0..HEAD {
                assert_eq!(decode_datagram(&message[..len]), None);
            }
            let mut wrong = message;
            wrong[1] = 4;
            assert_eq!(decode_datagram(&wrong), None);
        }
        assert_eq!(decode_datagram(SERVING), None);
    }
}
