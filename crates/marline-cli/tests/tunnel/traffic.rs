//! The exchanges of the client's programs with the host behind the server.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use marline::Sha256;
use marline_http::tcp::socket2::{Domain, Protocol, Socket, Type};
use marline_lab::emu::Namespace;

use crate::network::{HOST, Network};
use crate::{PAUSE, until};

/// The port of the host that sends each datagram's source back.
pub(crate) const UDP_PORT: u16 = 7000;

/// The port of the host that sends [`LENGTH`] bytes.
const TCP_PORT: u16 = 7001;

/// The port of the host that receives until its client has sent everything, and answers with its address and the number of bytes.
pub(crate) const COUNT_PORT: u16 = 7002;

/// The port of the host that answers a datagram by a sequence of numbered ones.
const SEQUENCE_PORT: u16 = 7003;

/// The datagrams of a sequence: 1 Mbit/s for some seconds.
const SEQUENCE: u32 = 400;

/// The datagrams with the number [`SEQUENCE`] after it, one of which arrives.
const ENDS: u32 = 50;

/// The port of the host that sends until its client has gone.
const ENDLESS_PORT: u16 = 7004;

/// The connections of [`receive_at_once`], and the bytes that the first of them to have so many receives.
const AT_ONCE: usize = 3;
const AT_ONCE_BYTES: usize = 3_000_000;

/// Bytes of a transfer.
const LENGTH: usize = 6_000_000;

/// Waits for a call that a signal may interrupt, as those of sockets with a timeout: a process that was stopped for a while goes on.
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The bytes of a transfer from this position on.
fn fill(buffer: &mut [u8], position: usize) {
    for (offset, byte) in buffer.iter_mut().enumerate() {
        let at = position + offset;
        *byte = (at ^ (at >> 8) ^ (at >> 16).wrapping_mul(31)) as u8;
    }
}

/// Starts the services of the host, until the process ends.
pub(crate) fn serve(network: &Network) {
    for address in HOST.map(|address| address.parse::<IpAddr>().unwrap()) {
        let sockets = || {
            let udp = UdpSocket::bind((address, UDP_PORT)).unwrap();
            let tcp = TcpListener::bind((address, TCP_PORT)).unwrap();
            let count = TcpListener::bind((address, COUNT_PORT)).unwrap();
            let numbered = UdpSocket::bind((address, SEQUENCE_PORT)).unwrap();
            let endless = TcpListener::bind((address, ENDLESS_PORT)).unwrap();
            (udp, tcp, count, numbered, endless)
        };
        let (udp, tcp, count, numbered, endless) = network.host.inside(sockets).unwrap();
        serve_counts(count);
        std::thread::spawn(move || {
            for mut stream in endless.incoming().map_while(Result::ok) {
                std::thread::spawn(move || while stream.write_all(&[7; 50_000]).is_ok() {});
            }
        });
        std::thread::spawn(move || {
            let mut buffer = [0; 2000];
            while let Ok((_, peer)) = numbered.recv_from(&mut buffer) {
                send_sequence(&numbered, peer);
            }
        });
        serve_sources(udp);
        std::thread::spawn(move || {
            for stream in tcp.incoming().map_while(Result::ok) {
                std::thread::spawn(move || send(stream));
            }
        });
    }
}

/// Answers on [`UDP_PORT`], or another.
pub(crate) fn serve_sources(socket: UdpSocket) {
    std::thread::spawn(move || {
        let mut buffer = [0; 2000];
        while let Ok((_, peer)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(peer.ip().to_string().as_bytes(), peer);
        }
    });
}

/// Answers on [`COUNT_PORT`], or another.
pub(crate) fn serve_counts(listener: TcpListener) {
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || count(stream));
        }
    });
}

fn count(mut stream: TcpStream) {
    let (mut buffer, mut bytes) = (vec![0; 50_000], 0);
    while let Ok(length) = uninterrupted(|| stream.read(&mut buffer)) {
        if length == 0 {
            let peer = stream.peer_addr().unwrap().ip();
            let _ = stream.write_all(format!("{peer} {bytes}").as_bytes());
            return;
        }
        bytes += length;
    }
}

/// Sends `bytes` bytes to a host that counts them, ends that direction, and returns the answer.
#[track_caller]
pub(crate) fn upload(namespace: &Arc<Namespace>, to: SocketAddr, bytes: usize) -> String {
    let mut stream = connect(namespace, to).unwrap();
    stream.write_all(&vec![7; bytes]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A connection whose reading does not block for ever.
pub(crate) fn connect(namespace: &Arc<Namespace>, to: SocketAddr) -> io::Result<TcpStream> {
    let stream = namespace.inside(|| TcpStream::connect(to)).unwrap()?;
    stream.set_read_timeout(Some(crate::STEP))?;
    Ok(stream)
}

/// Where a service of the host is.
pub(crate) fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), port)
}

fn send_sequence(socket: &UdpSocket, peer: SocketAddr) {
    for number in 0..SEQUENCE + ENDS {
        let mut datagram = number.min(SEQUENCE).to_be_bytes().to_vec();
        datagram.resize(1200, 0);
        let _ = socket.send_to(&datagram, peer);
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn send(mut stream: TcpStream) {
    let mut buffer = vec![0; 50_000];
    for position in (0..LENGTH).step_by(buffer.len()) {
        fill(&mut buffer, position);
        if stream.write_all(&buffer).is_err() {
            return;
        }
    }
}

/// Waits until the host answers an echo request to each of its addresses.
#[track_caller]
pub(crate) fn ping(namespace: &Arc<Namespace>) {
    for address in HOST.map(|address| address.parse::<IpAddr>().unwrap()) {
        let (domain, protocol, kinds) = match address {
            IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4, [8, 0]),
            IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6, [128, 129]),
        };
        let open = || Socket::new(domain, Type::DGRAM, Some(protocol));
        let socket = namespace.inside(open).unwrap().unwrap();
        socket.set_read_timeout(Some(10 * PAUSE)).unwrap();
        until(&format!("{address} answers"), || {
            let request = [kinds[0], 0, 0, 0, 0, 0, 0, 1, b'x'];
            let sent = socket.send_to(&request, &SocketAddr::new(address, 0).into());
            let mut answer = [MaybeUninit::uninit(); 100];
            // Sending fails while there is no route.
            sent.is_ok()
                && socket
                    .recv(&mut answer)
                    .is_ok_and(|length| length == request.len())
        });
    }
}

/// The source of a datagram as the host sees it.
#[track_caller]
pub(crate) fn source(namespace: &Arc<Namespace>, host: &str) -> String {
    let unspecified = if host.contains(':') {
        "[::]:0"
    } else {
        "0.0.0.0:0"
    };
    let socket = namespace
        .inside(|| UdpSocket::bind(unspecified))
        .unwrap()
        .unwrap();
    socket.set_read_timeout(Some(10 * PAUSE)).unwrap();
    let host = SocketAddr::new(host.parse().unwrap(), UDP_PORT);
    let mut source = String::new();
    until("a datagram is answered", || {
        let mut buffer = [0; 100];
        if socket.send_to(b"x", host).is_err() {
            return false;
        }
        match uninterrupted(|| socket.recv(&mut buffer)) {
            Ok(length) => {
                source = String::from_utf8_lossy(&buffer[..length]).into_owned();
                true
            }
            Err(error) => {
                assert!(matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut
                ));
                false
            }
        }
    });
    source
}

/// Sends a datagram from an address that the tunnel does not have.
pub(crate) fn send_forged(namespace: &Arc<Namespace>, source: &str) {
    let socket = namespace
        .inside(|| UdpSocket::bind((source, 0)))
        .unwrap()
        .unwrap();
    socket.send_to(b"x", (HOST[0], UDP_PORT)).unwrap();
}

/// How the datagrams of a sequence have arrived.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    /// Datagrams, each once.
    pub(crate) arrived: usize,
    /// Those that came after a later one.
    pub(crate) late: usize,
}

/// Has the host send a sequence of datagrams.
#[track_caller]
pub(crate) fn sequence(namespace: &Arc<Namespace>, host: &str) -> Sequence {
    let bind = || UdpSocket::bind("0.0.0.0:0");
    let socket = namespace.inside(bind).unwrap().unwrap();
    socket.set_read_timeout(Some(crate::STEP)).unwrap();
    let host = SocketAddr::new(host.parse().unwrap(), SEQUENCE_PORT);
    socket.send_to(b"x", host).unwrap();
    let mut numbers = Vec::new();
    let mut buffer = [0; 2000];
    loop {
        let length = uninterrupted(|| socket.recv(&mut buffer)).unwrap();
        let number = u32::from_be_bytes(*buffer[..length].first_chunk().unwrap());
        if number == SEQUENCE {
            break;
        }
        numbers.push(number);
    }
    let mut sequence = Sequence::default();
    let (mut seen, mut largest) = (BTreeSet::new(), 0);
    for number in numbers {
        if seen.insert(number) {
            sequence.arrived += 1;
            sequence.late += usize::from(number < largest);
            largest = largest.max(number);
        }
    }
    sequence
}

/// Receives from the host on connections at once, until the first of them has [`AT_ONCE_BYTES`] since all had begun; returns what
/// each has received since then.
#[track_caller]
pub(crate) fn receive_at_once(namespace: &Arc<Namespace>, host: &str) -> [usize; AT_ONCE] {
    let (begin, is_over) = (Barrier::new(AT_ONCE), AtomicBool::new(false));
    let receive = || {
        let mut stream = connect(namespace, at(host, ENDLESS_PORT)).unwrap();
        let mut buffer = vec![0; 50_000];
        stream.read_exact(&mut buffer[..1]).unwrap();
        begin.wait();
        // Without the bytes that came before the last had begun.
        drain(&mut stream, &mut buffer);
        begin.wait();
        let mut received = 0;
        while received < AT_ONCE_BYTES && !is_over.load(Relaxed) {
            received += uninterrupted(|| stream.read(&mut buffer)).unwrap();
        }
        is_over.store(true, Relaxed);
        received + drain(&mut stream, &mut buffer)
    };
    std::thread::scope(|scope| {
        let receiving = [(); AT_ONCE].map(|()| scope.spawn(receive));
        receiving.map(|thread| thread.join().unwrap())
    })
}

/// Reads the bytes that have arrived; returns how many.
fn drain(stream: &mut TcpStream, buffer: &mut [u8]) -> usize {
    stream.set_nonblocking(true).unwrap();
    let mut drained = 0;
    while let Ok(length) = uninterrupted(|| stream.read(buffer))
        && length > 0
    {
        drained += length;
    }
    stream.set_nonblocking(false).unwrap();
    drained
}

/// Receives all bytes from the host, and checks them; calls `half` when half of them have arrived.
pub(crate) fn transfer(namespace: &Arc<Namespace>, host: &str, half: impl FnOnce()) {
    let host = SocketAddr::new(host.parse().unwrap(), TCP_PORT);
    let connect = || TcpStream::connect(host);
    let mut stream = namespace.inside(connect).unwrap().unwrap();
    stream.set_read_timeout(Some(crate::STEP)).unwrap();
    // Little of it is in the kernel by the half.
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 64 << 10).unwrap();
    let (mut received, mut hash, mut half) = (0, Sha256::new(), Some(half));
    let mut buffer = vec![0; 50_000];
    loop {
        let length = uninterrupted(|| stream.read(&mut buffer)).unwrap();
        if length == 0 {
            break;
        }
        received += length;
        hash.update(&buffer[..length]);
        if received > LENGTH / 2
            && let Some(half) = half.take()
        {
            half();
        }
    }
    let mut whole = vec![0; LENGTH];
    fill(&mut whole, 0);
    assert_eq!(received, LENGTH);
    assert_eq!(hash.finish(), Sha256::of(&whole));
}
