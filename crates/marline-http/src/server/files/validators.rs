//! Validators of files, and conditional requests for them (RFC 9110, sections 8.8 and 13).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{
    ETAG, HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE,
    LAST_MODIFIED,
};
use http::{HeaderMap, StatusCode};

use crate::content::http_date;

/// The validators of one representation of a file.
#[derive(Clone, Debug)]
pub(super) struct Validators {
    tag: Option<HeaderValue>,
    /// In whole seconds.
    last_modified: Option<SystemTime>,
}

impl Validators {
    /// The validators of a file of `len` bytes in a content coding, for a request that arrives at `now`.
    ///
    /// A time that no date of HTTP can express is in the entity tag alone, and one in the future is `now`: a response must not have
    /// been modified after it was sent (section 8.8.2.1).
    pub(super) fn new(
        modified: SystemTime,
        len: u64,
        coding: Option<&HeaderValue>,
        now: Option<SystemTime>,
    ) -> Self {
        let (sign, since) = match modified.duration_since(UNIX_EPOCH) {
            Ok(since) => ("", since),
            Err(before) => ("-", before.duration()),
        };
        let (seconds, nanos) = (since.as_secs(), since.subsec_nanos());
        // Two representations may have equal sizes and times.
        let coding = coding.and_then(|coding| coding.to_str().ok());
        let separator = if coding.is_some() { "-" } else { "" };
        let coding = coding.unwrap_or_default();
        let tag = format!("\"{sign}{seconds:x}.{nanos:08x}-{len:x}{separator}{coding}\"");
        Self {
            tag: HeaderValue::try_from(tag).ok(),
            last_modified: whole_seconds(now.map_or(modified, |now| modified.min(now))),
        }
    }

    /// Adds them to the header of a response.
    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        if let Some(tag) = &self.tag {
            headers.insert(ETAG, tag.clone());
        }
        if let Some(date) = self.last_modified.and_then(http_date) {
            headers.insert(LAST_MODIFIED, date);
        }
    }

    /// The status with which a request for the file is answered instead, in the order of section 13.2.2.
    pub(super) fn check(&self, request: &HeaderMap) -> Option<StatusCode> {
        if request.contains_key(IF_MATCH) {
            if !self.is_listed(request, IF_MATCH, Comparison::Strong) {
                return Some(StatusCode::PRECONDITION_FAILED);
            }
        } else if let (Some(modified), Some(date)) =
            (self.last_modified, date(request, IF_UNMODIFIED_SINCE))
            && modified > date
        {
            return Some(StatusCode::PRECONDITION_FAILED);
        }
        if request.contains_key(IF_NONE_MATCH) {
            let is_listed = self.is_listed(request, IF_NONE_MATCH, Comparison::Weak);
            return is_listed.then_some(StatusCode::NOT_MODIFIED);
        }
        match (self.last_modified, date(request, IF_MODIFIED_SINCE)) {
            (Some(modified), Some(date)) if modified <= date => Some(StatusCode::NOT_MODIFIED),
            _ => None,
        }
    }

    /// Whether the lists of all fields with this name have the entity tag, or `*`.
    fn is_listed(&self, request: &HeaderMap, name: HeaderName, comparison: Comparison) -> bool {
        let mut values = request.get_all(name).iter();
        values.any(|value| {
            let value = value.as_bytes();
            value.trim_ascii() == b"*"
                || tags(value).any(|tag| {
                    let tag = match comparison {
                        Comparison::Strong => tag,
                        Comparison::Weak => tag.strip_prefix(b"W/").unwrap_or(tag),
                    };
                    self.tag.as_ref().is_some_and(|own| own == tag)
                })
        })
    }
}

/// The comparison of entity tags (section 8.8.3.2); those of files are strong.
#[derive(Clone, Copy)]
enum Comparison {
    Strong,
    Weak,
}

/// The members of a list of entity tags, which may have commas in them.
fn tags(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    list.split(move |&byte| {
        is_quoted ^= byte == b'"';
        byte == b',' && !is_quoted
    })
    .map(<[u8]>::trim_ascii)
}

/// The date of a field, if valid; others are ignored (sections 13.1.3 and 13.1.4).
fn date(request: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    let mut values = request.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => httpdate::parse_http_date(value.to_str().ok()?).ok(),
        _ => None,
    }
}

/// Without its fraction, if it is not before 1970.
fn whole_seconds(time: SystemTime) -> Option<SystemTime> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_secs(since.as_secs()))
}

/// Whether the date of `If-Range` is that of `Last-Modified`, and a strong validator: at least a second old (sections 8.8.2.2 and
/// 13.1.5).
pub(super) fn is_strong_date(
    date: &HeaderValue,
    last_modified: &HeaderValue,
    now: Option<SystemTime>,
) -> bool {
    let parse = |value: &HeaderValue| httpdate::parse_http_date(value.to_str().ok()?).ok();
    let (Some(date), Some(last_modified)) = (parse(date), parse(last_modified)) else {
        return false;
    };
    let age = now.and_then(|now| now.duration_since(date).ok());
    date == last_modified && age.is_some_and(|age| age >= Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u64 = 5;

    fn at(seconds: i64) -> SystemTime {
        let span = Duration::from_secs(seconds.unsigned_abs());
        match seconds < 0 {
            true => UNIX_EPOCH - span,
            false => UNIX_EPOCH + span,
        }
    }

    fn headers(of: &Validators) -> HeaderMap {
        let mut headers = HeaderMap::new();
        of.add_to(&mut headers);
        headers
    }

    #[test]
    fn times_that_no_date_expresses_are_in_the_tag_alone() {
        let now = at(1_800_000_000);
        let mut tags = Vec::new();
        for (seconds, date) in [
            (-185_000_000_000, None),
            (-1, None),
            (0, Some("Thu, 01 Jan 1970 00:00:00 GMT")),
            (1_800_000_001, Some("Fri, 15 Jan 2027 08:00:00 GMT")),
            (300_000_000_000, Some("Fri, 15 Jan 2027 08:00:00 GMT")),
        ] {
            let headers = headers(&Validators::new(at(seconds), LEN, None, Some(now)));
            let found = headers.get(LAST_MODIFIED);
            assert_eq!(found.map(|date| date.to_str().unwrap()), date, "{seconds}");
            tags.push(headers[ETAG].clone());
        }
        // A clock that is wrong.
        let late = at(300_000_000_000);
        let headers = headers(&Validators::new(late, LEN, None, Some(late)));
        assert!(!headers.contains_key(LAST_MODIFIED));
        tags.dedup();
        assert_eq!(tags.len(), 5);
    }

    #[test]
    fn codings_have_tags_of_their_own() {
        let gzip = HeaderValue::from_static("gzip");
        let tag = |coding| headers(&Validators::new(at(1), LEN, coding, Some(at(9))))[ETAG].clone();
        assert_ne!(tag(None), tag(Some(&gzip)));
    }

    #[test]
    fn conditions_are_checked_in_their_order() {
        let validators = Validators::new(at(100), LEN, None, Some(at(1000)));
        let own = headers(&validators)[ETAG].to_str().unwrap().to_owned();
        let weak = format!("W/{own}");
        let list = format!("\"a,b\" ,,{own}");
        let (before, same, after) = (
            "Thu, 01 Jan 1970 00:01:39 GMT",
            "Thu, 01 Jan 1970 00:01:40 GMT",
            "Thu, 01 Jan 1970 00:01:41 GMT",
        );
        for (fields, status) in [
            (vec![("if-match", own.as_str())], None),
            (vec![("if-match", "*")], None),
            (vec![("if-match", " * ")], None),
            (vec![("if-match", &list)], None),
            (vec![("if-match", "\"a\""), ("if-match", &own)], None),
            (vec![("if-match", &weak)], Some(412)),
            (vec![("if-match", "")], Some(412)),
            (vec![("if-match", "\"a\"")], Some(412)),
            (
                vec![("if-match", &own), ("if-unmodified-since", before)],
                None,
            ),
            (
                vec![("if-match", "\"a\""), ("if-none-match", &own)],
                Some(412),
            ),
            (vec![("if-unmodified-since", before)], Some(412)),
            (vec![("if-unmodified-since", same)], None),
            (vec![("if-unmodified-since", "yesterday")], None),
            (
                vec![
                    ("if-unmodified-since", before),
                    ("if-unmodified-since", before),
                ],
                None,
            ),
            (vec![("if-none-match", &own)], Some(304)),
            (vec![("if-none-match", &weak)], Some(304)),
            (vec![("if-none-match", "*")], Some(304)),
            (vec![("if-none-match", &list)], Some(304)),
            (
                vec![("if-none-match", "\"a\""), ("if-none-match", &own)],
                Some(304),
            ),
            (vec![("if-none-match", "\"a\"")], None),
            (
                vec![("if-none-match", "\"a\""), ("if-modified-since", after)],
                None,
            ),
            (vec![("if-modified-since", after)], Some(304)),
            (vec![("if-modified-since", same)], Some(304)),
            (vec![("if-modified-since", before)], None),
            (
                vec![("if-modified-since", "Thursday, 01-Jan-70 00:01:40 GMT")],
                Some(304),
            ),
            (
                vec![("if-modified-since", "Thu Jan  1 00:01:40 1970")],
                Some(304),
            ),
        ] {
            let mut request = HeaderMap::new();
            for (name, value) in &fields {
                let name: HeaderName = name.parse().unwrap();
                request.append(name, HeaderValue::from_str(value).unwrap());
            }
            let found = validators.check(&request).map(|status| status.as_u16());
            assert_eq!(found, status, "{fields:?}");
        }
    }
}
