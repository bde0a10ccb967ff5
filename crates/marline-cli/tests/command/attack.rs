//! Clients that exhaust a server, with few resources of their own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::time::Instant;

use crate::{Server, marline, run, text};

/// A site with files that do not fit into the buffers of a connection.
fn large_site(files: usize) -> TempDir {
    let root = TempDir::new().unwrap();
    for name in 0..files {
        let file = std::fs::File::create(root.path().join(name.to_string())).unwrap();
        file.set_len(64 << 20).unwrap();
    }
    std::fs::write(root.path().join("small"), "small").unwrap();
    root
}

/// Requests `path` without encryption, from a network of its own, and reads the first bytes of the response.
fn begin(server: SocketAddr, path: &str) -> Option<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let connecting = async {
        let socket = TcpSocket::new_v4()?;
        socket.bind(([127, 0, 9, 1], 0).into())?;
        socket.connect(server).await?.into_std()
    };
    let mut stream = runtime.block_on(connecting).ok()?;
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    let mut response = [0; 16];
    stream.read_exact(&mut response).ok()?;
    Some(stream)
}

#[test]
fn a_log_whose_reader_stalls_stops_neither_requests_nor_the_end() {
    let root = large_site(0);
    let mut command = marline(&["serve", text(root.path()), "--cleartext"]);
    command.args(["--listen", "127.0.0.1:0", "--access-log", "-"]);
    // Nobody reads it.
    command.stdout(Stdio::piped());
    let server = Server::spawn(&mut command);
    let address: SocketAddr = server.address.parse().unwrap();
    let path = "x".repeat(8000);
    // More than a pipe holds, by far.
    for _ in 0..100 {
        assert!(begin(address, &format!("/{path}")).is_some());
    }
    let started = Instant::now();
    assert_eq!(server.terminate().0, 0);
    assert!(started.elapsed() < Duration::from_secs(8));
}

#[test]
fn responses_that_nobody_reads_do_not_use_up_the_files_of_the_process() {
    let root = large_site(60);
    let script = "ulimit -n 160; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_marline")]);
    command.args(["serve", text(root.path()), "--cleartext"]);
    let server = Server::spawn(
        command
            .stdout(Stdio::null())
            .args(["--listen", "127.0.0.1:0"]),
    );
    let address = server.address.parse().unwrap();
    let held: Vec<_> = (0..200)
        .map(|number| begin(address, &format!("/{}", number % 60)))
        .collect();
    assert!(held.iter().flatten().count() > 10);
    for version in ["3", "2"] {
        let url = server.url("small");
        let output = run(&["get", &url, "--insecure", "--http", version]);
        assert_eq!(output.stdout, b"small", "HTTP/{version}: {output:?}");
    }
}
