//! A client that moves to a socket from which a server cannot be reached at first.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use marline::proto::Transmit;
use marline::runtime::{RecvMeta, UdpSocket};
use marline::{Connection, Endpoint, Runtime, TransportConfig};
use marline_sim::identity::Identity;

use crate::setup::{Network, WIFI, client_config, run, server_config};

/// A socket whose datagrams to one address are lost while it is blocked.
#[derive(Debug)]
struct Blocked {
    socket: Arc<dyn UdpSocket>,
    to: SocketAddr,
    is_blocked: AtomicBool,
}

impl UdpSocket for Blocked {
    fn try_send(&self, transmit: &Transmit, payload: &[u8]) -> io::Result<()> {
        if transmit.tuple.remote == self.to && self.is_blocked.load(Ordering::Relaxed) {
            return Ok(());
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

/// Sends a message to the server and back.
async fn echo(ours: &Connection, theirs: &Connection) {
    let answering = async {
        let (mut send, mut recv) = theirs.accept_bi().await.unwrap();
        let message = recv.read_to_end(usize::MAX).await.unwrap();
        send.write_all(&message).await.unwrap();
        send.finish().unwrap();
    };
    let asking = async {
        let (mut send, mut recv) = ours.open_bi().await.unwrap();
        send.write_all(b"here").await.unwrap();
        send.finish().unwrap();
        let answer = recv.read_to_end(usize::MAX).await.unwrap();
        assert_eq!(answer[..], *b"here");
    };
    tokio::join!(answering, asking);
}

async fn connect(network: &Network, client: &Endpoint, port: u16) -> (Endpoint, [Connection; 2]) {
    let at = network.server.at(port);
    let config = server_config(TransportConfig::default());
    let server = network.server.endpoint(at, Some(config)).unwrap();
    let connecting = client.connect(at, Identity::NAME).unwrap();
    let accepting = async { server.accept().await.unwrap().await.unwrap() };
    let (ours, theirs) = tokio::join!(connecting, accepting);
    (server, [ours.unwrap(), theirs])
}

/// The former socket is closed once the new one has received, though only for the other connection.
#[test]
fn a_connection_that_cannot_be_reached_from_the_next_socket_at_first_goes_on_from_there_later() {
    run(async |network| {
        let client = network.client_endpoint();
        client.set_default_client_config(client_config(TransportConfig::default()));
        let (_far, [ours, theirs]) = connect(network, &client, 4433).await;
        let (_near, [others_ours, others_theirs]) = connect(network, &client, 4434).await;
        ours.confirmed().await.unwrap();
        others_ours.confirmed().await.unwrap();

        let next = Arc::new(Blocked {
            socket: network.client.bind((WIFI, 5000).into()).unwrap(),
            to: network.server.at(4433),
            is_blocked: AtomicBool::new(true),
        });
        client.rebind_to(next.clone()).unwrap();
        echo(&others_ours, &others_theirs).await;
        network.client.sleep(Duration::from_secs(10)).await;
        next.is_blocked.store(false, Ordering::Relaxed);
        echo(&ours, &theirs).await;
        assert_eq!(theirs.remote_address(), client.local_addr());
    });
}
