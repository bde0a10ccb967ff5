//! Classes are generated for each language, and those of Python work with real servers.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use marline::{Endpoint, TransportConfig, tls};
use marline_http::server::{Identity, Server, ServerConfig, directory};
use rustls::pki_types::PrivatePkcs8KeyDer;
use tempfile::TempDir;

#[path = "../examples/bindings.rs"]
#[expect(dead_code, reason = "it is a program, too")]
mod generator;

/// Generates the classes into `place`, and puts the library beside them.
fn generate(place: &Path) {
    let tests = env::current_exe().unwrap();
    let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let name = format!("{prefix}marline_uniffi{suffix}");
    let library = place.join(&name);
    std::fs::copy(tests.with_file_name(&name), &library).unwrap();
    generator::generate(&library, place);
}

#[test]
fn kotlin_and_swift_have_every_class_and_method() {
    let place = TempDir::new().unwrap();
    generate(place.path());
    let kotlin = std::fs::read_to_string(place.path().join("marline/marline_client.kt")).unwrap();
    let swift = std::fs::read_to_string(place.path().join("Marline.swift")).unwrap();
    assert!(kotlin.contains("package marline\n"));
    for class in ["Client", "Response", "Connection", "Stream"] {
        assert!(kotlin.contains(&format!("open class {class}:")), "{class}");
        assert!(swift.contains(&format!("open class {class}:")), "{class}");
    }
    for record in ["Header", "Statistics", "PathStatistics"] {
        assert!(
            kotlin.contains(&format!("data class {record} (")),
            "{record}"
        );
        assert!(
            swift.contains(&format!("public struct {record}:")),
            "{record}"
        );
    }
    for method in [
        "request",
        "connect",
        "status",
        "version",
        "headers",
        "read",
        "connection",
        "openStream",
        "acceptStream",
        "datagramLimit",
        "sendDatagram",
        "receiveDatagram",
        "openPath",
        "abandonPath",
        "paths",
        "statistics",
        "closeWith",
        "write",
        "finish",
        "reset",
    ] {
        assert!(kotlin.contains(&format!("fun `{method}`(")), "{method}");
        assert!(swift.contains(&format!("func {method}(")), "{method}");
    }
}

/// A server that returns the first stream and the first datagram of its first connection.
fn echo(certified: &rcgen::CertifiedKey<rcgen::KeyPair>) -> SocketAddr {
    let chain = vec![certified.cert.der().clone()];
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let mut config = tls::server_config(chain, key.into(), &[b"echo"]).unwrap();
    config.transport = Arc::new(TransportConfig {
        datagram_receive_buffer: Some(1 << 16),
        ..TransportConfig::default()
    });
    let endpoint = Endpoint::server(config, ([127, 0, 0, 1], 0).into()).unwrap();
    let address = endpoint.local_addr();
    tokio::spawn(async move {
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        let (mut send, mut receive) = connection.accept_bi().await.unwrap();
        let content = receive.read_to_end(1 << 10).await.unwrap();
        send.write_all(&content).await.unwrap();
        send.finish().unwrap();
        let datagram = connection.recv_datagram().await.unwrap();
        connection.send_datagram(datagram).unwrap();
        connection.closed().await;
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn the_classes_of_python_fetch_and_speak_protocols_of_their_own() {
    let place = TempDir::new().unwrap();
    generate(place.path());
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (place.path().join("a.pem"), place.path().join("a.key"));
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let echo = echo(&certified);

    let root = TempDir::new().unwrap();
    let content: Vec<u8> = (0..300_000_u32).map(|index| index as u8).collect();
    std::fs::write(root.path().join("a.bin"), content).unwrap();
    let identity = Identity::from_pem_files(&certificate, &key).unwrap();
    let site = directory(root.path(), false).unwrap();
    let listen: SocketAddr = ([127, 0, 0, 1], 0).into();
    let server = Server::bind(ServerConfig::new(listen, identity, site))
        .await
        .unwrap();
    let address = server.local_addr();
    tokio::spawn(server.run());

    let python = env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/client.py");
    let mut command = Command::new(python);
    command
        .env("PYTHONPATH", place.path())
        .arg(script)
        .args([address.port().to_string(), echo.port().to_string()])
        .arg(certificate);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = output.await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}
