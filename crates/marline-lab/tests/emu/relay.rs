//! Relays from a host to this machine.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use marline_lab::emu::Relay;

use crate::link::Spec;
use crate::setup;

#[tokio::test(flavor = "multi_thread")]
async fn ports_reach_this_machine() {
    let Some(pair) = setup::pair(Spec::delay(5)) else {
        return;
    };
    // One port for both protocols.
    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = udp.local_addr().unwrap().port();
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    let _relay = Relay::start(&pair.emulation, pair.server, port).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 100];
        let (len, from) = udp.recv_from(&mut buffer).unwrap();
        udp.send_to(&buffer[..len], from).unwrap();
    });
    std::thread::spawn(move || {
        let (mut stream, _) = tcp.accept().unwrap();
        let mut printed = String::new();
        stream.read_to_string(&mut printed).unwrap();
        stream.write_all(printed.to_uppercase().as_bytes()).unwrap();
    });

    let to = (pair.emulation.addresses(pair.server)[0], port);
    let ask = || {
        let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        socket.send_to(b"datagram", to).unwrap();
        let mut buffer = [0; 100];
        let (len, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..len], from), (&b"datagram"[..], to.into()));

        let mut stream = TcpStream::connect(to).unwrap();
        stream.write_all(b"stream").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "STREAM");
    };
    tokio::task::block_in_place(|| pair.emulation.inside(pair.client, ask)).unwrap();
}
