//! The PROXY protocol, by which load balancers name the clients of connections.
//!
//! Its specification is HAProxy's, versions 1 and 2.

use std::io;
use std::net::SocketAddr;

use ppp::{v1, v2};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::limits;
use crate::log::Level;
use crate::log::messages::{self, Frequent};
use crate::server::Context;
use crate::server::accept::Accepted;

/// The longest header of version 1, in bytes (section 2.1).
const LONGEST_V1: usize = 107;

/// The longest header of version 2 that is read, in bytes: addresses take 36 at most, the rest is about TLS and the like.
const LONGEST_V2: usize = 4096;

/// The bytes of version 2 before its addresses, of which the last two are the length of the rest (section 2.2).
const FIXED_V2: usize = 16;

/// Connections of trusted proxies whose headers have not arrived yet.
#[derive(Default)]
pub(super) struct Announced(JoinSet<Option<Accepted<TcpStream>>>);

impl Announced {
    /// Takes a connection that has to begin with a header; returns any other.
    pub(super) fn take(
        &mut self,
        context: &Context,
        accepted: Accepted<TcpStream>,
    ) -> Option<Accepted<TcpStream>> {
        let current = context.current.get();
        let Accepted { mut stream, client } = accepted;
        if !current.trusted.announce(client.ip()) {
            return Some(Accepted { stream, client });
        }
        if self.0.len() >= limits::MAX_ANNOUNCED {
            context.metrics.connection_refused();
            return None;
        }
        let wait = current.limits.handshake_timeout;
        self.0.spawn(async move {
            let reason = match timeout(wait, announced(&mut stream, client)).await {
                Ok(Ok(client)) => return Some(Accepted { stream, client }),
                // Balancers connect to see whether a server does.
                Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => return None,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it takes too long".to_owned(),
            };
            messages::emit_frequent(Level::Information, Frequent::ProxyHeader, || {
                format!("no header of the PROXY protocol can be read from {client}: {reason}")
            });
            None
        });
        None
    }

    /// The next one whose header has arrived; `None` without any. Safe to cancel.
    pub(super) async fn next(&mut self) -> Option<Accepted<TcpStream>> {
        while let Some(read) = self.0.join_next().await {
            if let Ok(Some(accepted)) = read {
                return Some(accepted);
            }
        }
        None
    }
}

/// Reads the header at the beginning of `stream`, and nothing after it. Returns the client that it names: `own`, the other end, for
/// connections that the balancer makes for itself.
///
/// # Errors
/// There is no header, or it is malformed.
async fn announced(
    stream: &mut (impl AsyncRead + Unpin),
    own: SocketAddr,
) -> io::Result<SocketAddr> {
    let mut header = vec![0; v2::PROTOCOL_PREFIX.len()];
    stream.read_exact(&mut header).await?;
    match header == v2::PROTOCOL_PREFIX {
        true => {
            header.resize(FIXED_V2, 0);
            stream
                .read_exact(&mut header[v2::PROTOCOL_PREFIX.len()..])
                .await?;
            let rest = usize::from(u16::from_be_bytes([header[14], header[15]]));
            if FIXED_V2 + rest > LONGEST_V2 {
                return Err(malformed("a header that is too long"));
            }
            header.resize(FIXED_V2 + rest, 0);
            stream.read_exact(&mut header[FIXED_V2..]).await?;
            of_v2(&header, own)
        }
        false => {
            while !header.ends_with(b"\r\n") {
                if header.len() >= LONGEST_V1 {
                    return Err(malformed("a header without an end"));
                }
                header.push(stream.read_u8().await?);
            }
            of_v1(&header, own)
        }
    }
}

fn malformed(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

fn of_v1(header: &[u8], own: SocketAddr) -> io::Result<SocketAddr> {
    let header = v1::Header::try_from(header).map_err(|why| malformed(why.to_string()))?;
    Ok(match header.addresses {
        v1::Addresses::Unknown => own,
        v1::Addresses::Tcp4(ip) => (ip.source_address, ip.source_port).into(),
        v1::Addresses::Tcp6(ip) => (ip.source_address, ip.source_port).into(),
    })
}

fn of_v2(header: &[u8], own: SocketAddr) -> io::Result<SocketAddr> {
    let header = v2::Header::try_from(header).map_err(|why| malformed(why.to_string()))?;
    Ok(match (header.command, header.addresses) {
        (v2::Command::Proxy, v2::Addresses::IPv4(ip)) => (ip.source_address, ip.source_port).into(),
        (v2::Command::Proxy, v2::Addresses::IPv6(ip)) => (ip.source_address, ip.source_port).into(),
        _ => own,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client that a connection of 10.0.0.1 is of, if it begins with `bytes`, and the bytes that follow.
    async fn read(mut bytes: &[u8]) -> io::Result<(String, &[u8])> {
        let own = "10.0.0.1:9".parse().unwrap();
        let client = announced(&mut bytes, own).await?;
        Ok((client.to_string(), bytes))
    }

    fn of_v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let mut header = v2::PROTOCOL_PREFIX.to_vec();
        header.extend([0x20 | command, family]);
        header.extend(u16::try_from(rest.len()).unwrap().to_be_bytes());
        header.extend(rest);
        header.extend(b"after");
        header
    }

    #[tokio::test]
    async fn headers_name_the_client_and_nothing_after_them_is_read() {
        let addresses = [192, 0, 2, 1, 10, 0, 0, 2, 0x12, 0x34, 1, 187];
        let with_extensions = [&addresses[..], &[4, 0, 2, 0, 0]].concat();
        let six = [
            &[0x20, 1, 0xd, 0xb8][..],
            &[0; 12],
            &[0; 16],
            &[0, 80, 1, 187],
        ]
        .concat();
        for (bytes, expected) in [
            (
                b"PROXY TCP4 192.0.2.1 10.0.0.2 4660 443\r\nafter".to_vec(),
                "192.0.2.1:4660",
            ),
            (
                b"PROXY TCP6 2001:db8::1 2001:db8::2 80 443\r\nafter".to_vec(),
                "[2001:db8::1]:80",
            ),
            (b"PROXY UNKNOWN\r\nafter".to_vec(), "10.0.0.1:9"),
            (of_v2(1, 0x11, &addresses), "192.0.2.1:4660"),
            (of_v2(1, 0x11, &with_extensions), "192.0.2.1:4660"),
            (of_v2(1, 0x21, &six), "[2001:db8::]:80"),
            (of_v2(0, 0x11, &addresses), "10.0.0.1:9"),
            (of_v2(1, 0, &[]), "10.0.0.1:9"),
        ] {
            let (client, rest) = read(&bytes).await.unwrap();
            assert_eq!((client.as_str(), rest), (expected, &b"after"[..]));
        }
    }

    #[tokio::test]
    async fn connections_without_a_whole_header_are_refused() {
        let endless = [&b"PROXY TCP4 "[..], &[b'1'; 200]].concat();
        for bytes in [
            &b""[..],
            b"PROXY TCP4 192.0.2.1",
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00\x00",
            b"PROXY TCP4 192.0.2.1 10.0.0.2 4660 70000\r\n",
            &endless,
            &of_v2(1, 0x11, &[1, 2, 3]),
            &of_v2(1, 0x11, &[0; 5000]),
            &of_v2(7, 0x11, &[0; 12]),
        ] {
            assert!(read(bytes).await.is_err(), "{bytes:?}");
        }
    }
}
