//! `get` through a proxy, and around it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::{Server, marline, site, text};

/// The variables that name proxies.
const VARIABLES: [&str; 8] = [
    "http_proxy",
    "HTTP_PROXY",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
];

fn get(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = marline(&["get", "--insecure"]);
    command.args(arguments);
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command.envs(variables.iter().copied()).output().unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A proxy that is not marline's: it opens every tunnel, and answers other requests itself. Reports the heads of requests.
fn proxy() -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (heads, asked) = channel();
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            let _ = heads.send(head.clone());
            let Some(target) = head.strip_prefix("CONNECT ") else {
                client
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy")
                    .unwrap();
                continue;
            };
            if head.contains("refused.test") {
                client
                    .write_all(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
                    .unwrap();
                continue;
            }
            let server = TcpStream::connect(target.split(' ').next().unwrap()).unwrap();
            client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").unwrap();
            let backwards = (server.try_clone().unwrap(), client.try_clone().unwrap());
            for (mut from, mut to) in [(client, server), backwards] {
                thread::spawn(move || std::io::copy(&mut from, &mut to));
            }
        }
    });
    (address, asked)
}

#[test]
fn objects_arrive_through_the_proxy_of_a_variable_or_flag() {
    let root = site();
    let server = Server::start(&[text(root.path())]);
    let url = server.url("a.txt");
    let (address, asked) = proxy();
    let address = address.to_string();
    let named = format!("http://me:secret@{address}");
    for (variables, flags) in [
        (&[("https_proxy", &*address)][..], &[][..]),
        (&[("HTTPS_PROXY", &*address)], &[]),
        (&[("all_proxy", &*address)], &[]),
        (&[("ALL_PROXY", &*address), ("https_proxy", "")], &[]),
        (
            &[("https_proxy", &*address), ("HTTPS_PROXY", "127.0.0.1:1")],
            &[],
        ),
        (&[("https_proxy", "127.0.0.1:1")], &["--proxy", &*named]),
        (
            &[("https_proxy", &*address), ("no_proxy", "*")],
            &["--noproxy", "other.test"],
        ),
    ] {
        for version in [&[][..], &["--http", "2"], &["--http", "1.1"]] {
            let output = get(&[&[&*url], flags, version].concat(), variables);
            assert_eq!(
                output.stdout, b"first",
                "{variables:?} {flags:?}: {output:?}"
            );
            let head = asked.try_recv().expect("the proxy was asked");
            let target = &server.address;
            assert!(
                head.starts_with(&format!("CONNECT {target} HTTP/1.1\r\n")),
                "{head}"
            );
            let head = head.to_ascii_lowercase();
            assert!(head.contains(&format!("\r\nhost: {target}\r\n")), "{head}");
            let has_password = head.contains("\r\nproxy-authorization: basic bwu6c2vjcmv0\r\n");
            assert_eq!(has_password, flags.contains(&&*named), "{head}");
            if version.is_empty() {
                let printed = printed(&output);
                assert!(
                    printed.contains("does not go through the proxy"),
                    "{printed}"
                );
                assert!(!printed.contains("secret"), "{printed}");
            }
        }
    }
}

#[test]
fn servers_that_are_excepted_are_reached_without_a_proxy() {
    let root = site();
    let server = Server::start(&[text(root.path())]);
    let url = server.url("a.txt");
    let (address, asked) = proxy();
    let address = address.to_string();
    for (variables, flags) in [
        (
            &[("https_proxy", &*address), ("no_proxy", "127.0.0.0/8")][..],
            &[][..],
        ),
        (
            &[
                ("https_proxy", &*address),
                ("NO_PROXY", "a.test, 127.0.0.1"),
            ],
            &[],
        ),
        (&[("https_proxy", &*address), ("no_proxy", "*")], &[]),
        (&[("https_proxy", "socks4://h:1")], &["--noproxy", "*"]),
        (&[("https_proxy", &*address)], &["--proxy", ""]),
        (&[("http_proxy", &*address)], &[]),
    ] {
        for version in ["3", "2"] {
            let output = get(&[&[&*url, "--http", version], flags].concat(), variables);
            assert_eq!(output.stdout, b"first", "{variables:?}: {output:?}");
            assert_eq!(printed(&output), "");
        }
    }
    assert!(asked.try_recv().is_err());
}

#[test]
fn cleartext_requests_are_read_by_the_proxy() {
    let (address, asked) = proxy();
    let address = format!("me@{address}");
    let get =
        |variables: &[(&str, &str)]| get(&["http://a.test:81/x?y", "--http", "1.1c"], variables);
    let output = get(&[("http_proxy", &*address)]);
    assert_eq!(output.stdout, b"proxy", "{output:?}");
    let head = asked.recv().unwrap();
    assert!(
        head.starts_with("GET http://a.test:81/x?y HTTP/1.1\r\n"),
        "{head}"
    );
    let head = head.to_ascii_lowercase();
    assert!(head.contains("\r\nhost: a.test:81\r\n"), "{head}");
    assert!(head.contains("\r\nproxy-authorization: basic "), "{head}");
    // Of a CGI program, it would be a field of a request.
    let output = get(&[("HTTP_PROXY", &*address), ("no_proxy", "b.test")]);
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    assert!(printed(&output).contains("HTTP_PROXY is not followed"));
}

#[test]
fn proxies_that_cannot_be_used_are_named() {
    let root = site();
    let server = Server::start(&[text(root.path())]);
    let url = server.url("a.txt");
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (address, _asked) = proxy();
    let (closed, address) = (closed.to_string(), address.to_string());
    let refused = "https://refused.test/";
    for (arguments, variable, status, words) in [
        (&[&*url][..], "socks4://127.0.0.1:1", 2, "socks4://"),
        (&[&url], "https://127.0.0.1:1", 2, "https://"),
        (&[&url], &closed, 7, "cannot reach it"),
        (&[&url], "http://none.invalid:1", 5, "none.invalid"),
        (&[refused], &address, 56, "NAME:PASSWORD"),
        (
            &[&url, "--http", "3", "--proxy", &address],
            "",
            2,
            "--http 2",
        ),
    ] {
        let output = get(arguments, &[("https_proxy", variable)]);
        let printed = printed(&output);
        assert_eq!(output.status.code(), Some(status), "{printed}");
        assert!(printed.contains(words), "{printed}");
    }
    let output = get(&[&url, "--http", "3"], &[("https_proxy", &address)]);
    assert_eq!(output.stdout, b"first");
    assert!(printed(&output).contains("it is not used"), "{output:?}");
}

/// `marline gateway --proxy` on a port of the system's choice.
struct Forward {
    process: Child,
    address: String,
}

impl Forward {
    fn start(allowed: &str) -> Self {
        let arguments = [
            "gateway",
            "--proxy",
            "--listen",
            "127.0.0.1:0",
            "--allow",
            allowed,
        ];
        let mut process = marline(&arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = lines
            .find_map(|line| Some(line.unwrap().split_once("http://")?.1.to_owned()))
            .unwrap();
        // Drains the output that follows.
        thread::spawn(move || lines.for_each(drop));
        let address = address.trim_end_matches('/').to_owned();
        Self { process, address }
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn marlines_own_forward_proxy_carries_what_get_fetches() {
    let root = site();
    let server = Server::start(&[text(root.path()), "--cleartext"]);
    let forward = Forward::start(&server.address);
    for version in ["2", "1.1", "1.1c"] {
        let url = match version {
            "1.1c" => server.url("a.txt").replace("https", "http"),
            _ => server.url("a.txt"),
        };
        let output = get(&[&url, "--http", version, "--proxy", &forward.address], &[]);
        assert_eq!(output.stdout, b"first", "{version}: {output:?}");
    }
}
