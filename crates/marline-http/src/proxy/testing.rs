//! Headers that no correct endpoint sends, and checks of those that a proxy passes on.

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::fields;

/// Fields of one connection (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
];

const OTHERS: [&str; 18] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-user",
    "x-real-ip",
    "true-client-ip",
    "front-end-https",
    "x_forwarded_for",
    "proxy",
    "via",
    "host",
    "expect",
    "content-length",
    "cookie",
    "x-a",
    "x-b",
    "sec-websocket-key",
];

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => select(&HOP_BY_HOP[..]).prop_map(str::to_owned),
        4 => select(&OTHERS[..]).prop_map(str::to_owned),
        1 => "[a-z][a-z0-9_-]{0,12}",
    ]
}

/// Bytes that a value may have, those of other encodings as well.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![8 => 0x20..0x7f_u8, 1 => 0x80..=0xff_u8], 0..60)
}

/// The value of field number `number`: a value marked with its origin, unless that would change its
/// meaning.
fn value(number: usize, name: &str, bytes: &[u8], names: &[String]) -> Vec<u8> {
    match name {
        "connection" => names.join(", ").into_bytes(),
        "content-length" => b"5".to_vec(),
        "transfer-encoding" => b"chunked".to_vec(),
        "te" => b"gzip;q=0.5, trailers".to_vec(),
        "expect" => b"100-continue".to_vec(),
        _ => [mark(number).as_bytes(), bytes].concat(),
    }
}

fn mark(number: usize) -> String {
    format!("mark{number}~")
}

/// A header section.
pub(super) fn headers() -> impl Strategy<Value = HeaderMap> {
    let field = (name(), bytes(), vec(name(), 0..4));
    vec(field, 0..40).prop_map(|written| {
        let mut headers = HeaderMap::new();
        for (number, (name, bytes, names)) in written.iter().enumerate() {
            let value = value(number, name, bytes, names);
            let name: HeaderName = name.parse().expect("it is a token");
            let value = HeaderValue::from_bytes(&value).expect("its bytes are valid");
            headers.append(name, value);
        }
        headers
    })
}

/// The names that `Connection` of `headers` lists, except those that the meaning of a message depends on.
fn listed(headers: &HeaderMap) -> Vec<HeaderName> {
    let lists = headers.get_all(CONNECTION).iter();
    let names = lists.flat_map(|list| list.as_bytes().split(|byte| *byte == b','));
    names
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .filter(|name| *name != CONTENT_LENGTH && *name != HOST)
        .collect()
}

/// Whether a marked value of a field of `from` with one of `names` is a part of a value of `to`.
fn leaks(from: &HeaderMap, to: &HeaderMap, names: &[HeaderName]) -> bool {
    let values = names.iter().flat_map(|name| from.get_all(name));
    let mut marks = values.filter_map(|value| {
        let end = value.as_bytes().iter().position(|byte| *byte == b'~')?;
        value
            .as_bytes()
            .starts_with(b"mark")
            .then(|| &value.as_bytes()[..=end])
    });
    let holds = |mark: &[u8]| {
        let mut values = to.values();
        values.any(|value| {
            value
                .as_bytes()
                .windows(mark.len())
                .any(|part| part == mark)
        })
    };
    marks.any(holds)
}

/// Checks that nothing of `received` which is about its connection is in `passed`, and that `passed` is at most `more`
/// bytes larger. A proxy's own fields about the next connection are `own`.
pub(super) fn check_passed_on(
    received: &HeaderMap,
    passed: &HeaderMap,
    own: &[(&str, &str)],
    more: usize,
) -> Result<(), TestCaseError> {
    for name in HOP_BY_HOP {
        for value in passed.get_all(name) {
            let is_own = own.iter().any(|(one, text)| *one == name && value == text);
            prop_assert!(is_own, "{name}: {value:?} is passed on");
        }
    }
    let hop_by_hop = HOP_BY_HOP.map(HeaderName::from_static);
    let about_connection = [listed(received), hop_by_hop.to_vec()].concat();
    prop_assert!(
        !leaks(received, passed, &about_connection),
        "{received:?}\nis\n{passed:?}"
    );
    let (before, after) = (fields::size(received), fields::size(passed));
    prop_assert!(after <= before + more, "{before} bytes become {after}");
    Ok(())
}

/// Checks that `passed` contains no claims of a client about itself, and no fields that are confused with them.
pub(super) fn check_claims_nothing(
    received: &HeaderMap,
    passed: &HeaderMap,
) -> Result<(), TestCaseError> {
    let is_ambiguous = |name: &&HeaderName| name.as_str().contains('_') || *name == "proxy";
    prop_assert!(!passed.keys().any(|name| is_ambiguous(&name)), "{passed:?}");
    let is_removed = |name: &&HeaderName| is_ambiguous(name) || fields::is_claim(name);
    let names: Vec<_> = received.keys().filter(is_removed).cloned().collect();
    prop_assert!(
        !leaks(received, passed, &names),
        "{received:?}\nis\n{passed:?}"
    );
    Ok(())
}
