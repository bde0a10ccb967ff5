//! Hosts in virtual time: one thread, a clock that jumps, and a network made of memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use marline::runtime::{RecvMeta, Runtime, Task, Timer, UdpSocket};
use marline::{EcnCodepoint, Instant, Transmit};

/// Everything there is: tasks that can run, and what will happen when.
#[derive(Clone)]
pub(crate) struct World(Arc<Mutex<State>>);

/// Says of a datagram and its sender whether it is lost.
type Loss = Box<dyn FnMut(SocketAddr, &[u8]) -> bool + Send>;

struct State {
    now: Instant,
    /// One way, for every datagram.
    delay: Duration,
    /// What a host sends in a second.
    bytes_per_second: u64,
    ready: VecDeque<Arc<Job>>,
    /// When, in which order, and what: a key of `happenings`.
    events: BinaryHeap<Reverse<(Instant, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    next: u64,
    next_port: u16,
    /// When each host has sent all it was given.
    idle_from: BTreeMap<IpAddr, Instant>,
    inboxes: BTreeMap<SocketAddr, Inbox>,
    loss: Loss,
}

enum Happening {
    Ring(Waker),
    Arrive(SocketAddr, Datagram),
}

struct Datagram {
    from: SocketAddr,
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

/// Whether the future that is waited for can run.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

impl World {
    pub(crate) fn new(delay: Duration, bytes_per_second: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            now: Instant::EPOCH,
            delay,
            bytes_per_second,
            ready: VecDeque::new(),
            events: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            next: 0,
            next_port: 50_000,
            idle_from: BTreeMap::new(),
            inboxes: BTreeMap::new(),
            loss: Box::new(|_, _| false),
        })))
    }

    /// A machine of this world.
    pub(crate) fn host(&self, number: u8) -> Arc<dyn Runtime> {
        Arc::new(Host {
            world: self.clone(),
            ip: IpAddr::from([10, 0, 0, number]),
        })
    }

    /// From now on, loses what `loss` says.
    pub(crate) fn lose(&self, loss: impl FnMut(SocketAddr, &[u8]) -> bool + Send + 'static) {
        self.state().loss = Box::new(loss);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Runs `future` and all tasks until it is ready; nothing takes real time.
    pub(crate) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&woken));
        loop {
            if woken.0.swap(false, Relaxed)
                && let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker))
            {
                return value;
            }
            if !self.turn() && !woken.0.load(Relaxed) {
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
        let Some(happening) = state.happenings.remove(&number) else {
            return;
        };
        state.now = state.now.max(at);
        let waker = match happening {
            Happening::Ring(waker) => Some(waker),
            Happening::Arrive(to, datagram) => state.inboxes.get_mut(&to).and_then(|inbox| {
                inbox.datagrams.push_back(datagram);
                inbox.reader.take()
            }),
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

    /// When the last byte of what `host` sends now arrives.
    fn arrival(&mut self, host: IpAddr, bytes: usize) -> Instant {
        let nanos = bytes as u64 * 1_000_000_000 / self.bytes_per_second;
        let idle_from = self.idle_from.entry(host).or_default();
        *idle_from = (*idle_from).max(self.now) + Duration::from_nanos(nanos);
        *idle_from + self.delay
    }
}

/// The world as one machine sees it.
struct Host {
    world: World,
    ip: IpAddr,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Host({})", self.ip)
    }
}

impl Runtime for Host {
    fn now(&self) -> Instant {
        self.world.state().now
    }

    fn unix_time(&self) -> Duration {
        Duration::from_secs(1_700_000_000)
    }

    fn seed(&self) -> io::Result<[u8; 32]> {
        let mut seed = [0; 32];
        seed[..15].copy_from_slice(&format!("{:>15}", self.ip).as_bytes()[..15]);
        Ok(seed)
    }

    fn spawn(&self, task: Task) {
        let job = Job {
            world: self.world.clone(),
            task: Mutex::new(Some(task)),
        };
        Waker::from(Arc::new(job)).wake();
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(VirtualTimer {
            world: self.world.clone(),
            deadline: None,
            ring: None,
        })
    }

    fn bind(&self, addr: SocketAddr) -> io::Result<Arc<dyn UdpSocket>> {
        let mut state = self.world.state();
        let port = match addr.port() {
            0 => {
                state.next_port += 1;
                state.next_port
            }
            port => port,
        };
        let addr = SocketAddr::new(self.ip, port);
        state.inboxes.insert(addr, Inbox::default());
        drop(state);
        Ok(Arc::new(MemorySocket {
            world: self.world.clone(),
            addr,
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

impl Drop for VirtualTimer {
    fn drop(&mut self) {
        if let Some(number) = self.ring {
            let happening = self.world.state().happenings.remove(&number);
            // A waker may own the last of a task, whose timers lock the world.
            drop(happening);
        }
    }
}

struct MemorySocket {
    world: World,
    addr: SocketAddr,
}

impl fmt::Debug for MemorySocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemorySocket({})", self.addr)
    }
}

impl UdpSocket for MemorySocket {
    fn try_send(&self, transmit: &Transmit, payload: &[u8]) -> io::Result<()> {
        let mut state = self.world.state();
        for bytes in payload.chunks(transmit.segment_size.unwrap_or(payload.len())) {
            let at = state.arrival(self.addr.ip(), bytes.len());
            if (state.loss)(self.addr, bytes) {
                continue;
            }
            let datagram = Datagram {
                from: self.addr,
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
                local_ip: Some(self.addr.ip()),
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
