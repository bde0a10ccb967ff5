//! Versions of TLS over TCP, against OpenSSL.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use http::{Method, StatusCode};
use marline::{Runtime, TokioRuntime};
use marline_http::client::{ClientConfig, ClientError, Download, HttpVersion, parse_url};
use marline_http::server::{
    Challenges, Identity, NamedIdentity, ServerConfig, StateDirectory, directory,
};
use marline_http::{TlsVersion, TlsVersions};
use tempfile::TempDir;

use crate::common::{TestServer, client_with, directory_of, read};

/// The versions of HTTP over TLS over TCP.
const OVER_TLS: [HttpVersion; 2] = [HttpVersion::Http11, HttpVersion::Http2];

fn only(version: TlsVersion) -> TlsVersions {
    TlsVersions::between(version, version).unwrap()
}

/// OpenSSL with these arguments; `-no_ems`, an option of later versions only, disables the extended master secret.
fn openssl(verb: &str, arguments: &str) -> Command {
    const WITHOUT_EMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/no_ems.cnf");

    let mut command = Command::new("openssl");
    command.arg(verb);
    for argument in arguments.split_whitespace() {
        match argument {
            "-no_ems" => command.env("OPENSSL_CONF", WITHOUT_EMS),
            argument => command.arg(argument),
        };
    }
    command
}

/// The output of `openssl s_client`, which connects and ends.
async fn s_client(address: SocketAddr, arguments: &str) -> String {
    let mut command = openssl("s_client", arguments);
    let running = tokio::task::spawn_blocking(move || {
        command
            .args(["-connect", &address.to_string()])
            .stdin(Stdio::null())
            .output()
            .expect("openssl is installed by tools/deps.sh")
    });
    let output = running.await.unwrap();
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// A certificate for `name` with a key of this kind, as OpenSSL makes it.
fn named(name: &str, key: &str) -> NamedIdentity {
    let files = directory_of(&[]);
    let subject = format!("-subj /CN={name} -addext subjectAltName=DNS:{name}");
    let made = openssl("req", &format!("-x509 -nodes -newkey {key} {subject}"))
        .args(["-out", "cert.pem", "-keyout", "key.pem"])
        .current_dir(files.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let [cert, key] = ["cert.pem", "key.pem"].map(|file| files.path().join(file));
    NamedIdentity {
        names: vec![name.parse().unwrap()],
        identity: Identity::from_pem_files(&cert, &key).unwrap(),
    }
}

#[tokio::test]
async fn a_client_gets_the_certificate_of_the_name_that_it_can_verify() {
    const ECDSA: &str = "ec -pkeyopt ec_paramgen_curve:prime256v1";
    let ecdsa = named("a.example", ECDSA);
    let rsa = named("a.example", "rsa:2048");
    let mut wildcard = named("x.example", ECDSA);
    wildcard.names = vec!["*.b.example".parse().unwrap()];
    let root = directory_of(&[]);
    let all = [ecdsa.clone(), rsa.clone(), wildcard.clone()];
    let mut others = None;
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.named_identities = all.to_vec();
        others.clone_from(&config.identity);
    })
    .await;
    let others = others.unwrap();
    for (arguments, expected) in [
        ("-servername a.example", &ecdsa.identity),
        ("-servername A.EXAMPLE", &ecdsa.identity),
        (
            "-servername a.example -sigalgs RSA-PSS+SHA256",
            &rsa.identity,
        ),
        ("-servername www.b.example", &wildcard.identity),
        ("-servername b.example", &others),
        ("-noservername", &others),
    ] {
        let shown = s_client(server.address, arguments).await;
        let pem = expected.certificate_pem();
        assert!(shown.contains(pem.trim()), "{arguments}: {shown}");
    }
}

#[tokio::test]
async fn a_challenge_is_answered_to_clients_of_its_protocol_and_name_alone() {
    let challenges = Challenges::default();
    let root = directory_of(&[]);
    let shared = challenges.clone();
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.challenges = shared;
    })
    .await;
    let answered = challenges.answer_tls("a.example", &[7; 32]).unwrap();
    let validating = "-alpn acme-tls/1 -servername";
    let shown = s_client(server.address, &format!("{validating} A.example")).await;
    assert!(shown.contains("ALPN protocol: acme-tls/1"), "{shown}");
    for other in [
        format!("{validating} b.example"),
        "-alpn acme-tls/1".to_owned(),
    ] {
        let shown = s_client(server.address, &other).await;
        assert!(
            shown.contains("no application protocol"),
            "{other}: {shown}"
        );
    }
    let shown = s_client(server.address, "-alpn h2,acme-tls/1 -servername a.example").await;
    assert!(shown.contains("ALPN protocol: h2"), "{shown}");
    drop(answered);
    let shown = s_client(server.address, &format!("{validating} a.example")).await;
    assert!(shown.contains("no application protocol"), "{shown}");
}

/// A server of files over HTTP/1.0 by `openssl s_server`.
struct SServer {
    child: Child,
    address: SocketAddr,
}

impl SServer {
    fn start(files: &Path, arguments: &str) -> Self {
        let mut child = openssl("s_server", arguments)
            .args(["-accept", "127.0.0.1:0", "-WWW"])
            .args(["-cert", "cert.pem", "-key", "key.pem"])
            .current_dir(files)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl is installed by tools/deps.sh");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| line.unwrap().strip_prefix("ACCEPT ")?.parse().ok());
        let address = address.expect("it prints its address");
        Self { child, address }
    }
}

impl Drop for SServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The content that a client with these versions of TLS gets for `/a.txt`.
async fn fetched(
    address: SocketAddr,
    version: HttpVersion,
    tls: TlsVersions,
) -> Result<Vec<u8>, ClientError> {
    fetched_by(address, version, |config| config.tls = tls).await
}

/// The same for a client of a changed configuration.
async fn fetched_by(
    address: SocketAddr,
    version: HttpVersion,
    change: impl FnOnce(&mut ClientConfig),
) -> Result<Vec<u8>, ClientError> {
    let client = client_with(|config| {
        config.version = version;
        change(config);
    });
    let origin = parse_url(&format!("https://{address}/"), version)?.origin;
    let connection = client.connect(&origin).await?;
    let mut request = http::Request::new(());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = format!("https://{address}/a.txt").parse().unwrap();
    let response = connection.send(&origin, request).await?;
    assert_eq!(response.status(), StatusCode::OK);
    let content: Download = response.into_body();
    Ok(read(content).await)
}

async fn server(files: &TempDir, change: impl FnOnce(&mut ServerConfig)) -> TestServer {
    TestServer::with(directory(files.path(), false).unwrap(), change).await
}

#[tokio::test]
async fn tls_1_2_is_spoken_with_every_version_over_tcp() {
    let files = directory_of(&[("a.txt", b"content")]);
    let server = server(&files, |_| {}).await;
    for version in OVER_TLS {
        for tls in [TlsVersion::Tls12, TlsVersion::Tls13] {
            let content = fetched(server.address, version, only(tls)).await.unwrap();
            assert_eq!(content, b"content", "{version:?}, {tls:?}");
        }
    }
    let metrics = server.metrics.render();
    for version in ["1.2", "1.3"] {
        let line = format!("marline_tls_handshakes_total{{version=\"{version}\"}} 2");
        assert!(metrics.contains(&line), "{metrics}");
    }
    for (alpn, chosen) in [
        ("h2", "ALPN protocol: h2"),
        ("http/1.1", "ALPN protocol: http/1.1"),
        ("http/1.1,h2", "ALPN protocol: h2"),
    ] {
        let printed = s_client(server.address, &format!("-tls1_2 -alpn {alpn}")).await;
        for words in [chosen, "Protocol  : TLSv1.2", "Extended master secret: yes"] {
            assert!(printed.contains(words), "{words}: {printed}");
        }
    }
}

#[tokio::test]
async fn what_is_deprecated_is_refused_with_its_alert() {
    let files = directory_of(&[]);
    let server = server(&files, |_| {}).await;
    for (arguments, alert) in [
        ("-tls1 -cipher DEFAULT@SECLEVEL=0", 70),
        ("-tls1_1 -cipher DEFAULT@SECLEVEL=0", 70),
        // No forward secrecy; CBC; no authentication; finite fields.
        ("-tls1_2 -cipher AES128-GCM-SHA256", 40),
        ("-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA256", 40),
        ("-tls1_2 -cipher ECDHE-RSA-AES256-SHA", 40),
        ("-tls1_2 -cipher AECDH-AES128-SHA:@SECLEVEL=0", 40),
        ("-tls1_2 -cipher DHE-RSA-AES128-GCM-SHA256", 40),
        ("-tls1_2 -no_ems", 40),
        ("-tls1_2 -alpn spdy/3", 120),
    ] {
        let printed = s_client(server.address, arguments).await;
        let expected = format!("SSL alert number {alert}");
        assert!(printed.contains(&expected), "{arguments}: {printed}");
    }
}

#[tokio::test]
async fn tls_1_3_can_be_required_and_a_reload_changes_it() {
    let files = directory_of(&[("a.txt", b"content")]);
    let server = server(&files, |config| config.tls_min = TlsVersion::Tls13).await;
    let printed = s_client(server.address, "-tls1_2").await;
    assert!(printed.contains("SSL alert number 70"), "{printed}");
    for version in OVER_TLS {
        let refused = fetched(server.address, version, only(TlsVersion::Tls12)).await;
        assert!(
            matches!(refused, Err(ClientError::Tls { .. })),
            "{refused:?}"
        );
        let content = fetched(server.address, version, TlsVersions::default()).await;
        assert_eq!(content.unwrap(), b"content");
    }

    let identity = Identity::self_signed(vec!["other.example".to_owned()]).unwrap();
    let site = directory(files.path(), false).unwrap();
    let config = ServerConfig::new(server.address, identity, site);
    server.handle.reload(config).unwrap();
    let checked = "-tls1_2 -verify_hostname other.example";
    let printed = s_client(server.address, checked).await;
    assert!(printed.contains("Protocol  : TLSv1.2"), "{printed}");
    assert!(!printed.contains("hostname mismatch"), "{printed}");
}

#[tokio::test]
async fn sessions_of_tls_1_2_are_resumed_without_tickets() {
    let files = directory_of(&[]);
    let kept = TempDir::new().unwrap();
    let now = TokioRuntime::current().unwrap().unix_time();
    let state = StateDirectory::open(&kept.path().join("state"), now).unwrap();
    let server = server(&files, |config| config.state = Some(Arc::new(state))).await;
    let session = kept.path().join("session.pem");
    let session = session.to_str().unwrap();
    let printed = s_client(server.address, &format!("-tls1_2 -sess_out {session}")).await;
    assert!(printed.contains("Session-ID: "), "{printed}");
    assert!(!printed.contains("session ticket"), "{printed}");
    let printed = s_client(server.address, &format!("-tls1_2 -sess_in {session}")).await;
    assert!(printed.contains("Reused, TLSv1.2"), "{printed}");
}

#[test]
fn a_range_of_versions_has_one_at_least() {
    let none = TlsVersions::between(TlsVersion::Tls13, TlsVersion::Tls12).unwrap_err();
    assert_eq!(
        none.to_string(),
        "no version of TLS is 1.3 or later and 1.2 or earlier"
    );
}

/// A directory with `a.txt` and the files that `openssl s_server` needs.
fn files_of_openssl() -> TempDir {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    directory_of(&[
        ("a.txt", b"content"),
        ("cert.pem", certificate.as_bytes()),
        ("key.pem", key.serialize_pem().as_bytes()),
    ])
}

#[tokio::test]
async fn http_1_1_is_used_where_a_server_does_not_select_http_2() {
    let files = files_of_openssl();
    let without_alpn = SServer::start(files.path(), "-tls1_2");
    let without_http2 = server(&files, |config| config.protocols.http2 = false).await;
    for address in [without_alpn.address, without_http2.address] {
        let strict = fetched(address, HttpVersion::Http2, TlsVersions::default()).await;
        assert!(
            matches!(
                strict,
                Err(ClientError::WrongProtocol { .. } | ClientError::Connect { .. })
            ),
            "{strict:?}"
        );
        let content = fetched_by(address, HttpVersion::Http2, |config| {
            config.or_http11 = true;
        });
        assert_eq!(content.await.unwrap(), b"content");
    }
}

#[tokio::test]
async fn servers_that_have_nothing_newer_are_reached() {
    let files = files_of_openssl();
    let all = TlsVersions::default();
    let server = SServer::start(files.path(), "-tls1_2");
    let content = fetched(server.address, HttpVersion::Http11, all.clone()).await;
    assert_eq!(content.unwrap(), b"content");
    let only_new = only(TlsVersion::Tls13);
    let refused = fetched(server.address, HttpVersion::Http11, only_new).await;
    assert!(
        matches!(refused, Err(ClientError::Tls { .. })),
        "{refused:?}"
    );

    for (arguments, words) in [
        ("-tls1_1 -cipher DEFAULT@SECLEVEL=0", "no version of TLS"),
        (
            "-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA256",
            "no cipher suite",
        ),
        ("-tls1_2 -no_ems", "no extended master secret"),
    ] {
        let server = SServer::start(files.path(), arguments);
        let refused = fetched(server.address, HttpVersion::Http11, all.clone()).await;
        let message = refused.unwrap_err().to_string();
        assert!(message.contains(words), "{arguments}: {message}");
    }
}
