//! A load balancer of UDP that reads the server from connection IDs (draft-ietf-quic-load-balancers-21, section 4).

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use marline::QuicLbFormat;
use tokio::net::UdpSocket;

use crate::machines::{IDS, METRICS_PORT, PORT};
use crate::network::{Network, balancer_address, block_on, machine_address};

/// The interval between two looks at a server.
const INTERVAL: Duration = Duration::from_millis(50);

/// A server that serves, one that stops, and one that is gone.
const SERVES: u8 = 0;
const STOPS: u8 = 1;
const GONE: u8 = 2;

/// A balancer that runs until it is dropped.
pub(crate) struct Balancer {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    formats: Vec<QuicLbFormat>,
    health: [AtomicU8; IDS.len()],
    /// The configurations of the IDs in packets with a short header.
    seen: Mutex<BTreeSet<u8>>,
    has_ended: AtomicBool,
}

impl Balancer {
    pub(crate) fn start(network: &Network, formats: Vec<QuicLbFormat>) -> Self {
        let shared = Arc::new(Shared {
            formats,
            health: Default::default(),
            seen: Mutex::default(),
            has_ended: AtomicBool::new(false),
        });
        let (forwarding, checking) = (Arc::clone(&shared), Arc::clone(&shared));
        let threads = vec![
            network.at_balancer(move || block_on(forwarding.forward())),
            network.at_balancer(move || checking.check()),
        ];
        Self { shared, threads }
    }

    /// The configurations of the IDs in packets with a short header since [`forget_seen`](Self::forget_seen).
    pub(crate) fn seen(&self) -> Vec<u8> {
        self.shared.seen.lock().unwrap().iter().copied().collect()
    }

    pub(crate) fn forget_seen(&self) {
        self.shared.seen.lock().unwrap().clear();
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Looks at the servers until the end.
    fn check(&self) {
        while !self.has_ended.load(Ordering::Relaxed) {
            for (health, id) in self.health.iter().zip(IDS) {
                health.store(look_at(id), Ordering::Relaxed);
            }
            std::thread::sleep(INTERVAL);
        }
    }

    /// Forwards datagrams until the end.
    async fn forward(&self) {
        let socket = UdpSocket::bind((balancer_address(), PORT)).await.unwrap();
        let socket = Arc::new(socket);
        let mut flows: HashMap<(SocketAddr, u8), Arc<UdpSocket>> = HashMap::new();
        let mut datagram = vec![0; 65_536];
        while !self.has_ended.load(Ordering::Relaxed) {
            let received = tokio::time::timeout(INTERVAL, socket.recv_from(&mut datagram)).await;
            let Ok(Ok((len, client))) = received else {
                continue;
            };
            let Some(server) = self.server_of(client, &datagram[..len]) else {
                continue;
            };
            let flow = match flows.get(&(client, server)) {
                Some(flow) => flow,
                None => {
                    let flow = flow(Arc::clone(&socket), client, server).await;
                    flows.entry((client, server)).or_insert(flow)
                }
            };
            // A server that is gone is noticed soon.
            let _ = flow.send(&datagram[..len]).await;
        }
    }

    /// The server for a datagram of `client`: that of its connection ID if it lives, or one by the hash of the address.
    fn server_of(&self, client: SocketAddr, datagram: &[u8]) -> Option<u8> {
        let named = self.named(datagram);
        if let Some(server) = named.filter(|server| self.health_of(*server) != GONE) {
            return Some(server);
        }
        let serving = IDS.into_iter().filter(|id| self.health_of(*id) == SERVES);
        // Of two servers, the order is the same for all clients of one hash, whichever others there are.
        serving.max_by_key(|id| {
            let mut hash = DefaultHasher::new();
            (client, id).hash(&mut hash);
            hash.finish()
        })
    }

    /// The server whose ID is in the destination of a packet.
    fn named(&self, datagram: &[u8]) -> Option<u8> {
        let (first, rest) = datagram.split_first()?;
        let is_short = first & 0x80 == 0;
        // RFC 8999, section 5.1: the version, and the length of the destination.
        let id = match is_short {
            true => rest,
            false => rest.get(5..)?.get(..usize::from(rest[4]))?,
        };
        let read = |format: &QuicLbFormat| Some((format.config(), format.server_id(id)?));
        let (config, server) = self.formats.iter().find_map(read)?;
        match *server {
            [0, server] if IDS.contains(&server) => {
                if is_short {
                    self.seen.lock().unwrap().insert(config);
                }
                Some(server)
            }
            _ => None,
        }
    }

    fn health_of(&self, server: u8) -> u8 {
        let position = IDS.iter().position(|id| *id == server).unwrap();
        self.health[position].load(Ordering::Relaxed)
    }
}

/// A socket towards a server, for the datagrams of one client. What the server answers goes to the client.
async fn flow(to_clients: Arc<UdpSocket>, client: SocketAddr, server: u8) -> Arc<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
    socket
        .connect((machine_address(server), PORT))
        .await
        .unwrap();
    let socket = Arc::new(socket);
    let from_server = Arc::clone(&socket);
    tokio::spawn(async move {
        let mut datagram = vec![0; 65_536];
        loop {
            // An error says that an earlier datagram found no server.
            if let Ok(len) = from_server.recv(&mut datagram).await {
                let _ = to_clients.send_to(&datagram[..len], client).await;
            }
        }
    });
    socket
}

/// The status that the page of a server gives about its health.
fn look_at(id: u8) -> u8 {
    let address = SocketAddr::from((machine_address(id), METRICS_PORT));
    let ask = || {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    match ask() {
        Err(_) => GONE,
        Ok(answer) if answer.split(' ').nth(1) == Some("200") => SERVES,
        Ok(_) => STOPS,
    }
}
