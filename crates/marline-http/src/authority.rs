//! Ports in authorities (RFC 3986, section 3.2.3).

use http::uri::Authority;

/// A port is not a number below 65536.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidPort;

/// The number that `text` has in decimal digits alone: the standard library also takes a sign.
///
/// # Errors
/// It has something else, or the number is too large.
pub(crate) fn parse_port(text: &str) -> Result<u16, InvalidPort> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = Some(text).filter(|_| is_number);
    number
        .and_then(|digits| digits.parse().ok())
        .ok_or(InvalidPort)
}

/// The port of `authority`; `None` if it has none or an empty one, which both mean the default of the scheme.
///
/// # Errors
/// It is not a number below 65536.
pub(crate) fn port_of(authority: &Authority) -> Result<Option<u16>, InvalidPort> {
    let text = authority.as_str();
    let address = text.rsplit_once('@').map_or(text, |(_, address)| address);
    let rest = address.strip_prefix(authority.host()).ok_or(InvalidPort)?;
    match rest.strip_prefix(':') {
        Some("") => Ok(None),
        Some(port) => parse_port(port).map(Some),
        None if rest.is_empty() => Ok(None),
        None => Err(InvalidPort),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_digits_or_empty() {
        for (text, port) in [
            ("a", Ok(None)),
            ("a:", Ok(None)),
            ("[::1]:", Ok(None)),
            ("[::1]", Ok(None)),
            ("a:0", Ok(Some(0))),
            ("[::1]:443", Ok(Some(443))),
            ("user:1@a:2", Ok(Some(2))),
            ("user:1@a", Ok(None)),
            ("a:065535", Ok(Some(65535))),
            ("a:65536", Err(InvalidPort)),
            ("a:+1", Err(InvalidPort)),
            ("a:-1", Err(InvalidPort)),
            ("a:b", Err(InvalidPort)),
        ] {
            let authority: Authority = text.parse().expect(text);
            assert_eq!(port_of(&authority), port, "{text}");
        }
    }
}
