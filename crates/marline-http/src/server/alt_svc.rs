//! The place of HTTP/3 for clients of other versions (RFC 7838).

use http::header::{HOST, HeaderValue};
use http::{Request, Uri};

/// The time for which clients remember it, in seconds.
const MAX_AGE: u32 = 86_400;

/// The port of https.
const HTTPS: u16 = 443;

/// The field of responses over TCP at one address.
#[derive(Clone, Debug)]
pub(super) struct AltSvc {
    /// The port that the server listens on.
    port: u16,
    field: HeaderValue,
}

impl AltSvc {
    /// The field of a server that listens on `port`.
    pub(super) fn new(port: u16) -> Option<Self> {
        let field = field(port)?;
        Some(Self { port, field })
    }

    /// The field for a client that has reached the server at the port `asked`, which a container or a firewall may redirect.
    pub(super) fn of(&self, asked: u16) -> HeaderValue {
        match asked == self.port {
            true => self.field.clone(),
            false => field(asked).unwrap_or_else(|| self.field.clone()),
        }
    }

    /// The field for a client whose port is not known.
    pub(super) fn listening(&self) -> HeaderValue {
        self.field.clone()
    }
}

fn field(port: u16) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("h3=\":{port}\"; ma={MAX_AGE}")).ok()
}

/// The port of https that `request` was sent to, as it says.
pub(super) fn asked_port<B>(request: &Request<B>) -> Option<u16> {
    if let Some(authority) = request.uri().authority() {
        return Some(authority.port_u16().unwrap_or(HTTPS));
    }
    let host = request.headers().get(HOST)?;
    let host: Uri = host.to_str().ok()?.parse().ok()?;
    Some(host.port_u16().unwrap_or(HTTPS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_the_one_that_the_client_has_reached() {
        let alt_svc = AltSvc::new(8443).unwrap();
        let of = |port| alt_svc.of(port).to_str().unwrap().to_owned();
        assert_eq!(of(8443), "h3=\":8443\"; ma=86400");
        assert_eq!(of(443), "h3=\":443\"; ma=86400");
        for (uri, host, expected) in [
            ("https://a.test/", None, Some(443)),
            ("https://a.test:8443/", Some("b.test:1"), Some(8443)),
            ("/", Some("a.test"), Some(443)),
            ("/", Some("a.test:444"), Some(444)),
            ("/", Some("[2001:db8::1]:444"), Some(444)),
            ("/", Some("[2001:db8::1]"), Some(443)),
            ("/", None, None),
        ] {
            let mut request = Request::get(uri);
            if let Some(host) = host {
                request = request.header(HOST, host);
            }
            let request = request.body(()).unwrap();
            assert_eq!(asked_port(&request), expected, "{uri} {host:?}");
        }
    }
}
