//! Certificates that a server obtains by ACME from Pebble, the authority for tests of Let's Encrypt: `make acme` builds it, and runs
//! these.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};
use http::{Method, Request};
use marline_http::Body;
use marline_http::client::{Client, ClientConfig, Connection, HttpVersion, Trust, parse_url};
use serde_json::json;
use tempfile::TempDir;

const NAMES: [&str; 2] = ["www.marline.example", "marline.example"];

/// A key that an authority has given for an account, in base64url.
const EAB_HMAC: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

/// Ends its process when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port of this host that is free for TCP and UDP. It is none of those that systems give to sockets by themselves, and no other
/// caller in this process gets it, so that it is still free when a program binds it.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let processes_apart = (std::process::id() % 1_000) as u16 * 20;
    loop {
        let port = 10_000 + (processes_apart + NEXT.fetch_add(1, Relaxed)) % 20_000;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return port;
        }
    }
}

fn wait_for(port: u16) {
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        sleep(Duration::from_millis(50));
    }
}

/// Pebble, and the name server that it asks.
struct Authority {
    _processes: [Running; 2],
    files: TempDir,
    directory: u16,
    management: u16,
    /// The ports at which it validates names.
    http: u16,
    https: u16,
}

impl Authority {
    /// Starts it; `None` if it is not built.
    fn start(needs_account: bool) -> Option<Self> {
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/pebble");
        if !built.join("pebble").exists() {
            println!("skipped: there is no certificate authority for tests (make acme)");
            return None;
        }
        let files = TempDir::new().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let write = |name: &str, text: &str| {
            let path = files.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let cert = write("ca.pem", &certificate.pem());
        let key = write("ca.key", &key.serialize_pem());
        let [directory, management, http, https, dns, names] = [(); 6].map(|()| free_port());
        let config = json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{directory}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": cert, "privateKey": key,
            "httpPort": http, "tlsPort": https,
            "externalAccountBindingRequired": needs_account,
            "externalAccountMACKeys": {"kid-1": EAB_HMAC},
            "retryAfter": {"authz": 1, "order": 1},
            "keyAlgorithm": "ecdsa",
        }});
        let config = write("pebble.json", &config.to_string());
        let name_server = Command::new(built.join("pebble-challtestsrv"))
            .args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""])
            .args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""])
            .args(["-dnsserver", &format!("127.0.0.1:{dns}")])
            .args(["-management", &format!("127.0.0.1:{names}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let name_server = Running(name_server.unwrap());
        wait_for(names);
        wait_for(dns);
        let pebble = Command::new(built.join("pebble"))
            .arg("-config")
            .arg(config)
            .args(["-dnsserver", &format!("127.0.0.1:{dns}")])
            .env("PEBBLE_VA_NOSLEEP", "1")
            // Of five in a hundred, three in a row are too frequent for tests: a client waits for minutes after them.
            .env("PEBBLE_WFE_NONCEREJECT", "1")
            // Each order is validated.
            .env("PEBBLE_AUTHZREUSE", "0")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let pebble = Running(pebble.unwrap());
        wait_for(directory);
        wait_for(management);
        Some(Self {
            _processes: [pebble, name_server],
            files,
            directory,
            management,
            http,
            https,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// A request to its management interface; returns the content of the response.
    async fn manage(&self, method: Method, path: &str, content: String) -> Vec<u8> {
        let client = client(&self.path("ca.pem"), HttpVersion::Http2, self.management);
        let url = format!("https://127.0.0.1:{}{path}", self.management);
        let target = parse_url(&url, HttpVersion::Http2).unwrap();
        let connection = client.connect(&target.origin).await.unwrap();
        let mut request = Request::new(Body::full(content));
        *request.method_mut() = method;
        *request.uri_mut() = target.uri;
        let agent = HeaderValue::from_static("marline-test");
        request.headers_mut().insert(USER_AGENT, agent);
        let response = connection.request(&target.origin, request).await.unwrap();
        let status = response.status();
        let mut content = Vec::new();
        let mut download = response.into_body();
        while let Some(chunk) = download.chunk().await.unwrap() {
            content.extend_from_slice(&chunk);
        }
        let text = String::from_utf8_lossy(&content);
        assert!(status.is_success(), "{path}: {status} {text}");
        content
    }

    /// The file of its root certificate.
    async fn root(&self) -> PathBuf {
        let root = self.manage(Method::GET, "/roots/0", String::new()).await;
        let path = self.path("root.pem");
        fs::write(&path, root).unwrap();
        path
    }

    /// Wants `certificate` to be renewed at once.
    async fn revoke_soon(&self, certificate: &str) {
        let window = json!({"suggestedWindow": {
            "start": "2020-01-01T00:00:00Z", "end": "2020-01-02T00:00:00Z",
        }});
        let content = json!({"Certificate": certificate, "ARIResponse": window.to_string()});
        let path = "/set-renewal-info/";
        self.manage(Method::POST, path, content.to_string()).await;
    }
}

/// A client that trusts the file `root`; `NAMES` are at the port.
fn client(root: &Path, version: HttpVersion, port: u16) -> Client {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let resolve = NAMES.map(|name| (name.to_owned(), address)).into();
    let config = ClientConfig {
        version,
        trust: Trust::File(root.to_owned()),
        resolve,
        fallback: false,
        ..ClientConfig::default()
    };
    Client::new(config).unwrap()
}

/// A connection, and its client.
struct Visitor {
    connection: Connection,
    _client: Client,
}

impl Visitor {
    async fn connect(root: &Path, version: HttpVersion, name: &str, port: u16) -> Self {
        let target = parse_url(&format!("https://{name}:{port}/"), version).unwrap();
        let client = client(root, version, port);
        Self {
            connection: client.connect(&target.origin).await.unwrap(),
            _client: client,
        }
    }

    /// Requests the health of the server.
    async fn ask(&self, name: &str, port: u16) {
        let url = format!("https://{name}:{port}/health");
        let target = parse_url(&url, self.connection.version()).unwrap();
        let fields = http::HeaderMap::new();
        let response = self
            .connection
            .get(&target.origin, &target.uri, &fields)
            .await;
        assert_eq!(response.unwrap().status(), 200);
    }
}

/// Verifies the server against `root`, over HTTP/3 and HTTP/2, by all names.
async fn verify(root: &Path, port: u16) {
    for version in [HttpVersion::Http3, HttpVersion::Http2] {
        for name in NAMES {
            let visitor = Visitor::connect(root, version, name, port).await;
            visitor.ask(name, port).await;
        }
    }
}

/// `marline serve`.
struct Server {
    process: Running,
    stderr: BufReader<ChildStderr>,
}

impl Server {
    fn start(config: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_marline"))
            .arg("serve")
            .arg("--config")
            .arg(config)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stderr: BufReader::new(child.stderr.take().unwrap()),
            process: Running(child),
        }
    }

    /// Reads its messages up to one with `words`; returns those before.
    #[track_caller]
    fn wait_for(&mut self, words: &str) -> String {
        let mut before = String::new();
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "{before}");
            if line.contains(words) {
                return before;
            }
            assert!(!line.contains("no certificate for"), "{line}");
            before += &line;
        }
    }

    fn reload(&self) {
        let id = self.process.0.id().to_string();
        let sent = Command::new("kill").args(["-HUP", &id]).status();
        assert!(sent.unwrap().success());
    }
}

/// Writes a configuration; `more` is before its site.
fn config(authority: &Authority, state: &Path, more: &str) -> PathBuf {
    let path = authority.path("site.toml");
    let text = format!(
        "listen = '127.0.0.1:{}'\nstate = '{}'\n{more}\n\
         [[site]]\nnames = {NAMES:?}\n[[site.route]]\npath = '/health'\nrespond = 'ok'\n",
        authority.https,
        state.display(),
    );
    fs::write(&path, text).unwrap();
    path
}

/// The certificates in a state directory.
fn certificates(state: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(state)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("acme-") && name.ends_with(".pem")
        })
        .collect()
}

#[tokio::test]
async fn a_certificate_by_http_is_renewed_while_connections_stay_open() {
    let Some(authority) = Authority::start(false) else {
        return;
    };
    let state = TempDir::new().unwrap();
    let acme = format!(
        "redirect_http = '127.0.0.1:{}'\n[acme]\ncontact = 'ana@marline.example'\n\
         directory = 'https://127.0.0.1:{}/dir'\nca = 'ca.pem'",
        authority.http, authority.directory
    );
    let config = config(&authority, state.path(), &acme);
    let mut server = Server::start(&config);
    let before = server.wait_for("has a new certificate");
    assert!(
        before.contains("is served with another certificate until"),
        "{before}"
    );
    assert!(
        before.contains("agrees to its terms of service"),
        "{before}"
    );
    let root = authority.root().await;
    let port = authority.https;
    verify(&root, port).await;

    let mut open = Vec::new();
    for version in [HttpVersion::Http3, HttpVersion::Http2] {
        open.push(Visitor::connect(&root, version, NAMES[0], port).await);
    }
    let files = certificates(state.path());
    assert_eq!(files.len(), 1, "{files:?}");
    let first = fs::read_to_string(&files[0]).unwrap();
    authority
        .revoke_soon(&first[first.find("-----BEGIN CERTIFICATE").unwrap()..])
        .await;
    server.reload();
    server.wait_for("has a new certificate");
    verify(&root, port).await;
    for visitor in &open {
        visitor.ask(NAMES[0], port).await;
    }
    drop(server);
    assert_ne!(fs::read_to_string(&files[0]).unwrap(), first);
    // Only their owner can read them.
    for entry in fs::read_dir(state.path()).unwrap() {
        use std::os::unix::fs::PermissionsExt;
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
}

#[tokio::test]
async fn a_certificate_by_tls_of_an_account_of_the_authority_survives_a_restart() {
    let Some(authority) = Authority::start(true) else {
        return;
    };
    let state = TempDir::new().unwrap();
    let acme = format!(
        "[acme]\ncontact = 'ana@marline.example'\ndirectory = 'https://127.0.0.1:{}/dir'\nca = 'ca.pem'\n\
         eab_key_id = 'kid-1'\neab_hmac = '{EAB_HMAC}'",
        authority.directory
    );
    let config = config(&authority, state.path(), &acme);
    let mut server = Server::start(&config);
    server.wait_for("has a new certificate");
    let root = authority.root().await;
    verify(&root, authority.https).await;
    drop(server);

    let checked = Command::new(env!("CARGO_BIN_EXE_marline"))
        .arg("check")
        .arg(&config)
        .output()
        .unwrap();
    let shown = String::from_utf8(checked.stdout).unwrap();
    let expected = format!(
        "certificate of https://127.0.0.1:{}/dir, valid until ",
        authority.directory
    );
    assert!(shown.contains(&expected), "{shown}");

    let mut server = Server::start(&config);
    let before = server.wait_for("listening on");
    assert!(!before.contains("another certificate"), "{before}");
    verify(&root, authority.https).await;
}
