//! hyperium's client over marline, against the server of marline-http.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use http::{Request, Response, StatusCode};
use marline::{ClientConfig, Endpoint, TlsClientConfig};
use marline_http::Body;
use marline_http::server::{Identity, Server, ServerConfig, Site};
use tower::service_fn;

type Outcome = Result<(), Box<dyn Error>>;

/// A site that sends back the content of requests.
fn echo() -> Site {
    Site::new(service_fn(async |request: Request<Body>| {
        Ok::<_, Infallible>(Response::new(request.into_body()))
    }))
}

/// A configuration that trusts `identity`.
fn trusting(identity: &Identity) -> Result<ClientConfig, Box<dyn Error>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.chain()[0].clone())?;
    let provider = Arc::new(marline::default_crypto_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    Ok(ClientConfig::new(TlsClientConfig::new(Arc::new(tls))?))
}

#[tokio::test]
async fn requests_with_content_are_answered() -> Outcome {
    let identity = Identity::self_signed(vec!["localhost".to_owned()])?;
    let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into())?;
    endpoint.set_default_client_config(trusting(&identity)?);
    let config = ServerConfig::new(([127, 0, 0, 1], 0).into(), identity, echo());
    let server = Server::bind(config).await?;
    let (address, handle) = (server.local_addr(), server.handle());
    let serving = tokio::spawn(server.run());

    let connection = endpoint.connect(address, "localhost")?.await?;
    let transport = marline_h3_quic::Connection::new(connection);
    let (mut driver, mut requests) = h3::client::new(transport).await?;
    // More than the windows of flow control at first, so that both directions wait.
    let content = Bytes::from(vec![7; 4 << 20]);
    for _ in 0..2 {
        let request = Request::post("https://localhost/").body(())?;
        let (mut sender, mut receiver) = requests.send_request(request).await?.split();
        let sent = content.clone();
        let sending = tokio::spawn(async move {
            sender.send_data(sent).await?;
            sender.finish().await
        });
        let response = receiver.recv_response().await?;
        assert_eq!(response.status(), StatusCode::OK);
        let mut received = Vec::new();
        while let Some(mut chunk) = receiver.recv_data().await? {
            received.extend_from_slice(&chunk.copy_to_bytes(chunk.remaining()));
        }
        sending.await??;
        assert!(received == content);
    }
    drop(requests);
    let end = poll_fn(|cx| driver.poll_close(cx)).await;
    assert!(end.is_h3_no_error(), "{end}");
    handle.shut_down();
    serving.await??;
    Ok(())
}
