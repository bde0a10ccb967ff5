//! The resolvers of a client.

use std::fs;
use std::io;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use crate::network::HOST;
use crate::programs::{Program, run_with_etc, text};
use crate::traffic::{self, serve_sources};
use crate::{AGAIN, Setting, UP, until};

/// A resolver on a network of the client itself, which the server is as well.
pub(crate) const LOCAL: &str = "10.1.0.1";

pub(crate) const BEFORE: &str = "search example.org\nnameserver 10.1.0.1\n";

impl Setting {
    /// A directory /etc with a file of resolvers.
    pub(crate) fn etc(&self) -> PathBuf {
        let etc = self.path("etc");
        fs::create_dir(&etc).unwrap();
        fs::write(etc.join("resolv.conf"), BEFORE).unwrap();
        etc
    }

    pub(crate) fn start_resolving(&self, etc: &Path, device: &str, more: &[&str]) -> Program {
        let arguments = self.up(device, "anna.token", more);
        let mut client = Program::start_with_etc(&self.network.client, etc, &arguments);
        client.wait_for(UP, 1);
        client
    }

    /// The address from which a query of the client reaches a resolver.
    fn query(&self, resolver: &str) -> io::Result<String> {
        let query = || {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            socket.set_read_timeout(Some(AGAIN))?;
            socket.connect((resolver, 53))?;
            socket.send(b"?")?;
            let mut buffer = [0; 100];
            let length = socket.recv(&mut buffer)?;
            Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
        };
        self.network.client.inside(query).unwrap()
    }
}

pub(crate) fn resolv_conf(etc: &Path) -> String {
    fs::read_to_string(etc.join("resolv.conf")).unwrap()
}

#[test]
fn names_resolve_through_the_tunnel_and_nowhere_beside_it() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    for (namespace, address) in [(&network.host, HOST[0]), (&network.server, LOCAL)] {
        let bind = || UdpSocket::bind((address, 53));
        serve_sources(namespace.inside(bind).unwrap().unwrap());
    }
    let mut server = Program::start(&network.server, &setting.serving(&["--dns", HOST[0]]));
    server.wait_for("listening on", 1);
    let etc = setting.etc();
    let device = "tun-dns";
    let answered = |resolver, source| {
        until("a query is answered", || match setting.query(resolver) {
            Ok(answer) => {
                assert_eq!(answer, source);
                true
            }
            Err(_) => false,
        });
    };
    answered(LOCAL, "10.1.0.2");

    let mut client = setting.start_resolving(&etc, device, &[]);
    assert_eq!(client.count("DNS at 10.3.0.2"), 1, "{client:?}");
    let during = resolv_conf(&etc);
    assert!(
        during.ends_with("search example.org\nnameserver 10.3.0.2\n"),
        "{during}"
    );
    answered(HOST[0], "10.77.0.2");
    // The resolver of the local network is reached through the tunnel as well: nobody beside it sees the query.
    answered(LOCAL, "10.77.0.2");
    client.signal("KILL");
    client.ended();
    for resolver in [HOST[0], LOCAL] {
        assert!(setting.query(resolver).is_err(), "{resolver}");
    }
    assert_eq!(resolv_conf(&etc), during);
    let (status, messages) = run_with_etc(&network.client, &etc, &["down", "--device", device]);
    assert!(status.success(), "{messages}");
    assert_eq!(resolv_conf(&etc), BEFORE);
    assert_eq!(fs::read_dir(&etc).unwrap().count(), 1);
    answered(LOCAL, "10.1.0.2");

    // The next start after a crash, and its end, put back what was before the first.
    let mut client = setting.start_resolving(&etc, device, &["--dns", "10.3.0.9"]);
    assert!(resolv_conf(&etc).contains("nameserver 10.3.0.9\n"));
    client.signal("KILL");
    client.ended();
    let mut client = setting.start_resolving(&etc, device, &[]);
    assert!(resolv_conf(&etc).contains("nameserver 10.3.0.2\n"));
    client.signal("TERM");
    assert!(client.ended().success());
    assert_eq!(resolv_conf(&etc), BEFORE);
    // What was left of the routes, after a restart of the machine.
    let marked = etc.join(format!("resolv.conf.before-{device}"));
    fs::rename(etc.join("resolv.conf"), marked).unwrap();
    fs::write(etc.join("resolv.conf"), &during).unwrap();
    let (_, messages) = run_with_etc(&network.client, &etc, &["down", "--device", device]);
    assert!(messages.contains("the resolvers"), "{messages}");
    assert_eq!(resolv_conf(&etc), BEFORE);

    let config = setting.path("tunnel.toml");
    fs::write(&config, "split = \"10.3.0.0/24\"\ntcp = \"packets\"\n").unwrap();
    for more in [["--dns", "none"], ["--config", text(&config)]] {
        let mut client = setting.start_resolving(&etc, device, &more);
        assert_eq!(resolv_conf(&etc), BEFORE);
        let source = traffic::source(&network.client, HOST[0]);
        assert!(source.starts_with("10.77.0."), "{source}");
        answered(LOCAL, "10.1.0.2");
        client.signal("TERM");
        assert!(client.ended().success());
    }
}
