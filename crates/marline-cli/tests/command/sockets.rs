//! Sockets that a manager of services opens.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use crate::{Server, marline, run, site, text};

/// Sockets of both protocols at one free address.
struct Sockets {
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Sockets {
    fn open() -> Self {
        loop {
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()) {
                return Self { tcp, udp };
            }
        }
    }

    fn address(&self) -> String {
        self.tcp.local_addr().unwrap().to_string()
    }

    /// Has `command` get both as a service gets them.
    fn pass_to(&self, command: &Command) -> Command {
        let script = "LISTEN_PID=$$ exec \"$@\" 3<&0 4<&1 0</dev/null 1>/dev/null";
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]);
        shell.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.env("LISTEN_FDS", "2");
        shell.env("LISTEN_FDNAMES", "web.socket:h3.socket");
        shell.stdin(OwnedFd::from(self.tcp.try_clone().unwrap()));
        shell.stdout(OwnedFd::from(self.udp.try_clone().unwrap()));
        shell
    }
}

fn is_served(server: &Server) {
    for version in ["3", "2", "1.1"] {
        let url = server.url("a.txt");
        let output = run(&["get", &url, "--insecure", "--http", version]);
        assert_eq!(output.stdout, b"first", "HTTP/{version}: {output:?}");
    }
}

#[test]
fn sockets_that_were_passed_are_those_of_the_configuration() {
    let root = site();
    let sockets = Sockets::open();
    let address = sockets.address();
    for workers in ["1", "3"] {
        let arguments = ["serve", text(root.path()), "--listen", &address];
        let mut command = marline(&arguments);
        command.args(["--workers", workers]);
        let server = Server::spawn(&mut sockets.pass_to(&command));
        assert_eq!(server.address, address);
        is_served(&server);
    }
}

#[test]
fn sockets_that_were_passed_are_served_at_without_a_configuration() {
    let root = site();
    let sockets = Sockets::open();
    let command = marline(&["serve", text(root.path())]);
    let server = Server::spawn(&mut sockets.pass_to(&command));
    assert_eq!(server.address, sockets.address());
    is_served(&server);
}

#[test]
fn sockets_that_were_passed_and_are_not_used_are_named() {
    let root = site();
    let sockets = Sockets::open();
    let command = marline(&["serve", text(root.path()), "--listen", "127.0.0.1:0"]);
    // Any port of the address.
    let server = Server::spawn(&mut sockets.pass_to(&command));
    assert_eq!(server.address, sockets.address());
    drop(server);
    let other = Sockets::open();
    let listen = other.address();
    drop(other);
    let command = marline(&["serve", text(root.path()), "--listen", &listen]);
    let output = sockets.pass_to(&command).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    let address = sockets.address();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    for words in [
        format!("TCP {address} (web.socket), UDP {address} (h3.socket)"),
        format!("listens on {listen}"),
    ] {
        assert!(printed.contains(&words), "{words}: {printed}");
    }
}

#[test]
fn what_was_passed_and_is_no_socket_is_named() {
    let root = site();
    let sockets = Sockets::open();
    let command = marline(&["serve", text(root.path())]);
    let mut shell = sockets.pass_to(&command);
    let output = shell.stdin(Stdio::null()).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("file descriptor 3 (web.socket)"),
        "{printed}"
    );
}

#[test]
fn a_number_that_is_not_that_of_sockets_is_refused_at_once() {
    let root = site();
    for count in ["99999999", "two", "-1"] {
        let mut shell = Command::new("sh");
        shell.args(["-c", "LISTEN_PID=$$ exec \"$@\"", "sh"]);
        shell.arg(env!("CARGO_BIN_EXE_marline"));
        shell.args(["serve", text(root.path())]);
        let output = shell.env("LISTEN_FDS", count).output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(
            printed.contains("LISTEN_FDS is not a number of sockets"),
            "{printed}"
        );
        assert!(printed.contains(count), "{printed}");
    }
}
