use super::spec::{ByteRange, RangeSpec, parse, resolve};
use crate::limits;

fn resolved(value: &str, size: u64) -> Option<Vec<(u64, u64)>> {
    let ranges = resolve(&parse(value.as_bytes())?, size);
    Some(ranges.iter().map(|r| (r.first, r.last)).collect())
}

#[test]
fn the_examples_of_the_rfc_are_read() {
    // RFC 9110 section 14.1.2, for a representation of 10,000 bytes.
    assert_eq!(resolved("bytes=0-499", 10_000), Some(vec![(0, 499)]));
    assert_eq!(resolved("bytes=500-999", 10_000), Some(vec![(500, 999)]));
    assert_eq!(resolved("bytes=-500", 10_000), Some(vec![(9500, 9999)]));
    assert_eq!(resolved("bytes=9500-", 10_000), Some(vec![(9500, 9999)]));
    let ends = Some(vec![(0, 0), (9999, 9999)]);
    assert_eq!(resolved("bytes=0-0,-1", 10_000), ends);
    assert_eq!(resolved("bytes= 0-0, , -1", 10_000), ends);
}

#[test]
fn malformed_ranges_are_ignored() {
    for value in [
        "",
        "bytes",
        "bytes=",
        "bytes=-",
        "bytes=1",
        "bytes=2-1",
        "bytes=+1-2",
        "bytes=0-1,x",
        "bytes=1-2-3",
        "items=0-1",
        "bytes=\u{e9}-",
    ] {
        assert_eq!(parse(value.as_bytes()), None, "{value}");
    }
    assert_eq!(parse(b"bytes=\xff-"), None);
}

#[test]
fn the_largest_positions_do_not_overflow() {
    let huge = "99999999999999999999999";
    assert_eq!(resolved(&format!("bytes=0-{huge}"), 5), Some(vec![(0, 4)]));
    assert_eq!(resolved(&format!("bytes=-{huge}"), 5), Some(vec![(0, 4)]));
    assert_eq!(resolved(&format!("bytes={huge}-"), 5), Some(vec![]));
    assert_eq!(resolved("bytes=0-0,-0,-1,0-", 0), Some(vec![]));
    let whole = ByteRange {
        first: 0,
        last: u64::MAX - 1,
    };
    assert_eq!(whole.len(), u64::MAX);
}

#[test]
fn too_many_ranges_are_ignored() {
    let many = |count: usize| format!("bytes={}", vec!["0-0"; count].join(","));
    let most = parse(many(limits::MAX_RANGES).as_bytes());
    assert_eq!(
        most,
        Some(vec![RangeSpec::From(0, Some(0)); limits::MAX_RANGES])
    );
    assert_eq!(parse(many(limits::MAX_RANGES + 1).as_bytes()), None);
}
