//! A translator of addresses between clients and the balancer, which gives every client a new port and address all the time.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle as Task;

use crate::machines::PORT;
use crate::network::{Network, balancer_address, block_on, translated_address, translator_address};

/// The time that a client keeps its address.
const KEPT: Duration = Duration::from_millis(200);

/// A translator that runs until it is dropped.
pub(crate) struct Translator {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    moves: AtomicUsize,
    /// Clients whose handshakes are not confirmed.
    connecting: Arc<AtomicUsize>,
    has_ended: AtomicBool,
}

/// The present address of a client, and what receives there.
struct Mapping {
    socket: Arc<UdpSocket>,
    receiving: Task<()>,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // What arrives at a former address is lost.
        self.receiving.abort();
    }
}

impl Translator {
    /// A translator that changes addresses while no client is `connecting`.
    pub(crate) fn start(network: &Network, connecting: Arc<AtomicUsize>) -> Self {
        let shared = Arc::new(Shared {
            moves: AtomicUsize::new(0),
            connecting,
            has_ended: AtomicBool::new(false),
        });
        let translating = Arc::clone(&shared);
        let thread = network.at_clients(move || block_on(translating.translate()));
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// How often all clients have got new addresses.
    pub(crate) fn moves(&self) -> usize {
        self.shared.moves.load(Ordering::Relaxed)
    }
}

impl Drop for Translator {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    async fn translate(&self) {
        let socket = UdpSocket::bind((translator_address(), PORT)).await.unwrap();
        let socket = Arc::new(socket);
        let mut mappings: HashMap<SocketAddr, Mapping> = HashMap::new();
        let mut datagram = vec![0; 65_536];
        let mut moved = Instant::now();
        let mut turn = 0;
        while !self.has_ended.load(Ordering::Relaxed) {
            // QUIC relies on addresses that last for a handshake (RFC 9000, section 9).
            if moved.elapsed() >= KEPT && self.connecting.load(Ordering::Relaxed) == 0 {
                moved = Instant::now();
                mappings.clear();
                self.moves.fetch_add(1, Ordering::Relaxed);
            }
            let received = tokio::time::timeout(KEPT / 4, socket.recv_from(&mut datagram)).await;
            let Ok(Ok((len, client))) = received else {
                continue;
            };
            let mapping = match mappings.get(&client) {
                Some(mapping) => mapping,
                None => {
                    turn += 1;
                    let mapping = mapping(Arc::clone(&socket), client, turn).await;
                    mappings.entry(client).or_insert(mapping)
                }
            };
            let _ = mapping.socket.send(&datagram[..len]).await;
        }
    }
}

/// A new address for `client`, the next one in turn.
async fn mapping(to_clients: Arc<UdpSocket>, client: SocketAddr, turn: usize) -> Mapping {
    let socket = UdpSocket::bind((translated_address(turn), 0))
        .await
        .unwrap();
    socket.connect((balancer_address(), PORT)).await.unwrap();
    let socket = Arc::new(socket);
    let from_balancer = Arc::clone(&socket);
    let receiving = tokio::spawn(async move {
        let mut datagram = vec![0; 65_536];
        loop {
            // An error says that an earlier datagram found no balancer, which may not have begun.
            if let Ok(len) = from_balancer.recv(&mut datagram).await {
                let _ = to_clients.send_to(&datagram[..len], client).await;
            }
        }
    });
    Mapping { socket, receiving }
}
