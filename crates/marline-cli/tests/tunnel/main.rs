//! A tunnel between network namespaces: a client with two networks, a server, and a host behind the server.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the programs run in real time")]

mod certificates;
mod dns;
mod names;
#[path = "../namespaces/mod.rs"]
mod namespaces;
mod network;
mod networks;
mod programs;
mod selection;
mod site;
mod split;
mod traffic;
mod udp;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use self::namespaces::ip;
use self::network::{HOST, Network, PATHS, SERVER};
use self::programs::{Program, printed, run, text};

/// The time for a step, which programs on a slow machine take in a few seconds.
const STEP: Duration = Duration::from_secs(60);

/// Between two looks at what is waited for.
const PAUSE: Duration = Duration::from_millis(20);

/// The time after which a datagram is sent again.
const AGAIN: Duration = Duration::from_millis(300);

/// The client's message when packets pass.
const UP: &str = "the tunnel is up";

/// Waits until `done`, and says what did not happen if it takes too long.
#[track_caller]
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < STEP, "not within {STEP:?}: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// The namespaces, and the files of client and server.
struct Setting {
    network: Network,
    directory: TempDir,
}

impl Setting {
    /// `None` if a privilege is missing.
    fn new() -> Option<Self> {
        let network = match Network::new() {
            Ok(network) => network,
            Err(error) => {
                println!("skipped: {error}");
                return None;
            }
        };
        let setting = Self {
            network,
            directory: TempDir::new().unwrap(),
        };
        let tokens = setting.path("tokens");
        for (user, file) in [("anna", "anna.token"), ("bob", "bob.token")] {
            let token = printed(&["token", user, "--tokens", text(&tokens)]);
            fs::write(setting.path(file), token).unwrap();
        }
        // Bob's is revoked.
        let lines = fs::read_to_string(&tokens).unwrap();
        fs::write(&tokens, lines.lines().next().unwrap()).unwrap();
        traffic::serve(&setting.network);
        Some(setting)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The arguments of a server.
    fn serving(&self, more: &[&str]) -> Vec<String> {
        let (tokens, state) = (self.path("tokens"), self.path("state"));
        let arguments = [
            "serve",
            "--tokens",
            text(&tokens),
            "--state",
            text(&state),
            "--name",
            SERVER,
            "--pool",
            "10.77.0.0/24",
            "--pool",
            "fd77::/64",
            "--metrics",
            "127.0.0.1:9090",
        ];
        arguments
            .iter()
            .chain(more)
            .map(ToString::to_string)
            .collect()
    }

    fn serve(&self) -> Program {
        let mut server = Program::start(&self.network.server, &self.serving(&[]));
        server.wait_for("listening on", 1);
        server
    }

    /// The arguments of a client, whose network device has this name.
    fn up<'a>(&'a self, device: &'a str, token: &'a str, more: &[&'a str]) -> Vec<String> {
        let state = fs::read_dir(self.path("state")).unwrap();
        let files = state.map(|entry| entry.unwrap().path());
        let is_certificate = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "pem");
        let certificate = files.into_iter().find(is_certificate).unwrap();
        let token = self.path(token);
        let arguments = [
            "up",
            SERVER,
            "--cacert",
            text(&certificate),
            "--token-file",
            text(&token),
            "--device",
            device,
        ];
        arguments
            .iter()
            .chain(more)
            .map(ToString::to_string)
            .collect()
    }

    /// Starts a client, and waits until packets pass.
    fn start(&self, device: &str, more: &[&str]) -> Program {
        let arguments = self.up(device, "anna.token", more);
        let mut client = Program::start(&self.network.client, &arguments);
        client.wait_for(UP, 1);
        client
    }

    fn down(&self, device: &str) -> String {
        let (status, messages) = run(&self.network.client, &["down", "--device", device]);
        assert!(status.success(), "{messages}");
        messages
    }

    /// The value of a metric of the server.
    fn metric(&self, name: &str) -> u64 {
        let connect = || TcpStream::connect("127.0.0.1:9090");
        let mut stream = self.network.server.inside(connect).unwrap().unwrap();
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{page}"))
            .trim()
            .parse()
            .unwrap()
    }
}

#[test]
fn packets_of_all_programs_go_through_the_tunnel_while_a_network_fails() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    let mut server = setting.serve();
    let before = network.routes();

    // A token that was revoked.
    let refused = setting.up("tun-refused", "bob.token", &[]);
    let (status, messages) = run(&network.client, &refused);
    assert_eq!(status.code(), Some(1));
    assert!(
        messages.contains("the server does not accept the token"),
        "{messages}"
    );
    assert_eq!(network.routes(), before);

    let device = "tun-all";
    let mut client = setting.start(device, &["--path", PATHS[0], "--path", PATHS[1]]);
    traffic::ping(&network.client);
    assert_eq!(traffic::source(&network.client, HOST[0]), "10.77.0.2");
    assert_eq!(traffic::source(&network.client, HOST[1]), "fd77::2");
    assert_eq!(setting.metric("marline_tunnel_clients"), 1);

    // TCP, while the network that carries it is cut, and while that is joined again.
    let received = || PATHS.map(|path| network.received(path));
    let (before_transfer, mut at_cut, mut cut) = (received(), [0; 2], 0);
    traffic::transfer(&network.client, HOST[0], || {
        at_cut = received();
        let carried = [0, 1].map(|path| at_cut[path] - before_transfer[path]);
        cut = usize::from(carried[1] > carried[0]);
        network.set_path(cut, "down");
    });
    let other = 1 - cut;
    assert!(received()[other] - at_cut[other] > 1_000_000);
    traffic::transfer(&network.client, HOST[1], || network.set_path(cut, "up"));
    assert_eq!(client.count(UP), 1, "the connection has stayed: {client:?}");

    // An address that the server has not assigned.
    ip(
        &network.client,
        &format!("address add 10.77.0.9/32 dev {device}"),
    )
    .unwrap();
    traffic::send_forged(&network.client, "10.77.0.9");
    traffic::ping(&network.client);

    // Another server process knows nothing of the tunnel: there is a new one, with the same addresses.
    server.signal("KILL");
    server.ended();
    let server = setting.serve();
    until("the client has connected again", || {
        // Its packets are answered by a reset.
        let _ = ip(&network.client, "route get 198.51.100.1");
        client.count(UP) == 2
    });
    traffic::ping(&network.client);
    assert_eq!(traffic::source(&network.client, HOST[0]), "10.77.0.2");

    client.signal("TERM");
    assert!(client.ended().success());
    client_summary(&client);
    assert_eq!(network.routes(), before);
    until("the addresses are released", || {
        setting.metric("marline_tunnel_clients") == 0
    });
    drop(server);
}

/// Connections of the kernel's TCP together use two networks, each of them one at a time.
#[test]
fn several_connections_use_both_networks_at_once() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    network.shape(0, "20mbit");
    network.shape(1, "8mbit");
    let server = setting.serve();
    let client = setting.start("tun-sum", &["--path", PATHS[0], "--path", PATHS[1]]);
    traffic::ping(&network.client);
    let received = || PATHS.map(|path| network.received(path));
    let before = received();
    let sequence = std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| traffic::transfer(&network.client, HOST[0], || ()));
        }
        scope
            .spawn(|| traffic::sequence(&network.client, HOST[0]))
            .join()
            .unwrap()
    });
    for (number, after) in received().into_iter().enumerate() {
        let carried = after - before[number];
        assert!(carried > 1_000_000, "{carried} on {}", PATHS[number]);
        let name = format!(
            r#"marline_tunnel_path_bytes_total{{client="10.77.0.2",path="{number}",direction="to_client"}}"#
        );
        assert!(setting.metric(&name) > 1_000_000);
    }
    // A probe timeout of a busy machine sends packets again by the other network.
    let is_in_order = sequence.arrived > 300 && sequence.late * 20 < sequence.arrived;
    assert!(is_in_order, "{sequence:?}");
    drop((client, server));
}

fn client_summary(client: &Program) {
    until("the summary is printed", || {
        client.count("the tunnel is down") == 1
    });
    assert_eq!(client.count("forged_source"), 1, "{client:?}");
}

#[test]
fn an_operator_revokes_a_user_whose_packets_go_nowhere_else() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    let mut server = setting.serve();
    let before = network.routes();
    let device = "tun-revoked";
    let mut client = setting.start(device, &[]);
    traffic::ping(&network.client);
    server.wait_for("anna has a tunnel from ", 1);

    let tokens = setting.path("tokens");
    let lines = fs::read_to_string(&tokens).unwrap();
    // What is wrong changes nothing.
    fs::write(&tokens, format!("{lines}\n{lines}")).unwrap();
    server.signal("HUP");
    server.wait_for("the tokens stay as they were", 1);
    traffic::ping(&network.client);

    let other = setting.path("other");
    let _ = printed(&["token", "carla", "--tokens", text(&other)]);
    fs::copy(&other, &tokens).unwrap();
    server.signal("HUP");
    server.wait_for("its token was revoked: 10.77.0.2", 1);
    assert_eq!(server.count("the tunnel of anna from "), 1, "{server:?}");
    client.wait_for("the server does not accept the token", 1);
    server.wait_for("its token is unknown, or was revoked", 1);
    let line = "marline_tunnel_refused_total{reason=\"unknown_token\"}";
    assert!(setting.metric(line) > 0);
    let beside = ip(&network.client, "route get 198.51.100.1").unwrap_or_default();
    assert!(beside.is_empty() || beside.contains(device), "{beside}");

    fs::write(&tokens, &lines).unwrap();
    server.signal("HUP");
    client.wait_for(UP, 2);
    traffic::ping(&network.client);

    // Nor when somebody removes the device.
    ip(&network.client, &format!("link delete {device}")).unwrap();
    let beside = ip(&network.client, "route get 198.51.100.1").unwrap_or_default();
    assert!(beside.is_empty() || beside.contains(device), "{beside}");
    client.wait_for(UP, 3);
    traffic::ping(&network.client);

    // All users are gone.
    fs::write(&tokens, "").unwrap();
    server.signal("HUP");
    server.wait_for("read the tokens again: users: 0", 1);
    server.wait_for("its token was revoked: 10.77.0.2", 2);
    fs::write(&tokens, lines).unwrap();
    server.signal("HUP");
    client.wait_for(UP, 4);
    client.signal("TERM");
    assert!(client.ended().success());
    assert_eq!(network.routes(), before);
    refused_clients(&setting);
}

/// Messages about what stands in the way of a client say what to do.
fn refused_clients(setting: &Setting) {
    let network = &setting.network;
    let refused = |device: &str, words: &[&str]| {
        let arguments = setting.up(device, "anna.token", &[]);
        let (status, messages) = run(&network.client, &arguments);
        assert_eq!(status.code(), Some(1), "{messages}");
        for word in words {
            assert!(messages.contains(word), "`{word}` in {messages}");
        }
    };
    ip(&network.client, "tuntap add tun-kept mode tun").unwrap();
    let words = ["already", "--device", "ip link delete "];
    for device in [PATHS[0], "tun-kept"] {
        refused(device, &words);
    }
    ip(&network.client, "link delete tun-kept").unwrap();

    let inode = network.client.inside(|| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata("/proc/thread-self/ns/net").unwrap().ino()
    });
    let damaged = format!("/run/marline/tunnel-{}-tun-damaged.json", inode.unwrap());
    fs::write(&damaged, "{").unwrap();
    refused(
        "tun-damaged",
        &[&damaged, "is damaged", "remove it", "ip rule del"],
    );
    fs::remove_file(&damaged).unwrap();
}

#[test]
fn the_routes_of_a_client_that_was_killed_are_put_back() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    let mut server = setting.serve();
    let before = network.routes();
    let device = "tun-killed";

    let mut client = setting.start(device, &[]);
    traffic::ping(&network.client);
    client.signal("KILL");
    client.ended();
    assert_ne!(network.routes(), before);
    // Nothing passes beside it either.
    let beside = ip(&network.client, "route get 198.51.100.1");
    assert!(beside.is_err(), "{beside:?}");
    assert!(setting.down(device).contains("are put back"));
    assert_eq!(network.routes(), before);
    assert!(setting.down(device).contains("nothing to put back"));

    // A terminal that is closed ends it as Ctrl-C does.
    let mut client = setting.start(device, &[]);
    client.signal("HUP");
    assert!(client.ended().success());
    assert_eq!(network.routes(), before);

    // The next start does so as well.
    let mut client = setting.start(device, &[]);
    client.signal("KILL");
    client.ended();
    // Some rules may be gone: services for networks remove those of others.
    ip(&network.client, "rule del priority 28004").unwrap();
    let mut client = setting.start(device, &["--split", "10.3.0.0/24"]);
    // The server does not know yet that the clients before have gone: it has their addresses.
    let source = traffic::source(&network.client, HOST[0]);
    assert!(source.starts_with("10.77.0."), "{source}");
    let outside = ip(&network.client, "route get 198.51.100.1").unwrap();
    assert!(outside.contains("dev path0"), "{outside}");
    // A second tunnel leaves the routes of the first, which is no network for it.
    let second = setting.up("tun-second", "anna.token", &["--split", "10.3.0.0/24"]);
    let (status, messages) = run(&network.client, &second);
    assert_eq!(status.code(), Some(1));
    assert!(messages.contains("another tunnel"), "{messages}");
    assert!(messages.contains("server: path0, path1\n"), "{messages}");
    traffic::source(&network.client, HOST[0]);
    assert!(setting.down(device).contains("is down"));
    assert!(client.ended().success());
    assert_eq!(network.routes(), before);

    server.signal("TERM");
    assert!(server.ended().success());
    in_use(&setting);
    translate(&setting);
}

/// A server whose port is in use changes nothing before it says so.
fn in_use(setting: &Setting) {
    let network = &setting.network;
    let bind = || UdpSocket::bind(("::", 4433));
    let socket = network.server.inside(bind).unwrap().unwrap();
    let before = ip(&network.server, "address").unwrap();
    let (status, messages) = run(&network.server, &setting.serving(&["--nat"]));
    assert_eq!(status.code(), Some(1), "{messages}");
    assert!(messages.contains("4433"), "{messages}");
    assert!(!messages.contains("nft"), "{messages}");
    assert_eq!(ip(&network.server, "address").unwrap(), before);
    drop(socket);
}

/// Packets leave with the address of the server, or a server without nftables says so.
fn translate(setting: &Setting) {
    let network = &setting.network;
    let arguments = setting.serving(&["--nat"]);
    if Command::new("nft").arg("--version").output().is_err() {
        let (status, messages) = run(&network.server, &arguments);
        assert_eq!(status.code(), Some(1));
        assert!(
            messages.contains("install the package nftables"),
            "{messages}"
        );
        return;
    }
    let mut server = Program::start(&network.server, &arguments);
    server.wait_for("listening on", 1);
    let mut client = setting.start("tun-nat", &[]);
    assert_eq!(traffic::source(&network.client, HOST[0]), "10.3.0.1");
    assert_eq!(traffic::source(&network.client, HOST[1]), "fd03::1");
    client.signal("INT");
    assert!(client.ended().success());
}
