use http::header::ACCEPT_ENCODING;
use tower::ServiceExt;

use super::*;

/// More are compressed at once than have a place: the others are sent as they are.
#[tokio::test]
async fn responses_beyond_the_limit_are_not_compressed() {
    let site = Site::new(service_fn(async |_: Request<Body>| {
        let mut response = Response::new(Body::full(vec![b'a'; 4096]));
        let kind = HeaderValue::from_static("text/plain");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Ok::<_, Infallible>(response)
    }));
    let site = compressed(site);
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
