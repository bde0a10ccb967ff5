use http::header::{HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http_body_util::BodyExt;

use super::super::Files;
use super::*;

/// A directory with small and large files, precompressed variants, and names of many kinds.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let large = vec![b'x'; 3 * limits::SMALL_FILE_BYTES];
    for (name, content) in [
        ("plain.txt", &b"plain"[..]),
        ("empty.bin", b""),
        ("large.html", &large),
        ("script.js", b"1"),
        ("no-extension", b"2"),
        ("variants.css", b"identity"),
        ("variants.css.gz", b"gzip"),
        ("variants.css.br", b"brotli"),
        ("zstd.svg", b"identity"),
        ("zstd.svg.zst", b"zstd"),
        ("zstd.svg.br", &large),
        ("only.json.gz", b"gzip"),
        ("..dots", b"dots"),
        (".hidden", b"hidden"),
    ] {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    for name in ["sub/deep/index.html", "directory.js.gz", "directory.js.zst"] {
        std::fs::create_dir_all(directory.path().join(name)).unwrap();
    }
    std::fs::write(directory.path().join("sub/index.html"), "index").unwrap();
    std::fs::write(directory.path().join("sub/deep/a~b_c-d.PNG"), "image").unwrap();
    std::fs::write(directory.path().join("directory.js"), "3").unwrap();
    directory
}

fn request(method: &Method, path: &str, fields: &[(HeaderName, &str)]) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method.clone();
    *request.uri_mut() = path.parse().unwrap();
    for (name, value) in fields {
        let value = value.parse().unwrap();
        request.headers_mut().append(name, value);
    }
    request
}

/// Status, fields and content.
async fn described(response: Response<Body>) -> String {
    let (parts, body) = response.into_parts();
    let content = body.collect().await.map(|content| content.to_bytes());
    let content = content.map_err(|error| error.to_string());
    let mut fields: Vec<_> = parts.headers.iter().collect();
    fields.sort_by_key(|(name, _)| name.as_str());
    format!("{:?} {fields:?} {content:?}", parts.status)
}

#[tokio::test]
async fn responses_are_those_of_serve_dir() {
    let directory = directory();
    let files = Files(Root::open(directory.path(), false).unwrap());
    let old = "Thu, 01 Jan 1970 00:00:01 GMT";
    let mut answered = 0;
    for path in [
        "/plain.txt",
        "/empty.bin",
        "/large.html",
        "/script.js",
        "/no-extension",
        "/variants.css",
        "/zstd.svg",
        "/only.json",
        "/directory.js",
        "/..dots",
        "/.hidden",
        "/sub",
        "/sub/",
        "/sub/deep/",
        "/sub/index.html?query",
        "/sub/deep/a~b_c-d.PNG",
        "/missing",
        "/plain.txt/",
        "/sub/../plain.txt",
        "/./plain.txt",
        "/sub//index.html",
        "/%70lain.txt",
        "/plain.txt%00",
    ] {
        for fields in [
            &[][..],
            &[(ACCEPT_ENCODING, "gzip")],
            &[(ACCEPT_ENCODING, "gzip, deflate, br, zstd")],
            &[(ACCEPT_ENCODING, "BR"), (ACCEPT_ENCODING, "x-gzip")],
            &[(ACCEPT_ENCODING, "br;q=0.5, gzip")],
            &[(ACCEPT_ENCODING, "identity;q=0")],
            &[(ACCEPT_ENCODING, "*")],
            &[(IF_NONE_MATCH, "*")],
            &[(IF_MATCH, "\"other\"")],
            &[(IF_MODIFIED_SINCE, old)],
            &[(RANGE, "bytes=1-2")],
        ] {
            for method in [Method::GET, Method::HEAD, Method::POST] {
                let asked = || request(&method, path, fields);
                let expected = described(files.answer_by_serve_dir(asked()).await).await;
                let found = described(files.answer(asked()).await).await;
                assert_eq!(found, expected, "{method} {path} {fields:?}");
                answered += usize::from(WholeFile::of(&asked()).is_some());
            }
        }
    }
    assert!(answered > 100, "{answered}");
}

/// RFC 9110, section 9.3.2.
#[tokio::test]
async fn head_is_answered_as_get() {
    let directory = directory();
    let files = Files(Root::open(directory.path(), false).unwrap());
    for path in [
        "/plain.txt",
        "/large.html",
        "/variants.css",
        "/zstd.svg",
        "/only.json",
        "/directory.js",
        "/sub",
        "/sub/",
        "/sub/deep/",
        "/missing",
    ] {
        for accepted in [
            "",
            "gzip",
            "gzip;q=1.0, br;q=0.8",
            "zstd, gzip;q=0.5",
            "*;q=0.1",
        ] {
            let answer = async |method| {
                let fields = [(ACCEPT_ENCODING, accepted)];
                let response = files.answer(request(&method, path, &fields)).await;
                described(response.map(|_| Body::empty())).await
            };
            let (head, get) = (answer(Method::HEAD).await, answer(Method::GET).await);
            assert_eq!(head, get, "{path} {accepted}");
        }
    }
}

#[tokio::test]
async fn a_changed_file_is_seen_at_once() {
    let directory = directory();
    let files = Files(Root::open(directory.path(), false).unwrap());
    let path = directory.path().join("plain.txt");
    for content in ["first", "second", "third"] {
        std::fs::write(&path, content).unwrap();
        let response = files.answer(request(&Method::GET, "/plain.txt", &[])).await;
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, content.as_bytes());
    }
}
