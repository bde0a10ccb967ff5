//! Datagrams of UDP that are passed on by a socket of the server.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use marline_lab::emu::Namespace;

use crate::network::{HOST, PATHS};
use crate::programs::{Program, printed, run, text};
use crate::traffic::{UDP_PORT, at, uninterrupted};
use crate::{AGAIN, Setting, until};

/// The socket of the client that programs send to.
const LISTEN: &str = "127.0.0.1:7100";

const SOCKETS: &str = "marline_tunnel_udp_sockets ";

impl Setting {
    /// Starts a server of datagrams.
    fn serve_udp(&self) -> Program {
        let mut server = Program::start(&self.network.server, &self.serving(&["--udp"]));
        server.wait_for("listening on", 1);
        server
    }

    /// The arguments of a client that passes datagrams on to `to`.
    pub(crate) fn passing(&self, token: &str, to: SocketAddr, more: &[&str]) -> Vec<String> {
        // The first are those of `up`.
        let mut arguments = self.up("none", token, &[]);
        let device = arguments.iter().position(|argument| argument == "--device");
        arguments.truncate(device.unwrap());
        arguments[0] = "udp".to_owned();
        let to = to.to_string();
        arguments.extend(["--listen", LISTEN, "--to", &to].map(str::to_owned));
        arguments.extend(more.iter().map(ToString::to_string));
        arguments
    }

    /// Starts a client that passes datagrams on to `to`.
    fn pass_on(&self, to: SocketAddr, more: &[&str]) -> Program {
        let arguments = self.passing("anna.token", to, more);
        let mut client = Program::start(&self.network.client, &arguments);
        client.wait_for("passing on", 1);
        client
    }
}

impl Setting {
    /// Passes a datagram on to the host, and its answer back.
    pub(crate) fn passes_datagrams_on(&self) {
        let _client = self.pass_on(at(HOST[0], UDP_PORT), &[]);
        let program = program(&self.network.client);
        assert!(!ask(&program, 10).is_empty());
    }
}

fn program(namespace: &Arc<Namespace>) -> UdpSocket {
    let bind = || UdpSocket::bind("127.0.0.1:0");
    let socket = namespace.inside(bind).unwrap().unwrap();
    socket.connect(LISTEN).unwrap();
    socket.set_read_timeout(Some(AGAIN)).unwrap();
    socket
}

/// The answer to a datagram of `length` bytes, which is sent until there is one.
#[track_caller]
fn ask(program: &UdpSocket, length: usize) -> String {
    let (mut buffer, mut answer) = ([0; 2000], None);
    until("a datagram is answered", || {
        program.send(&vec![7; length]).unwrap();
        match uninterrupted(|| program.recv(&mut buffer)) {
            Ok(length) => answer = Some(String::from_utf8_lossy(&buffer[..length]).into_owned()),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        answer.is_some()
    });
    answer.unwrap()
}

#[test]
fn datagrams_of_programs_are_passed_on_while_networks_and_servers_fail() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    let mut server = setting.serve_udp();
    let before = network.routes();
    let paths = ["--path", PATHS[0], "--path", PATHS[1]];
    let mut client = setting.pass_on(at(HOST[0], UDP_PORT), &paths);
    assert_eq!(network.routes(), before);
    let (first, second) = (program(&network.client), program(&network.client));
    // One as large as those of QUIC, and an empty one, from the address of the server.
    for length in [1200, 1, 0] {
        assert_eq!(ask(&first, length), "10.3.0.1");
        assert_eq!(ask(&second, length), "10.3.0.1");
    }
    // That of the request at the start is closed.
    until("each program has a socket", || setting.metric(SOCKETS) == 2);

    network.set_path(0, "down");
    assert_eq!(ask(&first, 100), "10.3.0.1");
    network.set_path(0, "up");

    // A server process that knows nothing of the requests.
    server.signal("KILL");
    server.ended();
    let server = setting.serve_udp();
    assert_eq!(ask(&first, 100), "10.3.0.1");
    until("one program has a socket", || setting.metric(SOCKETS) == 1);

    // Sockets are closed with the client, and with its token.
    client.signal("TERM");
    assert!(client.ended().success());
    until("its sockets are closed", || setting.metric(SOCKETS) == 0);
    let mut client = setting.pass_on(at(HOST[1], UDP_PORT), &[]);
    assert_eq!(ask(&program(&network.client), 10), "fd03::1");
    let (tokens, others) = (setting.path("tokens"), setting.path("others"));
    let _ = printed(&["token", "carla", "--tokens", text(&others)]);
    std::fs::copy(&others, &tokens).unwrap();
    server.signal("HUP");
    until("its sockets are closed", || setting.metric(SOCKETS) == 0);
    let refused = program(&network.client);
    until("the token is refused", || {
        let _ = refused.send(b"x");
        client.count("the server does not accept the token") > 0
    });
    client.signal("INT");
    client.ended();
}

#[test]
fn a_destination_that_refuses_ends_the_request() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    let _server = setting.serve_udp();
    let closed = at(HOST[0], 9);
    let client = setting.pass_on(closed, &[]);
    let program = program(&network.client);
    program.send(b"x").unwrap();
    let opened = "marline_tunnel_udp_requests_total{result=\"opened\"}";
    // The first is that of the start.
    until("there was a socket", || setting.metric(opened) > 1);
    until("it is closed", || setting.metric(SOCKETS) == 0);
    // A program that still sends has another.
    until("there is another", || {
        program.send(b"x").unwrap();
        setting.metric(opened) > 2
    });
    drop(client);
}

#[test]
fn a_forward_that_the_server_refuses_does_not_begin() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    let arguments = setting.serving(&["--udp", "--allow", "10.3.0.0/24"]);
    let mut server = Program::start(&network.server, &arguments);
    server.wait_for("listening on", 1);
    let refused = |token: &str, to: &str, words: &[&str]| {
        let arguments = setting.passing(token, at(to, UDP_PORT), &[]);
        let (status, messages) = run(&network.client, &arguments);
        assert_eq!(status.code(), Some(1), "{messages}");
        assert!(!messages.contains("passing on"), "{messages}");
        for word in words {
            assert!(messages.contains(word), "`{word}` in {messages}");
        }
    };
    let words = ["the server does not accept the token", "ask its operator"];
    refused("bob.token", HOST[0], &words);
    refused("anna.token", HOST[1], &["the server refuses"]);
    std::fs::write(setting.path("empty.token"), "\n").unwrap();
    refused("empty.token", HOST[0], &["empty.token has no token"]);
}
