//! One thread that moves a network of packets with real time.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
/// Above everything that is not real time, below the kernel's own threads that are.
const PRIORITY: u8 = 50;
/// Empty buffers that are kept.
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

/// A host's devices.
pub(super) struct Port {
    pub(super) node: Node,
    pub(super) name: String,
    pub(super) tuns: Vec<Tun>,
}

/// Moves packets between devices through a network.
pub(super) struct Driver {
    clock: Clock,
    fabric: Fabric<IpPacket>,
    hash: EcmpHash,
    ports: Arc<[Port]>,
    tallies: Vec<Tally>,
    spare: Vec<IpPacket>,
    report: Report,
    stop: Arc<Stop>,
}

impl Driver {
    pub(super) fn new(
        fabric: Fabric<IpPacket>,
        hash: EcmpHash,
        ports: Vec<Port>,
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

    /// Runs until stopped.
    pub(super) fn run(mut self) -> Report {
        self.report.realtime = hurry();
        let start = self.clock.now();
        let (ports, stop) = (Arc::clone(&self.ports), Arc::clone(&self.stop));
        let tuns = ports.iter().flat_map(|port| &port.tuns);
        let mut descriptors: Vec<_> = tuns
            .map(AsFd::as_fd)
            .chain([stop.wake.as_fd()])
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        while !stop.flag.load(Ordering::Relaxed) {
            let mut idle = true;
            for port in 0..self.ports.len() {
                for tun in 0..self.ports[port].tuns.len() {
                    idle &= self.read_batch(port, tun) == 0;
                }
            }
            self.deliver();
            if idle {
                self.wait(&mut descriptors);
            }
        }
        self.report.duration = self.clock.now().since(start);
        let names = ports.iter().map(|port| port.name.clone());
        self.report.hosts = names.zip(self.tallies).collect();
        self.report
    }

    /// Reads what a host has sent; how many packets that were.
    fn read_batch(&mut self, port: usize, tun: usize) -> usize {
        for read in 0..BATCH {
            let mut buffer = self.spare.pop().unwrap_or_else(IpPacket::empty);
            let Ok(len) = self.ports[port].tuns[tun].read(buffer.room()) else {
                self.spare.push(buffer);
                return read;
            };
            match buffer.filled(len, self.hash) {
                Ok(mut packet) => {
                    let tally = &mut self.tallies[port];
                    tally.sent += 1;
                    tally.sent_bytes += u64::from(packet.size);
                    // Earlier deliveries come first.
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
        BATCH
    }

    /// Hands over all that has arrived by now.
    fn deliver(&mut self) {
        loop {
            let now = self.clock.now();
            let buffer = match self.fabric.poll(now) {
                None => return,
                Some(Event::Arrived { at, node, packet }) => {
                    let size = packet.size;
                    let mut buffer = packet.body;
                    buffer.stamp(packet.ecn, packet.corrupted);
                    self.report.lateness.record(now.since(at));
                    if let Some(tally) = self.tally_of(&buffer) {
                        tally.arrived += 1;
                        tally.arrived_bytes += u64::from(size);
                    }
                    if !self.write(node, &buffer) {
                        self.report.refused += 1;
                    }
                    buffer
                }
                Some(Event::Dropped { packet, reason, .. }) => {
                    if let Some(tally) = self.tally_of(&packet.body) {
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

    /// The tally of the host that sent a packet.
    fn tally_of(&mut self, packet: &IpPacket) -> Option<&mut Tally> {
        let source = packet.source();
        let of = |port: &Port| port.tuns.iter().any(|tun| tun.address() == source);
        let port = self.ports.iter().position(of)?;
        self.tallies.get_mut(port)
    }

    /// Gives a host a packet, through the device whose address it names; whether the host took it.
    fn write(&self, node: Node, packet: &IpPacket) -> bool {
        let Some(port) = self.ports.iter().find(|port| port.node == node) else {
            return false;
        };
        let address = packet.destination();
        let tun = port.tuns.iter().find(|tun| tun.address() == address);
        tun.is_some_and(|tun| tun.write(packet.bytes()).is_ok())
    }

    /// Sleeps until a host sends or the network moves.
    fn wait(&self, descriptors: &mut [PollFd<'_>]) {
        let timeout = self.fabric.next_event().map(|at| self.clock.until(at));
        if timeout == Some(Duration::ZERO) {
            return;
        }
        // A signal may interrupt it, which only wakes the loop early.
        let _ = ppoll(descriptors, timeout.map(TimeSpec::from), None);
    }
}

/// Asks to run before everything else, and to wake on time; whether the former was granted.
fn hurry() -> bool {
    // Without real-time priority, timers would be late by another 50 us.
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
