//! The `priority` header field (RFC 9218 section 4).

use http::HeaderMap;
use marline::Priority;

/// Parses `u` and `i` of a structured dictionary; other members are ignored.
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

    fn read(value: &'static str) -> Priority {
        let mut headers = HeaderMap::new();
        headers.insert("priority", http::HeaderValue::from_static(value));
        of(&headers)
    }

    #[test]
    fn urgency_and_incremental_are_parsed_and_invalid_values_ignored() {
        for (value, urgency, incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=5, i", 5, true),
            ("i=?1,u=7", 7, true),
            ("i=?0;x, u=2;foo=bar", 2, false),
            ("u=8, i=2", 3, false),
        ] {
            let priority = read(value);
            assert_eq!(priority.urgency, urgency, "{value}");
            assert_eq!(priority.incremental, incremental, "{value}");
        }
    }
}
