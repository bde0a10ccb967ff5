//! Files of a directory: the paths that are tried, and listings.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::time::SystemTime;

use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Response, StatusCode, Uri};
use marline_http::Body;
use marline_http::server::{Directory, DirectoryEntry, Refusal};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::answers::{refused, with_text};
use crate::config::Rules;
use crate::error::SiteError;
use crate::paths::RequestPath;
use crate::template::{Parts, PathTemplate};

/// Entries of a listing; further ones are left out, and counted.
const MAX_ENTRIES: usize = 10_000;

/// Bytes of names that are escaped in links.
const IN_LINKS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'.')
    .remove(b'-')
    .remove(b'_')
    .remove(b'~');

/// A handler that answers with files.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    directory: Directory,
    tried: Vec<PathTemplate>,
    list: bool,
    dot_files: bool,
}

impl Files {
    /// The files of `dir` of `rules`.
    pub(crate) fn open(rules: &Rules) -> Result<Option<Self>, SiteError> {
        let Some(path) = &rules.dir else {
            return Ok(None);
        };
        let directory = Directory::open(path, rules.follow_links);
        let directory = directory.map_err(|cause| SiteError::Directory {
            path: path.clone(),
            cause,
        })?;
        Ok(Some(Self {
            directory,
            tried: rules.try_files.clone(),
            list: rules.list,
            dot_files: rules.dot_files,
        }))
    }

    /// Answers a request whose route matched `rest`.
    pub(crate) async fn answer(
        &self,
        request: Request<Body>,
        host: &str,
        rest: &str,
    ) -> Response<Body> {
        let path = RequestPath::new(request.uri().path());
        if path.is_hidden() && !self.dot_files {
            return refused(Refusal::DotFile, "Not found\n");
        }
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let listing = (self.list && is_read).then(|| request.uri().clone());
        let method = request.method().clone();
        let response = match self.tried.is_empty() || !is_read {
            true => of(&self.directory, request).await,
            false => self.try_each(request, host, rest).await,
        };
        match listing {
            Some(uri) if response.status() == StatusCode::NOT_FOUND => {
                let listed = self.listing(&uri, &method).await;
                listed.unwrap_or(response)
            }
            _ => response,
        }
    }

    /// The response for the first of the paths that is there, or for the last.
    async fn try_each(&self, request: Request<Body>, host: &str, rest: &str) -> Response<Body> {
        let parts = Parts::of(&request, host, rest);
        let targets: Vec<_> = self.tried.iter().map(|tried| tried.fill(parts)).collect();
        let (mut head, _) = request.into_parts();
        let mut response = refused(Refusal::NoFile, "Not found\n");
        for target in targets {
            let Ok(target) = target.parse::<PathAndQuery>() else {
                continue;
            };
            let path = RequestPath::new(target.path());
            if path.has_dot_segments() || (path.is_hidden() && !self.dot_files) {
                continue;
            }
            head.uri = Uri::from(target);
            let request = Request::from_parts(head.clone(), Body::empty());
            response = of(&self.directory, request).await;
            if response.status() != StatusCode::NOT_FOUND {
                break;
            }
        }
        response
    }

    /// The listing of the directory at `uri`, if there is one.
    async fn listing(&self, uri: &Uri, method: &Method) -> Option<Response<Body>> {
        if !uri.path().ends_with('/') {
            return None;
        }
        let mut entries = self.directory.list(uri.path(), MAX_ENTRIES).await.ok()?;
        if !self.dot_files {
            entries.retain(|entry| !entry.name.to_string_lossy().starts_with('.'));
        }
        let order = Order::of(uri.query().unwrap_or_default());
        order.sort(&mut entries);
        let page = page(uri.path(), &entries, order);
        let length = page.len();
        let body = match *method == Method::HEAD {
            true => Body::empty(),
            false => Body::full(page),
        };
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("text/html; charset=utf-8");
        headers.insert(CONTENT_TYPE, kind);
        headers.insert(CONTENT_LENGTH, length.into());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        Some(response)
    }
}

async fn of(directory: &Directory, request: Request<Body>) -> Response<Body> {
    let response = directory.answer(request).await;
    let Some(refusal) = Refusal::of_file(response.status()) else {
        return response;
    };
    let mut response = match refusal {
        Refusal::NoFile => with_text(response, "Not found\n"),
        Refusal::Method => with_text(response, "Files are only read\n"),
        Refusal::OpenFiles => with_text(response, "Too many open files; try again\n"),
        Refusal::Internal => with_text(response, "The file cannot be read\n"),
        _ => response,
    };
    response.extensions_mut().insert(refusal);
    response
}

/// The order of a listing: `?sort=name|size|time`, with `&order=desc` from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Order {
    by: Column,
    is_descending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Name,
    Size,
    Time,
}

impl Column {
    const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::Name, "name", "Name"),
        (Self::Size, "size", "Size"),
        (Self::Time, "time", "Changed"),
    ];
}

impl Order {
    fn of(query: &str) -> Self {
        let mut order = Self {
            by: Column::Name,
            is_descending: false,
        };
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("sort", name)) => {
                    let mut columns = Column::ALL.iter();
                    if let Some((column, ..)) = columns.find(|(_, known, _)| *known == name) {
                        order.by = *column;
                    }
                }
                Some(("order", name)) => order.is_descending = name == "desc",
                _ => {}
            }
        }
        order
    }

    /// Directories come before files.
    fn sort(self, entries: &mut [DirectoryEntry]) {
        entries.sort_by(|a, b| {
            let by_column = match self.by {
                Column::Name => Ordering::Equal,
                Column::Size => a.bytes.cmp(&b.bytes),
                Column::Time => a.modified.cmp(&b.modified),
            };
            let ordered = by_column.then_with(|| a.name.cmp(&b.name));
            let ordered = match self.is_descending {
                true => ordered.reverse(),
                false => ordered,
            };
            b.is_directory.cmp(&a.is_directory).then(ordered)
        });
    }
}

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}\
h1{font-size:1.3rem;font-weight:600;overflow-wrap:anywhere}\
table{border-collapse:collapse;width:100%}\
th,td{padding:.3rem .6rem;text-align:left;border-bottom:1px solid #8884}\
th:nth-child(n+2),td:nth-child(n+2){text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
td:first-child{overflow-wrap:anywhere}\
a{color:inherit;text-decoration:none}td a{color:#06c}a:hover{text-decoration:underline}\
@media(prefers-color-scheme:dark){td a{color:#6cf}}\
@media(max-width:30rem){th:nth-child(3),td:nth-child(3){display:none}}";

/// The page of a listing of `path`, which is encoded.
fn page(path: &str, entries: &[DirectoryEntry], order: Order) -> String {
    let title = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    let title = escape(&title);
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><style>{STYLE}</style><h1>{title}</h1><table><tr>"
    );
    for (column, name, label) in Column::ALL {
        let is_this = order.by == column;
        let (sign, next) = match (is_this, order.is_descending) {
            (true, false) => (" ↓", "&order=desc"),
            (true, true) => (" ↑", ""),
            (false, _) => ("", ""),
        };
        push(
            &mut page,
            format_args!("<th><a href=\"?sort={name}{next}\">{label}{sign}</a>"),
        );
    }
    if path != "/" {
        page.push_str("<tr><td><a href=\"../\">../</a><td><td>");
    }
    for entry in entries {
        let slash = if entry.is_directory { "/" } else { "" };
        let link = percent_encode(entry.name.as_encoded_bytes(), IN_LINKS);
        let name = entry.name.to_string_lossy();
        let name = escape(&name);
        let size = match entry.is_directory {
            true => String::new(),
            false => size(entry.bytes),
        };
        let time = entry.modified.map(time).unwrap_or_default();
        push(
            &mut page,
            format_args!(
                "<tr><td><a href=\"./{link}{slash}\">{name}{slash}</a><td>{size}<td>{time}"
            ),
        );
    }
    page.push_str("</table>");
    if entries.len() >= MAX_ENTRIES {
        push(
            &mut page,
            format_args!("<p>Only {MAX_ENTRIES} entries are shown."),
        );
    }
    page
}

fn push(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = page.write_fmt(text);
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A size as people read it.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    let mut amount = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        if amount < 1000.0 {
            break;
        }
        amount /= 1000.0;
        unit = next;
    }
    match unit {
        "B" => format!("{bytes} B"),
        _ => format!("{amount:.1} {unit}"),
    }
}

/// A time of UTC, to the minute; nothing for times that no calendar has.
fn time(at: SystemTime) -> String {
    let format = time::macros::format_description!("[year]-[month]-[day] [hour]:[minute]");
    let at = match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_secs()).ok(),
        Err(before) => i64::try_from(before.duration().as_secs())
            .ok()
            .map(|seconds| -seconds),
    };
    at.and_then(|seconds| time::OffsetDateTime::from_unix_timestamp(seconds).ok())
        .and_then(|at| at.format(format).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn entry(name: &str, bytes: u64, is_directory: bool) -> DirectoryEntry {
        DirectoryEntry {
            name: name.into(),
            is_directory,
            bytes,
            modified: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(bytes)),
        }
    }

    #[test]
    fn a_listing_is_sorted_with_directories_first() {
        let mut entries = [
            entry("b", 1, false),
            entry("a", 2, false),
            entry("c", 0, true),
        ];
        let names = |entries: &[DirectoryEntry]| {
            let names = entries
                .iter()
                .map(|one| one.name.to_string_lossy().into_owned());
            names.collect::<String>()
        };
        for (query, expected) in [
            ("", "cab"),
            ("sort=size", "cba"),
            ("sort=size&order=desc", "cab"),
            ("order=desc", "cba"),
            ("sort=x", "cab"),
            ("sort=time", "cba"),
        ] {
            Order::of(query).sort(&mut entries);
            assert_eq!(names(&entries), expected, "{query}");
        }
    }

    #[test]
    fn names_are_escaped() {
        let entries = [
            entry("<b>\"&", 1500, false),
            entry("javascript:x", 1, false),
        ];
        let page = page("/a%3Cb/", &entries, Order::of(""));
        assert!(page.contains("<title>/a&lt;b/</title>"), "{page}");
        assert!(
            page.contains("<a href=\"./%3Cb%3E%22%26\">&lt;b&gt;&quot;&amp;</a><td>1.5 kB"),
            "{page}"
        );
        assert!(page.contains("<a href=\"./javascript%3Ax\">"), "{page}");
        assert!(page.contains("<td>1970-01-01 00:25"), "{page}");
    }

    #[test]
    fn times_of_any_file_are_shown_or_left_out() {
        let far = Duration::from_secs(1 << 40);
        assert_eq!(
            time(SystemTime::UNIX_EPOCH - Duration::from_secs(60)),
            "1969-12-31 23:59"
        );
        let ages = SystemTime::UNIX_EPOCH.checked_add(far).map(time);
        assert_eq!(ages.as_deref(), Some(""));
    }
}
