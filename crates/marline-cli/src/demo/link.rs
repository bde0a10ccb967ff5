//! A bad link on this machine: a UDP relay that delays, queues and loses.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};

/// What the link is like, each way.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkConfig {
    /// Bytes a second.
    pub(super) rate: u64,
    /// One way, without waiting.
    pub(super) delay: Duration,
    /// Share of datagrams that is lost.
    pub(super) loss: f64,
    /// Bytes that may wait; more are lost.
    pub(super) queue: u64,
    pub(super) seed: u64,
}

#[derive(Debug, Default)]
struct Counts {
    carried: AtomicU64,
    lost: AtomicU64,
}

/// A running link; it stops with its runtime.
pub(super) struct Link {
    address: SocketAddr,
    counts: Arc<Counts>,
}

impl Link {
    /// Starts a link whose far end is `server`.
    pub(super) async fn start(config: LinkConfig, server: SocketAddr) -> io::Result<Self> {
        let front = Arc::new(UdpSocket::bind("127.0.0.1:0").await?);
        let address = front.local_addr()?;
        let counts = Arc::new(Counts::default());
        tokio::spawn(run(config, front, server, Arc::clone(&counts)));
        Ok(Self { address, counts })
    }

    /// Where clients send to.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Datagrams carried and lost, both ways.
    pub(super) fn counts(&self) -> (u64, u64) {
        (
            self.counts.carried.load(Relaxed),
            self.counts.lost.load(Relaxed),
        )
    }
}

/// One way of the link: a queue that empties at the rate, then a delay.
struct Way {
    config: LinkConfig,
    rng: Pcg64Mcg,
    free_at: Instant,
    on_the_way: VecDeque<(Instant, Vec<u8>)>,
    counts: Arc<Counts>,
}

impl Way {
    fn new(config: LinkConfig, stream: u64, counts: Arc<Counts>) -> Self {
        Self {
            rng: Pcg64Mcg::seed_from_u64(config.seed.wrapping_mul(2).wrapping_add(stream)),
            free_at: Instant::now(),
            on_the_way: VecDeque::new(),
            config,
            counts,
        }
    }

    fn push(&mut self, now: Instant, datagram: &[u8]) {
        let waiting = self.free_at.saturating_duration_since(now);
        let queued = waiting.as_nanos() as u64 * self.config.rate / 1_000_000_000;
        let lost = self.rng.random_bool(self.config.loss);
        if lost || queued + datagram.len() as u64 > self.config.queue {
            self.counts.lost.fetch_add(1, Relaxed);
            return;
        }
        let takes = datagram.len() as u64 * 1_000_000_000 / self.config.rate.max(1);
        self.free_at = self.free_at.max(now) + Duration::from_nanos(takes);
        self.on_the_way
            .push_back((self.free_at + self.config.delay, datagram.to_vec()));
        self.counts.carried.fetch_add(1, Relaxed);
    }

    fn pop(&mut self, now: Instant) -> Option<Vec<u8>> {
        let due = self.on_the_way.front().is_some_and(|(at, _)| *at <= now);
        due.then(|| self.on_the_way.pop_front())?
            .map(|(_, datagram)| datagram)
    }
}

/// Waits until the front of a way is due; forever if nothing is on it.
async fn due(way: &Way) {
    match way.on_the_way.front() {
        Some((at, _)) => sleep_until(*at).await,
        None => std::future::pending().await,
    }
}

/// Carries datagrams for every client address that shows up.
async fn run(config: LinkConfig, front: Arc<UdpSocket>, server: SocketAddr, counts: Arc<Counts>) {
    let mut clients: HashMap<SocketAddr, tokio::sync::mpsc::Sender<Vec<u8>>> = HashMap::new();
    let mut buffer = vec![0; 65_536];
    while let Ok((len, client)) = front.recv_from(&mut buffer).await {
        let sender = clients.entry(client).or_insert_with(|| {
            let (sender, receiver) = tokio::sync::mpsc::channel(4096);
            let (front, counts) = (Arc::clone(&front), Arc::clone(&counts));
            tokio::spawn(carry(config, front, client, server, receiver, counts));
            sender
        });
        // A full channel is a full socket buffer: the datagram is lost.
        let _ = sender.try_send(buffer[..len].to_vec());
    }
}

/// Carries the datagrams of one client, both ways.
async fn carry(
    config: LinkConfig,
    front: Arc<UdpSocket>,
    client: SocketAddr,
    server: SocketAddr,
    mut from_client: tokio::sync::mpsc::Receiver<Vec<u8>>,
    counts: Arc<Counts>,
) {
    let Ok(back) = UdpSocket::bind("127.0.0.1:0").await else {
        return;
    };
    let mut up = Way::new(config, 0, Arc::clone(&counts));
    let mut down = Way::new(config, 1, counts);
    let mut buffer = vec![0; 65_536];
    loop {
        tokio::select! {
            datagram = from_client.recv() => match datagram {
                Some(datagram) => up.push(Instant::now(), &datagram),
                None => return,
            },
            received = back.recv_from(&mut buffer) => if let Ok((len, _)) = received {
                down.push(Instant::now(), &buffer[..len]);
            },
            () = due(&up) => while let Some(datagram) = up.pop(Instant::now()) {
                let _ = back.send_to(&datagram, server).await;
            },
            () = due(&down) => while let Some(datagram) = down.pop(Instant::now()) {
                let _ = front.send_to(&datagram, client).await;
            },
        }
    }
}
