//! Hosts that are only reached over TLS (RFC 6797), and the file in which curl keeps them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use http::header::STRICT_TRANSPORT_SECURITY;

use super::date::Date;
use crate::limits::MAX_KNOWN_HOSTS;

/// Hosts that have announced that they are only reached over TLS. `http` URLs of these become `https`.
#[derive(Debug, Default)]
pub struct Hsts(Mutex<BTreeMap<String, Entry>>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    subdomains: bool,
    /// Since 1970.
    expires: Duration,
}

impl Hsts {
    /// Adds the hosts of a file. Lines that are malformed are passed over.
    pub fn read(&self, text: &str) {
        let mut hosts = self.hosts();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, date)) = line.split_once(' ') else {
                continue;
            };
            let Some(expires) = Date::read(date.trim()) else {
                continue;
            };
            let host = name.trim_start_matches('.').to_ascii_lowercase();
            if hosts.len() < MAX_KNOWN_HOSTS {
                let subdomains = name.starts_with('.');
                hosts.insert(
                    host,
                    Entry {
                        subdomains,
                        expires: expires.0,
                    },
                );
            }
        }
    }

    /// The hosts as a file has them.
    pub fn to_text(&self) -> String {
        let mut text = String::from("# Your HSTS cache. https://curl.se/docs/hsts.html\n");
        for (host, entry) in self.hosts().iter() {
            let dot = if entry.subdomains { "." } else { "" };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{dot}{host} {}", Date(entry.expires));
        }
        text
    }

    /// Keeps what a response of `host` over TLS announces at the time `now` since 1970.
    pub(super) fn keep(&self, host: &str, headers: &HeaderMap, now: Duration) {
        let value = headers.get(STRICT_TRANSPORT_SECURITY);
        let Some(value) = value.and_then(|value| value.to_str().ok()) else {
            return;
        };
        // RFC 6797, section 8.1.1.
        if host.parse::<IpAddr>().is_ok() {
            return;
        }
        let mut subdomains = false;
        let mut seconds = None;
        for directive in value.split(';').map(str::trim) {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "includesubdomains" => subdomains = true,
                "max-age" => seconds = value.trim().trim_matches('"').parse::<u64>().ok(),
                _ => {}
            }
        }
        let mut hosts = self.hosts();
        match seconds {
            None => {}
            Some(0) => {
                hosts.remove(host);
            }
            Some(seconds) => {
                hosts.retain(|_, entry| entry.expires > now);
                if hosts.len() < MAX_KNOWN_HOSTS {
                    let expires = now.saturating_add(Duration::from_secs(seconds));
                    hosts.insert(
                        host.to_owned(),
                        Entry {
                            subdomains,
                            expires,
                        },
                    );
                }
            }
        }
    }

    /// Whether `host` is only reached over TLS at the time `now` since 1970.
    pub(super) fn covers(&self, host: &str, now: Duration) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let hosts = self.hosts();
        let mut name = host.as_str();
        loop {
            let known = hosts.get(name).filter(|entry| entry.expires > now);
            if known.is_some_and(|entry| entry.subdomains || name == host) {
                return true;
            }
            let Some((_, parent)) = name.split_once('.') else {
                return false;
            };
            name = parent;
        }
    }

    /// `url` with the scheme that its host demands (RFC 6797, section 8.3).
    pub(super) fn upgraded(&self, url: &str, now: Duration) -> Option<String> {
        let mut url = url::Url::parse(url)
            .ok()
            .filter(|url| url.scheme() == "http")?;
        if !self.covers(url.host_str()?, now) {
            return None;
        }
        url.set_scheme("https").ok()?;
        Some(url.to_string())
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const NOW: Duration = Duration::from_secs(1_800_000_000);

    fn announced(host: &str, value: &'static str) -> Hsts {
        let hsts = Hsts::default();
        let headers =
            HeaderMap::from_iter([(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(value))]);
        hsts.keep(host, &headers, NOW);
        hsts
    }

    #[test]
    fn hosts_and_their_subdomains_are_covered_while_they_say() {
        let later = NOW + Duration::from_secs(101);
        for (value, host, covered) in [
            ("max-age=100", "a.test", true),
            ("max-age=100", "b.a.test", false),
            ("max-age=100; includeSubDomains", "b.a.test", true),
            ("max-age=100; includeSubDomains", "nota.test", false),
            ("max-age=0", "a.test", false),
            ("max-age=x", "a.test", false),
        ] {
            let hsts = announced("a.test", value);
            assert_eq!(hsts.covers(host, NOW), covered, "{value} {host}");
            assert!(!hsts.covers(host, later));
        }
        assert!(!announced("192.0.2.1", "max-age=100").covers("192.0.2.1", NOW));
    }

    #[test]
    fn files_are_those_of_curl() {
        let hsts = announced("a.test", "max-age=100; includeSubDomains");
        let text = hsts.to_text();
        assert!(
            text.ends_with("\n.a.test \"20270115 08:01:40\"\n"),
            "{text}"
        );
        let other = Hsts::default();
        other.read(&text);
        let upgraded = other.upgraded("http://x.a.test:80/y", NOW);
        assert_eq!(upgraded.as_deref(), Some("https://x.a.test/y"));
        assert_eq!(other.upgraded("https://a.test/", NOW), None);
    }
}
