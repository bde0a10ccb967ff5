//! Relays ports of a host to the same ports of this machine.
//!
//! Bytes and datagrams are forwarded, ECN marks are not: the emulated path ends at the relay.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marline_sim::fabric::Node;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Emulation;

/// Limit on the connections of one port, and likewise on its senders of datagrams.
const CLIENTS: usize = 1_024;
/// The time for which the socket of a sender of datagrams is kept after the last response to it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// The largest datagram.
const DATAGRAM: usize = 65_535;

/// Relays ports of a host to those of this machine, until it is dropped.
#[derive(Debug)]
pub struct Relay {
    _tasks: JoinSet<()>,
}

impl Relay {
    /// Forwards TCP connections and UDP datagrams for `port` of `host` to the same port of 127.0.0.1 outside.
    /// Call it within a tokio runtime.
    ///
    /// # Errors
    /// The port is in use inside the host.
    pub fn start(emulation: &Emulation, host: Node, port: u16) -> io::Result<Self> {
        let here = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let there = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (tcp, udp) = emulation.inside(host, || -> io::Result<_> {
            let tcp = std::net::TcpListener::bind(here)?;
            let udp = std::net::UdpSocket::bind(here)?;
            tcp.set_nonblocking(true)?;
            udp.set_nonblocking(true)?;
            Ok((tcp, udp))
        })??;
        let (tcp, udp) = (TcpListener::from_std(tcp)?, UdpSocket::from_std(udp)?);
        let mut tasks = JoinSet::new();
        tasks.spawn(relay_connections(tcp, there));
        tasks.spawn(relay_datagrams(Arc::new(udp), there));
        Ok(Self { _tasks: tasks })
    }
}

async fn relay_connections(listener: TcpListener, there: SocketAddr) {
    let free = Arc::new(Semaphore::new(CLIENTS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&free).acquire_owned().await else {
            return;
        };
        // Tasks of closed connections are removed.
        while connections.try_join_next().is_some() {}
        let Ok((mut near, _)) = listener.accept().await else {
            continue;
        };
        connections.spawn(async move {
            let _permit = permit;
            // If nothing listens on this machine, the client's connection is closed.
            if let Ok(mut far) = TcpStream::connect(there).await {
                let _ = near.set_nodelay(true).and(far.set_nodelay(true));
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            }
        });
    }
}

/// The socket that each sender has towards this machine.
type Senders = Arc<Mutex<HashMap<SocketAddr, Arc<UdpSocket>>>>;

async fn relay_datagrams(near: Arc<UdpSocket>, there: SocketAddr) {
    let senders = Senders::default();
    let mut answers = JoinSet::new();
    let mut buffer = vec![0; DATAGRAM];
    loop {
        while answers.try_join_next().is_some() {}
        let Ok((len, sender)) = near.recv_from(&mut buffer).await else {
            continue;
        };
        let known = lock(&senders).get(&sender).map(Arc::clone);
        let far = match known {
            Some(far) => far,
            None if answers.len() >= CLIENTS => continue,
            None => {
                let Ok(far) = connected(there).await else {
                    continue;
                };
                let far = Arc::new(far);
                lock(&senders).insert(sender, Arc::clone(&far));
                let (near, far_end) = (Arc::clone(&near), Arc::clone(&far));
                let senders = Arc::clone(&senders);
                answers.spawn(async move {
                    relay_responses(&near, &far_end, sender).await;
                    lock(&senders).remove(&sender);
                });
                far
            }
        };
        // A datagram that cannot be sent is lost, as on any path.
        let _ = far.send(&buffer[..len]).await;
    }
}

fn lock(senders: &Senders) -> std::sync::MutexGuard<'_, HashMap<SocketAddr, Arc<UdpSocket>>> {
    senders.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn connected(there: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    socket.connect(there).await?;
    Ok(socket)
}

/// Forwards responses to `sender` until there has been none for [`IDLE_TIMEOUT`].
async fn relay_responses(near: &UdpSocket, far: &UdpSocket, sender: SocketAddr) {
    let mut buffer = vec![0; DATAGRAM];
    // An error means that nothing listens on this machine at the moment. The sender is not notified, and may
    // retry.
    while let Ok(received) = timeout(IDLE_TIMEOUT, far.recv(&mut buffer)).await {
        if let Ok(len) = received {
            let _ = near.send_to(&buffer[..len], sender).await;
        }
    }
}
