//! The status of certificates, from `openssl ocsp`, in handshakes of `openssl s_client` and of QUIC.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use marline::runtime::{Task, Timer, UdpSocket};
use marline::{
    ClientConfig, Endpoint, Instant, Runtime, TlsClientConfig, TokioRuntime,
    default_crypto_provider,
};
use marline_certificates::{CertificateDays, ServedCertificate, Stapling, kept_status};
use marline_http::server::{
    Identity, MetricsSource, Server, ServerConfig, StateDirectory, StatusError, StatusHealth,
    generated,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::verify_tls13_signature;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const NAME: &str = "a.example";

/// More than the validity of the responses, which is an hour.
const TWO_HOURS: Duration = Duration::from_secs(7200);

/// The entry of the certificate in an authority's index, and that of another.
const GOOD: &str = "V\t20400101000000Z\t\t1000\tunknown\t/CN=a.example\n";
const REVOKED: &str = "R\t20400101000000Z\t250101000000Z\t1000\tunknown\t/CN=a.example\n";
const OTHER: &str = "V\t20400101000000Z\t\t2000\tunknown\t/CN=b.example\n";

/// The output of `openssl s_client` without a status.
const NOTHING: &str = "OCSP response: no response sent";

/// `openssl`, run in `files`.
fn openssl(files: &Path, arguments: &str) -> Command {
    let mut command = Command::new("openssl");
    command
        .args(arguments.split_whitespace())
        .current_dir(files)
        .stdin(Stdio::null());
    command
}

#[track_caller]
fn run(files: &Path, arguments: &str) {
    let output = openssl(files, arguments).output();
    let output = output.expect("openssl is installed by tools/deps.sh");
    assert!(output.status.success(), "{arguments}: {output:?}");
}

/// An authority's certificate and key, `ca.pem` and `ca.key`, and those of a stranger, `other.pem` and `other.key`.
fn authority() -> TempDir {
    let files = TempDir::new().unwrap();
    for name in ["ca", "other"] {
        let key = "-x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1";
        let out = format!("-subj /CN={name} -keyout {name}.key -out {name}.pem");
        run(files.path(), &format!("req {key} {out}"));
    }
    files
}

/// Certifies `name`, whose files are `name.pem` and `name.key`, with these extensions.
fn certify(files: &Path, name: &str, serial: &str, extensions: &str) {
    fs::write(files.join("extensions.cnf"), extensions).unwrap();
    let key = "-nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1";
    let out = format!("-subj /CN={name} -keyout {name}.key -out {name}.csr");
    run(files, &format!("req {key} {out}"));
    let by = format!("-CA ca.pem -CAkey ca.key -set_serial 0x{serial} -extfile extensions.cnf");
    run(
        files,
        &format!("x509 -req -in {name}.csr -out {name}.pem {by}"),
    );
}

fn read(files: &Path, certificate: &str, key: &str) -> Identity {
    Identity::from_pem_files(&files.join(certificate), &files.join(key)).unwrap()
}

/// The identity of a server whose certificate asks for the status that the responder at `port` has.
fn identity(files: &Path, port: u16) -> Identity {
    let responder = format!("authorityInfoAccess=OCSP;URI:http://127.0.0.1:{port}/");
    let extensions = format!("subjectAltName=DNS:{NAME}\ntlsfeature=status_request\n{responder}\n");
    certify(files, NAME, "1000", &extensions);
    let chain = ["a.example.pem", "ca.pem"].map(|file| fs::read(files.join(file)).unwrap());
    fs::write(files.join("chain.pem"), chain.concat()).unwrap();
    read(files, "chain.pem", "a.example.key")
}

/// `openssl ocsp` as a responder.
struct Responder {
    process: Child,
    port: u16,
}

impl Responder {
    /// Answers by `index`, with the signature of `signer`.
    fn start(files: &Path, index: &str, signer: &str) -> Self {
        fs::write(files.join("index.txt"), index).unwrap();
        let signed = format!("-CA ca.pem -rsigner {signer}.pem -rkey {signer}.key -nmin 60");
        let mut process = openssl(files, &format!("ocsp -index index.txt -port 0 {signed}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl is installed by tools/deps.sh");
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let port = line.split([':', ' ']).find_map(|word| word.parse().ok());
        let port = port.unwrap_or_else(|| panic!("{line}"));
        Self { process, port }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The runtime of tokio with a clock that is ahead of its own.
#[derive(Debug)]
struct Ahead {
    tokio: TokioRuntime,
    seconds: AtomicU64,
}

impl Ahead {
    fn by(&self, time: Duration) {
        self.seconds.store(time.as_secs(), Relaxed);
    }
}

impl Runtime for Ahead {
    fn now(&self) -> Instant {
        self.tokio.now()
    }

    fn unix_time(&self) -> Duration {
        self.tokio.unix_time() + Duration::from_secs(self.seconds.load(Relaxed))
    }

    fn seed(&self) -> io::Result<[u8; 32]> {
        self.tokio.seed()
    }

    fn spawn(&self, task: Task) {
        self.tokio.spawn(task);
    }

    fn timer(&self) -> Box<dyn Timer> {
        self.tokio.timer()
    }

    fn bind(&self, addr: SocketAddr) -> io::Result<Arc<dyn UdpSocket>> {
        self.tokio.bind(addr)
    }
}

/// A server with one certificate, and the task that asks for its status.
struct Served {
    address: SocketAddr,
    identity: Identity,
    stapling: Stapling,
    clock: Arc<Ahead>,
    tasks: Vec<JoinHandle<()>>,
}

impl Served {
    async fn start(identity: Identity, state: Option<Arc<StateDirectory>>) -> Self {
        let clock = Arc::new(Ahead {
            tokio: TokioRuntime::current().unwrap(),
            seconds: AtomicU64::new(0),
        });
        let stapling = Stapling::new(state, clock.clone()).unwrap();
        stapling.prepare(&identity);
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let site = generated(BTreeMap::new(), None).unwrap();
        let config = ServerConfig::new(listen, Some(identity.clone()), site);
        let server = Server::bind(config).await.unwrap();
        Self {
            address: server.local_addr(),
            identity,
            stapling,
            clock,
            tasks: vec![tokio::spawn(async move { server.run().await.unwrap() })],
        }
    }

    /// Asks responders from now on; returns the result of the first request.
    async fn ask(&mut self) -> StatusHealth {
        self.stapling.apply(vec![self.identity.clone()]);
        self.tasks.push(tokio::spawn(self.stapling.clone().run()));
        self.until(|_| true).await
    }

    /// Waits for a status.
    async fn until(&self, is_it: impl Fn(&StatusHealth) -> bool) -> StatusHealth {
        loop {
            match self.stapling.statuses().pop() {
                Some(status) if is_it(&status) => return status,
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    /// The output of `openssl s_client` for a handshake over TCP.
    async fn over_tcp(&self, files: &Path, version: &str) -> String {
        let address = self.address;
        let arguments = format!("s_client -connect {address} -status -CAfile ca.pem -{version}");
        let mut command = openssl(files, &arguments);
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        String::from_utf8_lossy(&output.unwrap().unwrap().stdout).into_owned()
    }

    /// The response in a handshake over QUIC.
    async fn over_quic(&self) -> Vec<u8> {
        let captured = Arc::new(Captured::default());
        let provider = Arc::new(default_crypto_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(captured.clone())
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let config = ClientConfig::new(TlsClientConfig::new(Arc::new(tls)).unwrap());
        let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let connecting = endpoint.connect_with(config, self.address, NAME).unwrap();
        connecting.await.unwrap().close(0, b"");
        endpoint.wait_idle().await;
        let response = captured.0.lock().unwrap();
        response.clone()
    }

    /// Asserts that handshakes have a status, of which `openssl` prints `words`.
    async fn has(&self, files: &Path, words: &str) {
        for version in ["tls1_3", "tls1_2"] {
            let shown = self.over_tcp(files, version).await;
            assert!(shown.contains(words), "{version}: {shown}");
        }
        assert_eq!(self.over_quic().await.is_empty(), words == NOTHING);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// A verifier that accepts every certificate, and keeps the response.
#[derive(Debug, Default)]
struct Captured(Mutex<Vec<u8>>);

impl ServerCertVerifier for Captured {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        *self.0.lock().unwrap() = ocsp_response.to_vec();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("QUIC has TLS 1.3".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = default_crypto_provider().signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = default_crypto_provider().signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

#[tokio::test]
async fn a_status_is_stapled_over_tcp_and_quic_until_it_ends() {
    let ca = authority();
    let files = ca.path();
    let responder = Responder::start(files, GOOD, "ca");
    let directory = TempDir::new().unwrap();
    let now = TokioRuntime::current().unwrap().unix_time();
    let state = Arc::new(StateDirectory::open(directory.path(), now).unwrap());
    let identity = identity(files, responder.port);
    let mut served = Served::start(identity.clone(), Some(state.clone())).await;
    served.has(files, NOTHING).await;
    let status = served.ask().await;
    assert_eq!((status.certificate.as_str(), status.problem), (NAME, None));
    assert!(status.stapled.unwrap().starts_with("good, until 20"));
    served.has(files, "Cert Status: good").await;

    let query = identity.status_query().unwrap();
    let response = served.over_quic().await;
    let verified = |time| {
        query
            .verify(&response, time)
            .map(|status| status.is_revoked())
    };
    assert_eq!(verified(now), Ok(false));
    assert_eq!(verified(now + TWO_HOURS), Err(StatusError::Expired));
    assert_eq!(verified(now - TWO_HOURS), Err(StatusError::NotYet));

    // Another server has it from its first handshake on, and keeps it without a responder.
    let kept = || kept_status(&identity, Some(directory.path()), now).unwrap();
    while kept().status.is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(kept().status.unwrap().response(), response);
    drop(responder);
    let again = read(files, "chain.pem", "a.example.key");
    let mut other = Served::start(again, Some(state)).await;
    other.has(files, "Cert Status: good").await;
    other.clock.by(Duration::from_secs(45 * 60));
    let status = other.ask().await;
    let problem = status.problem.unwrap();
    assert!(problem.contains("127.0.0.1"), "{problem}");
    assert!(status.stapled.is_some());
    other.has(files, "Cert Status: good").await;
    other.clock.by(TWO_HOURS);
    other.stapling.apply(vec![other.identity.clone()]);
    other.until(|status| status.stapled.is_none()).await;
    other.has(files, NOTHING).await;
}

#[tokio::test]
async fn a_revoked_certificate_has_its_status_stapled() {
    let ca = authority();
    let responder = Responder::start(ca.path(), REVOKED, "ca");
    let mut served = Served::start(identity(ca.path(), responder.port), None).await;
    let status = served.ask().await;
    assert!(status.stapled.unwrap().starts_with("revoked, until 20"));
    served.has(ca.path(), "Cert Status: revoked").await;
}

#[tokio::test]
async fn a_responder_that_the_issuer_has_certified_may_sign() {
    let ca = authority();
    certify(
        ca.path(),
        "delegate",
        "77",
        "extendedKeyUsage=OCSPSigning\n",
    );
    let responder = Responder::start(ca.path(), GOOD, "delegate");
    let mut served = Served::start(identity(ca.path(), responder.port), None).await;
    assert_eq!(served.ask().await.problem, None);
    served.has(ca.path(), "Cert Status: good").await;
}

#[tokio::test]
async fn no_one_else_may_sign() {
    for signer in ["other", "server"] {
        let ca = authority();
        certify(ca.path(), "server", "77", "extendedKeyUsage=serverAuth\n");
        let responder = Responder::start(ca.path(), GOOD, signer);
        let mut served = Served::start(identity(ca.path(), responder.port), None).await;
        let problem = served.ask().await.problem;
        assert_eq!(
            problem,
            Some(StatusError::Signature.to_string()),
            "{signer}"
        );
        served.has(ca.path(), NOTHING).await;
    }
}

#[tokio::test]
async fn a_responder_that_does_not_know_the_certificate_gives_no_status() {
    let ca = authority();
    let responder = Responder::start(ca.path(), OTHER, "ca");
    let mut served = Served::start(identity(ca.path(), responder.port), None).await;
    let problem = served.ask().await.problem;
    assert_eq!(problem, Some(StatusError::Unknown.to_string()));
    served.has(ca.path(), NOTHING).await;
}

#[tokio::test]
async fn the_status_of_another_certificate_is_none_of_this_one() {
    let ca = authority();
    let responder = Responder::start(ca.path(), GOOD, "ca");
    let mut served = Served::start(identity(ca.path(), responder.port), None).await;
    served.ask().await;
    let response = served.over_quic().await;
    let extensions = "subjectAltName=DNS:a.example\ntlsfeature=status_request\n";
    certify(ca.path(), "second", "1001", extensions);
    let chain = ["second.pem", "ca.pem"].map(|file| fs::read(ca.path().join(file)).unwrap());
    fs::write(ca.path().join("chain.pem"), chain.concat()).unwrap();
    let second = read(ca.path(), "chain.pem", "second.key");
    let now = served.clock.unix_time();
    let verified = second.status_query().unwrap().verify(&response, now);
    assert_eq!(verified.unwrap_err(), StatusError::OtherCertificate);
}

/// The port of a responder that answers with these bytes.
async fn answering(response: Vec<u8>) -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = socket.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = socket.accept().await {
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(&response).await;
            let _ = stream.shutdown().await;
            // A reset could overtake the response.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    port
}

#[tokio::test]
async fn anything_but_a_short_response_is_no_status() {
    let length = 1 << 20;
    let large = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
    let large = [large.into_bytes(), vec![b'a'; length]].concat();
    let redirection = "HTTP/1.1 302 Found\r\nlocation: http://[::1]/\r\ncontent-length: 0\r\n\r\n";
    let text = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
    // tryLater (3).
    let refusal = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n\x30\x03\x0a\x01\x03";
    for (response, expected) in [
        (large, "more than 32 KiB"),
        (redirection.into(), "status 302"),
        (text.into(), "not an OCSP response"),
        (refusal.into(), "try later"),
    ] {
        let ca = authority();
        let identity = identity(ca.path(), answering(response).await);
        let mut served = Served::start(identity, None).await;
        let problem = served.ask().await.problem.unwrap();
        assert!(problem.contains(expected), "{problem}");
        served.has(ca.path(), NOTHING).await;
    }
}

#[tokio::test]
async fn a_responder_that_failed_is_asked_again_when_the_configuration_is_read_anew() {
    let ca = authority();
    let refusal = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
    let identity = identity(ca.path(), answering(refusal.into()).await);
    let mut served = Served::start(identity.clone(), None).await;
    let metrics = |served: &Served| {
        let mut text = String::new();
        served.stapling.write(&mut text).unwrap();
        text
    };
    served.ask().await;
    let after_one = metrics(&served);
    assert!(
        after_one.contains("\nmarline_ocsp_failures_total 1\n"),
        "{after_one}"
    );
    assert!(after_one.contains("\nmarline_ocsp_staple_seconds{name=\"a.example\"} 0\n"));
    served.stapling.apply(vec![identity]);
    while !metrics(&served).contains("\nmarline_ocsp_failures_total 2\n") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn certificates_of_files_are_reported_with_the_days_that_are_left() {
    let ca = authority();
    let identity = identity(ca.path(), 1);
    let served = |name: &str| ServedCertificate {
        name: name.to_owned(),
        identity: identity.clone(),
    };
    let days = CertificateDays::new(Arc::new(TokioRuntime::current().unwrap()));
    days.apply(vec![
        served("a.example"),
        served("a.example"),
        served("default"),
    ]);
    let mut text = String::new();
    days.write(&mut text).unwrap();
    for name in ["a.example", "default"] {
        let label = format!("marline_certificate_days{{name=\"{name}\"}} ");
        // Those of openssl by default.
        let values: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix(&label))
            .collect();
        let [value] = values[..] else {
            panic!("one value: {text}")
        };
        let left: f64 = value.parse().unwrap();
        assert!((29.9..30.1).contains(&left), "{text}");
    }
}

#[tokio::test]
async fn a_certificate_without_issuer_or_responder_is_reported() {
    let ca = authority();
    let files = ca.path();
    identity(files, 1);
    let alone = read(files, "a.example.pem", "a.example.key");
    let problem = Served::start(alone, None).await.ask().await.problem;
    assert_eq!(problem, Some(StatusError::NoIssuer.to_string()));
    let extensions = "subjectAltName=DNS:a.example\n";
    certify(files, "quiet", "1002", extensions);
    assert!(
        read(files, "quiet.pem", "quiet.key")
            .status_query()
            .is_none()
    );
    certify(
        files,
        "lost",
        "1001",
        &format!("{extensions}tlsfeature=status_request\n"),
    );
    let lost = read(files, "lost.pem", "lost.key");
    let problem = Served::start(lost, None).await.ask().await.problem;
    assert_eq!(problem, Some(StatusError::NoResponder.to_string()));
}
