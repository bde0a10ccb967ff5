//! Rules for the header of a message in every version of HTTP.

use http::header::{COOKIE, HOST, HeaderMap, HeaderValue};
use http::uri::Authority;
use http::{Method, Request, Response, Uri, Version};
use marline_h3::{has_blank_ends, is_authority, without_empty_port};

/// The number of fields of a request; its host counts as one in every version.
pub(crate) fn request_fields<B>(request: &Request<B>) -> usize {
    let has_only_authority =
        request.version() >= Version::HTTP_2 && !request.headers().contains_key(HOST);
    request.headers().len() + usize::from(has_only_authority)
}

/// Whether the host of a request is valid where it is given, and the same where it is given twice: as `:authority` and `Host` in HTTP/2
/// and 3, of which HTTP/1.1 needs the latter (RFC 9113, section 8.3.1; RFC 9112, section 3.2). Neither has user information (RFC 9110,
/// sections 4.2.4 and 7.2).
pub(crate) fn has_valid_host<B>(request: &Request<B>) -> bool {
    let authority = request.uri().authority().map(|name| name.as_str());
    if authority.is_some_and(|authority| !is_authority(authority.as_bytes())) {
        return false;
    }
    let is_new = request.version() >= Version::HTTP_2;
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => {
            let host = host.as_bytes();
            let differs = |authority: &str| {
                let authority = without_empty_port(authority.as_bytes());
                !authority.eq_ignore_ascii_case(without_empty_port(host))
            };
            // In HTTP/1.1, a target with an authority precedes the field, and one without an authority has an empty one.
            let is_other = is_new && authority.is_some_and(differs);
            !is_other && (is_authority(host) || (host.is_empty() && !is_new))
        }
        // Without a host, a request of HTTP/1.0 is for the only one.
        (None, _) => request.version() == Version::HTTP_10 || is_new && authority.is_some(),
        _ => false,
    }
}

/// Whether the target of a request is one. Over HTTP/2 it has a scheme and a path, or `*` (RFC 9113, section 8.3.1), which the `h2`
/// library does not check in full. Over HTTP/1.1 it has one of the forms of RFC 9112, section 3.2, of which the authority form is for CONNECT
/// alone.
pub(crate) fn has_valid_target<B>(request: &Request<B>) -> bool {
    let uri = request.uri();
    let is_new = request.version() >= Version::HTTP_2;
    let begins_with_letter =
        |scheme: &str| scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    match (uri.scheme_str(), uri.path_and_query()) {
        (Some(scheme), _) if !begins_with_letter(scheme) => false,
        // The absolute form may have a query without a path.
        (Some(_), _) if !is_new => true,
        (_, Some(target)) => target.as_str().starts_with('/') || target == "*",
        (_, None) => request.method() == Method::CONNECT,
    }
}

/// Removes the colon of an empty port from the target and the `Host` field of `request`: it means the default one (RFC 3986, section
/// 3.2.3), and applications need not know that.
pub(crate) fn remove_empty_port<B>(request: &mut Request<B>) {
    let headers = request.headers_mut();
    let host = headers.get(HOST).map(HeaderValue::as_bytes);
    if let Some(host) = host.and_then(|host| host.strip_suffix(b":"))
        && let Ok(host) = HeaderValue::from_bytes(host)
    {
        headers.insert(HOST, host);
    }
    let authority = request.uri().authority().map(Authority::as_str);
    let Some(without) = authority.and_then(|authority| authority.strip_suffix(':')) else {
        return;
    };
    if let Ok(without) = without.parse() {
        let mut parts = request.uri().clone().into_parts();
        parts.authority = Some(without);
        // The other parts are those of a URI.
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
}

/// Whether a message of HTTP/2 has a field value with blanks around it, which the `h2` library does not check (RFC 9113, section 8.2.1).
pub(crate) fn has_blanks(version: Version, headers: &HeaderMap) -> bool {
    version == Version::HTTP_2
        && headers
            .values()
            .any(|value| has_blank_ends(value.as_bytes()))
}

/// The reason why a response is unusable, if any: too many fields for `max_fields`, or blanks around values.
pub(crate) fn fault<B>(response: &Response<B>, max_fields: usize) -> Option<String> {
    let headers = response.headers();
    if headers.len() > max_fields {
        return Some(format!("its header has more than {max_fields} fields"));
    }
    let has_blanks = has_blanks(response.version(), headers);
    has_blanks.then(|| "a field value has blanks around it".to_owned())
}

/// Makes one field of the cookies of a request of HTTP/2, which may come in several for compression (RFC 9113, section 8.2.3).
pub(crate) fn join_cookies(headers: &mut HeaderMap) {
    let cookies: Vec<_> = headers.get_all(COOKIE).iter().collect();
    if cookies.len() < 2 {
        return;
    }
    let is_sensitive = cookies.iter().any(|cookie| cookie.is_sensitive());
    let cookies: Vec<_> = cookies
        .iter()
        .map(|cookie| cookie.as_bytes())
        .filter(|cookie| !cookie.is_empty())
        .collect();
    if let Ok(mut joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..])) {
        joined.set_sensitive(is_sensitive);
        headers.insert(COOKIE, joined);
    }
}

/// The value of the cookie `name` in the fields of a request, if it has one (RFC 6265, section 4.2).
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a [u8]> {
    let fields = headers.get_all(COOKIE).iter();
    let mut pairs = fields.flat_map(|field| field.as_bytes().split(|byte| *byte == b';'));
    pairs.find_map(|pair| {
        let value = pair.trim_ascii().strip_prefix(name.as_bytes())?;
        value.strip_prefix(b"=")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(version: Version, uri: &str, hosts: &[&str]) -> Request<()> {
        let mut request = Request::new(());
        *request.version_mut() = version;
        *request.uri_mut() = uri.parse().expect("it is a URI");
        for host in hosts {
            let host = host.parse().expect("it is a value");
            request.headers_mut().append(HOST, host);
        }
        request
    }

    #[test]
    fn a_request_has_one_valid_host() {
        let [old, new] = [Version::HTTP_11, Version::HTTP_2];
        for (version, uri, hosts, is_valid) in [
            (old, "/", &["a"][..], true),
            (old, "/", &[""], true),
            (old, "/", &[], false),
            (old, "/", &["a", "a"], false),
            (old, "/", &["a,b"], false),
            (old, "/", &["a:99999"], false),
            (old, "/", &["a:"], true),
            (old, "/", &["a:+1"], false),
            (old, "/", &[":"], false),
            (old, "/", &["u@a"], false),
            (old, "http://b/", &["a"], true),
            (old, "http://u@b/", &["a"], false),
            (Version::HTTP_10, "/", &[], true),
            (new, "https://a/", &[], true),
            (new, "/", &[], false),
            (new, "/", &["a"], true),
            (new, "https://a/", &["A"], true),
            (new, "https://a/", &["b"], false),
            (new, "https://a/", &[""], false),
            (new, "https://a,b/", &[], false),
            (new, "https://a:/", &[], true),
            (new, "https://a:/", &["a"], true),
            (new, "https://a/", &["A:"], true),
            (new, "https://a:/", &["b"], false),
            (new, "https://*/", &[], false),
        ] {
            let request = request(version, uri, hosts);
            assert_eq!(has_valid_host(&request), is_valid, "{request:?}");
        }
    }

    #[test]
    fn an_empty_port_is_removed() {
        for (uri, host) in [
            ("https://a:/b?c", "a"),
            ("https://a/b?c", "a:"),
            ("https://a:/b?c", "a:"),
        ] {
            let mut request = request(Version::HTTP_2, uri, &[host]);
            remove_empty_port(&mut request);
            assert_eq!(request.uri(), "https://a/b?c");
            assert_eq!(request.headers()[HOST], "a");
        }
        let mut request = request(Version::HTTP_11, "/", &["[::1]:"]);
        remove_empty_port(&mut request);
        assert_eq!(
            (request.uri().path(), &request.headers()[HOST]),
            ("/", &HeaderValue::from_static("[::1]"))
        );
    }

    #[test]
    fn a_host_is_a_field_in_every_version() {
        assert_eq!(request_fields(&request(Version::HTTP_11, "/", &["a"])), 1);
        assert_eq!(
            request_fields(&request(Version::HTTP_2, "https://a/", &[])),
            1
        );
        assert_eq!(
            request_fields(&request(Version::HTTP_3, "https://a/", &["a"])),
            1
        );
    }

    #[test]
    fn cookies_become_one_field() {
        let mut headers = HeaderMap::new();
        for cookie in ["a=1", "b=2; c=3", "d=4"] {
            headers.append(COOKIE, HeaderValue::from_static(cookie));
        }
        join_cookies(&mut headers);
        let cookies: Vec<_> = headers.get_all(COOKIE).iter().collect();
        assert_eq!(cookies, ["a=1; b=2; c=3; d=4"]);
    }

    #[test]
    fn empty_cookies_are_no_part_of_the_field() {
        for (fields, joined) in [
            (&["", "a=1", "", "b=2"][..], "a=1; b=2"),
            (&["a=1", ""], "a=1"),
            (&["", ""], ""),
        ] {
            let mut headers = HeaderMap::new();
            for cookie in fields {
                headers.append(COOKIE, HeaderValue::from_static(cookie));
            }
            join_cookies(&mut headers);
            let cookies: Vec<_> = headers.get_all(COOKIE).iter().collect();
            assert_eq!(cookies, [joined]);
        }
    }
}
