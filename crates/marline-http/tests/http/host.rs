//! The host that requests name.

use std::convert::Infallible;

use http::{Request, Response};
use marline_http::Body;
use marline_http::client::ClientError;
use marline_http::server::Site;

use crate::common::{TestServer, VERSIONS};

/// A site that answers with the host of the request.
fn echo() -> Site {
    Site::new(tower::service_fn(async |request: Request<Body>| {
        let authority = request.uri().authority().map(|host| host.to_string());
        let field = request.headers().get("host");
        let field = field.map(|host| host.to_str().unwrap_or_default().to_owned());
        let host = authority.or(field).unwrap_or_default();
        Ok::<_, Infallible>(Response::new(Body::full(host)))
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_field_is_the_host_of_the_request_in_every_version() {
    let server = TestServer::site(echo()).await;
    for version in VERSIONS {
        let connection = server.connect(version).await;
        let (_, content) = connection.get("/", &[("Host", "example.org:8443")]).await;
        assert_eq!(content, b"example.org:8443", "{version:?}");
        let (_, content) = connection.get("/", &[]).await;
        assert_eq!(
            content,
            server.address.to_string().as_bytes(),
            "{version:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_field_that_is_no_host_is_an_error_with_its_name() {
    let server = TestServer::site(echo()).await;
    for version in VERSIONS {
        let connection = server.connect(version).await;
        let asked = connection.try_send(http::Method::GET, "/", &[("Host", "a/b")]);
        let error = asked.await.unwrap_err();
        assert!(
            matches!(&error, ClientError::Header { name, .. } if name == "host"),
            "{version:?}: {error}"
        );
    }
}
