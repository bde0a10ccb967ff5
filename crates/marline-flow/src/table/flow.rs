//! The state of one flow.

use std::hash::{Hash, Hasher};

use super::Timeouts;
use crate::decode::{Endpoint, Segment, TcpFields, Transport, flags};
use crate::inspect::{End, Labels, Quic, Tcp, other};
use crate::measures::{Before, Measured, Measures, Past, RoundTrip, Sample};

/// Which flow a packet is of: both ends in order, and the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowKey {
    // Not an array: it would be compared as 16 bytes at a time, which were just written by eight.
    first: u128,
    second: u128,
    ports: [u16; 2],
    transport: Transport,
}

/// A key, and which of its ends is the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Directed {
    pub(crate) key: FlowKey,
    pub(crate) sender: End,
}

impl Directed {
    #[inline]
    pub(crate) fn of(segment: &Segment<'_>) -> Self {
        let (source, destination) = (segment.source, segment.destination);
        let ([a, b], sender) = match source.is_first_of(destination) {
            true => ([source, destination], 0),
            false => ([destination, source], 1),
        };
        let key = FlowKey {
            first: a.bits(),
            second: b.bits(),
            ports: [a.port(), b.port()],
            transport: segment.transport(),
        };
        Self { key, sender }
    }
}

impl FlowKey {
    pub(crate) const fn endpoint(&self, end: End) -> Endpoint {
        let addresses = [self.first, self.second];
        Endpoint::new(addresses[end], self.ports[end])
    }

    pub(crate) const fn transport(&self) -> Transport {
        self.transport
    }
}

impl Hash for FlowKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [c, d] = self.ports;
        state.write_u128(self.first);
        state.write_u128(self.second);
        let ports = u64::from(c) << 32 | u64::from(d) << 16;
        state.write_u64(ports | u64::from(self.transport == Transport::Tcp));
    }
}

/// What one end has sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) packets: u64,
    /// Bytes of packets of IP.
    pub(crate) bytes: u64,
    pub(crate) payload: u64,
    /// All flags of TCP that were set in any of its packets.
    pub(crate) flags: u8,
    /// The sequence number of its SYN.
    pub(crate) syn: Option<u32>,
}

/// How far a flow has come, which decides how long it may be idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A TCP connection without both ends' acknowledgment, or a single datagram.
    Opening,
    /// It is established.
    Open,
    /// Both ends have sent FIN, or one RST: the last acknowledgments may follow.
    Closed,
}

/// How it is known which end is the client, the most reliable last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientSource {
    /// It sent the first packet that was captured.
    First,
    /// Its port is none of a service, and the other one is.
    Port,
    /// It sent a ClientHello or a request.
    Handshake,
    /// It sent a SYN, or got one with ACK.
    Syn,
}

impl ClientSource {
    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Port => "port",
            Self::Handshake => "handshake",
            Self::Syn => "syn",
        }
    }
}

/// What the beginning of a flow is looked at with.
#[derive(Debug)]
pub(crate) enum Inspection {
    Tcp(Box<Tcp>),
    Quic(Box<Quic>),
}

impl Inspection {
    pub(crate) fn held(&self) -> usize {
        match self {
            Self::Tcp(tcp) => tcp.held(),
            Self::Quic(quic) => quic.held(),
        }
    }
}

/// A flow.
#[derive(Debug)]
pub(crate) struct Flow {
    key: FlowKey,
    pub(crate) id: u64,
    /// How many records of the flow precede, which the active time-out ended.
    pub(crate) part: u32,
    pub(crate) start_ns: u64,
    pub(crate) last_ns: u64,
    pub(crate) sent: [Sent; 2],
    measures: Measures,
    phase: Phase,
    /// Which end sent the first packet.
    opener: u8,
    client: End,
    client_source: ClientSource,
    pub(crate) labels: Option<Box<Labels>>,
    pub(crate) inspection: Option<Inspection>,
    /// Whether the inspection has ended.
    pub(crate) inspected: bool,
}

impl Flow {
    /// A flow that begins with a packet of `directed.sender`.
    pub(crate) fn new(directed: Directed, id: u64, now_ns: u64) -> Self {
        let key = directed.key;
        let by_port = client_by_port(key.ports);
        Self {
            key,
            id,
            part: 0,
            start_ns: now_ns,
            last_ns: now_ns,
            sent: [Sent::default(); 2],
            measures: Measures::default(),
            phase: Phase::Opening,
            opener: directed.sender as u8,
            client: by_port.unwrap_or(directed.sender),
            client_source: match by_port {
                Some(_) => ClientSource::Port,
                None => ClientSource::First,
            },
            labels: None,
            inspection: None,
            inspected: false,
        }
    }

    /// The next record of a flow that the active time-out ended, with a packet of `sender`.
    pub(crate) fn continued(&mut self, sender: End, now_ns: u64) -> Self {
        let zero = |sent: Sent| Sent {
            syn: sent.syn,
            ..Sent::default()
        };
        Self {
            part: self.part + 1,
            start_ns: now_ns,
            last_ns: now_ns,
            sent: self.sent.map(zero),
            measures: Measures::default(),
            opener: sender as u8,
            labels: self.labels.clone(),
            inspection: self.inspection.take(),
            ..*self
        }
    }

    pub(crate) const fn key(&self) -> FlowKey {
        self.key
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Which end is the client.
    pub(crate) const fn client(&self) -> End {
        self.client
    }

    pub(crate) const fn client_source(&self) -> ClientSource {
        self.client_source
    }

    /// `end` is the client, as `source` shows, unless something more reliable showed another.
    pub(crate) fn set_client(&mut self, end: End, source: ClientSource) {
        if source > self.client_source {
            self.client = end;
            self.client_source = source;
        }
    }

    /// Whether a segment begins another connection between the same ports.
    #[inline]
    pub(crate) fn is_reused_by(&self, sender: End, segment: &Segment<'_>) -> bool {
        let Some(TcpFields { sequence, flags }) = segment.tcp else {
            return false;
        };
        if flags & (flags::SYN | flags::ACK | flags::RST) != flags::SYN {
            return false;
        }
        match self.phase {
            Phase::Closed => true,
            Phase::Open => self.sent[sender].syn != Some(sequence),
            Phase::Opening => false,
        }
    }

    /// Counts a packet.
    #[inline]
    pub(crate) fn on_segment(&mut self, sender: End, segment: &Segment<'_>, now_ns: u64) {
        self.count(&Sample {
            sender,
            time_ns: now_ns,
            ip_bytes: segment.ip_bytes,
            payload_bytes: segment.payload_bytes,
            tcp: segment.tcp,
        });
        match segment.tcp {
            Some(fields) => self.on_tcp(sender, fields),
            None => {
                if self.sent[0].packets + self.sent[1].packets > 1 {
                    self.phase = Phase::Open;
                }
            }
        }
    }

    /// Counts a packet or a fragment.
    #[inline]
    pub(crate) fn count(&mut self, sample: &Sample) {
        if self.measures.is_measured(self.sent[sample.sender].packets) {
            let past = self.past();
            self.measures.on_packet(sample, &past);
        }
        let sent = &mut self.sent[sample.sender];
        sent.packets += 1;
        sent.bytes += sample.ip_bytes;
        sent.payload += sample.payload_bytes;
        self.start_ns = self.start_ns.min(sample.time_ns);
        self.last_ns = self.last_ns.max(sample.time_ns);
    }

    fn past(&self) -> Past {
        let sent = self.sent.map(|sent| Before {
            packets: sent.packets,
            bytes: sent.bytes,
            payload_bytes: sent.payload,
            flags: sent.flags,
            // That of an earlier part is not among these packets.
            syn: sent.syn.filter(|_| sent.flags & flags::SYN != 0),
        });
        Past {
            sent,
            opener: self.opener.into(),
            first_ns: self.start_ns,
            last_ns: self.last_ns,
        }
    }

    /// What was measured of the packets of `end`.
    pub(crate) fn measured(&self, end: End) -> Measured {
        self.measures.of(end, &self.past().sent[end])
    }

    /// The round trip that opened the flow, if its client did so.
    pub(crate) fn round_trip(&self) -> RoundTrip {
        match self.part {
            0 if usize::from(self.opener) == self.client => {
                let is_tcp = self.key.transport == Transport::Tcp;
                self.measures.round_trip(&self.past(), is_tcp)
            }
            _ => RoundTrip::default(),
        }
    }

    #[inline]
    fn on_tcp(&mut self, sender: End, fields: TcpFields) {
        let sent = &mut self.sent[sender];
        sent.flags |= fields.flags;
        let changing = flags::SYN | flags::FIN | flags::RST;
        if self.phase != Phase::Opening && fields.flags & changing == 0 {
            return;
        }
        if fields.flags & flags::SYN != 0 {
            sent.syn.get_or_insert(fields.sequence);
            let is_answer = fields.flags & flags::ACK != 0;
            let client = if is_answer { other(sender) } else { sender };
            self.set_client(client, ClientSource::Syn);
        }
        let [a, b] = &self.sent;
        let both = a.flags & b.flags;
        if fields.flags & flags::RST != 0 || both & flags::FIN != 0 {
            self.phase = Phase::Closed;
        } else if self.phase == Phase::Opening {
            // Of some connections only one direction passes the place of the capture.
            let one_sided = a.payload + b.payload > 0 && a.packets + b.packets > 2;
            if both & flags::ACK != 0 || one_sided {
                self.phase = Phase::Open;
            }
        }
    }

    /// Whether it was idle for too long when a packet comes at `now_ns`.
    #[inline]
    pub(crate) fn is_idle(&self, timeouts: &Timeouts, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.last_ns) > self.idle_timeout_ns(timeouts)
    }

    /// Whether its record is due at `now_ns`, though it goes on.
    #[inline]
    pub(crate) fn is_due(&self, timeouts: &Timeouts, now_ns: u64) -> bool {
        let lasted_ns = now_ns.saturating_sub(self.start_ns);
        timeouts
            .active_ns
            .is_some_and(|active_ns| lasted_ns >= active_ns)
    }

    /// How long it may be idle.
    #[inline]
    pub(crate) fn idle_timeout_ns(&self, timeouts: &Timeouts) -> u64 {
        let Timeouts {
            opening_ns,
            tcp_idle_ns,
            udp_idle_ns,
            ..
        } = *timeouts;
        match (self.phase, self.key.transport) {
            (Phase::Opening | Phase::Closed, _) => opening_ns,
            (Phase::Open, Transport::Tcp) => tcp_idle_ns,
            (Phase::Open, Transport::Udp) => udp_idle_ns,
        }
    }
}

/// Which end is the client by ports alone: the one whose port is for clients, if the other's is not.
fn client_by_port(ports: [u16; 2]) -> Option<End> {
    /// Ports of services that need privileges.
    const SYSTEM: u16 = 1024;
    /// The first port that Linux gives clients; others begin above.
    const EPHEMERAL: u16 = 32768;
    let [a, b] = ports;
    match () {
        () if (a < SYSTEM) != (b < SYSTEM) => Some(usize::from(a < SYSTEM)),
        () if (a < EPHEMERAL) != (b < EPHEMERAL) => Some(usize::from(a < EPHEMERAL)),
        () => None,
    }
}
