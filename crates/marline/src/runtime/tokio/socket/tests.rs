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

/// Datagrams that the system coalesces on the way keep their marks: without, ECN is given up.
#[tokio::test]
async fn marks_survive_batches() {
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
