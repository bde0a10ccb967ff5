//! Pages that people see in place of an empty error.

use std::path::Path;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, LAST_MODIFIED,
};
use http::{Method, Response, StatusCode};
use marline::settings::Pair;
use marline_http::server::PassedOn;
use marline_http::{Body, read_regular_file};

use crate::error::SiteError;

/// The largest size of a page, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The statuses of a page: one, or all with a first digit, as `5xx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statuses {
    One(u16),
    Hundred(u16),
}

impl Statuses {
    fn read(text: &str) -> Option<Self> {
        let status = match text.strip_suffix("xx") {
            Some(first @ ("4" | "5")) => Self::Hundred(first.parse().ok()?),
            Some(_) => return None,
            None => Self::One(
                text.parse()
                    .ok()
                    .filter(|status| (400..600).contains(status))?,
            ),
        };
        Some(status)
    }

    fn has(self, status: StatusCode) -> bool {
        match self {
            Self::One(one) => status.as_u16() == one,
            Self::Hundred(first) => status.as_u16() / 100 == first,
        }
    }
}

/// Checks a pair of `error_pages`.
pub(crate) fn check(pair: &Pair) -> Result<(), String> {
    match Statuses::read(&pair.name) {
        Some(_) => Ok(()),
        None => Err("this must be a status from 400 to 599, or 4xx or 5xx".to_owned()),
    }
}

/// The pages of a site or of a route, which are in memory.
#[derive(Debug, Default)]
pub(crate) struct ErrorPages(Vec<Page>);

#[derive(Debug)]
struct Page {
    statuses: Statuses,
    kind: HeaderValue,
    content: Bytes,
}

impl ErrorPages {
    /// Reads the pages; each `text` is the path of a file.
    pub(crate) fn read(pairs: &[Pair]) -> Result<Self, SiteError> {
        let pages = pairs.iter().filter_map(|pair| {
            let statuses = Statuses::read(&pair.name)?;
            let path = Path::new(&pair.text);
            let content =
                read_regular_file(path, MAX_BYTES).map_err(|cause| SiteError::ErrorPage {
                    status: pair.name.clone(),
                    path: path.to_owned(),
                    cause,
                });
            Some(content.map(|content| Page {
                statuses,
                kind: kind(path),
                content: content.into(),
            }))
        });
        pages.collect::<Result<_, _>>().map(Self)
    }

    /// The response with the content of the page for its status. What an application says about an error stays as it is.
    pub(crate) fn apply(&self, method: &Method, response: Response<Body>) -> Response<Body> {
        let status = response.status();
        // One page for a status comes before the page for its hundred.
        let exact = |page: &&Page| page.statuses == Statuses::One(status.as_u16());
        let page = self.0.iter().find(exact);
        let page = page.or_else(|| self.0.iter().find(|page| page.statuses.has(status)));
        let passed = response.extensions().get::<PassedOn>();
        let is_of_application = passed.is_some_and(PassedOn::is_answered);
        let Some(page) = page.filter(|_| !is_of_application) else {
            return response;
        };
        let (mut parts, _) = response.into_parts();
        for name in [ETAG, LAST_MODIFIED, CONTENT_ENCODING] {
            parts.headers.remove(name);
        }
        let headers = &mut parts.headers;
        headers.insert(CONTENT_TYPE, page.kind.clone());
        headers.insert(CONTENT_LENGTH, page.content.len().into());
        headers
            .entry(CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-store"));
        let body = match *method == Method::HEAD {
            true => Body::empty(),
            false => Body::full(page.content.clone()),
        };
        Response::from_parts(parts, body)
    }
}

/// The type of a page, by the extension of its file.
fn kind(path: &Path) -> HeaderValue {
    let extension = path.extension().and_then(|extension| extension.to_str());
    HeaderValue::from_static(match extension {
        Some("html" | "htm") => "text/html; charset=utf-8",
        Some("json") => "application/json",
        _ => "text/plain; charset=utf-8",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::plain;

    #[test]
    fn the_nearest_page_replaces_an_own_error() {
        let directory = tempfile::tempdir().unwrap();
        let page = |name: &str, text: &str| {
            let path = directory.path().join(text);
            std::fs::write(&path, text).unwrap();
            Pair {
                name: name.to_owned(),
                text: path.display().to_string(),
            }
        };
        let pages = [page("4xx", "any.html"), page("404", "missing.txt")];
        let pages = ErrorPages::read(&pages).unwrap();
        let of = |status: StatusCode| {
            let response = pages.apply(&Method::GET, plain(status, ""));
            response.headers()[CONTENT_TYPE]
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(of(StatusCode::NOT_FOUND), "text/plain; charset=utf-8");
        assert_eq!(of(StatusCode::FORBIDDEN), "text/html; charset=utf-8");
        let untouched = pages.apply(&Method::GET, plain(StatusCode::BAD_GATEWAY, "x"));
        assert_eq!(untouched.headers()[CONTENT_LENGTH], "1");
        let mut passed = plain(StatusCode::NOT_FOUND, "app");
        passed
            .extensions_mut()
            .insert(PassedOn::to(Some("http://app".to_owned()), None));
        let passed = pages.apply(&Method::GET, passed);
        assert_eq!(passed.headers()[CONTENT_LENGTH], "3");
    }

    #[test]
    fn statuses_are_errors() {
        for (text, expected) in [
            ("404", true),
            ("5xx", true),
            ("200", false),
            ("3xx", false),
            ("x", false),
        ] {
            let pair = Pair {
                name: text.to_owned(),
                text: String::new(),
            };
            assert_eq!(check(&pair).is_ok(), expected, "{text}");
        }
    }
}
