//! The header, and the example in C against real servers.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bytes::Bytes;
use marline::{Endpoint, TransportConfig, tls};
use marline_http::server::{Identity, Server, ServerConfig, directory};
use rustls::pki_types::PrivatePkcs8KeyDer;
use tempfile::TempDir;

fn crate_directory() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_header_is_that_of_the_code() {
    let directory = crate_directory();
    let config = cbindgen::Config::from_file(directory.join("cbindgen.toml")).unwrap();
    let header = cbindgen::Builder::new()
        .with_config(config)
        .with_crate(directory)
        .generate()
        .unwrap();
    let mut text = Vec::new();
    header.write(&mut text);
    let text = String::from_utf8(text).unwrap();
    let file = directory.join("include/marline.h");
    if env::var_os("REGENERATE").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == text, "REGENERATE=1 cargo test -p marline-ffi");
}

/// The example, linked with the library that this test was built with; `None` without a compiler.
fn example(place: &Path) -> Option<PathBuf> {
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    if Command::new(&compiler).arg("--version").output().is_err() {
        println!("skipped: no C compiler");
        return None;
    }
    let libraries = env::current_exe().unwrap();
    let libraries = libraries.parent().unwrap();
    let program = place.join("fetch");
    let compiled = Command::new(&compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror"])
        .arg(crate_directory().join("examples/fetch.c"))
        .arg("-I")
        .arg(crate_directory().join("include"))
        .arg("-L")
        .arg(libraries)
        .arg("-lmarline_ffi")
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");
    Some(program)
}

async fn run(program: PathBuf, arguments: Vec<String>) -> Output {
    let run = move || Command::new(program).args(arguments).output().unwrap();
    tokio::task::spawn_blocking(run).await.unwrap()
}

/// A certificate for localhost, and its files.
struct Certified {
    certified: rcgen::CertifiedKey<rcgen::KeyPair>,
    certificate: PathBuf,
    key: PathBuf,
}

impl Certified {
    fn new(place: &Path) -> Self {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (place.join("certificate.pem"), place.join("key.pem"));
        std::fs::write(&certificate, certified.cert.pem()).unwrap();
        std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
        Self {
            certified,
            certificate,
            key,
        }
    }

    fn file(&self) -> String {
        self.certificate.to_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_fetches_over_http3() {
    let place = TempDir::new().unwrap();
    let Some(program) = example(place.path()) else {
        return;
    };
    let content: Vec<u8> = (0..200_000_u32).map(|index| index as u8).collect();
    let root = TempDir::new().unwrap();
    std::fs::write(root.path().join("a.bin"), &content).unwrap();
    let certified = Certified::new(place.path());
    let identity = Identity::from_pem_files(&certified.certificate, &certified.key).unwrap();
    let site = directory(root.path(), false).unwrap();
    let listen: SocketAddr = ([127, 0, 0, 1], 0).into();
    let server = Server::bind(ServerConfig::new(listen, identity, site))
        .await
        .unwrap();
    let port = server.local_addr().port();
    tokio::spawn(server.run());

    let url = format!("https://localhost:{port}/a.bin");
    let output = run(program.clone(), vec![url.clone(), certified.file()]).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(output.stdout == content);
    assert!(
        said.contains("HTTP/3 200 application/octet-stream"),
        "{said}"
    );
    assert!(said.contains("path 0 to 127.0.0.1"), "{said}");

    let output = run(program, vec![url]).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("certificate"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_speaks_a_protocol_of_its_own() {
    let place = TempDir::new().unwrap();
    let Some(program) = example(place.path()) else {
        return;
    };
    let certified = Certified::new(place.path());
    let file = certified.file();
    let rcgen::CertifiedKey { cert, signing_key } = certified.certified;
    let chain = vec![cert.der().clone()];
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let mut config = tls::server_config(chain, key.into(), &[b"echo"]).unwrap();
    config.transport = std::sync::Arc::new(TransportConfig {
        datagram_receive_buffer: Some(1 << 16),
        ..TransportConfig::default()
    });
    let endpoint = Endpoint::server(config, ([127, 0, 0, 1], 0).into()).unwrap();
    let port = endpoint.local_addr().port();
    tokio::spawn(async move {
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        let (mut send, mut recv) = connection.accept_bi().await.unwrap();
        let content: Bytes = recv.read_to_end(1 << 10).await.unwrap();
        send.write_all(&content).await.unwrap();
        send.finish().unwrap();
        let datagram = connection.recv_datagram().await.unwrap();
        connection.send_datagram(datagram).unwrap();
        connection.closed().await;
    });
    let url = format!("https://localhost:{port}");
    let output = run(program, vec!["--echo".to_owned(), url, file]).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(output.stdout, b"stream datagram\n");
}
