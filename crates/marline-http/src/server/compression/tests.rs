use std::sync::atomic::{AtomicUsize, Ordering};

use http::header::ACCEPT_ENCODING;
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
