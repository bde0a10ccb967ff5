use std::future::poll_fn;
use std::net::{Ipv4Addr, Ipv6Addr};

use marline_proto::FourTuple;

use super::*;

fn socket(ip: impl Into<std::net::IpAddr>) -> (TokioSocket, SocketAddr) {
    let socket = std::net::UdpSocket::bind((ip.into(), 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    let address = socket.local_addr().unwrap();
    (TokioSocket::new(socket).unwrap(), address)
}

/// Datagrams that the system coalesces keep their ECN codepoints; otherwise ECN validation would fail.
#[tokio::test]
async fn ecn_marks_survive_segmentation_and_coalescing() {
    for ip in [
        std::net::IpAddr::from(Ipv4Addr::LOCALHOST),
        Ipv6Addr::LOCALHOST.into(),
    ] {
        let ((sender, local), (receiver, remote)) = (socket(ip), socket(ip));
        if sender.max_gso_segments() < 3 {
            return;
        }
        let transmit = Transmit {
            tuple: FourTuple { local, remote },
            size: 3_000,
            segment_size: Some(1_000),
            ecn: Some(EcnCodepoint::Ect0),
        };
        poll_fn(|cx| sender.poll_send_ready(cx)).await.unwrap();
        sender.try_send(&transmit, &[0; 3_000]).unwrap();

        let mut received = 0;
        while received < 3_000 {
            let mut bytes = [0; 1 << 16];
            let mut meta = [RecvMeta::default()];
            poll_fn(|cx| receiver.poll_recv(cx, &mut [IoSliceMut::new(&mut bytes)], &mut meta))
                .await
                .unwrap();
            assert_eq!(meta[0].ecn, Some(EcnCodepoint::Ect0), "{ip}");
            received += meta[0].len;
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_address_bound_to_an_interface_uses_its_own_socket() {
    use crate::{Runtime, TokioRuntime};

    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    let list = TokioRuntime::current().unwrap().interfaces().unwrap();
    let loopback = list.into_iter().find(|one| one.address == here).unwrap();
    let ((sender, main), (receiver, remote)) = (socket(Ipv4Addr::UNSPECIFIED), socket(here));
    for _ in 0..2 {
        sender.bind_interface(&loopback).unwrap();
    }
    let six = InterfaceAddress {
        address: Ipv6Addr::LOCALHOST.into(),
        ..loopback.clone()
    };
    let refused = sender.bind_interface(&six).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
    let gone = InterfaceAddress {
        name: "no-such-thing".to_owned(),
        index: None,
        ..loopback
    };
    sender.bind_interface(&gone).unwrap_err();

    let second = IpAddr::from(Ipv4Addr::new(127, 0, 0, 2));
    for (local, has_own_socket) in [(here, true), (second, false)] {
        let transmit = |from: IpAddr, to| Transmit {
            tuple: FourTuple {
                local: SocketAddr::new(from, main.port()),
                remote: to,
            },
            size: 100,
            segment_size: None,
            ecn: None,
        };
        let mut bytes = [0; 200];
        let mut meta = [RecvMeta::default()];
        poll_fn(|cx| sender.poll_send_ready(cx)).await.unwrap();
        sender
            .try_send(&transmit(local, remote), &[1; 100])
            .unwrap();
        poll_fn(|cx| receiver.poll_recv(cx, &mut [IoSliceMut::new(&mut bytes)], &mut meta))
            .await
            .unwrap();
        let from = meta[0].remote;
        assert_eq!(from.ip(), local);
        assert_eq!(from.port() != main.port(), has_own_socket);

        poll_fn(|cx| receiver.poll_send_ready(cx)).await.unwrap();
        receiver.try_send(&transmit(here, from), &[2; 100]).unwrap();
        poll_fn(|cx| sender.poll_recv(cx, &mut [IoSliceMut::new(&mut bytes)], &mut meta))
            .await
            .unwrap();
        assert_eq!((meta[0].local_ip, meta[0].len), (Some(local), 100));
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn messages_that_nobody_waits_for_end_with_the_first() {
    use nix::sys::socket::{getsockopt, sockopt::Ipv4RecvErr};

    let (sender, local) = socket(Ipv4Addr::LOCALHOST);
    // Its port is closed to the sender: it receives from another address only.
    let ((closed, remote), (_other, other)) =
        (socket(Ipv4Addr::LOCALHOST), socket(Ipv4Addr::LOCALHOST));
    closed.main.io.connect(other).await.unwrap();
    let transmit = Transmit {
        tuple: FourTuple { local, remote },
        size: 10,
        segment_size: None,
        ecn: None,
    };
    let is_enabled = || getsockopt(&sender.main.io, Ipv4RecvErr).unwrap();
    poll_fn(|cx| sender.poll_send_ready(cx)).await.unwrap();
    for _ in 0..3 {
        sender.report_unreachable(true);
        sender.try_send(&transmit, &[0; 10]).unwrap();
        let report = poll_fn(|cx| sender.poll_unreachable(cx)).await;
        assert_eq!(report.remote, remote);
        sender.report_unreachable(false);
        assert!(is_enabled(), "the next handshake needs no system call");

        sender.try_send(&transmit, &[0; 10]).unwrap();
        sender.try_send(&transmit, &[0; 10]).unwrap();
        assert!(!is_enabled());
    }
}

/// After an ICMP message the reactor takes a socket that is full for one that can be written.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_socket_is_waited_for_although_there_were_messages() {
    use nix::libc::MSG_MORE;
    use socket2::SockRef;

    let (sender, local) = socket(Ipv4Addr::LOCALHOST);
    let (_receiver, remote) = socket(Ipv4Addr::LOCALHOST);
    // Its port is closed to the sender: it receives from another address only.
    let (closed, nowhere) = socket(Ipv4Addr::LOCALHOST);
    closed.main.io.connect(remote).await.unwrap();
    let transmit = Transmit {
        tuple: FourTuple {
            local,
            remote: nowhere,
        },
        size: 10,
        segment_size: None,
        ecn: None,
    };
    sender.report_unreachable(true);
    poll_fn(|cx| sender.poll_send_ready(cx)).await.unwrap();
    sender.try_send(&transmit, &[0; 10]).unwrap();
    let report = poll_fn(|cx| sender.poll_unreachable(cx)).await;
    assert_eq!(report.what, marline_proto::Unreachable::Port);
    poll_fn(|cx| sender.poll_send_ready(cx)).await.unwrap();

    // A datagram that is not complete takes space, which loopback frees at once otherwise.
    let io = SockRef::from(&sender.main.io);
    io.set_send_buffer_size(8192).unwrap();
    for _ in 0..20 {
        io.send_to_with_flags(&[0; 1000], &remote.into(), MSG_MORE)
            .unwrap();
    }
    for _ in 0..2 {
        let waited = poll_fn(|cx| Poll::Ready(sender.poll_send_ready(cx))).await;
        assert!(waited.is_pending(), "{waited:?}");
    }
    let waiting = poll_fn(|cx| sender.poll_send_ready(cx));
    let completing = async {
        tokio::task::yield_now().await;
        io.send_to(&[], &remote.into()).unwrap();
    };
    let (ready, ()) = tokio::join!(waiting, completing);
    ready.unwrap();
    poll_fn(|cx| sender.poll_send_ready(cx)).await.unwrap();
}
