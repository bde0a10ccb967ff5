//! Either process of an upgrade ends at any of its steps, and the other one serves.

use std::fs;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use tempfile::TempDir;

use crate::upgrade::line_with;
use crate::{Server, marline, run, site, text};

fn is_served(address: &str) {
    for version in ["3", "2", "1.1"] {
        let url = format!("https://{address}/a.txt");
        let output = run(&["get", &url, "--insecure", "--http", version]);
        assert_eq!(output.stdout, b"first", "HTTP/{version}: {output:?}");
    }
}

/// The message that an endpoint at `address` is ready.
fn ready(address: SocketAddr) -> Vec<u8> {
    let SocketAddr::V4(address) = address else {
        panic!("{address}")
    };
    let ip: Ipv6Addr = address.ip().to_ipv6_mapped();
    let mut message = vec![b'r', 4];
    message.extend(ip.octets());
    message.extend(address.port().to_be_bytes());
    message.extend([0; 4]);
    message
}

/// A new process that sends and receives the messages of an upgrade as `steps` say, and ends.
fn program(place: &Path, name: &str, steps: &str) {
    let path = place.join(name);
    let text = format!(
        "#!/bin/sh\nreceive() {{ dd bs=65536 count=1 <&0 >/dev/null 2>&1; }}\ncd {}\nreceive; receive\n{steps}\n",
        text(place)
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_new_process_that_ends_leaves_the_old_one_serving() {
    let root = site();
    let place = TempDir::new().unwrap();
    let at = |name: &str| place.path().join(name);
    let (marline_there, pid) = (at("marline"), at("pid"));
    symlink(env!("CARGO_BIN_EXE_marline"), &marline_there).unwrap();
    let state = at("state");
    let known = marline(&["serve", text(root.path()), "--listen", "127.0.0.1:0"]);
    let mut command = Command::new(&marline_there);
    command
        .args(known.get_args())
        .args(["--pid-file", text(&pid)]);
    command
        .args(["--state", text(&state)])
        .env_remove("STATE_DIRECTORY");
    let mut server = Server::spawn(&mut command);
    let address = server.address.clone();
    fs::write(at("ready"), ready(address.parse().unwrap())).unwrap();
    let of_server = fs::read_to_string(&pid).unwrap();
    for (name, steps) in [
        ("at-once", ""),
        ("ready", "cat ready >&0"),
        ("go", "cat ready >&0; receive"),
        ("killed", "cat ready >&0; receive; kill -KILL $$"),
        (
            "serving",
            "cat ready >&0; receive; printf v >&0; echo $$ >pid",
        ),
        ("gone-pid", "cat ready >&0; receive; printf v >&0; rm pid"),
    ] {
        program(place.path(), &format!("{name}.sh"), steps);
        fs::remove_file(&marline_there).unwrap();
        symlink(at(&format!("{name}.sh")), &marline_there).unwrap();
        server.signal("-USR2");
        let line = line_with(&mut server, "this process goes on");
        assert!(line.contains("has ended"), "{name}: {line}");
        is_served(&address);
        assert_eq!(fs::read_to_string(&pid).unwrap(), of_server, "{name}");
    }
    let (status, _) = server.terminate();
    assert_eq!(status, 0);
    assert!(!pid.exists());
}

/// The old process until it ends.
type Steps = fn(&Old);

/// The old process: it has the other end of the channel, and `sockets`.
struct Old {
    channel: OwnedFd,
    address: SocketAddr,
}

impl Old {
    /// One that has passed on its sockets. Returns the end of the new process as well.
    fn start() -> (Self, OwnedFd) {
        let (tcp, udp) = loop {
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()) {
                break (tcp, udp);
            }
        };
        let flags = SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (channel, other) = pair.unwrap();
        let old = Self {
            channel,
            address: tcp.local_addr().unwrap(),
        };
        let secret = STANDARD.encode([7; 32]);
        let hello = format!("h{{\"format\":2,\"sockets\":2,\"secret\":\"{secret}\"}}");
        old.send(hello.as_bytes(), &[]);
        old.send(b"s", &[tcp.as_fd(), udp.as_fd()]);
        (old, other)
    }

    fn send(&self, message: &[u8], descriptors: &[std::os::fd::BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        }
        let parts = [IoSlice::new(message)];
        sendmsg(&self.channel, &parts, &mut control, SendFlags::NOSIGNAL).unwrap();
    }

    /// The first byte of the next message.
    fn receive(&self) -> u8 {
        let mut message = [0; 200];
        let mut control = RecvAncillaryBuffer::default();
        let parts = &mut [IoSliceMut::new(&mut message)];
        let received = recvmsg(&self.channel, parts, &mut control, RecvFlags::empty()).unwrap();
        assert!(received.bytes > 0, "it has ended");
        message[0]
    }
}

#[test]
fn an_old_process_that_ends_leaves_the_new_one_serving() {
    let root = site();
    let steps: [(&str, Steps); 5] = [
        ("before it is ready", |_| {}),
        ("ready", |old| assert_eq!(old.receive(), b'r')),
        ("go", |old| {
            assert_eq!(old.receive(), b'r');
            old.send(b"g", &[]);
        }),
        ("serving", |old| {
            assert_eq!(old.receive(), b'r');
            old.send(b"g", &[]);
            assert_eq!(old.receive(), b'v');
        }),
        ("running", |old| {
            assert_eq!(old.receive(), b'r');
            old.send(b"g", &[]);
            assert_eq!(old.receive(), b'v');
            assert_eq!(old.receive(), b'u');
        }),
    ];
    for (name, until_the_end) in steps {
        let (old, other) = Old::start();
        let address = old.address.to_string();
        let mut command = marline(&["serve", text(root.path()), "--listen", &address]);
        command.env("MARLINE_UPGRADE", std::process::id().to_string());
        command.stdin(Stdio::from(other)).stdout(Stdio::null());
        let ending = std::thread::spawn(move || {
            until_the_end(&old);
        });
        let server = Server::spawn(&mut command);
        // It holds the end of the new process.
        drop(command);
        ending.join().unwrap();
        assert_eq!(server.address, address, "{name}");
        is_served(&address);
        let (status, _) = server.terminate();
        assert_eq!(status, 0, "{name}");
    }
}
