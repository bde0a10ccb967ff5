//! A client that moves.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use marline::proto::Transmit;
use marline::runtime::{RecvMeta, UdpSocket};
use marline::{Runtime as _, TokioRuntime};

use crate::setup::{LOOPBACK, connect, echo, endpoints, pattern, within_limit};

/// A socket that notes the destination connection IDs that it sends, and calls back before its next datagram.
pub(crate) struct Watched {
    socket: Arc<dyn UdpSocket>,
    ids: Mutex<BTreeSet<Vec<u8>>>,
    before_next: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Watched {
    pub(crate) fn bind(address: SocketAddr) -> Arc<Self> {
        let socket = std::net::UdpSocket::bind(address).unwrap();
        Arc::new(Self {
            socket: TokioRuntime::current().unwrap().wrap(socket).unwrap(),
            ids: Mutex::default(),
            before_next: Mutex::default(),
        })
    }

    pub(crate) fn ids(&self) -> BTreeSet<Vec<u8>> {
        self.ids.lock().unwrap().clone()
    }
}

impl UdpSocket for Watched {
    fn try_send(&self, transmit: &Transmit, payload: &[u8]) -> io::Result<()> {
        if let Some(call) = self.before_next.lock().unwrap().take() {
            call();
        }
        // A short header, and the eight bytes of this server's connection IDs.
        self.ids.lock().unwrap().insert(payload[1..9].to_vec());
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

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

#[tokio::test]
async fn a_client_keeps_its_connection_across_sockets() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    tokio::spawn(echo(theirs.clone()));
    let old = client.local_addr();
    for round in 0..3 {
        let (mut send, mut recv) = within_limit(ours.open_bi()).await.unwrap();
        let data = pattern(100_000 + round);
        let writing = async {
            send.write_all(&data[..50_000]).await.unwrap();
            client
                .rebind(std::net::UdpSocket::bind(LOOPBACK).unwrap())
                .unwrap();
            send.write_all(&data[50_000..]).await.unwrap();
            send.finish().unwrap();
        };
        let (answer, ()) =
            within_limit(async { tokio::join!(recv.read_to_end(usize::MAX), writing) }).await;
        assert_eq!(answer.unwrap(), data);
    }
    assert_ne!(client.local_addr(), old);
    assert_eq!(theirs.remote_address(), client.local_addr());
}

/// The endpoint's task may be sending when the socket changes.
#[tokio::test]
async fn no_connection_id_is_sent_from_two_addresses() {
    let (client, server) = endpoints();
    let (ours, theirs) = within_limit(connect(&client, &server)).await;
    tokio::spawn(echo(theirs));
    within_limit(ours.confirmed()).await.unwrap();
    let [old, new] = [Watched::bind(LOOPBACK), Watched::bind(LOOPBACK)];
    client.rebind_to(old.clone()).unwrap();
    let data = pattern(200_000);
    for round in 0..2 {
        if round == 1 {
            let (client, new) = (client.clone(), new.clone());
            let moves = move || client.rebind_to(new).unwrap();
            *old.before_next.lock().unwrap() = Some(Box::new(moves));
        }
        let (mut send, mut recv) = within_limit(ours.open_bi()).await.unwrap();
        let writing = async {
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
        };
        let (answer, ()) =
            within_limit(async { tokio::join!(recv.read_to_end(usize::MAX), writing) }).await;
        assert_eq!(answer.unwrap(), data);
    }
    assert!(!old.ids().is_empty() && !new.ids().is_empty());
    assert!(old.ids().is_disjoint(&new.ids()));
}
