//! A client's services of tower: requests to any origin, and the layers around them.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, COOKIE, LOCATION, RETRY_AFTER, SET_COOKIE,
};
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use marline_http::Body;
use marline_http::client::layers::{
    CookieLayer, DecompressLayer, FinalUri, RedirectLayer, RetryLayer,
};
use marline_http::client::{
    ClientError, CookieJar, Credentials, HttpVersion, Redirects, Retry, Upload,
};
use marline_http::server::Site;
use tower::{Layer, ServiceExt, service_fn};

use crate::common::{TestServer, VERSIONS, client, client_with};

fn field(headers: &HeaderMap, name: HeaderName) -> String {
    let value = headers.get(name).map(|value| value.to_str().unwrap());
    value.unwrap_or("-").to_owned()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// `/start` redirects to `/fields`, which shows fields of the request; `/busy` has two failures first; `/echo` sends content back.
fn site() -> Site {
    let failures = Arc::new(AtomicU32::new(2));
    let answer = move |request: Request<Body>| {
        let failures = Arc::clone(&failures);
        async move {
            let response = Response::builder();
            let headers = request.headers().clone();
            let response = match request.uri().path() {
                "/start" => response
                    .status(StatusCode::FOUND)
                    .header(LOCATION, "/fields?x")
                    .header(SET_COOKIE, "id=7; Path=/")
                    .body(Body::full("moved")),
                "/fields" => {
                    let fields = [COOKIE, AUTHORIZATION, ACCEPT_ENCODING];
                    let fields = fields.map(|name| field(&headers, name));
                    response.body(Body::full(fields.join("\n")))
                }
                "/busy" => match failures.fetch_sub(1, Relaxed) {
                    0 => {
                        failures.store(2, Relaxed);
                        response.body(Body::full("at last"))
                    }
                    _ => response
                        .status(StatusCode::SERVICE_UNAVAILABLE)
                        .header(RETRY_AFTER, "0")
                        .body(Body::full("later")),
                },
                "/zip" => response
                    .header(CONTENT_ENCODING, "gzip")
                    .body(Body::full(gzip(b"packed"))),
                _ => response.body(request.into_body()),
            };
            Ok::<_, std::convert::Infallible>(response.unwrap())
        }
    };
    Site::new(service_fn(answer))
}

fn get(url: String) -> Request<Upload> {
    Request::get(url).body(Upload::default()).unwrap()
}

async fn text<B>(response: Response<B>) -> String
where
    B: http_body::Body<Data = Bytes, Error = ClientError>,
{
    let content = response.into_body().collect().await.unwrap();
    String::from_utf8(content.to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn layers_are_put_around_the_service_one_by_one() {
    let server = TestServer::site(site()).await;
    for version in VERSIONS {
        let client = client(version);
        let jar = Arc::new(CookieJar::new());
        let cookies = CookieLayer::new(Arc::clone(&jar)).layer(client.service());
        let redirects = RedirectLayer::new(Redirects::default(), &client).layer(cookies.clone());
        let url = |path| server.url(version, path);

        // Without redirects, the cookie is kept all the same.
        let response = cookies.oneshot(get(url("/start"))).await.unwrap();
        assert_eq!(response.status(), StatusCode::FOUND, "{version:?}");
        assert!(jar.to_netscape().ends_with("\tid\t7\n"));
        text(response).await;

        let response = redirects.clone().oneshot(get(url("/start"))).await.unwrap();
        let last = response.extensions().get::<FinalUri>().unwrap().0.clone();
        assert_eq!(last.to_string(), url("/fields?x"));
        assert_eq!(text(response).await, "id=7\n-\n-");

        let retry = Retry {
            times: 2,
            ..Retry::default()
        };
        let all = DecompressLayer.layer(RetryLayer::new(retry, &client).layer(redirects));
        let response = all.clone().oneshot(get(url("/busy"))).await.unwrap();
        assert_eq!(text(response).await, "at last", "{version:?}");
        let response = all.oneshot(get(url("/zip"))).await.unwrap();
        assert_eq!(text(response).await, "packed", "{version:?}");
    }
}

#[tokio::test]
async fn the_layers_of_a_configuration_are_those_of_fetches() {
    let server = TestServer::site(site()).await;
    let client = client_with(|config| {
        config.redirects = Some(Redirects::default());
        config.cookies = Some(Arc::new(CookieJar::new()));
        config.decompress = true;
    });
    let url = |path| server.url(HttpVersion::Http3, path);
    let mut request = get(url("/start"));
    let credentials = Credentials::bearer("token").unwrap();
    request.extensions_mut().insert(credentials);
    let response = client.layered().oneshot(request).await.unwrap();
    assert_eq!(
        text(response).await,
        "id=7\nBearer token\ngzip, deflate, br, zstd"
    );
    let response = client.layered().oneshot(get(url("/zip"))).await.unwrap();
    assert!(!response.headers().contains_key(CONTENT_ENCODING));
    assert_eq!(text(response).await, "packed");
}

#[tokio::test]
async fn failures_that_do_not_pass_are_the_response() {
    let server = TestServer::site(site()).await;
    let client = client(HttpVersion::Http3);
    let retry = Retry {
        times: 1,
        delay: Some(Duration::from_millis(1)),
        ..Retry::default()
    };
    let service = RetryLayer::new(retry, &client).layer(client.service());
    let request = get(server.url(HttpVersion::Http3, "/busy"));
    let response = service.oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn any_body_is_content_that_is_sent_once() {
    let server = TestServer::site(site()).await;
    for version in VERSIONS {
        let client = client(version);
        let url = server.url(version, "/echo");
        let request = Request::post(&url).body(Full::from("one")).unwrap();
        let response = client.service().oneshot(request).await.unwrap();
        assert_eq!(text(response).await, "one", "{version:?}");

        let stream = Upload::stream(Full::from("two"));
        assert!(!stream.is_repeatable());
        let again = Request::post(&url).body(stream.clone()).unwrap();
        let request = Request::post(&url).body(stream).unwrap();
        let response = client.service().oneshot(request).await.unwrap();
        assert_eq!(text(response).await, "two", "{version:?}");
        let error = client.service().oneshot(again).await.unwrap_err();
        assert!(matches!(error, ClientError::NoResponse { .. }), "{error}");
    }
}
