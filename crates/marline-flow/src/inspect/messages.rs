//! Messages of TLS handshakes, as far as names and versions require (RFC 8446, section 4; RFC 5246, section 7.4).

use marline_wire::{Reader, Truncated};

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const ENCRYPTED_EXTENSIONS: u8 = 8;
const SERVER_HELLO_DONE: u8 = 14;
const FINISHED: u8 = 20;

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;

const TLS_1_3: u16 = 0x0304;

/// The random of a ServerHello that is a HelloRetryRequest (RFC 8446, section 4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// A message of a handshake.
#[derive(Clone, Copy, Debug)]
pub(super) enum Message<'a> {
    /// The client's first message.
    ClientHello(ClientHello<'a>),
    /// The server's answer.
    ServerHello(ServerHello<'a>),
    /// The protocol that the server chose, in TLS 1.3, if any.
    EncryptedExtensions(Option<&'a [u8]>),
    /// The end of the server's first flight in full handshakes before TLS 1.3.
    ServerHelloDone,
    /// The last message of an end.
    Finished,
    /// Anything else.
    Other,
}

/// The offers of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientHello<'a> {
    pub(super) random: [u8; 32],
    pub(super) server_name: Option<&'a [u8]>,
    /// A list of identifiers, each after its length.
    protocols: &'a [u8],
}

impl<'a> ClientHello<'a> {
    /// The identifiers of the protocols it offers.
    pub(super) fn protocols(&self) -> Vec<&'a [u8]> {
        let mut reader = Reader::new(self.protocols);
        let mut protocols = Vec::new();
        while let Ok(id) = prefixed_u8(&mut reader) {
            protocols.push(id);
        }
        protocols
    }
}

/// The choices of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerHello<'a> {
    pub(super) is_retry: bool,
    pub(super) is_tls13: bool,
    pub(super) cipher: u16,
    /// The protocol, before TLS 1.3.
    pub(super) protocol: Option<&'a [u8]>,
}

/// The reason why there is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoMessage {
    /// More bytes are needed.
    Incomplete,
    /// The bytes are not a message.
    Malformed,
}

/// Takes the next message.
pub(super) fn next<'a>(reader: &mut Reader<'a>) -> Result<Message<'a>, NoMessage> {
    let mut ahead = *reader;
    let (Ok(kind), Ok(length)) = (ahead.u8(), u24(&mut ahead)) else {
        return Err(NoMessage::Incomplete);
    };
    let body = ahead.take(length).map_err(|_| NoMessage::Incomplete)?;
    *reader = ahead;
    let message = match kind {
        CLIENT_HELLO => client_hello(body).map(Message::ClientHello),
        SERVER_HELLO => server_hello(body).map(Message::ServerHello),
        ENCRYPTED_EXTENSIONS => encrypted_extensions(body).map(Message::EncryptedExtensions),
        SERVER_HELLO_DONE => Ok(Message::ServerHelloDone),
        FINISHED => Ok(Message::Finished),
        _ => Ok(Message::Other),
    };
    message.map_err(|_| NoMessage::Malformed)
}

/// Whether one of the complete messages is wanted.
pub(super) fn any(messages: &[u8], is_wanted: impl Fn(&Message<'_>) -> bool) -> bool {
    let mut reader = Reader::new(messages);
    while let Ok(message) = next(&mut reader) {
        if is_wanted(&message) {
            return true;
        }
    }
    false
}

/// The ServerHello among messages that is not a HelloRetryRequest.
pub(super) fn find_server_hello(messages: &[u8]) -> Result<ServerHello<'_>, NoMessage> {
    let mut reader = Reader::new(messages);
    loop {
        match next(&mut reader)? {
            Message::ServerHello(hello) if hello.is_retry => {}
            Message::ServerHello(hello) => return Ok(hello),
            _ => return Err(NoMessage::Malformed),
        }
    }
}

fn u24(reader: &mut Reader<'_>) -> Result<usize, Truncated> {
    let [a, b, c] = reader.array()?;
    Ok(u32::from_be_bytes([0, a, b, c]) as usize)
}

fn u16(reader: &mut Reader<'_>) -> Result<u16, Truncated> {
    Ok(u16::from_be_bytes(reader.array()?))
}

fn prefixed_u8<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Truncated> {
    let length = reader.u8()?;
    reader.take(length.into())
}

fn prefixed_u16<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Truncated> {
    let length = u16(reader)?;
    reader.take(length.into())
}

/// Passes the relevant extensions of a message to `on`.
fn extensions<'a>(
    reader: &mut Reader<'a>,
    mut on: impl FnMut(u16, &'a [u8]) -> Result<(), Truncated>,
) -> Result<(), Truncated> {
    if reader.is_empty() {
        return Ok(());
    }
    let mut list = Reader::new(prefixed_u16(reader)?);
    while !list.is_empty() {
        let kind = u16(&mut list)?;
        on(kind, prefixed_u16(&mut list)?)?;
    }
    Ok(())
}

fn client_hello(body: &[u8]) -> Result<ClientHello<'_>, Truncated> {
    let mut reader = Reader::new(body);
    reader.take(2)?;
    let mut hello = ClientHello {
        random: reader.array()?,
        server_name: None,
        protocols: &[],
    };
    prefixed_u8(&mut reader)?;
    prefixed_u16(&mut reader)?;
    prefixed_u8(&mut reader)?;
    extensions(&mut reader, |kind, content| {
        let mut content = Reader::new(content);
        match kind {
            SERVER_NAME => {
                let mut names = Reader::new(prefixed_u16(&mut content)?);
                while !names.is_empty() {
                    let kind = names.u8()?;
                    let name = prefixed_u16(&mut names)?;
                    if kind == 0 {
                        hello.server_name = Some(name);
                    }
                }
            }
            ALPN => hello.protocols = prefixed_u16(&mut content)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(hello)
}

fn server_hello(body: &[u8]) -> Result<ServerHello<'_>, Truncated> {
    let mut reader = Reader::new(body);
    reader.take(2)?;
    let random: [u8; 32] = reader.array()?;
    prefixed_u8(&mut reader)?;
    let mut hello = ServerHello {
        is_retry: random == RETRY_RANDOM,
        is_tls13: false,
        cipher: u16(&mut reader)?,
        protocol: None,
    };
    reader.u8()?;
    extensions(&mut reader, |kind, content| {
        match kind {
            SUPPORTED_VERSIONS => hello.is_tls13 = content == TLS_1_3.to_be_bytes(),
            ALPN => hello.protocol = Some(chosen(content)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(hello)
}

fn encrypted_extensions(body: &[u8]) -> Result<Option<&[u8]>, Truncated> {
    let mut protocol = None;
    extensions(&mut Reader::new(body), |kind, content| {
        if kind == ALPN {
            protocol = Some(chosen(content)?);
        }
        Ok(())
    })?;
    Ok(protocol)
}

/// The one protocol in the list of a server.
fn chosen(content: &[u8]) -> Result<&[u8], Truncated> {
    let mut list = Reader::new(prefixed_u16(&mut Reader::new(content))?);
    prefixed_u8(&mut list)
}
