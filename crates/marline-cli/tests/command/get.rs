//! What newcomers try with `marline get`.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use tempfile::TempDir;

use crate::{Server, fails, marline, run, site, text};

#[test]
fn a_dash_stands_for_standard_output() {
    let root = site();
    let server = Server::start(&[text(root.path())]);
    let out = TempDir::new().unwrap();
    let url = server.url("a.txt");
    let output = marline(&["get", &url, "--insecure", "-o", "-"])
        .current_dir(out.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"first");
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0, "no file");
    fails(
        &["get", &url, &server.url("b.txt"), "-o", "-"],
        2,
        &["-o DIR"],
    );
    fails(&["get", &url, "-o", "-", "--json"], 2, &["--json"]);
    fails(&["get", &url, "-o", "-", "--bundle"], 2, &["-o FILE"]);
    fails(&["get", &url, "-o", "-", "--split", "1"], 2, &["-o FILE"]);
}

#[test]
fn a_self_signed_authority_is_trusted_as_the_certificate_of_its_server() {
    let root = site();
    let files = TempDir::new().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let (cert, private) = (files.path().join("cert.pem"), files.path().join("key.pem"));
    fs::write(&cert, certificate.pem()).unwrap();
    fs::write(&private, key.serialize_pem()).unwrap();
    let arguments = [
        text(root.path()),
        "--cert",
        text(&cert),
        "--key",
        text(&private),
    ];
    let server = Server::start(&arguments);
    for version in ["3", "2"] {
        let url = server.url("a.txt");
        let output = run(&["get", &url, "--cacert", text(&cert), "--http", version]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout, b"first");
    }
}

/// A port whose TCP connections end at `server`, and whose UDP port does not answer.
fn tcp_only(server: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = server.to_owned();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
            let backwards = (server.try_clone().unwrap(), client.try_clone().unwrap());
            for (mut from, mut to) in [(client, server), backwards] {
                thread::spawn(move || io::copy(&mut from, &mut to));
            }
        }
    });
    address
}

#[test]
fn a_server_without_http3_is_asked_over_http2() {
    let root = site();
    let server = Server::start(&[text(root.path())]);
    let url = format!("https://{}/a.txt", tcp_only(&server.address));
    let output = run(&["get", &url, "--insecure"]);
    assert_eq!(output.stdout, b"first", "{output:?}");
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("HTTP/2 was used"), "{printed}");
}

#[test]
fn a_server_that_never_answers_is_given_up_at_the_time_limits() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let get = ["get", &url, "--http", "1.1c"];
    for (flag, words) in [
        ("--max-time", "after 0.2 s, the time limit"),
        ("--stall-timeout", "nothing arrived for 0.2 s"),
    ] {
        fails(&[&get[..], &[flag, "200ms"]].concat(), 1, &[words]);
    }
    fails(&["get", &url, "-m", "5"], 2, &["--max-time"]);
    fails(&["get", &url, "--max-time", "soon"], 2, &["--max-time"]);
}

#[test]
fn a_flag_that_does_not_exist_never_suggests_to_trust_everyone() {
    let output = run(&["get", "https://h/", "--interface", "eth0"]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(printed.contains("--path IFACE"), "{printed}");
    for flag in ["--interface", "--insecur", "--insecured"] {
        let output = run(&["get", "https://h/", flag]);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(printed.lines().count(), 1, "{printed}");
        assert!(!printed.contains("--insecure'"), "{printed}");
    }
}

#[test]
fn a_host_that_is_none_is_named_in_the_error() {
    let root = site();
    let server = Server::start(&[text(root.path())]);
    let url = server.url("a.txt");
    for version in ["3", "2", "1.1"] {
        let arguments = ["get", &url, "--insecure", "--http", version, "--header"];
        fails(
            &[&arguments[..], &["Host: a/b"]].concat(),
            1,
            &["host", "--header"],
        );
        let output = run(&[&arguments[..], &["Host: example.org"]].concat());
        assert_eq!(output.stdout, b"first", "{output:?}");
    }
}
