use http_body_util::BodyExt;

use super::*;

const SIZE: u64 = 200_000;

fn site() -> Site {
    let object = GeneratedObject {
        size: SIZE,
        content_type: HeaderValue::from_static("image/png"),
        think: Duration::ZERO,
        content: None,
    };
    let empty = GeneratedObject {
        size: 0,
        ..object.clone()
    };
    let objects = [("/a", object.clone()), ("/b", object), ("/empty", empty)];
    let objects = objects.map(|(path, object)| (path.to_owned(), object));
    generated(BTreeMap::from(objects), None).unwrap()
}

struct Served {
    status: StatusCode,
    headers: HeaderMap,
    content: Bytes,
}

async fn ask(site: &Site, method: Method, path: &str, fields: &[(&str, &str)]) -> Served {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).unwrap();
    let Ok(response) = site.clone().oneshot(request).await;
    let (parts, body) = response.into_parts();
    let content = body.collect().await.unwrap().to_bytes();
    Served {
        status: parts.status,
        headers: parts.headers,
        content,
    }
}

#[tokio::test]
async fn generated_objects_have_their_size() {
    let site = site();
    let Served {
        status,
        headers,
        content: a,
    } = ask(&site, Method::GET, "/a?query", &[]).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers[CONTENT_TYPE], "image/png");
    assert_eq!(headers[CONTENT_LENGTH], "200000");
    assert_eq!(a.len() as u64, SIZE);
    assert_eq!(ask(&site, Method::GET, "/a", &[]).await.content, a);
    assert_ne!(ask(&site, Method::GET, "/b", &[]).await.content, a);
    assert!(
        ask(&site, Method::GET, "/empty", &[])
            .await
            .content
            .is_empty()
    );

    let Served {
        status,
        headers,
        content,
    } = ask(&site, Method::HEAD, "/a", &[]).await;
    assert_eq!((status, content.len()), (StatusCode::OK, 0));
    assert_eq!(headers[CONTENT_LENGTH], "200000");
    let missing = ask(&site, Method::GET, "/c", &[]).await.status;
    assert_eq!(missing, StatusCode::NOT_FOUND);
    let posted = ask(&site, Method::POST, "/a", &[]).await.status;
    assert_eq!(posted, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn ranges_are_parts_of_the_generated_object() {
    let site = site();
    let Served {
        headers,
        content: whole,
        ..
    } = ask(&site, Method::GET, "/a", &[]).await;
    let tag = headers[ETAG].to_str().unwrap().to_owned();
    for (range, first, end) in [
        ("bytes=0-0", 0, 1),
        ("bytes=1000-99999", 1000, 100_000),
        ("bytes=131072-", 131_072, 200_000),
        ("bytes=-5", 199_995, 200_000),
    ] {
        let fields = [("range", range), ("if-range", &tag)];
        let Served {
            status,
            headers,
            content: part,
        } = ask(&site, Method::GET, "/a", &fields).await;
        assert_eq!(status, StatusCode::PARTIAL_CONTENT, "{range}");
        assert_eq!(part, whole[first..end]);
        let expected = format!("bytes {first}-{}/200000", end - 1);
        assert_eq!(headers[CONTENT_RANGE], expected);
    }
    let beyond = ask(&site, Method::GET, "/a", &[("range", "bytes=200000-")]).await;
    assert_eq!(beyond.status, StatusCode::RANGE_NOT_SATISFIABLE);
    let changed = [("range", "bytes=0-0"), ("if-range", "\"else\"")];
    assert_eq!(ask(&site, Method::GET, "/a", &changed).await.content, whole);
    let several = ask(&site, Method::GET, "/a", &[("range", "bytes=0-9,20-29")]).await;
    assert_eq!(several.status, StatusCode::PARTIAL_CONTENT);
    assert!(
        several
            .content
            .windows(10)
            .any(|part| part == &whole[20..30])
    );
    let known = ask(&site, Method::GET, "/a", &[("if-none-match", &tag)]).await;
    assert_eq!(known.status, StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn objects_with_content_are_served_with_ranges() {
    let kind = HeaderValue::from_static("text/plain");
    let object = GeneratedObject::of(Bytes::from_static(b"0123456789"), kind);
    let objects = BTreeMap::from([("/digits".to_owned(), object)]);
    let site = generated(objects, None).unwrap();
    let Served {
        status,
        headers,
        content,
    } = ask(&site, Method::GET, "/digits", &[]).await;
    assert_eq!((status, &content[..]), (StatusCode::OK, &b"0123456789"[..]));
    assert_eq!(headers[CONTENT_LENGTH], "10");
    let range = [("range", "bytes=3-5")];
    let Served {
        status,
        headers,
        content,
    } = ask(&site, Method::GET, "/digits", &range).await;
    assert_eq!(status, StatusCode::PARTIAL_CONTENT);
    assert_eq!(headers[CONTENT_RANGE], "bytes 3-5/10");
    assert_eq!(&content[..], b"345");
}
