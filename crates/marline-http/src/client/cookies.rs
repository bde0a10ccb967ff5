//! Cookies (RFC 6265), and the file format of Netscape in which curl keeps them.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cookie_store::{Cookie, CookieDomain, CookieExpiration, CookieStore, RawCookie};
use http::header::SET_COOKIE;
use http::{HeaderMap, HeaderValue, Uri};
use time::OffsetDateTime;
use url::Url;

use crate::file::read_regular_file;
use crate::limits::{MAX_COOKIE_FILE, MAX_COOKIES};

/// Where Debian, Fedora and others have the list of domains under which anyone can register a name.
const PUBLIC_SUFFIXES: [&str; 2] = [
    "/usr/share/publicsuffix/public_suffix_list.dat",
    "/usr/share/publicsuffix/effective_tld_names.dat",
];

/// The prefix of a domain in a file, for cookies that scripts do not see.
const HTTP_ONLY: &str = "#HttpOnly_";

/// The cookies of a client. Those of a public suffix, such as `co.uk`, are refused where the system has the list of them
/// (<https://publicsuffix.org>); without it, those of a name without a dot.
#[derive(Debug, Default)]
pub struct CookieJar(Mutex<CookieStore>);

impl CookieJar {
    /// A jar without cookies.
    pub fn new() -> Self {
        let suffixes = PUBLIC_SUFFIXES.iter().find_map(|path| {
            let text = std::fs::read_to_string(path).ok()?;
            text.parse::<publicsuffix::List>().ok()
        });
        Self(Mutex::new(CookieStore::new_with_public_suffix(suffixes)))
    }

    /// Adds the cookies of a file, in the format of Netscape or as lines of `Set-Cookie`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self, path: &Path) -> io::Result<()> {
        let content = read_regular_file(path, MAX_COOKIE_FILE)?;
        let mut store = self.store();
        for line in String::from_utf8_lossy(&content).lines() {
            let Some(Line { cookie, url }) = Line::read(line) else {
                continue;
            };
            if count(&store) < MAX_COOKIES {
                // A cookie that the rules refuse.
                let _ = store.insert_raw(&cookie, &url);
            }
        }
        Ok(())
    }

    /// Removes the cookies that end with the session.
    pub fn end_session(&self) {
        let mut store = self.store();
        let keys: Vec<_> = store
            .iter_any()
            .filter(|cookie| !cookie.is_persistent())
            .map(Key::of)
            .collect();
        for key in keys {
            store.remove(&key.domain, &key.path, &key.name);
        }
    }

    /// The cookies in the format of Netscape.
    pub fn to_netscape(&self) -> String {
        let mut text = String::from("# Netscape HTTP Cookie File\n\n");
        for cookie in self.store().iter_unexpired() {
            let (domain, subdomains) = match &cookie.domain {
                CookieDomain::HostOnly(host) => (host.clone(), "FALSE"),
                CookieDomain::Suffix(suffix) => (format!(".{suffix}"), "TRUE"),
                _ => continue,
            };
            let expires = match &cookie.expires {
                CookieExpiration::AtUtc(time) => time.unix_timestamp(),
                CookieExpiration::SessionEnd => 0,
            };
            let http_only = match cookie.http_only() {
                Some(true) => HTTP_ONLY,
                _ => "",
            };
            let secure = match cookie.secure() {
                Some(true) => "TRUE",
                _ => "FALSE",
            };
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{http_only}{domain}\t{subdomains}\t{}\t{secure}\t{expires}\t{}\t{}",
                &*cookie.path,
                cookie.name(),
                cookie.value()
            );
        }
        text
    }

    /// The value of `Cookie` for a request to `uri`, with the cookies that the request has already.
    pub(super) fn field(&self, uri: &Uri, own: Option<&HeaderValue>) -> Option<HeaderValue> {
        let url = Url::parse(&uri.to_string()).ok()?;
        let store = self.store();
        let mut pairs: Vec<_> = store
            .get_request_values(&url)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        pairs.sort_unstable();
        let own = own.map(|own| String::from_utf8_lossy(own.as_bytes()).into_owned());
        pairs.extend(own);
        if pairs.is_empty() {
            return None;
        }
        let mut value = HeaderValue::try_from(pairs.join("; ")).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Keeps the cookies of a response to a request to `uri`.
    pub(super) fn keep(&self, uri: &Uri, headers: &HeaderMap) {
        let fields = headers.get_all(SET_COOKIE);
        if fields.iter().next().is_none() {
            return;
        }
        let Ok(url) = Url::parse(&uri.to_string()) else {
            return;
        };
        let mut store = self.store();
        for field in fields {
            let Ok(cookie) = RawCookie::parse(String::from_utf8_lossy(field.as_bytes())) else {
                continue;
            };
            if is_single_label(cookie.domain(), &url)
                || !is_safe(&cookie, &url, &store)
                || count(&store) >= MAX_COOKIES
            {
                continue;
            }
            // A cookie that the rules refuse is none.
            let _ = store.insert_raw(&cookie.into_owned(), &url);
        }
    }

    fn store(&self) -> MutexGuard<'_, CookieStore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a cookie is for all hosts below a name without a dot, which is not the host itself.
fn is_single_label(domain: Option<&str>, url: &Url) -> bool {
    let Some(domain) = domain else { return false };
    let domain = domain.trim_start_matches('.');
    !domain.contains('.') && url.host_str() != Some(domain)
}

/// Whether `cookie` keeps what `Secure` and prefixes of names promise (RFC 6265bis, section 5.7): without TLS, nobody sets or replaces
/// a cookie of TLS.
fn is_safe(cookie: &RawCookie<'_>, url: &Url, store: &CookieStore) -> bool {
    let is_secure = cookie.secure() == Some(true);
    if cookie.name().starts_with("__Secure-") && !is_secure {
        return false;
    }
    let is_of_host = cookie.domain().is_none() && cookie.path() == Some("/");
    if cookie.name().starts_with("__Host-") && !(is_secure && is_of_host) {
        return false;
    }
    if url.scheme() == "https" {
        return true;
    }
    let replaced = store.iter_any().any(|known| {
        known.name() == cookie.name() && known.secure() == Some(true) && known.domain.matches(url)
    });
    !is_secure && !replaced
}

fn count(store: &CookieStore) -> usize {
    store.iter_any().count()
}

/// The key of a cookie in a store.
struct Key {
    domain: String,
    path: String,
    name: String,
}

impl Key {
    fn of(cookie: &Cookie<'_>) -> Self {
        Self {
            domain: String::from(&cookie.domain),
            path: String::from(&cookie.path),
            name: cookie.name().to_owned(),
        }
    }
}

/// A line of a file of cookies.
struct Line {
    cookie: RawCookie<'static>,
    /// A URL whose server could have sent it.
    url: Url,
}

impl Line {
    fn read(line: &str) -> Option<Self> {
        let (line, http_only) = match line.strip_prefix(HTTP_ONLY) {
            Some(line) => (line, true),
            None => (line, false),
        };
        if line.starts_with('#') || line.trim().is_empty() {
            return None;
        }
        let fields: Vec<_> = line.split('\t').collect();
        let [domain, subdomains, path, secure, expires, name, rest @ ..] = &fields[..] else {
            return None;
        };
        let value = rest.first().copied().unwrap_or_default();
        let host = domain.trim_start_matches('.');
        let secure = secure.eq_ignore_ascii_case("TRUE");
        let mut cookie = RawCookie::build(((*name).to_owned(), value.to_owned()))
            .path((*path).to_owned())
            .http_only(http_only)
            .secure(secure);
        if subdomains.eq_ignore_ascii_case("TRUE") {
            cookie = cookie.domain(host.to_owned());
        }
        let expires: i64 = expires.parse().ok()?;
        if expires > 0 {
            cookie = cookie.expires(OffsetDateTime::from_unix_timestamp(expires).ok()?);
        }
        let scheme = if secure { "https" } else { "http" };
        Some(Self {
            cookie: cookie.build(),
            url: Url::parse(&format!("{scheme}://{host}{path}")).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jar(url: &str, cookies: &[&'static str]) -> CookieJar {
        let jar = CookieJar(Mutex::new(CookieStore::new_with_public_suffix(None)));
        let headers = cookies
            .iter()
            .map(|cookie| (SET_COOKIE, HeaderValue::from_static(cookie)));
        jar.keep(&url.parse().unwrap(), &headers.collect());
        jar
    }

    fn sent(jar: &CookieJar, url: &str) -> String {
        let field = jar.field(&url.parse().unwrap(), None);
        field.map_or_else(String::new, |field| field.to_str().unwrap().to_owned())
    }

    #[test]
    fn cookies_of_tls_are_neither_set_nor_replaced_without_it() {
        let jar = jar(
            "https://a.test/",
            &["id=1; Secure", "__Host-a=2; Secure; Path=/"],
        );
        let keep = |url: &str, cookie: &'static str| {
            let field = (SET_COOKIE, HeaderValue::from_static(cookie));
            jar.keep(&url.parse().unwrap(), &HeaderMap::from_iter([field]));
        };
        keep("http://a.test/", "id=forged");
        keep("http://a.test/", "other=3; Secure");
        keep("http://a.test/", "plain=4");
        keep("https://a.test/", "__Secure-b=5");
        keep(
            "https://a.test/",
            "__Host-c=6; Secure; Path=/; Domain=a.test",
        );
        let sent = sent(&jar, "https://a.test/");
        let mut sent: Vec<_> = sent.split("; ").collect();
        sent.sort_unstable();
        assert_eq!(sent, ["__Host-a=2", "id=1", "plain=4"]);
    }

    #[test]
    fn cookies_are_sent_where_they_belong() {
        let jar = jar(
            "https://www.a.test/x/y",
            &[
                "host=1",
                "all=2; Domain=a.test",
                "path=3; Path=/z",
                "safe=4; Secure; Path=/",
            ],
        );
        assert_eq!(sent(&jar, "https://www.a.test/x/"), "all=2; host=1; safe=4");
        assert_eq!(sent(&jar, "https://b.a.test/x/"), "all=2");
        assert_eq!(sent(&jar, "http://www.a.test/x/"), "all=2; host=1");
        assert_eq!(sent(&jar, "https://www.a.test/z"), "path=3; safe=4");
        assert_eq!(sent(&jar, "https://other.test/x/"), "");
    }

    #[test]
    fn cookies_of_others_are_refused() {
        let jar = jar(
            "https://www.a.test/",
            &["a=1; Domain=b.test", "b=2; Domain=test"],
        );
        assert_eq!(
            jar.to_netscape().lines().count(),
            2,
            "{}",
            jar.to_netscape()
        );
    }

    #[test]
    fn files_are_those_of_curl() {
        let first = jar(
            "https://a.test/",
            &[
                "a=1; Domain=a.test; Expires=Fri, 31 Dec 2099 23:59:59 GMT; HttpOnly",
                "b=2; Secure",
            ],
        );
        let text = first.to_netscape();
        assert!(
            text.contains("#HttpOnly_.a.test\tTRUE\t/\tFALSE\t4102444799\ta\t1\n"),
            "{text}"
        );
        assert!(text.contains("a.test\tFALSE\t/\tTRUE\t0\tb\t2\n"), "{text}");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jar");
        std::fs::write(&path, &text).unwrap();
        let second = CookieJar::new();
        second.read(&path).unwrap();
        assert_eq!(sent(&second, "https://a.test/"), "a=1; b=2");
        second.end_session();
        assert_eq!(sent(&second, "https://a.test/"), "a=1");
    }
}
