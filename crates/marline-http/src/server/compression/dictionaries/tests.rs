use std::convert::Infallible;
use std::fmt::Write as _;
use std::future::ready;

use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, ETAG, VARY};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use tower::{ServiceExt, service_fn};

use super::*;
use crate::server::{Compression, Site, compressed};

/// A script that compresses badly by itself, of which a line depends on the version.
fn script(version: u32) -> String {
    let mut text = format!("const version = {version};\n");
    let mut state = 1_u64;
    for _ in 0..4000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let _ = writeln!(text, "f('{state:x}');");
    }
    text
}

/// A site with `/app/N.js`, the script of version N.
fn site() -> Site {
    let site = Site::new(service_fn(|request: Request<Body>| {
        let name = request.uri().path().trim_start_matches("/app/");
        let version = name.trim_end_matches(".js").parse().unwrap_or(0);
        let content = match request.uri().path() {
            "/large" => "x".repeat(MAX_DICTIONARY + 1),
            _ => script(version),
        };
        let mut response = Response::new(Body::full(content.clone()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/javascript"));
        headers.insert(CONTENT_LENGTH, content.len().into());
        let tag = format!("\"{version}\"");
        headers.insert(ETAG, tag.parse().unwrap());
        ready(Ok::<_, Infallible>(response))
    }));
    compressed(site, Compression::new(Some("/*".parse().unwrap())))
}

async fn get(
    site: &Site,
    method: Method,
    path: &str,
    codings: &str,
    hash: Option<&[u8]>,
) -> Response<Bytes> {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    let headers = request.headers_mut();
    headers.insert(ACCEPT_ENCODING, codings.parse().unwrap());
    if let Some(hash) = hash {
        let value = format!(":{}:", STANDARD.encode(hash));
        headers.insert("available-dictionary", value.parse().unwrap());
    }
    let response = site.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let (parts, body) = response.into_parts();
    let content = body.collect().await.unwrap().to_bytes();
    Response::from_parts(parts, content)
}

fn coding(response: &Response<Bytes>) -> &str {
    let coding = response.headers().get(CONTENT_ENCODING);
    coding.map_or("", |coding| coding.to_str().unwrap())
}

/// The content of a response in [`CODING`].
fn decoded(response: &Response<Bytes>, dictionary: &[u8]) -> Vec<u8> {
    let content = response.body();
    assert_eq!(content[..8], MAGIC);
    assert_eq!(content[8..40], Sha256::of(dictionary));
    let mut decoder = zstd::bulk::Decompressor::with_dictionary(dictionary).unwrap();
    decoder.decompress(&content[40..], 1 << 24).unwrap()
}

#[tokio::test]
async fn a_new_version_is_sent_as_its_difference() {
    let site = site();
    let first = get(&site, Method::GET, "/app/1.js", "gzip, zstd, dcz", None).await;
    assert_eq!(first.headers()["use-as-dictionary"], "match=\"/*\"");
    assert_eq!(coding(&first), "zstd");
    let varies: Vec<_> = first.headers().get_all(VARY).iter().collect();
    assert_eq!(varies, ["accept-encoding", "available-dictionary"]);

    let hash = Sha256::of(script(1).as_bytes());
    for is_kept in [false, true] {
        let second = get(
            &site,
            Method::GET,
            "/app/2.js",
            "gzip, zstd, dcz",
            Some(&hash),
        )
        .await;
        assert_eq!(coding(&second), "dcz");
        assert_eq!(second.headers()[ETAG], "W/\"2\"");
        assert_eq!(decoded(&second, script(1).as_bytes()), script(2).as_bytes());
        assert!(second.body().len() < 200, "{}", second.body().len());
        // Without the dictionary it has many times that.
        assert!(first.body().len() > 20_000);
        assert_eq!(second.headers().contains_key(CONTENT_LENGTH), is_kept);
    }
    // A version that was sent as a difference is a dictionary as well.
    let hash = Sha256::of(script(2).as_bytes());
    let third = get(&site, Method::GET, "/app/3.js", "dcz", Some(&hash)).await;
    assert_eq!(decoded(&third, script(2).as_bytes()), script(3).as_bytes());
}

#[tokio::test]
async fn who_does_not_ask_for_a_difference_gets_none() {
    let site = site();
    get(&site, Method::GET, "/app/1.js", "gzip", None).await;
    let hash = Sha256::of(script(1).as_bytes());
    let unknown = Sha256::of(b"of another server");
    for (codings, hash, expected) in [
        ("zstd", Some(&hash[..]), "zstd"),
        ("zstd, dcz;q=0", Some(&hash[..]), "zstd"),
        ("zstd, dcz", Some(&unknown[..]), "zstd"),
        ("zstd, dcz", Some(&hash[1..]), "zstd"),
        ("zstd, dcz", None, "zstd"),
        ("dcz;q=0.5", Some(&hash[..]), "dcz"),
    ] {
        let response = get(&site, Method::GET, "/app/2.js", codings, hash).await;
        assert_eq!(coding(&response), expected, "{codings}");
    }
}

#[tokio::test]
async fn only_what_is_kept_is_announced() {
    let site = site();
    let announces = async |method, path| {
        let response = get(&site, method, path, "zstd", None).await;
        response.headers().contains_key("use-as-dictionary")
    };
    assert!(!announces(Method::GET, "/large").await);
    assert!(!announces(Method::HEAD, "/app/1.js").await);
    assert!(announces(Method::GET, "/app/1.js").await);
    assert!(announces(Method::HEAD, "/app/1.js").await);
}

#[test]
fn the_oldest_dictionaries_make_room() {
    let dictionaries = Dictionaries::new("/*".parse().unwrap());
    let source = |number: usize| Source {
        target: format!("/{number}").parse().unwrap(),
        tag: HeaderValue::from_static("\"\""),
    };
    let quarter = Bytes::from(vec![0; DICTIONARY_BYTES / 4]);
    for number in 0..5 {
        let hash = [u8::try_from(number).unwrap(); 32];
        dictionaries.insert(source(number), hash, quarter.clone());
    }
    assert!(!dictionaries.has(&source(0)));
    assert!(dictionaries.get(&[0; 32]).is_none());
    assert!((1..5).all(|number| dictionaries.has(&source(number))));
    for number in 5..2 * MAX_SOURCES {
        dictionaries.insert(source(number), [4; 32], quarter.clone());
    }
    assert!(dictionaries.kept().sources.len() <= MAX_SOURCES);
    assert!(dictionaries.kept().bytes <= DICTIONARY_BYTES);
}

#[test]
fn patterns_have_one_asterisk() {
    for pattern in ["/", "/*", "/app/*.js", "/app/main.js"] {
        assert_eq!(
            pattern.parse::<DictionaryPattern>().unwrap().to_string(),
            pattern
        );
    }
    for pattern in [
        "", "*.js", "/a/*/b/*", "/a?b", "/\"", "/a b", "/:name", "/ä",
    ] {
        assert!(pattern.parse::<DictionaryPattern>().is_err(), "{pattern}");
    }
    let pattern: DictionaryPattern = "/app/*.js".parse().unwrap();
    assert!(pattern.matches("/app/main.1.js") && !pattern.matches("/app/main.css"));
    assert!(
        !"/ab*bc"
            .parse::<DictionaryPattern>()
            .unwrap()
            .matches("/abc")
    );
}
