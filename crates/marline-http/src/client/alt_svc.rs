//! Servers that others name for HTTP/3 (RFC 7838), and the file in which curl keeps them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use http::header::ALT_SVC;

use super::Origin;
use super::date::Date;
use super::network::Server;
use crate::authority::parse_port;
use crate::limits::MAX_KNOWN_HOSTS;

/// How long an alternative is valid if the server does not say (RFC 7838, section 3.1).
const DEFAULT_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Servers that origins have named as alternatives over HTTP/3. Connections to these origins are tried there first, under the name of
/// the origin.
#[derive(Debug, Default)]
pub struct AltServices(Mutex<BTreeMap<Place, Entry>>);

/// Host and port of an origin with TLS.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    host: String,
    port: u16,
}

#[derive(Clone, Debug)]
struct Entry {
    server: Server,
    /// Since 1970.
    expires: Duration,
    /// Whether it stays valid in another network.
    persist: bool,
}

impl AltServices {
    /// Adds the alternatives of a file. Lines that are malformed, or about other versions, are passed over.
    pub fn read(&self, text: &str) {
        let mut known = self.known();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut quoted = line.splitn(3, '"');
            let (Some(words), Some(date), Some(rest)) =
                (quoted.next(), quoted.next(), quoted.next())
            else {
                continue;
            };
            let words: Vec<_> = words.split_whitespace().collect();
            let [_, host, port, "h3", other, other_port] = words[..] else {
                continue;
            };
            let (Ok(port), Ok(other_port)) = (parse_port(port), parse_port(other_port)) else {
                continue;
            };
            let Some(Date(expires)) = Date::read(date) else {
                continue;
            };
            if known.len() < MAX_KNOWN_HOSTS {
                let place = Place {
                    host: host.to_ascii_lowercase(),
                    port,
                };
                let entry = Entry {
                    server: Server {
                        host: other.to_ascii_lowercase(),
                        port: other_port,
                    },
                    expires,
                    persist: rest.split_whitespace().next() == Some("1"),
                };
                known.insert(place, entry);
            }
        }
    }

    /// The alternatives as a file has them.
    pub fn to_text(&self) -> String {
        let mut text = String::from("# Your alt-svc cache. https://curl.se/docs/alt-svc.html\n");
        for (Place { host, port }, entry) in self.known().iter() {
            let Server {
                host: other,
                port: other_port,
            } = &entry.server;
            let (date, persist) = (Date(entry.expires), u8::from(entry.persist));
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "h2 {host} {port} h3 {other} {other_port} {date} {persist} 0"
            );
        }
        text
    }

    /// Keeps what a response of `origin` over TLS names at the time `now` since 1970.
    pub(super) fn keep(&self, origin: &Origin, headers: &HeaderMap, now: Duration) {
        for value in headers.get_all(ALT_SVC) {
            let Ok(value) = value.to_str() else { continue };
            let place = Place {
                host: origin.host().to_owned(),
                port: origin.port(),
            };
            let mut known = self.known();
            if value.trim() == "clear" {
                known.remove(&place);
                continue;
            }
            let found = value
                .split(',')
                .find_map(|text| alternative(text, origin, now));
            known.retain(|_, entry| entry.expires > now);
            match found {
                Some(entry) if known.len() < MAX_KNOWN_HOSTS => {
                    known.insert(place, entry);
                }
                _ => {}
            }
        }
    }

    /// The server to use for `origin` at the time `now` since 1970.
    pub(super) fn of(&self, origin: &Origin, now: Duration) -> Option<Server> {
        let place = Place {
            host: origin.host().to_owned(),
            port: origin.port(),
        };
        let known = self.known();
        let entry = known.get(&place).filter(|entry| entry.expires > now)?;
        Some(entry.server.clone())
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Place, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An alternative over HTTP/3, as `h3="HOST:PORT"; ma=SECONDS; persist=1`.
fn alternative(text: &str, origin: &Origin, now: Duration) -> Option<Entry> {
    let mut parameters = text.split(';').map(str::trim);
    let authority = parameters.next()?.strip_prefix("h3=")?.trim_matches('"');
    let (host, port) = authority.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut entry = Entry {
        server: Server {
            host: match host {
                "" => origin.host().to_owned(),
                host => host.to_ascii_lowercase(),
            },
            port: parse_port(port).ok().filter(|port| *port > 0)?,
        },
        expires: now.saturating_add(DEFAULT_AGE),
        persist: false,
    };
    for parameter in parameters {
        match parameter.split_once('=') {
            Some(("ma", age)) => {
                let age = age.trim_matches('"').parse().ok()?;
                entry.expires = now.saturating_add(Duration::from_secs(age));
            }
            Some(("persist", value)) => entry.persist = value == "1",
            _ => {}
        }
    }
    Some(entry)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::client::{HttpVersion, parse_url};

    const NOW: Duration = Duration::from_secs(1_800_000_000);

    fn origin(url: &str) -> Origin {
        parse_url(url, HttpVersion::Http3).unwrap().origin
    }

    fn named(value: &'static str) -> AltServices {
        let services = AltServices::default();
        let headers = HeaderMap::from_iter([(ALT_SVC, HeaderValue::from_static(value))]);
        services.keep(&origin("https://a.test/"), &headers, NOW);
        services
    }

    #[test]
    fn alternatives_over_http3_are_used_while_they_are_valid() {
        for (value, expected) in [
            ("h3=\":8443\"; ma=100", Some("a.test:8443")),
            ("h2=\"x:1\", h3=\"b.test:443\"", Some("b.test:443")),
            ("h2=\":443\"", None),
            ("h3=\":0\"", None),
            ("h3=\":x\"", None),
            ("clear", None),
        ] {
            let services = named(value);
            let server = services.of(&origin("https://a.test/"), NOW);
            let server = server.map(|server| format!("{}:{}", server.host, server.port));
            assert_eq!(server.as_deref(), expected, "{value}");
            assert!(services.of(&origin("https://a.test:444/"), NOW).is_none());
            let late = NOW + DEFAULT_AGE * 2;
            assert!(services.of(&origin("https://a.test/"), late).is_none());
        }
    }

    #[test]
    fn files_are_those_of_curl() {
        let text = named("h3=\"b.test:8443\"; ma=100; persist=1").to_text();
        let line = "h2 a.test 443 h3 b.test 8443 \"20270115 08:01:40\" 1 0\n";
        assert!(text.ends_with(line), "{text}");
        let other = AltServices::default();
        other.read(&text);
        assert_eq!(other.to_text(), text);
        other.read("h2 c.test 443 h2 d.test 443 \"20270115 08:01:40\" 1 0\nnonsense\n");
        assert_eq!(other.to_text(), text);
    }
}
