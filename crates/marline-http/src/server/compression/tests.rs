use std::sync::atomic::{AtomicUsize, Ordering};

use http::header::ACCEPT_ENCODING;
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::*;
use crate::limits::COMPRESSED_AT_ONCE;

/// More are compressed at once than have a place: the others are sent as they are.
#[tokio::test]
async fn responses_beyond_the_limit_are_not_compressed() {
    let site = Site::new(service_fn(async |_: Request<Body>| {
        let mut response = Response::new(Body::full(vec![b'a'; 4096]));
        let kind = HeaderValue::from_static("text/plain");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Ok::<_, Infallible>(response)
    }));
    let site = compressed(site, Compression::new(None));
    let get = async || {
        let mut request = Request::new(Body::empty());
        let gzip = HeaderValue::from_static("gzip");
        request.headers_mut().insert(ACCEPT_ENCODING, gzip);
        site.clone().oneshot(request).await.unwrap()
    };
    let mut held = Vec::new();
    for _ in 0..COMPRESSIONS {
        let response = get().await;
        assert!(response.headers().contains_key(CONTENT_ENCODING));
        held.push(response);
    }
    let response = get().await;
    assert!(!response.headers().contains_key(CONTENT_ENCODING));
    assert_eq!(response.headers()[VARY], "accept-encoding");
    held.pop();
    assert!(get().await.headers().contains_key(CONTENT_ENCODING));
}

/// Gives chunks as fast as they are read, and counts their bytes.
struct Endless(Arc<AtomicUsize>);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let chunk = Bytes::from_static(&[b'a'; 1 << 14]);
        self.0.fetch_add(chunk.len(), Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }
}

/// An encoder that has no output yet reads on. That takes no more of the thread at once than a limit.
#[tokio::test]
async fn content_that_compresses_well_leaves_others_their_turns() {
    for coding in ["br", "zstd", "gzip"] {
        let read = Arc::<AtomicUsize>::default();
        let endless = Arc::clone(&read);
        let site = Site::new(service_fn(move |_: Request<Body>| {
            let mut response = Response::new(Body::new(Endless(Arc::clone(&endless))));
            let kind = HeaderValue::from_static("text/plain");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            ready(Ok::<_, Infallible>(response))
        }));
        let site = compressed(site, Compression::new(None));
        let mut request = Request::new(Body::empty());
        let value = HeaderValue::from_static(coding);
        request.headers_mut().insert(ACCEPT_ENCODING, value);
        let response = site.oneshot(request).await.unwrap();
        assert_eq!(response.headers()[CONTENT_ENCODING], coding);
        let mut content = response.into_body();
        let cx = &mut Context::from_waker(std::task::Waker::noop());
        let mut before = 0;
        for _ in 0..20 {
            let _ = http_body::Body::poll_frame(Pin::new(&mut content), cx);
            let total = read.load(Ordering::Relaxed);
            let at_once = total - before;
            assert!(
                at_once <= COMPRESSED_AT_ONCE + (1 << 14),
                "{coding}: {at_once}"
            );
            before = total;
        }
        assert!(before > COMPRESSED_AT_ONCE, "{coding}: {before}");
    }
}

/// An application may give the pages of different users the same entity tag, as only their browsers keep them.
#[tokio::test]
async fn pages_of_users_are_not_kept_for_others() {
    let site = compressed(
        Site::new(service_fn(|request: Request<Body>| {
            let headers = request.headers();
            let user = headers.get(COOKIE).or(headers.get("x-user")).unwrap();
            let content = user.to_str().unwrap().repeat(1000);
            let mut response = Response::new(Body::full(content));
            for name in ["set-cookie", "cache-control"] {
                if let Some(value) = headers.get(name) {
                    response.headers_mut().insert(name, value.clone());
                }
            }
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
            headers.insert(ETAG, HeaderValue::from_static("\"version 1\""));
            ready(Ok::<_, Infallible>(response))
        })),
        Compression::new(Some("/*".parse().unwrap())),
    );
    let get = async |path: &str, user: &str, fields: &[(&'static str, &str)]| {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = path.parse().unwrap();
        let headers = request.headers_mut();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert("x-user", user.parse().unwrap());
        for (name, value) in fields {
            headers.insert(*name, value.parse().unwrap());
        }
        let response = site.clone().oneshot(request).await.unwrap();
        let learns = response.headers().contains_key("use-as-dictionary");
        let content = response.into_body().collect().await.unwrap();
        (content.to_bytes(), learns)
    };
    let personal: [&[(&'static str, &str)]; 6] = [
        &[("cookie", "session")],
        &[("authorization", "Basic dTpw")],
        &[("set-cookie", "a=b")],
        &[("cache-control", "max-age=5, private")],
        &[("cache-control", "Private=\"x\"")],
        &[("cache-control", "no-store")],
    ];
    for (number, fields) in personal.into_iter().enumerate() {
        let path = format!("/{number}");
        let (of_a, learns) = get(&path, "a", fields).await;
        assert!(!learns, "{fields:?}");
        if fields[0].0 != "cookie" {
            assert_ne!(of_a, get(&path, "b", fields).await.0, "{fields:?}");
        }
    }
    // What is public is kept.
    let public = [
        ("cookie", "session"),
        ("cache-control", "public, max-age=60"),
    ];
    let (first, learns) = get("/public", "a", &public).await;
    assert!(learns);
    assert_eq!(first, get("/public", "b", &public).await.0);
}
