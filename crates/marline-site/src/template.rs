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
        "{{{0}}} is no part of a request; write {{host}}, {{path}}, {{query}}, {{uri}}, or {{rest}} for what * in `path` matched"
    )]
    Unknown(String),
    /// A brace without the other.
    #[error("a part of the request is written with two braces, as {{path}}")]
    OpenBrace,
    /// A character that no target has.
    #[error("a target has no blanks and no control characters; write %20 for a blank")]
    Character,
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
        let push_query = |filled: &mut String| {
            if let Some(query) = parts.query {
                filled.push('?');
                filled.push_str(query);
            }
        };
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Part(Part::Host) => filled.push_str(parts.host),
                Piece::Part(Part::Path) => filled.push_str(parts.path),
                Piece::Part(Part::Rest) => filled.push_str(parts.rest),
                Piece::Part(Part::Query) => push_query(&mut filled),
                Piece::Part(Part::Uri) => {
                    filled.push_str(parts.path);
                    push_query(&mut filled);
                }
            }
        }
        filled
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

impl FromStr for Template {
    type Err = InvalidTemplate;

    fn from_str(text: &str) -> Result<Self, InvalidTemplate> {
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(InvalidTemplate::Character);
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

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

text_values!(Template);

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
    fn a_part_that_does_not_exist_is_refused() {
        for text in ["/{pth}", "/{path", "/}", "/a b", "/a\r\nb"] {
            assert!(text.parse::<Template>().is_err(), "{text}");
        }
    }
}
