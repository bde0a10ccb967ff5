//! Applications over TLS, at Unix sockets, and at several addresses.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::header::{CONNECTION, HOST, HeaderValue, UPGRADE};
use http::{Method, Request, Response, StatusCode};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use marline_http::Body;
use marline_http::proxy::{ProxyConfig, UpstreamTls};
use marline_http::server::Identity;
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::tunnels::{accept, talk, upgrade};
use super::{Whole, get, proxy, proxy_with, request, whole};
use crate::common::{TestServer, VERSIONS};

/// An application over TLS, and the files of its certificate and of that of its client.
struct Secured {
    address: SocketAddr,
    files: TempDir,
}

/// The behaviour of an application in TLS.
#[derive(Default)]
struct Behaviour {
    protocols: &'static [&'static str],
    name: &'static str,
    asks_for_certificate: bool,
}

/// The certificates of an application of this name, and of its client, with their keys as files in `directory`.
pub(super) fn identities(directory: &Path, name: &str) -> (Identity, Identity) {
    let make = |name: &str, stem: &str| {
        let identity = Identity::self_signed(vec![name.to_owned()]).unwrap();
        for (kind, text) in [
            ("pem", identity.certificate_pem()),
            ("key", identity.key_pem()),
        ] {
            std::fs::write(directory.join(format!("{stem}.{kind}")), text).unwrap();
        }
        identity
    };
    (make(name, "application"), make("proxy", "client"))
}

impl Secured {
    async fn with(behaviour: Behaviour) -> Self {
        let files = TempDir::new().unwrap();
        let (own, client) = identities(files.path(), behaviour.name);
        let builder = rustls::ServerConfig::builder_with_provider(Arc::new(
            marline::default_crypto_provider(),
        ))
        .with_safe_default_protocol_versions()
        .unwrap();
        let builder = match behaviour.asks_for_certificate {
            false => builder.with_no_client_auth(),
            true => {
                let mut roots = RootCertStore::empty();
                roots.add(client.chain()[0].clone()).unwrap();
                let provider = Arc::new(marline::default_crypto_provider());
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .build()
                        .unwrap();
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = rustls::pki_types::pem::PemObject::from_pem_slice(own.key_pem().as_bytes());
        let mut tls = builder
            .with_single_cert(own.chain().to_vec(), key.unwrap())
            .unwrap();
        let protocols = behaviour.protocols.iter();
        tls.alpn_protocols = protocols.map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        answer(stream, "TLS").await;
                    }
                });
            }
        });
        Self { address, files }
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.files.path().join(name))
    }

    fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    fn trusting(&self) -> UpstreamTls {
        UpstreamTls {
            ca: self.file("application.pem"),
            ..UpstreamTls::default()
        }
    }

    async fn proxy(&self, tls: UpstreamTls) -> TestServer {
        proxy_with(&[self.url()], |config| config.tls = tls).await
    }
}

/// Answers the version and the host of each request, and echoes WebSockets.
async fn answer<S>(stream: S, place: &'static str)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(
        move |mut request: Request<hyper::body::Incoming>| async move {
            if let Some(key) = request.headers().get("sec-websocket-key") {
                let accept = accept(key.to_str().unwrap());
                tokio::spawn(async move {
                    let stream = hyper::upgrade::on(&mut request).await.unwrap();
                    let (mut read, mut write) = tokio::io::split(TokioIo::new(stream));
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                    // With close_notify: without it, the end is that of a connection that was cut.
                    let _ = write.shutdown().await;
                });
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                let headers = response.headers_mut();
                headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
                headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
                headers.insert("sec-websocket-accept", accept.parse().unwrap());
                return Ok::<_, Infallible>(response);
            }
            let host = match request.uri().authority() {
                Some(authority) => authority.to_string(),
                None => request.headers()[HOST].to_str().unwrap().to_owned(),
            };
            let version = request.version();
            Ok(Response::new(Body::full(format!(
                "{place} {version:?} {host}"
            ))))
        },
    );
    let _ = auto::Builder::new(TokioExecutor::new())
        .serve_connection_with_upgrades(TokioIo::new(stream), service)
        .await;
}

fn assert_refused(answer: &Whole, error: &str) {
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY, "{}", answer.text);
    let expected = format!("marline; error={error}");
    assert_eq!(answer.headers["proxy-status"], expected.as_str());
}

#[tokio::test]
async fn an_application_over_tls_is_reached_by_the_version_that_it_selects() {
    for (protocols, version) in [
        (&["h2", "http/1.1"][..], "HTTP/2.0"),
        (&["http/1.1"], "HTTP/1.1"),
        (&[], "HTTP/1.1"),
    ] {
        let application = Secured::with(Behaviour {
            protocols,
            name: "127.0.0.1",
            ..Behaviour::default()
        })
        .await;
        let proxy = application.proxy(application.trusting()).await;
        for client in VERSIONS {
            let host = proxy.address;
            let text = get(&proxy, client).await.text;
            assert_eq!(text, format!("TLS {version} {host}"), "{client:?}");
        }
    }
}

#[tokio::test]
async fn certificates_are_verified_unless_the_settings_say_otherwise() {
    let application = Secured::with(Behaviour {
        protocols: &["h2"],
        name: "app.example.org",
        ..Behaviour::default()
    })
    .await;
    let other = Secured::with(Behaviour {
        name: "127.0.0.1",
        ..Behaviour::default()
    })
    .await;
    for tls in [application.trusting(), other.trusting()] {
        let proxy = application.proxy(tls).await;
        let answer = get(&proxy, VERSIONS[3]).await;
        assert_refused(&answer, "tls_certificate_error");
        assert!(!answer.text.contains("app.example.org"), "{}", answer.text);
    }
    for tls in [
        UpstreamTls {
            name: Some("app.example.org".parse().unwrap()),
            ..application.trusting()
        },
        UpstreamTls {
            insecure: true,
            ..UpstreamTls::default()
        },
    ] {
        let proxy = application.proxy(tls).await;
        assert_eq!(get(&proxy, VERSIONS[3]).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn an_application_that_asks_for_a_certificate_gets_that_of_the_proxy() {
    let application = Secured::with(Behaviour {
        protocols: &["http/1.1"],
        name: "127.0.0.1",
        asks_for_certificate: true,
    })
    .await;
    let without = application.proxy(application.trusting()).await;
    let answer = get(&without, VERSIONS[3]).await;
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY, "{}", answer.text);
    let with = application
        .proxy(UpstreamTls {
            cert: application.file("client.pem"),
            key: application.file("client.key"),
            ..application.trusting()
        })
        .await;
    assert_eq!(get(&with, VERSIONS[3]).await.status, StatusCode::OK);
}

/// An application of HTTP/2 without TLS that echoes the content of tunnels, if it accepts them.
async fn echo_over_http2(accepts: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            if accepts {
                server.enable_connect_protocol();
            }
            let service = service_fn(async |mut request: Request<hyper::body::Incoming>| {
                assert_eq!(request.method(), Method::CONNECT);
                assert_eq!(request.uri().path_and_query().unwrap(), "/path?query");
                let protocol: Option<&hyper::ext::Protocol> = request.extensions().get();
                assert_eq!(protocol.unwrap().as_str(), "websocket");
                tokio::spawn(async move {
                    let stream = hyper::upgrade::on(&mut request).await.unwrap();
                    let (mut read, mut write) = tokio::io::split(TokioIo::new(stream));
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                    let _ = write.shutdown().await;
                });
                Ok::<_, Infallible>(Response::new(Body::empty()))
            });
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
        }
    });
    format!("h2c://{address}")
}

#[tokio::test]
async fn a_websocket_is_one_of_extended_connect_at_an_application_of_http2_without_tls() {
    let server = proxy(&[echo_over_http2(true).await]).await;
    let (stream, header) = upgrade(server.address).await;
    assert!(header.starts_with("HTTP/1.1 101 "), "{header}");
    talk(stream).await;
    let without = proxy(&[echo_over_http2(false).await]).await;
    let (_, header) = upgrade(without.address).await;
    assert!(header.starts_with("HTTP/1.1 501 "), "{header}");
}

#[tokio::test]
async fn a_websocket_over_tls_is_one_of_http_1_1() {
    let application = Secured::with(Behaviour {
        protocols: &["h2", "http/1.1"],
        name: "127.0.0.1",
        ..Behaviour::default()
    })
    .await;
    let proxy = application.proxy(application.trusting()).await;
    assert!(get(&proxy, VERSIONS[3]).await.text.contains("HTTP/2"));
    let (stream, header) = upgrade(proxy.address).await;
    assert!(header.starts_with("HTTP/1.1 101 "), "{header}");
    talk(stream).await;
}

#[test]
fn settings_of_tls_that_contradict_each_other_are_refused() {
    let error = |tls| {
        let config = ProxyConfig {
            tls,
            ..ProxyConfig::to(vec!["https://127.0.0.1:1".parse().unwrap()])
        };
        let made = marline_http::proxy::reverse_proxy(config, &Default::default());
        made.unwrap_err().to_string()
    };
    let half = error(UpstreamTls {
        cert: Some("a".into()),
        ..UpstreamTls::default()
    });
    assert!(half.contains("belong together"), "{half}");
    let nothing = error(UpstreamTls {
        ca: Some("a".into()),
        insecure: true,
        ..UpstreamTls::default()
    });
    assert!(nothing.contains("leave out one of them"), "{nothing}");
    let missing = error(UpstreamTls {
        ca: Some("/nonexistent/ca.pem".into()),
        ..UpstreamTls::default()
    });
    assert!(missing.contains("/nonexistent/ca.pem"), "{missing}");
}

#[cfg(unix)]
#[tokio::test]
async fn an_application_at_a_unix_socket_is_reached() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("app.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, "socket"));
        }
    });
    for (scheme, version) in [("", "HTTP/1.1"), ("h2c://", "HTTP/2.0")] {
        let url = format!("{scheme}unix:{}", path.display());
        let proxy = proxy_with(&[url], |config| config.preserve_host = false).await;
        let text = get(&proxy, VERSIONS[3]).await.text;
        assert_eq!(text, format!("socket {version} localhost"));
    }
    let missing = directory.path().join("other.sock");
    let proxy = proxy(&[format!("unix:{}", missing.display())]).await;
    let response = request(&proxy, VERSIONS[3], Method::GET, &[], Body::empty());
    let answer = whole(response.await.unwrap()).await;
    assert_refused(&answer, "destination_unavailable");
}
