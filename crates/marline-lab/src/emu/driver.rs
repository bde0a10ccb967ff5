//! The thread that moves packets through the fabric as time passes.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use marline_sim::fabric::{EcmpHash, Event, Fabric, Node, Routed};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

use super::clock::Clock;
use super::ip::IpPacket;
use super::tally::{Report, Tally};
use super::tun::Tun;

/// Packets read from one device before the next is polled.
const BATCH: usize = 32;
/// Above every process without real-time priority, below the kernel's own real-time threads.
const PRIORITY: u8 = 50;
/// Upper bound of packet buffers that are kept for reuse.
const SPARE: usize = 4_096;

/// Stops a driver.
#[derive(Debug)]
pub(super) struct Stop {
    flag: AtomicBool,
    wake: EventFd,
}

impl Stop {
    pub(super) fn new() -> nix::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            flag: AtomicBool::new(false),
            wake: EventFd::new()?,
        }))
    }

    pub(super) fn stop(&self) {
        self.flag.store(true, Ordering::Relaxed);
        // It can only fail when the counter overflows.
        let _ = self.wake.write(1);
    }
}

/// The devices of a host.
pub(super) struct HostDevices {
    pub(super) node: Node,
    pub(super) name: String,
    pub(super) tuns: Vec<Tun>,
}

/// Moves packets between the hosts' devices and the fabric.
pub(super) struct Driver {
    clock: Clock,
    fabric: Fabric<IpPacket>,
    hash: EcmpHash,
    ports: Arc<[HostDevices]>,
    tallies: Vec<Tally>,
    spare: Vec<IpPacket>,
    report: Report,
    stop: Arc<Stop>,
}

impl Driver {
    pub(super) fn new(
        fabric: Fabric<IpPacket>,
        hash: EcmpHash,
        ports: Vec<HostDevices>,
        stop: Arc<Stop>,
    ) -> Self {
        Self {
            clock: Clock::start(),
            fabric,
            hash,
            tallies: vec![Tally::default(); ports.len()],
            ports: ports.into(),
            spare: Vec::new(),
            report: Report::default(),
            stop,
        }
    }

    /// Runs until it is stopped.
    pub(super) fn run(mut self) -> Report {
        self.report.realtime = request_realtime();
        let start = self.clock.now();
        let (ports, stop) = (Arc::clone(&self.ports), Arc::clone(&self.stop));
        let tuns = ports.iter().flat_map(|port| &port.tuns);
        let mut descriptors: Vec<_> = tuns
            .map(AsFd::as_fd)
            .chain([stop.wake.as_fd()])
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        while !stop.flag.load(Ordering::Relaxed) {
            self.deliver();
            self.wait(&mut descriptors);
            let mut ready = descriptors.iter().map(|it| it.any() == Some(true));
            for (port, devices) in ports.iter().enumerate() {
                for tun in 0..devices.tuns.len() {
                    if ready.next() == Some(true) {
                        self.read_batch(port, tun);
                    }
                }
            }
        }
        self.report.duration = self.clock.now().since(start);
        let names = ports.iter().map(|port| port.name.clone());
        self.report.hosts = names.zip(self.tallies).collect();
        self.report
    }

    /// Reads up to [`BATCH`] packets that a host has sent.
    fn read_batch(&mut self, port: usize, tun: usize) {
        for _ in 0..BATCH {
            let mut buffer = self.spare.pop().unwrap_or_else(IpPacket::empty);
            let Ok(len) = self.ports[port].tuns[tun].read(buffer.buffer_mut()) else {
                self.spare.push(buffer);
                return;
            };
            match buffer.parse(len, self.hash) {
                Ok(mut packet) => {
                    let tally = &mut self.tallies[port];
                    tally.sent += 1;
                    tally.sent_bytes += u64::from(packet.size);
                    // Deliveries that are due come before this packet.
                    self.deliver();
                    let node = self.ports[port].node;
                    let now = self.clock.now();
                    packet.body.set_sent(now);
                    self.fabric.send(now, node, packet);
                }
                Err(buffer) => {
                    self.report.ignored += 1;
                    self.spare.push(buffer);
                }
            }
        }
    }

    /// Delivers every packet that has arrived by now.
    fn deliver(&mut self) {
        loop {
            let now = self.clock.now();
            let buffer = match self.fabric.poll(now) {
                None => return,
                Some(Event::Arrived { at, node, packet }) => {
                    let size = packet.size;
                    let mut buffer = packet.body;
                    buffer.write_marks(packet.ecn, packet.corrupted);
                    self.report.lateness.record(now.since(at));
                    if let Some(tally) = self.sender_tally(&buffer) {
                        tally.arrived += 1;
                        tally.arrived_bytes += u64::from(size);
                    }
                    if !self.write(node, &buffer) {
                        self.report.refused += 1;
                    }
                    buffer
                }
                Some(Event::Dropped { packet, reason, .. }) => {
                    if let Some(tally) = self.sender_tally(&packet.body) {
                        *tally.dropped.entry(reason).or_default() += 1;
                    }
                    packet.body
                }
            };
            if self.spare.len() < SPARE {
                self.spare.push(buffer);
            }
        }
    }

    /// The counters of the host that sent `packet`.
    fn sender_tally(&mut self, packet: &IpPacket) -> Option<&mut Tally> {
        let source = packet.source();
        let of = |port: &HostDevices| port.tuns.iter().any(|tun| tun.address() == source);
        let port = self.ports.iter().position(of)?;
        self.tallies.get_mut(port)
    }

    /// Writes a packet to the device of `node` that has its destination address. Returns whether the host
    /// accepted it.
    fn write(&self, node: Node, packet: &IpPacket) -> bool {
        let Some(port) = self.ports.iter().find(|port| port.node == node) else {
            return false;
        };
        let address = packet.destination();
        let tun = port.tuns.iter().find(|tun| tun.address() == address);
        tun.is_some_and(|tun| tun.write(packet.bytes()).is_ok())
    }

    /// Sleeps until a host sends a packet or the next event of the fabric is due.
    fn wait(&self, descriptors: &mut [PollFd<'_>]) {
        let next = self.fabric.next_event();
        let timeout = next.map(|at| self.clock.until(at));
        // A signal may interrupt the call: the loop then polls early, and reads devices without packets.
        let _ = ppoll(descriptors, timeout.map(TimeSpec::from), None);
    }
}

/// Requests real-time priority and precise timers. Returns whether the priority was granted.
fn request_realtime() -> bool {
    // With the default timer slack, timers would be 50 us later.
    let _ = prctl::set_timerslack(1);
    let Ok(priority) = ThreadPriorityValue::try_from(PRIORITY) else {
        return false;
    };
    set_thread_priority_and_policy(
        thread_native_id(),
        ThreadPriority::Crossplatform(priority),
        ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
    )
    .is_ok()
}
