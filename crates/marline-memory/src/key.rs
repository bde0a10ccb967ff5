//! Encoding of record keys.

use std::fmt::{self, Write};
use std::net::IpAddr;

use marline_proto::Prefix;
use marline_proto::coordination::history::PathKey;

/// The first part of an encoded key: the version of the encoding.
const VERSION: &str = "1";

/// The network part of a key without a network.
const ANYWHERE: &str = "any";

/// Maximum length of a server name in bytes (RFC 1035, section 2.3.4).
const MAX_SERVER_NAME: usize = 255;

/// Maximum length of an encoded key in bytes: every byte of the server name may take three.
pub(crate) const MAX_KEY: usize = 1 + 1 + 39 + 1 + 3 + 1 + 3 * MAX_SERVER_NAME;

/// Encodes a key as `1/NETWORK/BITS/SERVER`, for example `1/192.0.2.0/24/example.org`, or `1/any` without
/// network and server name. In the server name every byte except lower-case letters, digits, dot, hyphen
/// and underscore is percent-encoded (RFC 3986, section 2.1), so that no name can be mistaken for
/// another part of the key or of a protocol.
///
/// `None` if the server name is too long to be valid.
pub(crate) fn encode(key: &PathKey) -> Option<String> {
    let name = key.server_name.as_deref();
    if name.is_some_and(|name| name.len() > MAX_SERVER_NAME) {
        return None;
    }
    let mut text = String::new();
    write(&mut text, key.network, name).ok()?;
    Some(text)
}

fn write(text: &mut String, network: Option<Prefix>, name: Option<&str>) -> fmt::Result {
    match network {
        Some(network) => write!(text, "{VERSION}/{}/{}", network.address(), network.bits())?,
        None => write!(text, "{VERSION}/{ANYWHERE}")?,
    }
    let Some(name) = name else {
        return Ok(());
    };
    text.push('/');
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_' => text.push(char::from(byte)),
            _ => write!(text, "%{byte:02X}")?,
        }
    }
    Ok(())
}

/// Decodes an encoded key. Only the result of [`encode`] is accepted, so that encodings are unique.
pub(crate) fn decode(text: &[u8]) -> Option<PathKey> {
    if text.len() > MAX_KEY {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    let (version, rest) = text.split_once('/')?;
    if version != VERSION {
        return None;
    }
    let mut parts = rest.split('/');
    let network = match parts.next()? {
        ANYWHERE => None,
        address => {
            let address: IpAddr = address.parse().ok()?;
            Some(Prefix::new(address, parts.next()?.parse().ok()?))
        }
    };
    let server_name = match parts.next() {
        Some(name) => Some(unescape(name)?.into_boxed_str()),
        None => None,
    };
    let key = PathKey {
        network,
        server_name,
    };
    (encode(&key)? == text).then_some(key)
}

fn unescape(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        rest = behind;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
