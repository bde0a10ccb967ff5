//! The `priority` header field (RFC 9218 section 4): what a client wants first.

use http::HeaderMap;
use marline::Priority;

/// Reads `u` and `i` from a structured dictionary; what is not understood is ignored.
pub(super) fn of(headers: &HeaderMap) -> Priority {
    let mut found = Priority::default();
    for value in headers.get_all("priority") {
        let Ok(value) = value.to_str() else { continue };
        for member in value.split(',') {
            let item = member.split(';').next().unwrap_or_default().trim();
            match item
                .split_once('=')
                .map_or((item, None), |(k, v)| (k, Some(v)))
            {
                ("u", Some(urgency)) => {
                    if let Ok(urgency @ 0..=7) = urgency.parse() {
                        found.urgency = urgency;
                    }
                }
                ("i", None | Some("?1")) => found.incremental = true,
                ("i", Some("?0")) => found.incremental = false,
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &'static str) -> (u8, bool) {
        let mut headers = HeaderMap::new();
        headers.insert("priority", http::HeaderValue::from_static(value));
        let priority = of(&headers);
        (priority.urgency, priority.incremental)
    }

    #[test]
    fn urgency_and_incremental_are_read_from_the_dictionary() {
        assert_eq!(read(""), (3, false));
        assert_eq!(read("u=0"), (0, false));
        assert_eq!(read("u=5, i"), (5, true));
        assert_eq!(read("i=?1,u=7"), (7, true));
        assert_eq!(read("i=?0;x, u=2;foo=bar"), (2, false));
        assert_eq!(read("u=8, i=2"), (3, false), "out of range is ignored");
    }
}
