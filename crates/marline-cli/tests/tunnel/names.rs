//! A tunnel for the addresses of some names.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, UdpSocket};

use marline_lab::emu::Namespace;

use super::dns::{BEFORE, LOCAL, resolv_conf};
use super::namespaces::ip;
use super::network::HOST;
use super::programs::{Program, run, run_with_etc};
use super::traffic::{self, UDP_PORT, serve_sources};
use super::{AGAIN, Setting, until};

/// Where the client's programs find their resolver.
const RESOLVER: &str = "169.254.77.53";

/// Other addresses of the host.
const OTHERS: [&str; 2] = ["10.3.0.3", "10.3.0.4"];

/// The position of the name in a query.
const NAME: usize = 12;

/// A name as it is in a message.
fn written(name: &str) -> Vec<u8> {
    let labels = name.split('.');
    let labels = labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    labels.chain([0]).collect()
}

/// The answer that a name has this address, for a second.
fn answer(query: &[u8], address: &str) -> Vec<u8> {
    let end = NAME + query[NAME..].iter().position(|byte| *byte == 0).unwrap() + 5;
    let mut answer = query[..end].to_vec();
    answer[2] = 0x81;
    answer[7] = 1;
    let address: Ipv4Addr = address.parse().unwrap();
    answer.extend([0xc0, NAME as u8, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
    answer.extend(address.octets());
    answer
}

/// Answers queries at an address: names of example.org have `selected`, others `other`.
fn resolve(namespace: &Namespace, at: &str, selected: &'static str, other: &'static str) {
    let sockets = || (UdpSocket::bind((at, 53)), TcpListener::bind((at, 53)));
    let (udp, tcp) = namespace.inside(sockets).unwrap();
    let (udp, tcp) = (udp.unwrap(), tcp.unwrap());
    let address = move |query: &[u8]| {
        let domain = written("example.org");
        let query = query.to_ascii_lowercase();
        let is_selected = query.windows(domain.len()).any(|part| part == domain);
        if is_selected { selected } else { other }
    };
    std::thread::spawn(move || {
        let mut buffer = [0; 600];
        while let Ok((length, peer)) = udp.recv_from(&mut buffer) {
            let query = &buffer[..length];
            let _ = udp.send_to(&answer(query, address(query)), peer);
        }
    });
    std::thread::spawn(move || {
        for mut stream in tcp.incoming().map_while(Result::ok) {
            while let Ok(query) = read(&mut stream) {
                write(&mut stream, &answer(&query, address(&query))).unwrap();
            }
        }
    });
}

fn read(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut message)?;
    Ok(message)
}

fn write(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let length = (message.len() as u16).to_be_bytes();
    stream.write_all(&[&length[..], message].concat())
}

fn query(name: &str) -> Vec<u8> {
    let header = [7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    [&header[..], &written(name), &[0, 1, 0, 1]].concat()
}

/// The address at the end of an answer.
fn resolved(answer: &[u8]) -> String {
    let octets: [u8; 4] = answer[answer.len() - 4..].try_into().unwrap();
    IpAddr::from(octets).to_string()
}

impl Setting {
    /// Asks the resolver of the client for a name.
    fn lookup(&self, name: &str) -> String {
        let ask = || {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            socket.set_read_timeout(Some(AGAIN))?;
            socket.connect((RESOLVER, 53))?;
            socket.send(&query(name))?;
            let mut buffer = [0; 600];
            let length = socket.recv(&mut buffer)?;
            io::Result::Ok(buffer[..length].to_vec())
        };
        let mut answer = None;
        until("a name is resolved", || {
            answer = self.network.client.inside(ask).unwrap().ok();
            answer.is_some()
        });
        resolved(&answer.unwrap())
    }

    /// The same, by TCP.
    fn lookup_in_stream(&self, name: &str) -> String {
        let connect = || TcpStream::connect((RESOLVER, 53));
        let mut stream = self.network.client.inside(connect).unwrap().unwrap();
        write(&mut stream, &query(name)).unwrap();
        resolved(&read(&mut stream).unwrap())
    }
}

#[test]
fn packets_to_selected_names_alone_go_through_the_tunnel() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let network = &setting.network;
    let client_host = &network.client;
    for address in OTHERS {
        ip(
            &network.host,
            &format!("address add {address}/24 dev uplink"),
        )
        .unwrap();
        let bind = || UdpSocket::bind((address, UDP_PORT));
        serve_sources(network.host.inside(bind).unwrap().unwrap());
    }
    resolve(&network.server, LOCAL, HOST[0], OTHERS[0]);
    resolve(&network.host, HOST[0], OTHERS[1], OTHERS[0]);
    let mut server = setting.serve();
    let before = network.routes();
    let (etc, device) = (setting.etc(), "tun-names");
    let source = |address| traffic::source(client_host, address);

    let more = ["--split", "example.org"];
    let mut client = setting.start_resolving(&etc, device, &more);
    assert_eq!(
        client.count("the tunnel is up: example.org go through it"),
        1,
        "{client:?}"
    );
    let during = resolv_conf(&etc);
    assert!(
        during.ends_with("search example.org\nnameserver 169.254.77.53\n"),
        "{during}"
    );
    assert_eq!(source(HOST[0]), "10.1.0.2");
    assert_eq!(setting.lookup("www.example.net"), OTHERS[0]);
    assert_eq!(setting.lookup("www.Example.org"), HOST[0]);
    // The routes are there before the answer.
    assert_eq!(source(HOST[0]), "10.77.0.2");
    assert_eq!(source(OTHERS[0]), "10.1.0.2");
    assert_eq!(setting.lookup_in_stream("notexample.org"), OTHERS[0]);
    assert_eq!(setting.lookup_in_stream("example.org"), HOST[0]);

    // Nor do they pass beside it later.
    client.signal("KILL");
    client.ended();
    let route = |address| ip(client_host, &format!("route get {address}"));
    assert!(route(HOST[0]).is_err());
    assert!(route(RESOLVER).is_err());
    assert!(route(OTHERS[0]).unwrap().contains("dev path0"));
    // The next start knows the addresses that programs use.
    let mut client = setting.start_resolving(&etc, device, &more);
    assert!(source(HOST[0]).starts_with("10.77.0."));
    client.signal("KILL");
    client.ended();
    let (status, messages) = run_with_etc(client_host, &etc, &["down", "--device", device]);
    assert!(status.success(), "{messages}");
    assert_eq!(network.routes(), before);
    assert_eq!(resolv_conf(&etc), BEFORE);
    server.signal("TERM");
    server.ended();

    // The resolver of the server is asked for selected names alone, through the tunnel.
    let mut server = Program::start(&network.server, &setting.serving(&["--dns", HOST[0]]));
    server.wait_for("listening on", 1);
    let mut client = setting.start_resolving(&etc, device, &more);
    assert_eq!(setting.lookup("www.example.org"), OTHERS[1]);
    assert_eq!(source(OTHERS[1]), "10.77.0.2");
    assert_eq!(setting.lookup("www.example.net"), OTHERS[0]);
    assert_eq!(source(OTHERS[0]), "10.1.0.2");
    client.signal("TERM");
    assert!(client.ended().success());
    assert_eq!(network.routes(), before);
    assert_eq!(resolv_conf(&etc), BEFORE);

    let refused = setting.up(
        device,
        "anna.token",
        &["--split", "example.org", "--dns", "none"],
    );
    let (status, messages) = run(client_host, &refused);
    assert_eq!(status.code(), Some(2), "{messages}");
    assert!(messages.contains("leave that out"), "{messages}");
}
