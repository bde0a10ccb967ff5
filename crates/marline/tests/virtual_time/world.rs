//! A runtime of virtual time, one thread and sockets made of memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use marline::runtime::{InterfaceAddress, RecvMeta, Runtime, Task, Timer, UdpSocket};
use marline::{EcnCodepoint, Instant, Transmit};

/// Everything there is: tasks that can run, and what will happen when.
#[derive(Clone)]
pub(crate) struct World(Arc<Mutex<State>>);

struct State {
    now: Instant,
    /// One way, for every datagram.
    delay: Duration,
    ready: VecDeque<Arc<Job>>,
    events: BinaryHeap<Reverse<(Instant, u64)>>,
    /// By the number in `events`.
    happenings: BTreeMap<u64, Happening>,
    next: u64,
    inboxes: BTreeMap<SocketAddr, Inbox>,
    /// Addresses that hosts have, of those bound to more than one.
    hosts: BTreeMap<IpAddr, SocketAddr>,
    /// Addresses whose link is cut.
    cut: BTreeSet<IpAddr>,
    /// Addresses that hosts do not have for now.
    away: BTreeSet<IpAddr>,
}

enum Happening {
    Ring(Waker),
    Arrive(SocketAddr, Datagram),
}

struct Datagram {
    from: SocketAddr,
    to: IpAddr,
    ecn: Option<EcnCodepoint>,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Inbox {
    datagrams: VecDeque<Datagram>,
    reader: Option<Waker>,
}

struct Job {
    world: World,
    task: Mutex<Option<Task>>,
}

impl Wake for Job {
    fn wake(self: Arc<Self>) {
        let world = self.world.clone();
        world.state().ready.push_back(self);
    }
}

impl World {
    pub(crate) fn new(delay: Duration) -> Self {
        Self(Arc::new(Mutex::new(State {
            now: Instant::EPOCH,
            delay,
            ready: VecDeque::new(),
            events: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            next: 0,
            inboxes: BTreeMap::new(),
            hosts: BTreeMap::new(),
            cut: BTreeSet::new(),
            away: BTreeSet::new(),
        })))
    }

    /// A socket of a host with these addresses, each on a link of its own.
    pub(crate) fn bind_all(&self, addresses: &[Ipv4Addr], port: u16) -> Arc<dyn UdpSocket> {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let mut state = self.state();
        state.inboxes.insert(any, Inbox::default());
        let own = addresses.iter().map(|&address| (address.into(), any));
        state.hosts.extend(own);
        Arc::new(MemorySocket {
            world: self.clone(),
            addr: any,
            first: addresses[0].into(),
        })
    }

    /// Loses all that comes from this address or goes there, from now on.
    pub(crate) fn cut(&self, address: Ipv4Addr) {
        self.state().cut.insert(address.into());
    }

    /// Takes the address from its host, and cuts its link.
    pub(crate) fn leave(&self, address: Ipv4Addr) {
        self.cut(address);
        self.state().away.insert(address.into());
    }

    /// Mends the link of this address, and gives it back to its host.
    pub(crate) fn join(&self, address: Ipv4Addr) {
        let mut state = self.state();
        state.cut.remove(&address.into());
        state.away.remove(&address.into());
    }

    /// Ready when so much time has passed.
    pub(crate) async fn sleep(&self, time: Duration) {
        let mut timer = self.timer();
        timer.set(self.now() + time);
        // Whoever runs the world polls again after everything that happens.
        std::future::poll_fn(|cx| timer.poll(cx)).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Runs `future` and all tasks until it is ready; nothing takes real time.
    pub(crate) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(value) = future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                return value;
            }
            if !self.turn() {
                self.advance();
            }
        }
    }

    /// Polls one task; false if none can run.
    fn turn(&self) -> bool {
        let Some(job) = self.state().ready.pop_front() else {
            return false;
        };
        let waker = Waker::from(Arc::clone(&job));
        let mut slot = job.task.lock().unwrap();
        if let Some(task) = slot.as_mut() {
            let done = task.as_mut().poll(&mut Context::from_waker(&waker));
            if done.is_ready() {
                *slot = None;
            }
        }
        true
    }

    /// Moves the clock to the next thing that happens.
    fn advance(&self) {
        let mut state = self.state();
        let Reverse((at, number)) = state.events.pop().expect("nothing will ever happen again");
        state.now = state.now.max(at);
        let waker = match state.happenings.remove(&number) {
            Some(Happening::Ring(waker)) => Some(waker),
            Some(Happening::Arrive(to, datagram)) => state.deliver(to, datagram),
            None => None,
        };
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl State {
    fn schedule(&mut self, at: Instant, happening: Happening) -> u64 {
        let number = self.next;
        self.next += 1;
        self.events.push(Reverse((at, number)));
        self.happenings.insert(number, happening);
        number
    }

    /// Who is to be woken for it.
    fn deliver(&mut self, to: SocketAddr, datagram: Datagram) -> Option<Waker> {
        if self.cut.contains(&to.ip()) || self.cut.contains(&datagram.from.ip()) {
            return None;
        }
        let any = self.hosts.get(&to.ip()).copied();
        let inbox = self.inboxes.get_mut(&any.unwrap_or(to))?;
        inbox.datagrams.push_back(datagram);
        inbox.reader.take()
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("World")
    }
}

impl Runtime for World {
    fn now(&self) -> Instant {
        self.state().now
    }

    fn unix_time(&self) -> Duration {
        Duration::from_secs(1_700_000_000)
    }

    fn seed(&self) -> io::Result<[u8; 32]> {
        Ok([7; 32])
    }

    fn spawn(&self, task: Task) {
        Waker::from(Arc::new(Job {
            world: self.clone(),
            task: Mutex::new(Some(task)),
        }))
        .wake();
    }

    /// The third byte of an address of a host with several is the number of its link.
    fn interfaces(&self) -> io::Result<Vec<InterfaceAddress>> {
        let state = self.state();
        let here = state.hosts.keys().filter(|ip| !state.away.contains(ip));
        let entry = |address: &IpAddr| InterfaceAddress {
            name: match address {
                IpAddr::V4(address) => format!("link{}", address.octets()[2]),
                IpAddr::V6(_) => "link".to_owned(),
            },
            address: *address,
            index: None,
            is_up: true,
        };
        Ok(here.map(entry).collect())
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(VirtualTimer {
            world: self.clone(),
            deadline: None,
            ring: None,
        })
    }

    fn bind(&self, addr: SocketAddr) -> io::Result<Arc<dyn UdpSocket>> {
        let mut state = self.state();
        if state.away.contains(&addr.ip()) {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        state.inboxes.insert(addr, Inbox::default());
        Ok(Arc::new(MemorySocket {
            world: self.clone(),
            addr,
            first: addr.ip(),
        }))
    }
}

struct VirtualTimer {
    world: World,
    deadline: Option<Instant>,
    ring: Option<u64>,
}

impl Timer for VirtualTimer {
    fn set(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else {
            return Poll::Pending;
        };
        let mut state = self.world.state();
        if let Some(number) = self.ring.take() {
            state.happenings.remove(&number);
        }
        if state.now >= deadline {
            self.deadline = None;
            return Poll::Ready(());
        }
        self.ring = Some(state.schedule(deadline, Happening::Ring(cx.waker().clone())));
        Poll::Pending
    }
}

struct MemorySocket {
    world: World,
    /// Where it is bound.
    addr: SocketAddr,
    /// Where it sends from, unless told otherwise.
    first: IpAddr,
}

impl fmt::Debug for MemorySocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemorySocket({})", self.addr)
    }
}

impl UdpSocket for MemorySocket {
    fn try_send(&self, transmit: &Transmit, payload: &[u8]) -> io::Result<()> {
        let mut state = self.world.state();
        let at = state.now + state.delay;
        let wanted = transmit.tuple.local.ip();
        let from = match self.addr.ip().is_unspecified() && !wanted.is_unspecified() {
            true => wanted,
            false => self.first,
        };
        for bytes in payload.chunks(transmit.segment_size.unwrap_or(payload.len())) {
            let datagram = Datagram {
                from: SocketAddr::new(from, self.addr.port()),
                to: transmit.tuple.remote.ip(),
                ecn: transmit.ecn,
                bytes: bytes.to_vec(),
            };
            state.schedule(at, Happening::Arrive(transmit.tuple.remote, datagram));
        }
        Ok(())
    }

    fn poll_send_ready(&self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.world.state();
        let inbox = state.inboxes.entry(self.addr).or_default();
        let mut filled = 0;
        for (buffer, meta) in buffers.iter_mut().zip(meta) {
            let Some(datagram) = inbox.datagrams.pop_front() else {
                break;
            };
            let len = datagram.bytes.len();
            buffer[..len].copy_from_slice(&datagram.bytes);
            *meta = RecvMeta {
                remote: datagram.from,
                local_ip: Some(datagram.to),
                len,
                stride: len,
                ecn: datagram.ecn,
            };
            filled += 1;
        }
        if filled == 0 {
            inbox.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(filled))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.addr)
    }

    fn max_gso_segments(&self) -> usize {
        64
    }
}
