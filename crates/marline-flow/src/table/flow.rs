//! The state of one flow.

use std::hash::{Hash, Hasher};

use super::Timeouts;
use super::paths::{PLAIN, Path, Paths};
use crate::decode::{Endpoint, Layers, Segment, TcpFields, Transport, flags, outer_ends};
use crate::inspect::{End, Labels, Quic, QuicIds, Tcp, other};
use crate::limits::MAX_ALIASES;
use crate::measures::{Before, Measured, Measures, Past, RoundTrip, Sample};

/// The key of a packet's flow: both ends in order, the transport, and the layers around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowKey {
    first: Halves,
    second: Halves,
    ports: [u16; 2],
    path: Path,
    transport: Transport,
}

/// An address.
// By halves: it would be compared as 16 bytes at a time, which were just written by eight, and aligned to 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Halves {
    high: u64,
    low: u64,
}

impl Halves {
    #[inline(always)]
    const fn of(address: u128) -> Self {
        Self {
            high: (address >> 64) as u64,
            low: address as u64,
        }
    }

    const fn address(self) -> u128 {
        (self.high as u128) << 64 | self.low as u128
    }
}

/// A key, and the end that is the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Directed {
    pub(crate) key: FlowKey,
    pub(crate) sender: End,
    /// Whether the source of its tunnel is the second end in order.
    is_outer_reversed: bool,
}

impl Directed {
    #[inline]
    pub(crate) fn of(segment: &Segment<'_>, path: Path, layers: &Layers) -> Self {
        let (source, destination) = (segment.source, segment.destination);
        let ([a, b], sender) = match source.is_first_of(destination) {
            true => ([source, destination], 0),
            false => ([destination, source], 1),
        };
        let key = FlowKey {
            first: Halves::of(a.bits()),
            second: Halves::of(b.bits()),
            ports: [a.port(), b.port()],
            path,
            transport: segment.transport(),
        };
        Self {
            key,
            sender,
            is_outer_reversed: layers.is_reversed(),
        }
    }
}

impl FlowKey {
    pub(crate) const fn endpoint(&self, end: End) -> Endpoint {
        let addresses = [self.first, self.second];
        Endpoint::new(addresses[end].address(), self.ports[end])
    }

    pub(crate) const fn transport(&self) -> Transport {
        self.transport
    }

    pub(crate) const fn path(&self) -> Path {
        self.path
    }

    /// The same ends, on another path.
    pub(crate) const fn on(self, path: Path) -> Self {
        Self { path, ..self }
    }
}

impl Hash for FlowKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [c, d] = self.ports;
        state.write_u128(self.first.address());
        state.write_u128(self.second.address());
        let ports = u64::from(c) << 32 | u64::from(d) << 16;
        state.write_u64(ports | u64::from(self.transport == Transport::Tcp));
        if self.path != PLAIN {
            state.write_u32(self.path);
        }
    }
}

/// The counts of one end's packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) packets: u64,
    /// Bytes of packets of IP.
    pub(crate) bytes: u64,
    pub(crate) payload: u64,
    /// All flags of TCP set in any of its packets.
    pub(crate) flags: u8,
    has_syn: bool,
    syn: u32,
}

impl Sent {
    /// The counts of an end without packets.
    const NOTHING: Self = Self {
        packets: 0,
        bytes: 0,
        payload: 0,
        flags: 0,
        has_syn: false,
        syn: 0,
    };

    /// The sequence number of its SYN.
    pub(crate) const fn syn(&self) -> Option<u32> {
        match self.has_syn {
            true => Some(self.syn),
            false => None,
        }
    }

    fn set_syn(&mut self, sequence: u32) {
        if !self.has_syn {
            (self.has_syn, self.syn) = (true, sequence);
        }
    }
}

/// The phase of a flow, which determines its idle time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A TCP connection without both ends' acknowledgment, or a single datagram.
    Opening,
    /// It is established.
    Open,
    /// Both ends have sent FIN, or one RST: the last acknowledgments may follow.
    Closed,
}

/// The evidence that identifies the client, the most reliable last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientSource {
    /// It sent the first captured packet.
    First,
    /// Its port is not a service's, and the other one is.
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

/// The inspection of the beginning of a flow.
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

/// A flow. It is small while it is a single packet, as very many are in scans and floods.
#[derive(Debug)]
pub(crate) struct Flow {
    key: FlowKey,
    pub(crate) id: u64,
    pub(crate) start_ns: u64,
    pub(crate) last_ns: u64,
    /// The counts of the end that sent the first packet.
    opening: Sent,
    more: Option<Box<More>>,
    /// The number of its current entry in the queues; earlier entries are stale.
    pub(super) ticket: u32,
    /// The phase of its entry.
    pub(super) queued: Phase,
    phase: Phase,
    opener: u8,
    /// Whether the source of the tunnel of the opener's packets is the second end in order.
    is_outer_reversed: bool,
    client: u8,
    client_source: ClientSource,
    /// The sequence number of the client's first content, from a SYN-ACK's acknowledgment of the client's SYN; 0 if none was seen,
    /// to save memory: one connection in 2^32 has it.
    client_first: u32,
    /// Whether the inspection has ended.
    pub(crate) inspected: bool,
}

/// The state of a flow of more than one packet, or one under inspection.
#[derive(Debug)]
pub(crate) struct More {
    /// The counts of the other end.
    answers: Sent,
    measures: Measures,
    /// The number of earlier records of the flow, which the active time-out ended.
    part: u32,
    /// The number of changes of the client's address.
    address_changes: u32,
    /// Its latest address, as a key on the path of the flow; `None` if it never left the first one.
    address: Option<Box<FlowKey>>,
    /// Another one, from which the client's last packet came and to which the server has not sent since.
    candidate: Option<Box<FlowKey>>,
    pub(crate) labels: Option<Box<Labels>>,
    pub(crate) inspection: Option<Inspection>,
    /// The IDs that identify the packets of a QUIC connection.
    pub(crate) quic: Option<Box<QuicIds>>,
    /// Other keys of its packets, oldest first.
    pub(super) aliases: Vec<OtherKey>,
}

/// A further key of a flow's packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct OtherKey {
    pub(super) key: FlowKey,
    /// Whether both ends sent packets with it, or it differs only by its path. One that only the client's packets have may be
    /// forged.
    is_confirmed: bool,
}

impl Flow {
    /// A flow that begins with a packet of `directed.sender`.
    pub(crate) fn new(directed: Directed, id: u64, now_ns: u64) -> Self {
        let key = directed.key;
        let by_port = client_by_port(key.ports);
        Self {
            key,
            id,
            start_ns: now_ns,
            last_ns: now_ns,
            opening: Sent::NOTHING,
            more: None,
            ticket: 0,
            queued: Phase::Opening,
            phase: Phase::Opening,
            opener: directed.sender as u8,
            is_outer_reversed: directed.is_outer_reversed,
            client: by_port.unwrap_or(directed.sender) as u8,
            client_source: match by_port {
                Some(_) => ClientSource::Port,
                None => ClientSource::First,
            },
            client_first: 0,
            inspected: false,
        }
    }

    /// The next record of a flow that the active time-out ended, with a packet of `sender`.
    pub(crate) fn continued(&mut self, sender: End, now_ns: u64) -> Self {
        let [opening, answers] = [sender, other(sender)].map(|end| Sent {
            has_syn: self.sent(end).has_syn,
            syn: self.sent(end).syn,
            ..Sent::NOTHING
        });
        let more = self.more_mut();
        let more = More {
            answers,
            measures: Measures::default(),
            part: more.part + 1,
            address_changes: 0,
            address: more.address.clone(),
            candidate: more.candidate.clone(),
            labels: more.labels.clone(),
            inspection: more.inspection.take(),
            quic: more.quic.clone(),
            aliases: more.aliases.clone(),
        };
        Self {
            start_ns: now_ns,
            last_ns: now_ns,
            opening,
            more: Some(Box::new(more)),
            opener: sender as u8,
            is_outer_reversed: self.is_outer_reversed != (sender != self.opener()),
            ..*self
        }
    }

    fn opener(&self) -> End {
        self.opener.into()
    }

    /// The counts of an end.
    #[inline]
    pub(crate) fn sent(&self, end: End) -> &Sent {
        match &self.more {
            _ if end == self.opener() => &self.opening,
            Some(more) => &more.answers,
            None => &Sent::NOTHING,
        }
    }

    #[inline]
    fn sent_mut(&mut self, end: End) -> &mut Sent {
        match end == self.opener() {
            true => &mut self.opening,
            false => &mut self.more_mut().answers,
        }
    }

    /// The state beyond its first packet, if any.
    #[inline]
    pub(crate) fn more(&self) -> Option<&More> {
        self.more.as_deref()
    }

    /// The same, mutable.
    #[inline]
    pub(crate) fn more_mut(&mut self) -> &mut More {
        self.more.get_or_insert_with(|| {
            Box::new(More {
                answers: Sent::NOTHING,
                measures: Measures::default(),
                part: 0,
                address_changes: 0,
                address: None,
                candidate: None,
                labels: None,
                inspection: None,
                quic: None,
                aliases: Vec::new(),
            })
        })
    }

    /// The number of earlier records of the flow, which the active time-out ended.
    pub(crate) fn part(&self) -> u32 {
        self.more().map_or(0, |more| more.part)
    }

    /// The number of changes of the client's address.
    pub(crate) fn address_changes(&self) -> u32 {
        self.more().map_or(0, |more| more.address_changes)
    }

    /// A packet of `sender` has this key, its first or another one. The client has moved, and not only to another path, when the
    /// server sends to the address that the client's last packet came from: an observer of a connection ID can send it from any
    /// address.
    #[inline]
    pub(crate) fn on_key(&mut self, sender: End, key: &FlowKey) {
        let (first, client) = (self.key, self.client());
        let Some(more) = &mut self.more else {
            return;
        };
        if !more.aliases.is_empty() {
            more.on_address(sender == client, &first, key.on(first.path));
        }
    }

    /// Whether a key differs from the first one by more than its path.
    pub(crate) fn has_moved_to(&self, key: &FlowKey) -> bool {
        key.on(self.key.path) != self.key
    }

    /// Adds a further key of its packets. Returns a key to remove if it has too many: one that only the client's packets have, else
    /// the oldest.
    pub(super) fn add_alias(&mut self, key: FlowKey) -> Option<FlowKey> {
        let is_confirmed = !self.has_moved_to(&key);
        let aliases = &mut self.more_mut().aliases;
        let forgotten = (aliases.len() >= MAX_ALIASES).then(|| {
            let forged = aliases.iter().position(|other| !other.is_confirmed);
            aliases.remove(forged.unwrap_or(0)).key
        });
        aliases.push(OtherKey { key, is_confirmed });
        forgotten
    }

    /// Removes a key, which now belongs to another flow.
    pub(super) fn remove_alias(&mut self, key: &FlowKey) {
        self.more_mut().aliases.retain(|other| other.key != *key);
    }

    /// The ends of the outermost tunnel over IP around the client's packets, source first.
    pub(crate) fn outer_ends(&self, paths: &Paths) -> Option<[u128; 2]> {
        let mut ends = outer_ends(paths.layers(self.key.path))?;
        ends.sort_unstable();
        if self.is_outer_reversed != (self.client != self.opener) {
            ends.reverse();
        }
        Some(ends)
    }

    /// The path of the packets of each end, if known.
    pub(crate) fn paths(&self, paths: &Paths) -> [Option<Path>; 2] {
        let path = self.key.path;
        if paths.shared(path).is_none() {
            return [Some(path); 2];
        }
        let aliases = self.more().map_or(&[][..], |more| &more.aliases);
        let mut keys = aliases.iter().map(|alias| alias.key);
        let alias = keys.find(|key| key.on(path) == self.key);
        let is_answered = self.sent(other(self.opener())).packets > 0;
        let answers = alias.map_or(path, |alias| alias.path);
        let mut both = [Some(path), is_answered.then_some(answers)];
        both.rotate_right(self.opener());
        both
    }

    pub(crate) const fn key(&self) -> FlowKey {
        self.key
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    /// The end that is the client.
    pub(crate) fn client(&self) -> End {
        self.client.into()
    }

    pub(crate) const fn client_source(&self) -> ClientSource {
        self.client_source
    }

    /// The sequence number of the client's first content, if a SYN-ACK showed it.
    pub(crate) fn client_first(&self) -> Option<u32> {
        (self.client_first != 0).then_some(self.client_first)
    }

    /// Sets the client to `end`, as `source` shows, unless more reliable evidence showed another.
    pub(crate) fn set_client(&mut self, end: End, source: ClientSource) {
        if source > self.client_source {
            self.client = end as u8;
            self.client_source = source;
        }
    }

    /// Whether a segment begins another connection between the same ports.
    #[inline]
    pub(crate) fn is_reused_by(&self, sender: End, segment: &Segment<'_>) -> bool {
        let Some(TcpFields {
            sequence, flags, ..
        }) = segment.tcp
        else {
            return false;
        };
        if flags & (flags::SYN | flags::ACK | flags::RST) != flags::SYN {
            return false;
        }
        let is_finished = self.sent(0).flags & self.sent(1).flags & flags::FIN != 0;
        match (self.sent(sender).syn(), self.phase) {
            (_, Phase::Closed) if is_finished => true,
            // A SYN with the number of the one before repeats it, after a reset, too.
            (Some(before), _) => before != sequence,
            (None, Phase::Open | Phase::Closed) => true,
            (None, Phase::Opening) => false,
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
                if self.packets() > 1 {
                    self.phase = Phase::Open;
                }
            }
        }
    }

    /// Packets of both ends.
    pub(crate) fn packets(&self) -> u64 {
        self.sent(0).packets + self.sent(1).packets
    }

    /// Counts a packet or a fragment.
    #[inline]
    pub(crate) fn count(&mut self, sample: &Sample) {
        let is_first = self.more.is_none() && self.opening.packets == 0;
        if !is_first {
            let past = self.past();
            let measures = &mut self.more_mut().measures;
            if measures.is_measured(past.sent[sample.sender].packets) {
                measures.on_packet(sample, &past);
            }
        }
        let sent = self.sent_mut(sample.sender);
        sent.packets += 1;
        sent.bytes += sample.ip_bytes;
        sent.payload += sample.payload_bytes;
        self.start_ns = self.start_ns.min(sample.time_ns);
        self.last_ns = self.last_ns.max(sample.time_ns);
    }

    fn past(&self) -> Past {
        let sent = [0, 1].map(|end| {
            let sent = self.sent(end);
            Before {
                packets: sent.packets,
                bytes: sent.bytes,
                payload_bytes: sent.payload,
                flags: sent.flags,
                // The one of an earlier part is not among these packets.
                syn: sent.syn().filter(|_| sent.flags & flags::SYN != 0),
            }
        });
        Past {
            sent,
            opener: self.opener(),
            first_ns: self.start_ns,
            last_ns: self.last_ns,
        }
    }

    /// The measures of the packets of `end`.
    pub(crate) fn measured(&self, end: End) -> Measured {
        let sent = &self.past().sent[end];
        match self.more() {
            Some(more) => more.measures.of(end, sent),
            None => Measures::default().of(end, sent),
        }
    }

    /// The round trip that opened the flow, if its client did so.
    pub(crate) fn round_trip(&self) -> RoundTrip {
        match self.more() {
            Some(more) if more.part == 0 && self.opener == self.client => {
                let is_tcp = self.key.transport == Transport::Tcp;
                more.measures.round_trip(&self.past(), is_tcp)
            }
            _ => RoundTrip::default(),
        }
    }

    #[inline]
    fn on_tcp(&mut self, sender: End, fields: TcpFields) {
        self.sent_mut(sender).flags |= fields.flags;
        let changing = flags::SYN | flags::FIN | flags::RST;
        if self.phase != Phase::Opening && fields.flags & changing == 0 {
            return;
        }
        if fields.flags & flags::SYN != 0 {
            self.sent_mut(sender).set_syn(fields.sequence);
            let is_answer = fields.flags & flags::ACK != 0;
            let client = if is_answer { other(sender) } else { sender };
            if is_answer && self.client_first == 0 {
                self.client_first = fields.acknowledgment;
            }
            self.set_client(client, ClientSource::Syn);
        }
        let [a, b] = [self.sent(0), self.sent(1)];
        let both = a.flags & b.flags;
        if fields.flags & flags::RST != 0 || both & flags::FIN != 0 {
            self.phase = Phase::Closed;
        } else if self.phase == Phase::Opening {
            // Of some connections only one direction passes the capture point.
            let one_sided = a.payload + b.payload > 0 && a.packets + b.packets > 2;
            if both & flags::ACK != 0 || one_sided {
                self.phase = Phase::Open;
            }
        }
    }

    /// Whether it was idle for too long when a packet arrives at `now_ns`.
    #[inline]
    pub(crate) fn is_idle(&self, timeouts: &Timeouts, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.last_ns) > self.idle_timeout_ns(timeouts)
    }

    /// Whether its record is due at `now_ns`, although it continues.
    #[inline]
    pub(crate) fn is_due(&self, timeouts: &Timeouts, now_ns: u64) -> bool {
        let lasted_ns = now_ns.saturating_sub(self.start_ns);
        timeouts
            .active_ns
            .is_some_and(|active_ns| lasted_ns >= active_ns)
    }

    /// Its idle time-out in nanoseconds.
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

impl More {
    /// A packet of the client, or of the server, has this address of the client, as a key on the path of the flow, whose key is
    /// `first`.
    fn on_address(&mut self, of_client: bool, first: &FlowKey, address: FlowKey) {
        if *self.address.as_deref().unwrap_or(first) == address {
            return;
        }
        if of_client {
            match &mut self.candidate {
                Some(candidate) => **candidate = address,
                None => self.candidate = Some(Box::new(address)),
            }
        } else if let Some(candidate) = &self.candidate
            && **candidate == address
        {
            self.address_changes += 1;
            for other in &mut self.aliases {
                other.is_confirmed |= other.key.on(first.path) == address;
            }
            match &mut self.address {
                Some(latest) => **latest = address,
                None => self.address = self.candidate.take(),
            }
        }
    }
}

/// The client by ports alone: the end with a client's port, if the other's is not.
fn client_by_port(ports: [u16; 2]) -> Option<End> {
    /// Privileged ports of services.
    const SYSTEM: u16 = 1024;
    /// The first ephemeral port of Linux; others begin above.
    const EPHEMERAL: u16 = 32768;
    let [a, b] = ports;
    match () {
        () if (a < SYSTEM) != (b < SYSTEM) => Some(usize::from(a < SYSTEM)),
        () if (a < EPHEMERAL) != (b < EPHEMERAL) => Some(usize::from(a < EPHEMERAL)),
        () => None,
    }
}
