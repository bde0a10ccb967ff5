//! Texts with parts of the request in them: targets of redirects and rewrites.

use std::fmt;
use std::str::FromStr;

use http::Request;

use marline::settings::text_values;

/// A text in which `{host}`, `{path}`, `{query}`, `{uri}` and `{rest}` stand for parts of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Part(Part),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Host,
    Path,
    Query,
    Uri,
    Rest,
}

impl Part {
    const ALL: [(&'static str, Self); 5] = [
        ("host", Self::Host),
        ("path", Self::Path),
        ("query", Self::Query),
        ("uri", Self::Uri),
        ("rest", Self::Rest),
    ];
}

/// A text is not a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTemplate {
    /// A part that does not exist.
    #[error(
        "{{{0}}} is not a placeholder; write {{host}}, {{path}}, {{query}}, {{uri}}, or {{rest}} for what * in `path` matched"
    )]
    Unknown(String),
    /// A brace without the other.
    #[error("a part of the request is written with two braces, as {{path}}")]
    OpenBrace,
    /// A variable of nginx, or a group of its patterns.
    #[error("{0} is a variable of nginx; {1}, or %24 for the character $")]
    Variable(String, &'static str),
    /// A character that no target has.
    #[error("a target has no blanks and no control characters; write %20 for a blank")]
    Character,
}

/// A [`Template`] of a path: it begins with a slash, or with a part that does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathTemplate(Template);

/// A text is not a [`PathTemplate`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPathTemplate {
    /// It is not a template.
    #[error(transparent)]
    Template(#[from] InvalidTemplate),
    /// It begins with something else.
    #[error("{0:?} is not a path; begin it with /, {{path}}, {{uri}} or {{rest}}, as /index.html")]
    NoSlash(String),
}

/// The parts of a request that templates use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    /// The host, with the port if the request has one.
    pub(crate) host: &'a str,
    /// The path as requested.
    pub(crate) path: &'a str,
    /// The query.
    pub(crate) query: Option<&'a str>,
    /// The part of the path that `*` of the route matched.
    pub(crate) rest: &'a str,
}

impl<'a> Parts<'a> {
    /// The parts of `request`, whose route matched `rest`.
    pub(crate) fn of<B>(request: &'a Request<B>, host: &'a str, rest: &'a str) -> Self {
        Self {
            host,
            path: request.uri().path(),
            query: request.uri().query(),
            rest,
        }
    }
}

impl Template {
    /// The text for a request.
    pub(crate) fn fill(&self, parts: Parts<'_>) -> String {
        let mut filled = String::with_capacity(self.text.len() + parts.path.len());
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Part(Part::Host) => filled.push_str(parts.host),
                Piece::Part(Part::Path) => filled.push_str(parts.path),
                Piece::Part(Part::Rest) => filled.push_str(parts.rest),
                Piece::Part(Part::Query) => push_query(&mut filled, parts.query),
                Piece::Part(Part::Uri) => {
                    filled.push_str(parts.path);
                    push_query(&mut filled, parts.query);
                }
            }
        }
        filled
    }

    /// The target of a redirect for a request. Slashes that a request adds at the beginning are left out, and backslashes, which
    /// browsers take for them: `//` begins the name of a host, which the template alone decides.
    pub(crate) fn fill_location(&self, parts: Parts<'_>) -> String {
        let is_slash = |c: char| matches!(c, '/' | '\\');
        let own = match self.pieces.first() {
            Some(Piece::Text(text)) if !text.chars().all(is_slash) => return self.fill(parts),
            Some(Piece::Text(text)) => text.len(),
            _ => 0,
        };
        let filled = self.fill(parts);
        let rest = filled[own..].trim_start_matches(is_slash);
        match own {
            0 if rest.len() < filled.len() => format!("/{rest}"),
            _ => format!("{}{rest}", &filled[..own]),
        }
    }

    /// Whether it has the part that `*` of a route matched.
    pub(crate) fn has_rest(&self) -> bool {
        self.pieces.contains(&Piece::Part(Part::Rest))
    }

    /// Whether it has the query of the request already.
    pub(crate) fn has_query(&self) -> bool {
        let mut pieces = self.pieces.iter();
        pieces.any(|piece| match piece {
            Piece::Text(text) => text.contains('?'),
            Piece::Part(part) => matches!(part, Part::Query | Part::Uri),
        })
    }
}

/// Adds the query of a request, with the separator that is missing.
fn push_query(filled: &mut String, query: Option<&str>) {
    let ends = filled.ends_with(['?', '&']);
    match query {
        Some(query) => {
            if !ends {
                filled.push(if filled.contains('?') { '&' } else { '?' });
            }
            filled.push_str(query);
        }
        None if ends => {
            filled.pop();
        }
        None => {}
    }
}

impl PathTemplate {
    /// The text as a template.
    pub(crate) fn as_template(&self) -> &Template {
        &self.0
    }

    /// The path and query for a request.
    pub(crate) fn fill(&self, parts: Parts<'_>) -> String {
        let filled = self.0.fill(parts);
        match filled.starts_with('/') {
            true => filled,
            // {rest} begins with a slash for some patterns only.
            false => format!("/{filled}"),
        }
    }
}

impl FromStr for PathTemplate {
    type Err = InvalidPathTemplate;

    fn from_str(text: &str) -> Result<Self, InvalidPathTemplate> {
        let template: Template = text.parse()?;
        match template.pieces.first() {
            Some(Piece::Text(first)) if first.starts_with('/') => Ok(Self(template)),
            Some(Piece::Part(Part::Path | Part::Uri | Part::Rest)) => Ok(Self(template)),
            _ => Err(InvalidPathTemplate::NoSlash(text.to_owned())),
        }
    }
}

impl fmt::Display for PathTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Template {
    type Err = InvalidTemplate;

    fn from_str(text: &str) -> Result<Self, InvalidTemplate> {
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(InvalidTemplate::Character);
        }
        if let Some((variable, instead)) = nginx_variable(text) {
            return Err(InvalidTemplate::Variable(variable.to_owned(), instead));
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find(['{', '}']) {
            if open > 0 {
                pieces.push(Piece::Text(rest[..open].to_owned()));
            }
            let inside = rest[open..].strip_prefix('{');
            let (name, after) = inside
                .and_then(|inside| inside.split_once('}'))
                .ok_or(InvalidTemplate::OpenBrace)?;
            let part = Part::ALL.iter().find(|(known, _)| *known == name);
            let (_, part) = part.ok_or_else(|| InvalidTemplate::Unknown(name.to_owned()))?;
            pieces.push(Piece::Part(*part));
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self {
            text: text.to_owned(),
            pieces,
        })
    }
}

/// Variables of nginx, and the parts to write for them. Those that end with `_` are beginnings.
const VARIABLES: &[(&[&str], &str)] = &[
    (&["request_uri"], "write {uri}"),
    (&["uri", "document_uri"], "write {path}"),
    (
        &["host", "http_host", "server_name", "hostname"],
        "write {host}",
    ),
    (&["args", "query_string", "is_args"], "write {query}"),
    (&["scheme"], "write https"),
    (
        &["1", "2", "3", "4", "5", "6", "7", "8", "9"],
        "write {rest} for what * in `path` matched",
    ),
    (
        &[
            "arg_",
            "cookie_",
            "http_",
            "sent_http_",
            "server_",
            "request_",
            "remote_",
            "proxy_",
            "ssl_",
            "upstream_",
            "binary_remote_addr",
            "content_",
            "document_root",
            "nginx_version",
            "realpath_root",
            "request",
            "status",
            "time_",
            "msec",
            "pid",
        ],
        "write {host}, {path}, {query}, {uri} or {rest}",
    ),
];

/// The first variable of nginx in `text`, as `$uri` or `${uri}`, and what to write instead. Other names behind `$` stay text: paths
/// of OData have them.
pub(crate) fn nginx_variable(text: &str) -> Option<(&str, &'static str)> {
    text.match_indices('$').find_map(|(at, _)| {
        let after = text.get(at + 1..)?;
        let braced = after.strip_prefix('{');
        let inside = braced.unwrap_or(after);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = &inside[..inside.find(|c| !is_name(c)).unwrap_or(inside.len())];
        let is_named = |known: &&str| match known.ends_with('_') {
            true => name.len() > known.len() && name.starts_with(known),
            false => name == *known,
        };
        let found = VARIABLES
            .iter()
            .find(|(names, _)| names.iter().any(is_named));
        let len = 1
            + name.len()
            + 2 * usize::from(braced.is_some_and(|_| inside[name.len()..].starts_with('}')));
        found.map(|(_, instead)| (&text[at..at + len], *instead))
    })
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

text_values!(Template, PathTemplate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_request_are_filled_in() {
        let parts = Parts {
            host: "example.org",
            path: "/old/a%20b",
            query: Some("q=1"),
            rest: "a%20b",
        };
        for (text, filled) in [
            (
                "https://www.{host}{uri}",
                "https://www.example.org/old/a%20b?q=1",
            ),
            ("/new/{rest}{query}", "/new/a%20b?q=1"),
            ("{path}", "/old/a%20b"),
            ("/fixed", "/fixed"),
        ] {
            let template: Template = text.parse().unwrap();
            assert_eq!(template.fill(parts), filled);
            assert_eq!(template.to_string(), text);
        }
    }

    #[test]
    fn a_query_is_separated_once() {
        for (text, with, without) in [
            ("/new{query}", "/new?q=1", "/new"),
            ("/new?{query}", "/new?q=1", "/new"),
            ("/new?a=2{query}", "/new?a=2&q=1", "/new?a=2"),
            ("/new?a=2&{query}", "/new?a=2&q=1", "/new?a=2"),
            ("/to?from={uri}", "/to?from=/old&q=1", "/to?from=/old"),
        ] {
            let template: Template = text.parse().unwrap();
            for (query, filled) in [(Some("q=1"), with), (None, without)] {
                let parts = Parts {
                    host: "example.org",
                    path: "/old",
                    query,
                    rest: "",
                };
                assert_eq!(template.fill(parts), filled, "{text}");
            }
        }
    }

    #[test]
    fn a_request_does_not_choose_the_host_of_a_redirect() {
        let filled = |text: &str, path: &str| {
            let parts = Parts {
                host: "example.org",
                path,
                query: Some("q=//x"),
                rest: path.strip_prefix("/old/").unwrap_or(path),
            };
            text.parse::<Template>().unwrap().fill_location(parts)
        };
        for (text, path, target) in [
            ("{rest}", "//evil.test", "/evil.test"),
            ("{path}", "//evil.test/a", "/evil.test/a"),
            ("{uri}", "/\\evil.test", "/evil.test?q=//x"),
            ("/{rest}", "/old/\\/evil.test", "/evil.test"),
            ("/{rest}", "/old/a//b", "/a//b"),
            ("//cdn.test/{rest}", "/old/a", "//cdn.test/a"),
            ("//{rest}", "/old/a", "//a"),
            ("https://{host}{path}", "//a", "https://example.org//a"),
            ("/new", "/old/a", "/new"),
        ] {
            assert_eq!(filled(text, path), target, "{text} {path}");
        }
    }

    #[test]
    fn a_template_of_a_path_begins_as_one() {
        let parts = Parts {
            host: "example.org",
            path: "/a",
            query: None,
            rest: "b",
        };
        for (text, filled) in [
            ("/index.html", "/index.html"),
            ("{path}.html", "/a.html"),
            ("/v2/{rest}", "/v2/b"),
            ("{rest}", "/b"),
        ] {
            let template: PathTemplate = text.parse().unwrap();
            assert_eq!(template.fill(parts), filled);
        }
        for text in ["", "index.html", "uri", "{host}/x"] {
            let wrong = text.parse::<PathTemplate>().unwrap_err();
            assert!(matches!(wrong, InvalidPathTemplate::NoSlash(_)), "{text}");
        }
    }

    #[test]
    fn variables_of_nginx_are_answered_with_the_part_to_write() {
        for (text, variable, instead) in [
            ("https://$host$request_uri", "$host ", "{host}"),
            ("https://example.org$request_uri", "$request_uri ", "{uri}"),
            ("/new${uri}?x", "${uri} ", "{path}"),
            ("/new/$1", "$1 ", "{rest}"),
            ("/new?$args", "$args ", "{query}"),
            ("/new?a=$arg_a", "$arg_a ", "{query}"),
            ("/new?ip=$remote_addr", "$remote_addr ", "{host}"),
        ] {
            let error = text.parse::<Template>().unwrap_err().to_string();
            assert!(
                error.starts_with(variable) && error.contains(instead),
                "{error}"
            );
            assert!(error.contains("%24"), "{error}");
        }
        for text in [
            "/odata/$metadata",
            "/a$",
            "/$",
            "/a?$filter=x",
            "/$uris",
            "/${",
            "/é$é",
        ] {
            let read = text.parse::<Template>();
            let is_variable = matches!(read, Err(InvalidTemplate::Variable(..)));
            assert!(!is_variable, "{text}");
        }
    }

    #[test]
    fn a_part_that_does_not_exist_is_refused() {
        for text in ["/{pth}", "/{path", "/}", "/a b", "/a\r\nb"] {
            assert!(text.parse::<Template>().is_err(), "{text}");
        }
    }
}
