//! Connections of TCP that are carried as streams.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use marline_http::tcp::socket2::SockRef;
use marline_lab::emu::Namespace;

use crate::namespaces::{ip, join};
use crate::network::{HOST, set};
use crate::programs::Program;
use crate::traffic::{
    COUNT_PORT, at, connect, receive_at_once, serve_counts, transfer, uninterrupted, upload,
};
use crate::{Setting, traffic, until};

const OPENED: &str = "marline_tunnel_split_connections_total{result=\"opened\"}";
const NOW: &str = "marline_tunnel_split_connections ";

impl Setting {
    fn serve_streams(&self) -> Program {
        let arguments = self.serving(&["--tcp", "streams"]);
        let mut server = Program::start(&self.network.server, &arguments);
        server.wait_for("listening on", 1);
        server
    }
}

#[test]
fn connections_are_streams_with_the_meaning_of_tcp() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    let mut server = setting.serve_streams();
    let device = "tun-split";
    let mut client = setting.start(device, &[]);
    assert_eq!(client.count("TCP as streams"), 1, "{client:?}");
    let client_host = &network.client;

    // Down and up; the end of one direction leaves the other.
    for (number, (host, server)) in [(HOST[0], "10.3.0.1"), (HOST[1], "fd03::1")]
        .iter()
        .enumerate()
    {
        transfer(client_host, host, || ());
        let answer = upload(client_host, at(host, COUNT_PORT), 3_000_000);
        assert_eq!(answer, format!("{server} 3000000"));
        assert_eq!(setting.metric(OPENED), 2 * (number as u64 + 1));
    }
    until("connections that have ended are given up", || {
        setting.metric(NOW) == 0
    });

    // connect() fails as without a tunnel.
    for host in HOST {
        let refused = connect(client_host, at(host, 1)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{host}");
    }
    let nobody = connect(client_host, at("10.3.0.77", 80)).unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::HostUnreachable);

    // The server's own services see the address of the client: packets reach them, as they do without streams.
    let bind = || TcpListener::bind("10.3.0.1:7002");
    serve_counts(network.server.inside(bind).unwrap().unwrap());
    let opened = setting.metric(OPENED);
    let answer = upload(client_host, at("10.3.0.1", 7002), 1000);
    assert_eq!(answer, "10.77.0.2 1000");
    assert_eq!(setting.metric(OPENED), opened);

    resets(&setting);
    forwarded(&setting);

    // Connections end with the tunnel, and the next tunnel has new ones.
    let mut stream = connect(client_host, at(HOST[0], COUNT_PORT)).unwrap();
    stream.write_all(b"x").unwrap();
    server.signal("KILL");
    server.ended();
    let error = uninterrupted(|| stream.read(&mut [0])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let _server = setting.serve_streams();
    client.wait_for(crate::UP, 2);
    let answer = upload(client_host, at(HOST[0], COUNT_PORT), 1000);
    assert_eq!(answer, "10.3.0.1 1000");

    client.signal("TERM");
    assert!(client.ended().success());
    until("the summary is printed", || {
        client.count("TCP as streams:") == 1
    });
}

/// A reset reaches the other end.
fn resets(setting: &Setting) {
    let network = &setting.network;
    let bind = || TcpListener::bind((HOST[0], 7003));
    let listener = network.host.inside(bind).unwrap().unwrap();
    for is_of_client in [true, false] {
        let near = connect(&network.client, at(HOST[0], 7003)).unwrap();
        let (far, _) = listener.accept().unwrap();
        far.set_read_timeout(Some(crate::STEP)).unwrap();
        let (resets, mut sees) = if is_of_client {
            (near, far)
        } else {
            (far, near)
        };
        // Half of the connection had ended cleanly.
        resets.shutdown(Shutdown::Write).unwrap();
        assert_eq!(uninterrupted(|| sees.read(&mut [0])).unwrap(), 0);
        SockRef::from(&resets)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
        drop(resets);
        until("writing fails", || sees.write(b"x").is_err());
    }
    until("connections that were reset are given up", || {
        setting.metric(NOW) == 0
    });
}

/// The client is a router: connections of others are split as well, without translation.
fn forwarded(setting: &Setting) {
    let network = &setting.network;
    let others = Arc::new(Namespace::new().unwrap());
    ip(&others, "link set lo up").unwrap();
    join(&network.client, "lan", &others, "eth0").unwrap();
    ip(&network.client, "address add 10.9.0.1/24 dev lan").unwrap();
    ip(&others, "address add 10.9.0.2/24 dev eth0").unwrap();
    ip(&others, "route add default via 10.9.0.1").unwrap();
    set(&network.client, "ipv4/ip_forward", "1").unwrap();
    transfer(&others, HOST[0], || ());
    let answer = upload(&others, at(HOST[0], COUNT_PORT), 100_000);
    assert_eq!(answer, "10.3.0.1 100000");
    let refused = connect(&others, at(HOST[0], 1)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    traffic::ping(&network.client);
}

#[test]
fn connections_at_once_share_the_tunnel() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    (0..2).for_each(|path| network.shape(path, "10mbit"));
    let _server = setting.serve_streams();
    let mut client = setting.start("tun-shared", &[]);
    let received = receive_at_once(&network.client, HOST[0]);
    let (least, most) = (
        received.iter().min().unwrap(),
        received.iter().max().unwrap(),
    );
    assert!(least * 4 > *most, "{received:?}");
    client.signal("TERM");
    assert!(client.ended().success());
}
