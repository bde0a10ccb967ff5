//! A tunnel for some programs.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use marline_lab::emu::Namespace;

use super::network::{HOST, set};
use super::programs::{output, run, text};
use super::traffic::at;
use super::{Setting, UP};

/// The port that tells each client its address.
const PORT: u16 = 7005;

/// The server, on a network of the client.
const NEAR: &str = "10.1.0.1";

/// Tells each client its address.
fn serve_addresses(namespace: &Namespace, address: SocketAddr) {
    let listener = namespace.inside(|| TcpListener::bind(address));
    let listener = listener.unwrap().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let peer = stream.peer_addr().unwrap().ip();
            let _ = stream.write_all(peer.to_string().as_bytes());
        }
    });
}

/// A script that prints the address with which a program reaches a host.
fn asks(host: &str) -> String {
    format!("cat < /dev/tcp/{host}/{PORT}")
}

/// A control group for a test, until this is dropped.
struct Group(PathBuf);

impl Group {
    fn new() -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let line = mounts.lines().find(|line| line.contains(" cgroup2 "));
        let root = line.unwrap().split(' ').nth(1).unwrap();
        let group = Path::new(root).join(format!("marline-test-{}", std::process::id()));
        fs::create_dir(&group).unwrap();
        Self(group)
    }

    /// The flag that selects it.
    fn selected(&self) -> String {
        let name = self.0.file_name().unwrap();
        format!("cgroup:/{}", name.display())
    }

    /// The address with which a program of this group reaches a host, or nothing.
    fn source(&self, namespace: &Namespace, host: &str) -> String {
        self.output(namespace, &asks(host))
    }

    /// The output of a script as a program of this group.
    fn output(&self, namespace: &Namespace, script: &str) -> String {
        let group = self.0.display();
        source(
            namespace,
            &format!("echo $$ > {group}/cgroup.procs && {script}"),
        )
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn source(namespace: &Namespace, script: &str) -> String {
    let mut command = Command::new("bash");
    command.args(["-c", script]);
    let output = namespace.inside(|| command.output()).unwrap().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

impl Setting {
    /// The address with which a program of `marline tunnel run` reaches a host.
    fn source_of_run(&self, device: &str, host: &str) -> String {
        let script = asks(host);
        let arguments = ["run", "--device", device, "--", "bash", "-c", &script];
        let output = output(&self.network.client, &arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn packets_of_selected_programs_alone_go_through_the_tunnel() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    let client_host = &network.client;
    // Of a packet that comes from where none to its source would go, as some distributions set it.
    set(client_host, "ipv4/conf/all/rp_filter", "1").unwrap();
    for address in HOST {
        serve_addresses(&network.host, at(address, PORT));
    }
    serve_addresses(&network.server, at(NEAR, PORT));
    let _server = setting.serve();
    let before = network.routes();
    let (group, device) = (Group::new(), "tun.programs");
    let selected = group.selected();
    let more = ["--split", "programs", "--split", &selected];
    let mut client = setting.start(device, &more);
    let message = format!(
        "programs of `marline tunnel run`, programs of {}",
        &selected[7..]
    );
    assert_eq!(client.count(&message), 1, "{client:?}");

    assert_eq!(source(client_host, &asks(HOST[0])), "10.1.0.2");
    assert_eq!(setting.source_of_run(device, HOST[0]), "10.77.0.2");
    // Nothing else of the client leads to an address of IPv6.
    assert_eq!(setting.source_of_run(device, HOST[1]), "fd77::2");
    assert_eq!(group.source(client_host, HOST[0]), "10.77.0.2");
    assert_eq!(group.source(client_host, NEAR), "10.1.0.2");
    let user = ["run", "--device", device, "--user", "nobody", "id", "-un"];
    assert_eq!(output(client_host, &user).stdout, b"nobody\n");

    // Subflows of Multipath TCP would not be marked.
    let multipath = "python3 -c 'import socket; socket.socket(proto=262); print(1)'";
    let is_known = Path::new("/proc/sys/net/mptcp").exists();
    assert_eq!(source(client_host, multipath) == "1\n", is_known);
    assert_eq!(group.output(client_host, multipath), "");

    // The next start takes over what a killed client has left.
    client.signal("KILL");
    client.ended();
    // Its group may be another by the same name, as that of a service that has started again.
    fs::remove_dir(&group.0).unwrap();
    fs::create_dir(&group.0).unwrap();
    let mut client = setting.start(device, &more);
    assert!(group.source(client_host, HOST[0]).starts_with("10.77.0."));

    // Its programs have no way beside it, and others do.
    client.signal("KILL");
    client.ended();
    assert_eq!(group.source(client_host, HOST[0]), "");
    assert_eq!(source(client_host, &asks(HOST[0])), "10.1.0.2");
    let (status, messages) = run(client_host, &["run", "--device", device, "true"]);
    assert_eq!(status.code(), Some(1));
    assert!(
        messages.contains("there is no tunnel of tun.programs"),
        "{messages}"
    );
    assert!(setting.down(device).contains("are put back"));
    assert_eq!(network.routes(), before);
    assert_eq!(group.source(client_host, HOST[0]), "10.1.0.2");

    // The next start marks them again, and its end puts that back.
    let mut client = setting.start(device, &more);
    assert!(group.source(client_host, HOST[0]).starts_with("10.77.0."));
    client.signal("TERM");
    assert!(client.ended().success());
    assert_eq!(network.routes(), before);
    assert_eq!(group.source(client_host, HOST[0]), "10.1.0.2");
    let root = group.0.parent().unwrap();
    let left = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left
        .filter(|name| name.to_string_lossy().contains(device))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn programs_without_a_group_of_the_tunnel_are_refused() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    let _server = setting.serve();
    let before = network.routes();
    let device = "tun-refused";
    let none = setting.up(device, "anna.token", &["--split", "cgroup:/marline-none"]);
    let (status, messages) = run(&network.client, &none);
    assert_eq!(status.code(), Some(1), "{messages}");
    assert!(
        messages.contains("there is no control group /marline-none"),
        "{messages}"
    );
    assert_eq!(network.routes(), before);

    let config = setting.path("tunnel.toml");
    fs::write(&config, "split = \"10.3.0.0/24\"\n").unwrap();
    let mut client = setting.start(device, &["--config", text(&config)]);
    let (status, messages) = run(&network.client, &["run", "--device", device, "true"]);
    assert_eq!(status.code(), Some(1));
    assert!(
        messages.contains("start it with --split programs"),
        "{messages}"
    );
    client.signal("TERM");
    assert!(client.ended().success());
    assert_eq!(client.count(UP), 1);
}
