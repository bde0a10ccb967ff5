//! Certificates of clients, over each version of HTTP.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::thread;

use marline_http::client::{Client, ClientConfig, HttpVersion, Trust, parse_url};
use marline_http::server::Identity;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName,
    DnType, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber,
    date_time_ymd,
};
use tempfile::TempDir;

use crate::{Server, fails, run, text};

const VERSIONS: [&str; 3] = ["1.1", "2", "3"];

/// An authority that signs certificates of clients.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// A certificate and its key in one file.
    fn client(&self, path: &Path, name: &str, serial: u64) {
        let mut params = CertificateParams::new(vec!["client".to_owned()]).unwrap();
        params.distinguished_name = named(name);
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(path, certificate.pem() + &key.serialize_pem()).unwrap();
    }

    /// A list of revoked certificates.
    fn revoked(&self, serial: u64, until: i32) -> String {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from(serial),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

fn named(name: &str) -> DistinguishedName {
    let mut all = DistinguishedName::new();
    all.push(DnType::CommonName, name);
    all
}

/// A directory with two authorities, `ca.pem` and `other-ca.pem`, and a client of each.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let files = Self(TempDir::new().unwrap());
        let (own, other) = (Authority::new("own"), Authority::new("other"));
        fs::write(files.path("ca.pem"), &own.pem).unwrap();
        fs::write(files.path("other-ca.pem"), &other.pem).unwrap();
        fs::write(files.path("crl.pem"), own.revoked(7, 4000)).unwrap();
        fs::write(files.path("expired-crl.pem"), own.revoked(7, 2025)).unwrap();
        own.client(&files.path("ana.pem"), "ana \u{e9}", 0xabcd);
        own.client(&files.path("revoked.pem"), "revoked", 7);
        other.client(&files.path("stranger.pem"), "stranger", 1);
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, config: &str) {
        let config = format!("access_log = 'log'\nstate = 'state'\n{config}");
        fs::write(self.path("site.toml"), config).unwrap();
    }

    fn serve(&self, config: &str) -> Server {
        self.write(config);
        Server::start(&["--config", text(&self.path("site.toml"))])
    }
}

/// An application that answers with the header of each request.
fn application() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let lines: Vec<_> = lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let head = lines.join("\n");
            let length = head.len();
            // The client may have gone.
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{head}"
            );
        }
    });
    format!("http://{address}")
}

/// The status and the content of the answer for a URL of `host`.
fn get(server: &Server, version: &str, url: &str, more: &[&str]) -> (Output, String) {
    let to = format!("::{}", server.address);
    let mut arguments = vec!["get", url, "--insecure", "--http", version];
    arguments.extend(["--connect-to", &to, "-w", "%{http_code}"]);
    arguments.extend(more);
    let output = run(&arguments);
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    (output, printed)
}

fn answers(server: &Server, version: &str, url: &str, more: &[&str]) -> String {
    let (output, printed) = get(server, version, url, more);
    let status = output.status.code();
    // Of a status of errors, as curl's with --fail.
    let is_answered = matches!(status, Some(0 | 22));
    assert!(is_answered, "HTTP/{version}: {output:?}");
    printed
}

#[test]
fn routes_need_what_their_site_asks_for_and_applications_see_it() {
    let files = Files::new();
    let server = files.serve(&format!(
        "[[site]]\nnames = 'a.test'\nto = '{}'\n\
         client_certificates = {{ ca = 'ca.pem', require = 'optional' }}\n\
         [[site.route]]\npath = '/admin'\nclient_certificates.require = 'always'\n",
        application()
    ));
    let spoofed = [
        "-H",
        "Client-Cert: :AAAA:",
        "-H",
        "X-Client-Cert-Subject: CN=root",
        "-H",
        "Client-Cert-Chain: :AAAA:",
    ];
    let ana = files.path("ana.pem");
    let with = ["--cert", text(&ana)];
    for version in VERSIONS {
        let without = answers(&server, version, "https://a.test/", &spoofed);
        assert!(without.ends_with("200"), "{without}");
        let lower = without.to_lowercase();
        assert!(!lower.contains("client-cert"), "HTTP/{version}: {without}");
        let refused = answers(&server, version, "https://a.test/admin", &[]);
        assert!(refused.ends_with("403"), "HTTP/{version}: {refused}");
        assert!(refused.contains("certificate of the client"), "{refused}");

        // What a client lists here is removed from its request alone.
        let listed = ["-H", "Connection: x-client-cert-subject, client-cert"];
        let listed = if version == "1.1" { &listed[..] } else { &[] };
        let all = [&with[..], &spoofed, listed].concat();
        let seen = answers(&server, version, "https://a.test/admin", &all);
        assert!(seen.ends_with("200"), "HTTP/{version}: {seen}");
        let field = |name: &str| {
            let found: Vec<_> = seen
                .lines()
                .filter_map(|line| line.split_once(": "))
                .filter(|(field, _)| field.eq_ignore_ascii_case(name))
                .map(|(_, value)| value)
                .collect();
            assert_eq!(found.len(), 1, "{name} in {seen}");
            found[0].to_owned()
        };
        assert_eq!(field("x-client-cert-subject"), "CN=ana \\C3\\A9");
        assert_eq!(field("x-client-cert-serial"), "abcd");
        assert_eq!(field("x-client-cert-sha256").trim().len(), 64);
        let pem = fs::read_to_string(&ana).unwrap();
        let first: String = pem
            .lines()
            .skip(1)
            .take_while(|line| !line.starts_with('-'))
            .collect();
        assert_eq!(field("client-cert"), format!(":{first}:"));
        assert!(!seen.to_lowercase().contains("client-cert-chain"));
    }
    assert_eq!(server.terminate().0, 0);
    let log = fs::read_to_string(files.path("log")).unwrap();
    let named: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &serde_json::Value| line["client_subject"].is_string())
        .collect();
    assert_eq!(named.len(), VERSIONS.len(), "{log}");
    assert_eq!(named[0]["client_subject"], "CN=ana \\C3\\A9");
    assert!(named[0]["client_fingerprint"].is_string());
}

#[test]
fn handshakes_without_a_valid_certificate_fail_where_it_is_required() {
    let files = Files::new();
    let server = files.serve(
        "[[site]]\nnames = 'a.test'\nrespond = 'ok'\n\
         client_certificates = { ca = 'ca.pem', crl = 'crl.pem' }\n\
         [[site]]\nrespond = 'open'\n",
    );
    let path = |name: &str| files.path(name);
    for version in VERSIONS {
        let ana = path("ana.pem");
        let with = answers(&server, version, "https://a.test/", &["--cert", text(&ana)]);
        assert_eq!(with, "ok200", "HTTP/{version}");
        // Other sites ask for none.
        assert_eq!(answers(&server, version, "https://b.test/", &[]), "open200");
        for client in ["", "stranger.pem", "revoked.pem"] {
            let file = path(client);
            let with = ["--cert", text(&file)];
            let with = if client.is_empty() { &[][..] } else { &with };
            let (output, _) = get(&server, version, "https://a.test/", with);
            assert!(
                !output.status.success(),
                "HTTP/{version} {client}: {output:?}"
            );
        }
    }
}

#[test]
fn an_expired_list_of_revoked_certificates_is_named_and_accepts_none() {
    let files = Files::new();
    files.write(
        "[[site]]\nrespond = 'ok'\n\
         client_certificates = { ca = 'ca.pem', crl = 'expired-crl.pem' }\n",
    );
    let config = files.path("site.toml");
    let checked = run(&["check", text(&config)]);
    let printed = String::from_utf8(checked.stderr).unwrap();
    let words = "expired-crl.pem: list number 1 of revoked certificates expired at 2025-01-01";
    assert!(printed.contains(words), "{printed}");
    let server = Server::start(&["--config", text(&config)]);
    assert!(
        server.printed.join("\n").contains(words),
        "{:?}",
        server.printed
    );
    let ana = files.path("ana.pem");
    for version in VERSIONS {
        let (output, _) = get(&server, version, "https://a.test/", &["--cert", text(&ana)]);
        assert!(!output.status.success(), "HTTP/{version}: {output:?}");
    }
}

#[test]
fn both_sides_say_why_a_certificate_of_a_client_is_refused() {
    let files = Files::new();
    let site = "[[site]]\nrespond = 'ok'\nclient_certificates.ca = 'ca.pem'\n";
    for version in VERSIONS {
        let server = files.serve(site);
        for (client, words) in [
            ("", "the server asks for a certificate of the client"),
            (
                "stranger.pem",
                "refuses the certificate of the client: it does not know its authority",
            ),
        ] {
            let file = files.path(client);
            let with = ["--cert", text(&file)];
            let with = if client.is_empty() { &[][..] } else { &with };
            // In TLS 1.3 over TCP, the end of the connection can be seen before the alert.
            let old = ["--tls-max", "1.2"];
            let old = if version == "3" { &[][..] } else { &old };
            let all = [with, old].concat();
            let (output, _) = get(&server, version, "https://a.test/", &all);
            let printed = String::from_utf8(output.stderr).unwrap();
            assert!(printed.contains(words), "HTTP/{version}: {printed}");
            assert_eq!(output.status.code(), Some(35), "HTTP/{version}: {printed}");
        }
        let (_, log) = server.terminate();
        assert!(log.contains("UnknownIssuer"), "HTTP/{version}: {log}");
    }
}

#[test]
fn requests_on_connections_with_other_rules_are_misdirected() {
    let files = Files::new();
    let server = files.serve(
        "[[site]]\nnames = 'a.test'\nrespond = 'secret'\nclient_certificates.ca = 'ca.pem'\n\
         [[site]]\nnames = 'b.test'\nrespond = 'open'\n\
         [[site]]\nnames = 'c.test'\nrespond = 'secret'\nclient_certificates.ca = 'other-ca.pem'\n\
         [[site]]\nnames = ['d.test', 'e.test']\nrespond = 'same'\nclient_certificates.ca = 'ca.pem'\n",
    );
    let ana = files.path("ana.pem");
    for version in VERSIONS {
        let of = |name: &str, host: &str| {
            let url = format!("https://{name}/");
            let host = format!("Host: {host}");
            let with = ["--cert", text(&ana), "-H", &host];
            answers(&server, version, &url, &with)
        };
        for (name, host) in [
            ("b.test", "a.test"),
            ("a.test", "b.test"),
            ("a.test", "c.test"),
            ("other.test", "a.test"),
        ] {
            let answer = of(name, host);
            assert!(
                answer.ends_with("421"),
                "HTTP/{version} {name} {host}: {answer}"
            );
        }
        assert_eq!(of("a.test", "d.test"), "same200", "the rules are the same");
    }
}

fn client(files: &Files, version: HttpVersion) -> Arc<Client> {
    let ana = files.path("ana.pem");
    let config = ClientConfig {
        trust: Trust::Insecure,
        identity: Some(Identity::from_pem_files(&ana, &ana).unwrap()),
        version,
        fallback: false,
        ..ClientConfig::default()
    };
    Arc::new(Client::new(config).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_keep_the_client_and_end_with_the_authority() {
    let files = Files::new();
    let config = |ca: &str| {
        format!(
            "[[site]]\nrespond = 'ok'\nclient_certificates = {{ ca = '{ca}', require = 'optional' }}\n\
             [[site.route]]\npath = '/admin'\nclient_certificates.require = 'always'\n"
        )
    };
    let mut server = files.serve(&config("ca.pem"));
    let version = HttpVersion::Http3;
    let parsed = parse_url(&server.url("admin"), version).unwrap();
    let client = client(&files, version);
    let none = http::HeaderMap::new();
    let first = client.connect(&parsed.origin).await.unwrap();
    let status = async |connection: &marline_http::client::Connection| {
        let response = connection.get(&parsed.origin, &parsed.uri, &none).await;
        let response = response.unwrap();
        let status = response.status().as_u16();
        let mut content = response.into_body();
        while content.chunk().await.unwrap().is_some() {}
        status
    };
    assert_eq!(status(&first).await, 200);
    // Tickets follow the handshake, two for each connection, of which a resumed one takes one: others are left.
    let resumed = async {
        loop {
            let next = client.connect(&parsed.origin).await.unwrap();
            assert_eq!(status(&next).await, 200);
            let quic = next.quic().unwrap();
            quic.confirmed().await.unwrap();
            if quic.is_resumed() {
                assert!(quic.early_data_accepted());
                break;
            }
        }
    };
    let resumed = tokio::time::timeout(std::time::Duration::from_secs(120), resumed).await;
    resumed.expect("a ticket comes");

    files.write(&config("other-ca.pem"));
    server.signal("-HUP");
    assert!(server.line().contains("read the configuration again"));
    assert_eq!(status(&first).await, 421, "it was asked for the other one");
    // The session is not resumed, and the certificate is a stranger's.
    if let Ok(connection) = client.connect(&parsed.origin).await {
        let refused = connection.get(&parsed.origin, &parsed.uri, &none).await;
        assert!(refused.is_err(), "{refused:?}");
    }
}

/// The first line of the answer over TCP, whose session is stored in `session` or begins with it.
fn over_tcp(server: &Server, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("openssl");
    command.args([
        "s_client",
        "-connect",
        &server.address,
        "-ign_eof",
        "-quiet",
    ]);
    command.args(arguments).stderr(Stdio::null());
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = started
        .inspect_err(|_| println!("skipped: needs openssl"))
        .ok()?;
    let request = b"GET /admin HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    child.stdin.take().unwrap().write_all(request).unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(printed.lines().next().unwrap_or_default().to_owned())
}

#[test]
fn sessions_over_tcp_keep_the_client_and_end_with_the_authority() {
    let files = Files::new();
    let config = |ca: &str| {
        format!(
            "[[site]]\nrespond = 'ok'\nclient_certificates = {{ ca = '{ca}', require = 'optional' }}\n\
             [[site.route]]\npath = '/admin'\nclient_certificates.require = 'always'\n"
        )
    };
    let mut server = files.serve(&config("ca.pem"));
    let (ana, stored) = (files.path("ana.pem"), files.path("session"));
    for version in ["-tls1_3", "-tls1_2"] {
        let _ = fs::remove_file(&stored);
        let with = [version, "-cert", text(&ana), "-sess_out", text(&stored)];
        let Some(first) = over_tcp(&server, &with) else {
            return;
        };
        assert_eq!(first, "HTTP/1.1 200 OK", "{version}");
        let again = [version, "-sess_in", text(&stored)];
        let resumed = over_tcp(&server, &again).unwrap();
        assert_eq!(resumed, "HTTP/1.1 200 OK", "{version}");

        files.write(&config("other-ca.pem"));
        server.signal("-HUP");
        assert!(server.line().contains("read the configuration again"));
        let after = over_tcp(&server, &again).unwrap();
        assert_eq!(after, "HTTP/1.1 403 Forbidden", "{version}");
        files.write(&config("ca.pem"));
        server.signal("-HUP");
        assert!(server.line().contains("read the configuration again"));
    }
}

#[test]
fn wrong_settings_are_named_with_file_and_line() {
    let files = Files::new();
    fs::write(files.path("empty.pem"), "").unwrap();
    let config = files.path("site.toml");
    for (rest, words) in [
        (
            "client_certificates.require = 'always'\n",
            &["site.toml:5: client_certificates: ", "needs `ca`"][..],
        ),
        (
            "client_certificates.ca = 'empty.pem'\n",
            &["site.toml:5: client_certificates: ", "empty.pem"],
        ),
        (
            "client_certificates = { ca = 'ca.pem', crl = 'ca.pem' }\n",
            &["site.toml:5: client_certificates: ", "X509 CRL"],
        ),
        (
            "[[site.route]]\npath = '/x'\nclient_certificates.require = 'always'\n",
            &["site.toml:7: client_certificates: ", "the route /x"],
        ),
        (
            "client_certificates.ca = 'ca.pem'\n[[site.route]]\npath = '/x'\n\
             client_certificates.require = 'optional'\n",
            &["site.toml:8: client_certificates: ", "the route /x"],
        ),
        (
            "client_certificates.require = 'sometimes'\n",
            &["site.toml:5: ", "known: never, optional, always"],
        ),
    ] {
        files.write(&format!("[[site]]\nrespond = 'ok'\n{rest}"));
        let status = if rest.contains("sometimes") { 2 } else { 1 };
        fails(&["check", text(&config)], status, words);
        fails(&["serve", "--config", text(&config)], status, words);
    }
    files.write("[[site]]\nrespond = 'ok'\nclient_certificates.ca = 'ca.pem'\n");
    let output = run(&["check", text(&config)]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.contains("certificates of clients: always"),
        "{printed}"
    );
}
