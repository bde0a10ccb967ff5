//! Redirects (RFC 9110, section 15.4).

use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, LOCATION, REFERER,
    TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use url::Url;

use super::{ClientError, Credentials, HttpVersion, ParsedUrl, Schemes, Upload, parse_url};

/// Redirects that a client follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirects {
    /// The most of one request; `None` follows all.
    pub limit: Option<u32>,
    /// Whether credentials and cookies in header fields of the request are sent to other servers, too.
    pub trusts_others: bool,
    /// Whether POST stays POST where a status allows GET instead: 301, 302 and 303.
    pub keeps_post: [bool; 3],
    /// Whether a request keeps its method where a status asks for GET, but not its content.
    pub keeps_method: bool,
    /// Whether the content of requests with any method is treated as that of POST, as curl does with that of `-d` and `-F`.
    pub posts: bool,
    /// The schemes to which a redirect may lead.
    pub schemes: Schemes,
    /// Whether requests after the first name the URL that redirected in `Referer`.
    pub refers: bool,
}

impl Default for Redirects {
    /// At most 50, as curl does.
    fn default() -> Self {
        Self {
            limit: Some(50),
            trusts_others: false,
            keeps_post: [false; 3],
            keeps_method: false,
            posts: false,
            schemes: Schemes::default(),
            refers: false,
        }
    }
}

/// A URL without the user that it names.
pub struct WithoutUser {
    /// The URL.
    pub url: String,
    /// The user and the password, percent-decoded.
    pub credentials: Option<Credentials>,
}

/// Takes `user:password@` out of a URL (RFC 3986, section 3.2.1).
pub fn without_user(url: &str) -> WithoutUser {
    let begin = url.find("://").map_or(0, |scheme| scheme + 3);
    let rest = &url[begin..];
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let Some((user, _)) = authority.rsplit_once('@') else {
        return WithoutUser {
            url: url.to_owned(),
            credentials: None,
        };
    };
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let decoded = |text: &str| {
        let decoded = super::target::percent_decoded(text);
        decoded.unwrap_or_else(|| text.as_bytes().to_vec())
    };
    WithoutUser {
        url: format!("{}{}", &url[..begin], &rest[user.len() + 1..]),
        credentials: Some(Credentials::basic(&decoded(name), &decoded(password))),
    }
}

/// The URL to which a response redirects, made absolute; `None` if it does not, or names none.
pub(super) fn location(from: &Uri, status: StatusCode, headers: &HeaderMap) -> Option<String> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = headers.get(LOCATION).filter(|to| !to.is_empty())?;
    let location = String::from_utf8_lossy(location.as_bytes());
    let base = Url::parse(&from.to_string()).ok()?;
    Some(base.join(&location).ok()?.to_string())
}

impl Redirects {
    /// The request after a response to `request` with `status` that redirects to `url`.
    ///
    /// # Errors
    /// The URL is not one that can be fetched, or the content cannot be sent again.
    pub(super) fn redirected(
        &self,
        mut request: Request<Upload>,
        url: &str,
        status: StatusCode,
    ) -> Result<Request<Upload>, ClientError> {
        let WithoutUser { url, credentials } = without_user(url);
        self.schemes.check(&url)?;
        let version = HttpVersion::default();
        let ParsedUrl { origin, uri } = parse_url(&url, version)?;
        let from = std::mem::replace(request.uri_mut(), uri);
        let is_elsewhere =
            parse_url(&from.to_string(), version).is_ok_and(|parsed| parsed.origin != origin);
        if self.changes_method(status, request.method()) {
            if !self.keeps_method {
                *request.method_mut() = Method::GET;
            }
            *request.body_mut() = Upload::default();
            for name in [
                CONTENT_TYPE,
                CONTENT_LENGTH,
                CONTENT_ENCODING,
                TRANSFER_ENCODING,
            ] {
                request.headers_mut().remove(name);
            }
        } else if !request.body().is_repeatable() {
            return Err(ClientError::NotRepeatable { status });
        }
        if is_elsewhere {
            request.headers_mut().remove(HOST);
            if !self.trusts_others {
                request.extensions_mut().remove::<Credentials>();
                request.headers_mut().remove(AUTHORIZATION);
                request.headers_mut().remove(COOKIE);
            }
        }
        // Those of a URL that another server gives are not to be trusted (RFC 9110, section 4.2.4).
        if let Some(credentials) = credentials.filter(|_| !is_elsewhere || self.trusts_others) {
            request.extensions_mut().insert(credentials);
        }
        if self.refers
            && let Ok(referer) = HeaderValue::try_from(from.to_string())
        {
            request.headers_mut().insert(REFERER, referer);
        }
        Ok(request)
    }

    /// Whether the next request is a GET without content.
    fn changes_method(&self, status: StatusCode, method: &Method) -> bool {
        let is_post = *method == Method::POST || self.posts;
        match status.as_u16() {
            301 => is_post && !self.keeps_post[0],
            302 => is_post && !self.keeps_post[1],
            303 if is_post => !self.keeps_post[2],
            303 => *method != Method::HEAD && *method != Method::GET,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::UploadPart;

    fn request(method: Method) -> Request<Upload> {
        Request::builder()
            .method(method)
            .uri("https://a.test/x/y")
            .header(COOKIE, "a=b")
            .header(CONTENT_TYPE, "text/plain")
            .extension(Credentials::basic(b"me", b"secret"))
            .body(Upload::new(vec![UploadPart::Bytes("content".into())]))
            .unwrap()
    }

    /// RFC 9110, sections 15.4.2 to 15.4.9.
    #[test]
    fn methods_change_as_the_status_says() {
        let policy = Redirects::default();
        for (status, method, next) in [
            (301, Method::POST, Method::GET),
            (302, Method::POST, Method::GET),
            (303, Method::POST, Method::GET),
            (303, Method::PUT, Method::GET),
            (303, Method::HEAD, Method::HEAD),
            (301, Method::PUT, Method::PUT),
            (307, Method::POST, Method::POST),
            (308, Method::POST, Method::POST),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let redirected = policy
                .redirected(request(method.clone()), "https://a.test/z", status)
                .unwrap();
            assert_eq!(redirected.method(), next, "{status} {method}");
            let keeps_content = next == method && method != Method::GET;
            assert_eq!(!redirected.body().is_none(), keeps_content, "{status}");
            assert_eq!(
                redirected.headers().contains_key(CONTENT_TYPE),
                keeps_content
            );
        }
    }

    #[test]
    fn a_method_that_is_kept_loses_its_content_where_the_status_asks_for_get() {
        let policy = Redirects {
            keeps_method: true,
            ..Redirects::default()
        };
        let status = StatusCode::FOUND;
        let next = policy.redirected(request(Method::POST), "https://a.test/", status);
        let next = next.unwrap();
        assert_eq!(next.method(), Method::POST);
        assert!(next.body().is_none());
        assert!(!next.headers().contains_key(CONTENT_TYPE));
    }

    #[test]
    fn content_that_is_posted_by_another_method_is_lost_as_that_of_post() {
        let mut policy = Redirects {
            keeps_method: true,
            posts: true,
            ..Redirects::default()
        };
        let put = |policy: &Redirects| {
            let status = StatusCode::MOVED_PERMANENTLY;
            policy.redirected(request(Method::PUT), "https://a.test/", status)
        };
        let next = put(&policy).unwrap();
        assert_eq!(next.method(), Method::PUT);
        assert!(next.body().is_none());
        policy.keeps_post[0] = true;
        assert!(!put(&policy).unwrap().body().is_none());
    }

    #[test]
    fn a_redirect_leads_only_to_schemes_that_are_allowed() {
        let policy = Redirects {
            schemes: Schemes {
                http: false,
                https: true,
            },
            ..Redirects::default()
        };
        let to = |url| {
            let status = StatusCode::FOUND;
            policy.redirected(request(Method::GET), url, status)
        };
        assert!(to("https://b.test/").is_ok());
        assert!(matches!(
            to("http://a.test/"),
            Err(ClientError::SchemeNotAllowed { .. })
        ));
    }

    #[test]
    fn other_servers_get_no_credentials_unless_they_are_trusted() {
        let mut policy = Redirects::default();
        let found = StatusCode::FOUND;
        for (url, keeps) in [
            ("https://a.test/z", true),
            ("https://a.test:444/z", false),
            ("http://a.test/z", false),
            ("https://b.test/z", false),
        ] {
            let next = policy.redirected(request(Method::GET), url, found);
            let next = next.unwrap();
            let credentials = next.extensions().get::<Credentials>();
            assert_eq!(credentials.is_some(), keeps, "{url}");
            assert_eq!(next.headers().contains_key(COOKIE), keeps, "{url}");
        }
        let given = |policy: &Redirects, url| {
            let next = policy.redirected(request(Method::GET), url, found);
            let given = Credentials::basic(b"you", b"given");
            next.unwrap().extensions().get() == Some(&given)
        };
        assert!(given(&policy, "https://you:given@a.test/"));
        assert!(!given(&policy, "https://you:given@b.test/"));
        policy.trusts_others = true;
        assert!(given(&policy, "https://you:given@b.test/"));
        let next = policy.redirected(request(Method::GET), "https://b.test/", found);
        let next = next.unwrap();
        assert!(next.extensions().get::<Credentials>().is_some());
    }

    #[test]
    fn locations_are_relative_to_the_url_that_redirects() {
        let from = Uri::from_static("https://a.test/x/y");
        let headers = |value: &'static str| {
            HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(value))])
        };
        for (value, url) in [
            ("/z", "https://a.test/z"),
            ("z", "https://a.test/x/z"),
            ("?p", "https://a.test/x/y?p"),
            ("//b.test/", "https://b.test/"),
            ("http://c.test", "http://c.test/"),
            ("a b", "https://a.test/x/a%20b"),
        ] {
            let found = location(&from, StatusCode::FOUND, &headers(value));
            assert_eq!(found.as_deref(), Some(url), "{value}");
        }
        assert_eq!(location(&from, StatusCode::FOUND, &headers("")), None);
        assert_eq!(location(&from, StatusCode::OK, &headers("/z")), None);
        assert_eq!(
            location(&from, StatusCode::NOT_MODIFIED, &headers("/z")),
            None
        );
        assert_eq!(location(&from, StatusCode::FOUND, &HeaderMap::new()), None);
    }

    #[test]
    fn users_in_urls_become_credentials() {
        let found = without_user("https://me:p%40ss@a.test/x@y");
        assert_eq!(found.url, "https://a.test/x@y");
        assert_eq!(
            found.credentials.unwrap(),
            Credentials::basic(b"me", b"p@ss")
        );
        let found = without_user("a.test/x@y");
        assert_eq!(
            (found.url.as_str(), found.credentials),
            ("a.test/x@y", None)
        );
    }
}
