//! Interfaces whose MTU is small, or becomes so: the socket refuses what exceeds it.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use marline::proto::Transmit;
use marline::runtime::{RecvMeta, UdpSocket};
use marline::{Connection, Runtime, TransportConfig};
use marline_sim::identity::Identity;

use crate::setup::{Network, WIFI, client_config, run, server_config};

/// EMSGSIZE of Linux.
const TOO_LARGE: i32 = 90;

/// A socket on an interface with this limit of datagrams, in bytes of UDP payload.
#[derive(Debug)]
struct Narrow {
    socket: Arc<dyn UdpSocket>,
    limit: AtomicUsize,
    refused: AtomicUsize,
}

impl UdpSocket for Narrow {
    fn try_send(&self, transmit: &Transmit, payload: &[u8]) -> io::Result<()> {
        let size = transmit.segment_size.unwrap_or(payload.len());
        if size > self.limit.load(Ordering::Relaxed) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(io::Error::from_raw_os_error(TOO_LARGE));
        }
        self.socket.try_send(transmit, payload)
    }

    fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_send_ready(cx)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_recv(cx, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// The time that an upload takes.
async fn upload(network: &Network, ours: &Connection, theirs: &Connection) -> Duration {
    let begun = network.client.now();
    let sending = async {
        let mut send = ours.open_uni().await.unwrap();
        send.write_all(&[7; 200_000]).await.unwrap();
        send.finish().unwrap();
    };
    let receiving = async {
        let mut recv = theirs.accept_uni().await.unwrap();
        assert_eq!(recv.read_to_end(usize::MAX).await.unwrap().len(), 200_000);
    };
    tokio::join!(sending, receiving);
    network.client.now() - begun
}

fn mtu(connection: &Connection) -> usize {
    connection.stats().paths[0].mtu.into()
}

#[test]
fn what_the_interface_refuses_is_replaced_by_smaller_datagrams_at_once() {
    run(async |network| {
        let client = network.client_endpoint();
        client.set_default_client_config(client_config(TransportConfig::default()));
        let server = network.server_endpoint(server_config(TransportConfig::default()));
        let connecting = client.connect(server.local_addr(), Identity::NAME).unwrap();
        let accepting = async { server.accept().await.unwrap().await.unwrap() };
        let (ours, theirs) = tokio::join!(connecting, accepting);
        let (ours, theirs) = (ours.unwrap(), theirs);
        ours.confirmed().await.unwrap();
        let narrow = Arc::new(Narrow {
            socket: network.client.bind((WIFI, 5000).into()).unwrap(),
            limit: AtomicUsize::new(usize::MAX),
            refused: AtomicUsize::new(0),
        });
        client.rebind_to(narrow.clone()).unwrap();
        upload(network, &ours, &theirs).await;
        let unlimited = upload(network, &ours, &theirs).await;
        assert!(mtu(&ours) > 1400);

        for limit in [1390, 1240] {
            narrow.limit.store(limit, Ordering::Relaxed);
            narrow.refused.store(0, Ordering::Relaxed);
            let took = upload(network, &ours, &theirs).await;
            assert!(took < 3 * unlimited, "{took:?}, {unlimited:?} before");
            let refused = narrow.refused.load(Ordering::Relaxed);
            assert!(refused < 30, "{refused} sends refused");
            upload(network, &ours, &theirs).await;
            assert!((limit - 20..=limit).contains(&mtu(&ours)), "{}", mtu(&ours));
        }
    });
}
