//! Malformed messages, by section of RFC 9114.

use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};

use super::request::DecodedRequest;
use super::*;
use crate::error::ErrorCode;
use crate::qpack::FieldRef;

const GET: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "a"),
    (":path", "/"),
];

fn lines(fields: &[(&str, &str)]) -> Vec<FieldLine> {
    let line = |(name, value): &(&str, &str)| FieldLine {
        name: name.as_bytes().to_vec().into(),
        value: value.as_bytes().to_vec().into(),
        is_sensitive: false,
    };
    fields.iter().map(line).collect()
}

/// The lines as they arrive at the peer.
fn received(fields: &[FieldRef<'_>]) -> Vec<FieldLine> {
    let line = |field: &FieldRef<'_>| FieldLine {
        name: field.name.to_vec().into(),
        value: field.value.to_vec().into(),
        is_sensitive: field.is_sensitive,
    };
    fields.iter().map(line).collect()
}

fn request(fields: &[(&str, &str)]) -> Result<DecodedRequest, StreamError> {
    decode_request(lines(fields), false)
}

/// GET with more fields.
fn get(fields: &[(&str, &str)]) -> Result<DecodedRequest, StreamError> {
    request(&[GET, fields].concat())
}

fn response(fields: &[(&str, &str)]) -> Result<Response<()>, StreamError> {
    decode_response(lines(fields)).map(|decoded| decoded.response)
}

fn assert_malformed<T>(result: Result<T, StreamError>, what: impl std::fmt::Debug) {
    let code = result.err().map(|error| error.code());
    assert_eq!(code, Some(ErrorCode::MESSAGE_ERROR), "{what:?}");
}

/// Section 4.3.
#[test]
fn pseudo_header_fields_are_known_single_and_first() {
    for fields in [
        &[(":unknown", "a")][..],
        &[(":status", "200")],
        &[(":method", "GET")],
        &[(":path", "/")],
        &[(":authority", "a")],
        &[(":scheme", "https")],
    ] {
        assert_malformed(get(fields), fields);
    }
    let late = [&[("accept", "*/*")], GET].concat();
    assert_malformed(request(&late), late);
    for fields in [
        &[(":status", "200"), (":method", "GET")][..],
        &[(":status", "200"), (":path", "/")],
        &[(":status", "200"), (":status", "200")],
        &[("date", "now"), (":status", "200")],
    ] {
        assert_malformed(response(fields), fields);
    }
    assert_malformed(decode_trailers(lines(&[(":status", "200")])), "trailers");
    assert_malformed(decode_trailers(lines(&[(":method", "GET")])), "trailers");
}

/// Section 4.3.1.
#[test]
fn requests_have_method_scheme_authority_and_path() {
    for missing in 0..GET.len() {
        let mut fields = GET.to_vec();
        fields.remove(missing);
        assert_malformed(request(&fields), fields);
    }
    for (name, value) in [
        (":method", ""),
        (":method", "G E T"),
        (":scheme", ""),
        (":scheme", "ht tp"),
        (":scheme", "1a"),
        (":authority", ""),
        (":authority", "user@a"),
        (":authority", "a/b"),
        (":authority", "a,b"),
        (":authority", "a:+1"),
        (":authority", ":"),
        (":authority", "a:99999"),
        (":authority", "*"),
        (":authority", "[::1"),
        (":authority", "\u{e9}"),
        (":path", ""),
        (":path", "index.html"),
        (":path", "*"),
    ] {
        let mut fields = GET.to_vec();
        let place = fields.iter().position(|field| field.0 == name).unwrap();
        fields[place].1 = value;
        assert_malformed(request(&fields), fields);
    }
}

/// Section 4.3.1.
#[test]
fn host_stands_for_authority_and_must_be_the_same() {
    assert_malformed(get(&[("host", "b")]), "another host");
    assert_malformed(get(&[("host", "a"), ("host", "a")]), "two hosts");
    assert!(get(&[("host", "A")]).is_ok());
    let fields = [GET[0], GET[1], GET[3], ("host", "a:81")];
    let decoded = request(&fields).ok().unwrap();
    assert_eq!(decoded.request.uri(), "https://a:81/");
    assert!(get(&[("host", "a:")]).is_ok(), "the default port");
}

#[test]
fn options_may_be_about_the_whole_server() {
    let fields = [(":method", "OPTIONS"), GET[1], GET[2], (":path", "*")];
    assert_eq!(request(&fields).ok().unwrap().request.uri().path(), "*");
}

/// Section 4.4.
#[test]
fn connect_has_an_authority_with_a_port_only() {
    let connect = (":method", "CONNECT");
    let decoded = request(&[connect, (":authority", "a:443")]).ok().unwrap();
    assert_eq!(decoded.request.uri(), "a:443");
    for fields in [
        &[connect][..],
        &[connect, (":authority", "a")],
        &[connect, (":authority", "a:443"), (":path", "/")],
        &[connect, (":authority", "a:443"), (":scheme", "https")],
    ] {
        assert_malformed(request(fields), fields);
    }
}

/// RFC 9220, section 3; RFC 8441, section 4.
#[test]
fn extended_connect_needs_a_target_and_an_end_that_allows_it() {
    let protocol = (":protocol", "websocket");
    let fields = [(":method", "CONNECT"), GET[1], GET[2], GET[3], protocol];
    for missing in 1..4 {
        let mut fields = fields.to_vec();
        fields.remove(missing);
        assert_malformed(decode_request(lines(&fields), true), fields);
    }
    assert_malformed(decode_request(lines(&fields), false), "not enabled");
    let decoded = decode_request(lines(&fields), true).ok().unwrap();
    let found = decoded.request.extensions().get::<Protocol>().unwrap();
    assert_eq!(found.as_str(), "websocket");
    assert_eq!(decoded.request.uri(), "https://a/");
    for missing in 1..4 {
        let mut fields = fields.to_vec();
        fields.remove(missing);
        assert_malformed(decode_request(lines(&fields), true), fields);
    }
    let get = [GET, &[protocol]].concat();
    assert_malformed(decode_request(lines(&get), true), get);
}

/// Section 4.3.2.
#[test]
fn responses_have_a_status() {
    for status in ["204", "999"] {
        let response = response(&[(":status", status)]).unwrap();
        assert_eq!(response.status().as_str(), status);
    }
    for fields in [
        &[][..],
        &[("date", "now")],
        &[(":status", "")],
        &[(":status", "20")],
        &[(":status", "2000")],
        &[(":status", "abc")],
        &[(":status", "099")],
        // Section 4.5.
        &[(":status", "101")],
    ] {
        assert_malformed(response(fields), fields);
    }
}

/// Section 4.2.
#[test]
fn names_are_lower_case_tokens_and_values_have_no_control_characters() {
    for field in [
        ("Accept", "*/*"),
        ("", "a"),
        ("a b", "a"),
        ("a:", "a"),
        ("a\0", "a"),
        ("a", "b\r\nc: d"),
        ("a", "b\0"),
        ("a", " b"),
        ("a", "b "),
        ("a", "\tb"),
        ("a", " "),
    ] {
        assert_malformed(get(&[field]), field);
        assert_malformed(response(&[(":status", "200"), field]), field);
        assert_malformed(decode_trailers(lines(&[field])), field);
    }
}

/// Section 4.2.
#[test]
fn connection_specific_fields_are_malformed() {
    for field in [
        ("connection", "close"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
    ] {
        assert_malformed(get(&[field]), field);
        assert_malformed(response(&[(":status", "200"), field]), field);
    }
    assert!(get(&[("te", "trailers")]).is_ok());
}

/// Section 4.1.2; RFC 9110, section 8.6.
#[test]
fn content_length_is_one_number() {
    let length = |fields: &[(&str, &str)]| get(fields).map(|decoded| decoded.content_length);
    let name = "content-length";
    assert_eq!(length(&[(name, "5")]), Ok(Some(5)));
    assert_eq!(length(&[(name, "5"), (name, "5")]), Ok(Some(5)));
    assert_eq!(length(&[(name, "5, 5")]), Ok(Some(5)));
    for fields in [
        &[(name, "")][..],
        &[(name, "+5")],
        &[(name, "-5")],
        &[(name, "5a")],
        &[(name, "5, 6")],
        &[(name, "5,")],
        &[(name, "5"), (name, "6")],
        &[(name, "18446744073709551616")],
    ] {
        assert_malformed(length(fields), fields);
    }
}

/// Section 4.2.1.
#[test]
fn cookies_are_joined() {
    let empty = ("cookie", "");
    let fields = [
        empty,
        ("cookie", "a=b"),
        ("accept", "*/*"),
        empty,
        ("cookie", "c=d"),
        empty,
    ];
    let decoded = get(&fields).ok().unwrap();
    let cookies: Vec<_> = decoded.request.headers().get_all("cookie").iter().collect();
    assert_eq!(cookies, ["a=b; c=d"]);
}

#[test]
fn messages_that_are_encoded_decode_to_the_same() {
    for (method, uri) in [
        (Method::GET, "https://a:4433/b?c"),
        (Method::POST, "https://a"),
        (Method::GET, "https://a?b"),
        (Method::CONNECT, "a:443"),
    ] {
        let mut request = Request::new(());
        *request.method_mut() = method.clone();
        *request.uri_mut() = Uri::from_static(uri);
        request
            .headers_mut()
            .insert("x", "y".parse().expect("a value"));
        let path = request_path(&request);
        let fields = received(&request_fields(&request, &path).unwrap());
        let decoded = decode_request(fields, false).ok().unwrap().request;
        assert_eq!(decoded.method(), method);
        assert_eq!(decoded.headers(), request.headers());
        assert_eq!(decoded.uri().authority(), request.uri().authority());
        assert_eq!(decoded.uri().query(), request.uri().query());
    }
    let mut sent = Response::new(());
    *sent.status_mut() = StatusCode::PARTIAL_CONTENT;
    let fields = received(&response_fields(&sent.status(), sent.headers()));
    let decoded = decode_response(fields).ok().unwrap().response;
    assert_eq!(decoded.status(), StatusCode::PARTIAL_CONTENT);
}

#[test]
fn fields_of_http_1_are_not_sent() {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
        ("te", "gzip"),
        ("server", "x"),
    ] {
        headers.insert(name, value.parse().expect("a value"));
    }
    let fields = response_fields(&StatusCode::OK, &headers).into_iter();
    let names: Vec<_> = fields.map(|field| field.name).collect();
    assert_eq!(names, [&b":status"[..], b"server"]);
}

#[test]
fn a_request_without_a_host_cannot_be_encoded() {
    let mut request = Request::new(());
    *request.uri_mut() = Uri::from_static("/a");
    assert_eq!(request_fields(&request, "/a"), None);
    request
        .headers_mut()
        .insert("host", "a".parse().expect("a value"));
    assert!(request_fields(&request, "/a").is_some());
}

#[test]
fn a_protocol_is_a_token() {
    assert_eq!(
        Protocol::new("connect-udp").unwrap().as_str(),
        "connect-udp"
    );
    assert_eq!(Protocol::new(""), None);
    assert_eq!(Protocol::new("a b"), None);
}

#[test]
fn trailers_are_fields() {
    let trailers = decode_trailers(lines(&[("checksum", "1")])).unwrap();
    let mut expected = HeaderMap::new();
    expected.insert("checksum", "1".parse().expect("a value"));
    assert_eq!(trailers, expected);
    assert_eq!(trailer_fields(&expected).len(), 1);
}
