//! Partial parser of a ClientHello, which a server reads before it creates TLS: the version determines the keys, and the name may
//! determine the configuration.

use marline_wire::params::{TransportParameters, VersionInformation};
use marline_wire::{Reader, Side, Truncated};

use crate::limits::MAX_CLIENT_HELLO;

/// Type of the handshake message (RFC 8446, section 4).
const CLIENT_HELLO: u8 = 1;

/// Type of the extension, and of names of hosts in it (RFC 6066, section 3).
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// Type of the extension (RFC 8446, section 4.2).
const EARLY_DATA: u16 = 42;

/// Type of the extension (RFC 9001, section 8.2).
const QUIC_TRANSPORT_PARAMETERS: u16 = 57;

/// The state of the bytes received so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Peeked {
    /// The message is incomplete.
    Incomplete,
    /// The message is complete.
    Complete(ClientHello),
    /// Not a ClientHello, or a malformed one: TLS reports the error.
    Malformed,
}

/// The parts of a ClientHello that determine version and configuration.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ClientHello {
    /// The client's Version Information, if it is valid.
    pub(super) versions: Option<VersionInformation>,
    /// Whether 0-RTT packets accompany it.
    pub(super) early_data: bool,
    /// The name that it asks for, in lower case.
    pub(super) server_name: Option<String>,
}

/// Reads the start of a client's CRYPTO stream.
pub(super) fn peek(bytes: &[u8]) -> Peeked {
    let Some((header, body)) = bytes.split_first_chunk::<4>() else {
        return Peeked::Incomplete;
    };
    let [kind, high, middle, low] = *header;
    let len = u32::from_be_bytes([0, high, middle, low]) as usize;
    if kind != CLIENT_HELLO || len > MAX_CLIENT_HELLO {
        return Peeked::Malformed;
    }
    match body.get(..len) {
        None => Peeked::Incomplete,
        Some(body) => read(body).map_or(Peeked::Malformed, Peeked::Complete),
    }
}

/// Reads the message without its header (RFC 8446, section 4.1.2).
fn read(body: &[u8]) -> Result<ClientHello, Truncated> {
    let mut reader = Reader::new(body);
    // Version of the record layer, and random bytes.
    reader.take(2 + 32)?;
    let session_id = reader.u8()?;
    reader.take(session_id.into())?;
    vector(&mut reader)?; // cipher suites
    let compression = reader.u8()?;
    reader.take(compression.into())?;
    let mut extensions = Reader::new(vector(&mut reader)?);
    let mut hello = ClientHello::default();
    while !extensions.is_empty() {
        let kind = u16::from_be_bytes(extensions.array()?);
        let content = vector(&mut extensions)?;
        match kind {
            SERVER_NAME => hello.server_name = server_name(content)?,
            EARLY_DATA => hello.early_data = true,
            QUIC_TRANSPORT_PARAMETERS => {
                let params = TransportParameters::decode(Side::Client, content);
                hello.versions = params.ok().and_then(|params| params.version_information);
            }
            _ => {}
        }
    }
    Ok(hello)
}

/// The name of a host in the extension, of which there is one. TLS refuses those that are none.
fn server_name(content: &[u8]) -> Result<Option<String>, Truncated> {
    let mut names = Reader::new(content);
    let mut names = Reader::new(vector(&mut names)?);
    let kind = names.u8()?;
    let name = vector(&mut names)?;
    let name = std::str::from_utf8(name).ok().filter(|_| kind == HOST_NAME);
    Ok(name.map(str::to_ascii_lowercase))
}

/// A byte vector with a length prefix of two bytes.
fn vector<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Truncated> {
    let len = u16::from_be_bytes(reader.array()?);
    reader.take(len.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use rustls::quic::{ClientConnection, Version};

    use super::*;
    use crate::testing::TestIdentity;

    fn hello_of(params: &TransportParameters) -> Vec<u8> {
        let config = Arc::new(TestIdentity::new(&["localhost"]).client(&[b"test"], None));
        let name = "localhost".try_into().unwrap();
        let mut encoded = Vec::new();
        params.encode(&mut encoded);
        let mut tls = ClientConnection::new(config, Version::V1, name, encoded).unwrap();
        let mut hello = Vec::new();
        tls.write_hs(&mut hello);
        hello
    }

    #[test]
    fn the_version_information_is_found_once_the_message_is_complete() {
        let information = VersionInformation {
            chosen: 1,
            available: vec![1, 0x6b33_43cf],
        };
        let hello = hello_of(&TransportParameters {
            version_information: Some(information.clone()),
            ..TransportParameters::default()
        });
        for len in 0..hello.len() {
            assert_eq!(peek(&hello[..len]), Peeked::Incomplete, "{len} bytes");
        }
        let expected = ClientHello {
            versions: Some(information),
            early_data: false,
            server_name: Some("localhost".to_owned()),
        };
        assert_eq!(peek(&hello), Peeked::Complete(expected));
    }

    #[test]
    fn a_client_without_the_parameter_has_no_version_information() {
        let hello = hello_of(&TransportParameters::default());
        let expected = ClientHello {
            server_name: Some("localhost".to_owned()),
            ..ClientHello::default()
        };
        assert_eq!(peek(&hello), Peeked::Complete(expected));
    }

    #[test]
    fn other_messages_and_absurd_lengths_are_left_to_tls() {
        assert_eq!(peek(&[2, 0, 0, 1, 0]), Peeked::Malformed);
        assert_eq!(peek(&[1, 1, 0, 0]), Peeked::Malformed);
        assert_eq!(peek(&[1, 0, 0, 1, 0]), Peeked::Malformed);
        assert_eq!(peek(&[1, 0, 0xff, 0xff]), Peeked::Incomplete);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_read_without_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let len = bytes.len().saturating_sub(4) as u16;
            if let Some(header) = bytes.first_chunk_mut::<4>() {
                let [high, low] = len.to_be_bytes();
                *header = [CLIENT_HELLO, 0, high, low];
            }
            let _ = peek(&bytes);
        }
    }
}
