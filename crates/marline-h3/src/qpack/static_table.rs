//! The static table (RFC 9204, appendix A).

/// A line of the static table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StaticLine {
    pub(super) name: &'static str,
    pub(super) value: &'static str,
}

/// The best match of a field line in the static table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// Name and value, at this index.
    Line(u64),
    /// The name, at this index.
    Name(u64),
    /// Neither.
    None,
}

/// The line at `index`.
pub(super) fn get(index: u64) -> Option<&'static StaticLine> {
    LINES.get(usize::try_from(index).ok()?)
}

/// Looks a field line up: a binary search for the name, then a comparison with each value of that name.
pub(super) fn find(name: &[u8], value: &[u8]) -> Match {
    let start = BY_NAME.partition_point(|&index| name_at(index) < name);
    let same_name = BY_NAME[start..]
        .iter()
        .take_while(|&&index| name_at(index) == name);
    let mut found = Match::None;
    for &index in same_name {
        if LINES[usize::from(index)].value.as_bytes() == value {
            return Match::Line(u64::from(index));
        }
        if found == Match::None {
            found = Match::Name(u64::from(index));
        }
    }
    found
}

fn name_at(index: u8) -> &'static [u8] {
    LINES[usize::from(index)].name.as_bytes()
}

/// Indices in the order of their names; equal names in their own order, so that the smallest index is used.
static BY_NAME: [u8; LINES.len()] = {
    let mut sorted = [0; LINES.len()];
    let mut count = 0;
    while count < LINES.len() {
        let mut place = count;
        while place > 0
            && is_less(
                LINES[count].name.as_bytes(),
                LINES[sorted[place - 1] as usize].name.as_bytes(),
            )
        {
            sorted[place] = sorted[place - 1];
            place -= 1;
        }
        sorted[place] = count as u8;
        count += 1;
    }
    sorted
};

const fn is_less(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() {
        if a[at] != b[at] {
            return a[at] < b[at];
        }
        at += 1;
    }
    a.len() < b.len()
}

const fn line(name: &'static str, value: &'static str) -> StaticLine {
    StaticLine { name, value }
}

static LINES: [StaticLine; 99] = [
    line(":authority", ""),
    line(":path", "/"),
    line("age", "0"),
    line("content-disposition", ""),
    line("content-length", "0"),
    line("cookie", ""),
    line("date", ""),
    line("etag", ""),
    line("if-modified-since", ""),
    line("if-none-match", ""),
    line("last-modified", ""),
    line("link", ""),
    line("location", ""),
    line("referer", ""),
    line("set-cookie", ""),
    line(":method", "CONNECT"),
    line(":method", "DELETE"),
    line(":method", "GET"),
    line(":method", "HEAD"),
    line(":method", "OPTIONS"),
    line(":method", "POST"),
    line(":method", "PUT"),
    line(":scheme", "http"),
    line(":scheme", "https"),
    line(":status", "103"),
    line(":status", "200"),
    line(":status", "304"),
    line(":status", "404"),
    line(":status", "503"),
    line("accept", "*/*"),
    line("accept", "application/dns-message"),
    line("accept-encoding", "gzip, deflate, br"),
    line("accept-ranges", "bytes"),
    line("access-control-allow-headers", "cache-control"),
    line("access-control-allow-headers", "content-type"),
    line("access-control-allow-origin", "*"),
    line("cache-control", "max-age=0"),
    line("cache-control", "max-age=2592000"),
    line("cache-control", "max-age=604800"),
    line("cache-control", "no-cache"),
    line("cache-control", "no-store"),
    line("cache-control", "public, max-age=31536000"),
    line("content-encoding", "br"),
    line("content-encoding", "gzip"),
    line("content-type", "application/dns-message"),
    line("content-type", "application/javascript"),
    line("content-type", "application/json"),
    line("content-type", "application/x-www-form-urlencoded"),
    line("content-type", "image/gif"),
    line("content-type", "image/jpeg"),
    line("content-type", "image/png"),
    line("content-type", "text/css"),
    line("content-type", "text/html; charset=utf-8"),
    line("content-type", "text/plain"),
    line("content-type", "text/plain;charset=utf-8"),
    line("range", "bytes=0-"),
    line("strict-transport-security", "max-age=31536000"),
    line(
        "strict-transport-security",
        "max-age=31536000; includesubdomains",
    ),
    line(
        "strict-transport-security",
        "max-age=31536000; includesubdomains; preload",
    ),
    line("vary", "accept-encoding"),
    line("vary", "origin"),
    line("x-content-type-options", "nosniff"),
    line("x-xss-protection", "1; mode=block"),
    line(":status", "100"),
    line(":status", "204"),
    line(":status", "206"),
    line(":status", "302"),
    line(":status", "400"),
    line(":status", "403"),
    line(":status", "421"),
    line(":status", "425"),
    line(":status", "500"),
    line("accept-language", ""),
    line("access-control-allow-credentials", "FALSE"),
    line("access-control-allow-credentials", "TRUE"),
    line("access-control-allow-headers", "*"),
    line("access-control-allow-methods", "get"),
    line("access-control-allow-methods", "get, post, options"),
    line("access-control-allow-methods", "options"),
    line("access-control-expose-headers", "content-length"),
    line("access-control-request-headers", "content-type"),
    line("access-control-request-method", "get"),
    line("access-control-request-method", "post"),
    line("alt-svc", "clear"),
    line("authorization", ""),
    line(
        "content-security-policy",
        "script-src 'none'; object-src 'none'; base-uri 'none'",
    ),
    line("early-data", "1"),
    line("expect-ct", ""),
    line("forwarded", ""),
    line("if-range", ""),
    line("origin", ""),
    line("purpose", "prefetch"),
    line("server", ""),
    line("timing-allow-origin", "*"),
    line("upgrade-insecure-requests", "1"),
    line("user-agent", ""),
    line("x-forwarded-for", ""),
    line("x-frame-options", "deny"),
    line("x-frame-options", "sameorigin"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_found_at_its_index() {
        for (index, line) in LINES.iter().enumerate() {
            assert_eq!(
                find(line.name.as_bytes(), line.value.as_bytes()),
                Match::Line(index as u64)
            );
            assert_eq!(get(index as u64), Some(line));
        }
        assert_eq!(get(99), None);
        assert_eq!(get(u64::MAX), None);
    }

    #[test]
    fn a_name_is_found_at_its_smallest_index() {
        for (name, index) in [
            (":status", 24),
            ("content-type", 44),
            ("x-frame-options", 97),
            (":authority", 0),
            ("access-control-allow-headers", 33),
        ] {
            assert_eq!(find(name.as_bytes(), b"other"), Match::Name(index));
        }
    }

    #[test]
    fn other_names_are_not_found() {
        for name in [
            "",
            ":",
            "a",
            "content-typ",
            "content-types",
            "zzz",
            "Accept",
        ] {
            assert_eq!(find(name.as_bytes(), b""), Match::None);
        }
    }
}
