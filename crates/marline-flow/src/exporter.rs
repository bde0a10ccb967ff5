//! Packets in, records out.

use crate::capture::{Item, Packet};
use crate::decode::{
    Aggregate, Decoded, Fragment, Layers, Malformed, Segment, Skipped, TcpFields, Transport,
    decode, flags,
};
use crate::fragments::{First, Fragmented, Fragments};
use crate::inspect::{Content, End, Progress, Quic, QuicContext, QuicIds, QuicVersion, Tcp};
use crate::keylog::KeyLog;
use crate::limits::{MAX_BEFORE_QUIC, MAX_INSPECTED};
use crate::measures::Sample;
use crate::output::{OutputError, Sink};
use crate::record::Record;
use crate::server_log::ServerLog;
use crate::statistics::Statistics;
use crate::table::{
    ClientSource, Directed, EndReason, Flow, Found, Inspection, Options, Phase, Slot, Table,
};

/// The sources of labels in addition to the packets.
#[derive(Debug, Default)]
pub struct Sources {
    /// Secrets of TLS, in addition to those in captures.
    pub keys: Option<KeyLog>,
    /// The access log of a server.
    pub server_log: Option<ServerLog>,
}

/// Makes records of flows from packets.
///
/// Packets are given approximately in the order of their times, which are the only clock of time-outs.
pub struct Exporter<S> {
    table: Table,
    fragments: Fragments,
    inspector: Inspector,
    server_log: Option<ServerLog>,
    statistics: Statistics,
    sink: S,
    /// The latest time of a packet.
    clock_ns: u64,
    /// The layers around the current packet.
    layers: Layers,
}

/// The inspector of the beginnings of connections.
struct Inspector {
    /// The given secrets, and those of captures.
    keys: KeyLog,
    /// Bytes of all connections under inspection.
    held: usize,
    scratch: Vec<u8>,
    /// The IDs of the connection of the last packet, if it showed them.
    ids: Option<QuicIds>,
}

/// Largest step back in time between captures that follow each other: they overlap by a moment.
const OVERLAP_NS: u64 = 10_000_000_000;

impl<S: Sink> Exporter<S> {
    /// An exporter without flows, whose records go to `sink`.
    pub fn new(options: Options, sources: Sources, sink: S) -> Self {
        Self {
            table: Table::new(options),
            fragments: Fragments::new(),
            inspector: Inspector {
                keys: sources.keys.unwrap_or_default(),
                held: 0,
                scratch: Vec::new(),
                ids: None,
            },
            server_log: sources.server_log,
            statistics: Statistics::default(),
            sink,
            clock_ns: 0,
            layers: Layers::default(),
        }
    }

    /// The counts so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The number of active flows.
    pub fn active_flows(&self) -> usize {
        self.table.len()
    }

    /// Takes a packet, or a secret that decrypts packets after it.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if a record cannot be written.
    #[inline]
    pub fn item(&mut self, item: &Item<'_>) -> Result<(), OutputError> {
        match item {
            Item::Packet(packet) => self.packet(packet),
            // A malformed line is counted as a malformed packet is: neither ends an export.
            Item::KeyLogLine(line) => {
                let taken = self.inspector.keys.add_line(line);
                self.statistics.key_log_lines.count(taken);
                Ok(())
            }
        }
    }

    /// Takes a packet.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if a record cannot be written.
    #[inline]
    pub fn packet(&mut self, packet: &Packet<'_>) -> Result<(), OutputError> {
        let now_ns = packet.time_ns;
        self.statistics.packets += 1;
        self.statistics.bytes += packet.length as u64;
        self.statistics.cut += u64::from(packet.data.len() < packet.length);
        if now_ns > self.clock_ns {
            self.advance(now_ns)?;
        } else if self.clock_ns - now_ns > OVERLAP_NS {
            // Another capture, of an earlier time.
            self.statistics.back_in_time += 1;
            self.end_all()?;
            self.clock_ns = now_ns;
        }
        // By reference: moved out, it would be copied. Without copies on a packet's way an export of cut packets takes a fifth less
        // time.
        let decoded = &decode(packet, &mut self.layers);
        self.decoded(decoded, now_ns)
    }

    #[inline(always)]
    fn decoded(&mut self, decoded: &Decoded<'_>, now_ns: u64) -> Result<(), OutputError> {
        match decoded {
            Decoded::Segment(segment) => self.segment(segment, now_ns)?,
            Decoded::Fragment(fragment) => self.fragment(fragment, now_ns),
            Decoded::Aggregate(aggregate) => return self.aggregate(*aggregate, now_ns),
            Decoded::Skipped(why) => self.statistics.skipped.count(*why),
            Decoded::Malformed(why) => self.statistics.malformed.count(*why),
        }
        if let Some(key) = self.layers.fragment() {
            let (key, path) = (*key, None);
            self.fragments
                .expect(Fragmented { key, path }, First::Tunnel, now_ns);
        }
        Ok(())
    }

    /// Takes the packets of an aggregate frame.
    #[inline(never)]
    fn aggregate(&mut self, mut aggregate: Aggregate<'_>, now_ns: u64) -> Result<(), OutputError> {
        let mut number = 0;
        while let Some(decoded) = aggregate.next(&mut self.layers) {
            self.decoded(&decoded, now_ns)?;
            number += 1;
        }
        match number {
            0 => self.statistics.malformed.count(Malformed::Link),
            number => self.statistics.packets += number - 1,
        }
        Ok(())
    }

    fn fragment(&mut self, fragment: &Fragment, now_ns: u64) {
        let key = fragment.key;
        let path = self.table.path(&self.layers);
        let [of_flow, of_tunnel] =
            [path, None].map(|path| self.fragments.find(&Fragmented { key, path }, now_ns));
        let found = match of_flow.or(of_tunnel) {
            Some(First::Of(directed)) => self.table.find(&directed),
            Some(First::Tunnel) => {
                return self.statistics.skipped.count(Skipped::TunnelFragment);
            }
            None => None,
        };
        match found {
            Some(Found { slot, sender }) => self.table.get_mut(slot).count(&Sample {
                sender,
                time_ns: now_ns,
                ip_bytes: fragment.ip_bytes,
                payload_bytes: fragment.payload_bytes,
                tcp: None,
            }),
            None => self.statistics.skipped.count(Skipped::LoneFragment),
        }
    }

    /// Advances the time to `now_ns`, in nanoseconds since 1970, without a packet: idle flows end, and files that are due are
    /// completed.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if a record cannot be written.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) -> Result<(), OutputError> {
        if now_ns <= self.clock_ns {
            return Ok(());
        }
        self.clock_ns = now_ns;
        self.sink.advance(now_ns)?;
        while let Some(slot) = self.table.next_idle(now_ns) {
            self.end(slot, EndReason::Idle)?;
        }
        Ok(())
    }

    /// The destination of records.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// The same, mutable, to divide the output.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    #[inline]
    fn segment(&mut self, segment: &Segment<'_>, now_ns: u64) -> Result<(), OutputError> {
        let directed = self.table.key(segment, &self.layers);
        self.table.hold_key(&directed.key);
        let found = match self.table.find(&directed) {
            Some(found) => Some(found),
            None => self.table.find_moved(&directed, segment.payload),
        };
        let Found { slot, sender } = match found {
            Some(found) => self.continue_flow(found, &directed, segment, now_ns)?,
            None => self.begin_flow(&directed, now_ns)?,
        };
        self.table.release_key(&directed.key);
        let flow = self.table.get_mut(slot);
        flow.on_key(sender, &directed.key);
        flow.on_segment(sender, segment, now_ns);
        if !flow.inspected {
            let uninspected = self.inspector.inspect(flow, sender, segment);
            self.statistics.uninspected += u64::from(uninspected);
            if let Some(ids) = self.inspector.ids.take() {
                self.table.set_quic(slot, ids);
            }
        }
        self.table.requeue_if_changed(slot);
        if let Some(key) = segment.fragment {
            let path = Some(directed.key.path());
            self.fragments
                .expect(Fragmented { key, path }, First::Of(directed), now_ns);
        }
        Ok(())
    }

    /// The flow that a packet belongs to, given the one between its ports: that one, or a new one.
    #[inline]
    fn continue_flow(
        &mut self,
        found: Found,
        directed: &Directed,
        segment: &Segment<'_>,
        now_ns: u64,
    ) -> Result<Found, OutputError> {
        let timeouts = &self.table.options().timeouts;
        let flow = self.table.get(found.slot);
        let reason = if flow.is_reused_by(found.sender, segment)
            || self.inspector.is_reused(flow, found.sender, segment)
        {
            EndReason::Reused
        } else if flow.is_idle(timeouts, now_ns) {
            EndReason::Idle
        } else if flow.is_due(timeouts, now_ns) {
            EndReason::Active
        } else {
            return Ok(found);
        };
        self.begin_next(found, reason, directed, now_ns)
    }

    /// Ends a flow, and begins another between the same ports, or its next part.
    #[cold]
    fn begin_next(
        &mut self,
        found: Found,
        reason: EndReason,
        directed: &Directed,
        now_ns: u64,
    ) -> Result<Found, OutputError> {
        let Found { slot, sender } = found;
        if reason == EndReason::Active {
            let next = self.table.get_mut(slot).continued(sender, now_ns);
            let ended = self.table.replace(slot, next);
            self.write(&ended, reason)?;
            return Ok(found);
        }
        // A connection that begins from another address than the first of one does not end that one.
        if reason == EndReason::Reused && self.table.get(slot).has_moved_to(&directed.key) {
            self.table.remove_alias(slot, &directed.key);
        } else {
            self.end(slot, reason)?;
        }
        self.begin_flow(directed, now_ns)
    }

    fn begin_flow(&mut self, directed: &Directed, now_ns: u64) -> Result<Found, OutputError> {
        if self.table.is_full()
            && let Some(oldest) = self.table.oldest()
        {
            self.statistics.evicted += 1;
            self.end(oldest, EndReason::Evicted)?;
        }
        self.statistics.flows += 1;
        *match directed.key.transport() {
            Transport::Tcp => &mut self.statistics.transports.tcp,
            Transport::Udp => &mut self.statistics.transports.udp,
        } += 1;
        let id = self.table.new_id();
        Ok(Found {
            slot: self.table.insert(Flow::new(*directed, id, now_ns)),
            sender: directed.sender,
        })
    }

    fn end(&mut self, slot: Slot, reason: EndReason) -> Result<(), OutputError> {
        let mut flow = self.table.remove(slot);
        self.inspector.release(&mut flow);
        let written = self.write(&flow, reason);
        self.table.release(&flow);
        written
    }

    fn end_all(&mut self) -> Result<(), OutputError> {
        for slot in self.table.in_order() {
            self.end(slot, EndReason::Capture)?;
        }
        Ok(())
    }

    fn write(&mut self, flow: &Flow, reason: EndReason) -> Result<(), OutputError> {
        // The reason for the end is the event that closed the connection, not the one that made its record due.
        let reset = (flow.sent(0).flags | flow.sent(1).flags) & flags::RST != 0;
        let reason = match (flow.phase(), reset) {
            (Phase::Closed, true) => EndReason::Reset,
            (Phase::Closed, false) => EndReason::Fin,
            _ => reason,
        };
        let record = Record::of(flow, reason, self.table.paths(), self.server_log.as_ref());
        self.statistics.count_record(&record);
        self.sink.write(&record)
    }

    /// Ends all flows, and returns the counts.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if a record cannot be written.
    pub fn finish(mut self) -> Result<Finished<S>, OutputError> {
        self.end_all()?;
        Ok(Finished {
            sink: self.sink,
            statistics: self.statistics,
        })
    }
}

/// The result of an exporter.
#[derive(Debug)]
pub struct Finished<S> {
    /// The destination of the records.
    pub sink: S,
    /// The counts.
    pub statistics: Statistics,
}

impl Inspector {
    /// Inspects a packet of a flow whose beginning is not known yet. Returns whether there was no memory for it.
    fn inspect(&mut self, flow: &mut Flow, sender: End, segment: &Segment<'_>) -> bool {
        if segment.payload.is_empty() {
            return false;
        }
        let before = held(flow);
        if before == 0 && self.held > MAX_INSPECTED {
            self.end(flow);
            return true;
        }
        let progress = match segment.tcp {
            Some(fields) => self.inspect_tcp(flow, sender, fields, segment.payload),
            None => self.inspect_datagram(flow, sender, segment.payload),
        };
        let client = match flow.more().and_then(|more| more.inspection.as_ref()) {
            Some(Inspection::Tcp(tcp)) => tcp.client(),
            Some(Inspection::Quic(quic)) => Some(quic.client()),
            None => None,
        };
        if let Some(client) = client {
            flow.set_client(client, ClientSource::Handshake);
        }
        self.held = self.held + held(flow) - before;
        if progress == Progress::Done {
            self.end(flow);
        }
        false
    }

    fn inspect_tcp(
        &self,
        flow: &mut Flow,
        sender: End,
        fields: TcpFields,
        payload: &[u8],
    ) -> Progress {
        let sent = [0, 1].map(|end| *flow.sent(end));
        // A SYN counts as one byte before the data that may come with it (RFC 7413).
        let syn = u32::from(fields.flags & flags::SYN != 0);
        let content = Content {
            sender,
            sequence: fields.sequence.wrapping_add(syn),
            acknowledgment: (fields.flags & flags::ACK != 0).then_some(fields.acknowledgment),
            client_first: flow.client_first(),
            payload,
            is_seen: sent.map(|sent| sent.packets > 0),
        };
        let more = flow.more_mut();
        let begin = || Inspection::Tcp(Box::new(Tcp::new(sent.map(|sent| sent.syn()))));
        let labels = more.labels.get_or_insert_default();
        match more.inspection.get_or_insert_with(begin) {
            Inspection::Tcp(tcp) => tcp.on_segment(&content, &self.keys, labels),
            Inspection::Quic(_) => Progress::Done,
        }
    }

    fn inspect_datagram(&mut self, flow: &mut Flow, sender: End, payload: &[u8]) -> Progress {
        if flow.more().is_none_or(|more| more.inspection.is_none()) {
            let packets = flow.packets();
            if let Some(version) = QuicVersion::of_unreadable(payload) {
                let labels = flow.more_mut().labels.get_or_insert_default();
                labels.on_unreadable_quic(&version, payload);
                return Progress::Done;
            }
            let Some(quic) = Quic::begin(sender, payload, &mut self.scratch) else {
                return match packets >= MAX_BEFORE_QUIC {
                    true => Progress::Done,
                    false => Progress::Continues,
                };
            };
            flow.more_mut().inspection = Some(Inspection::Quic(Box::new(quic)));
        }
        let more = flow.more_mut();
        let mut context = QuicContext {
            keys: &self.keys,
            labels: more.labels.get_or_insert_default(),
            scratch: &mut self.scratch,
        };
        let Some(Inspection::Quic(quic)) = more.inspection.as_mut() else {
            return Progress::Done;
        };
        let progress = quic.on_datagram(sender, payload, &mut context);
        let ids = quic.ids();
        self.ids = (more.quic.as_deref() != Some(&ids)).then_some(ids);
        progress
    }

    /// Whether a datagram begins another QUIC connection between the ports of an existing one.
    #[inline(always)]
    fn is_reused(&mut self, flow: &Flow, sender: End, segment: &Segment<'_>) -> bool {
        let begins = segment.tcp.is_none() && QuicIds::may_begin(segment.payload);
        begins && self.begins_another(flow, sender, segment.payload)
    }

    #[inline(never)]
    fn begins_another(&mut self, flow: &Flow, sender: End, payload: &[u8]) -> bool {
        let ids = flow.more().and_then(|more| more.quic.as_deref());
        ids.is_some_and(|ids| ids.are_followed_by(sender, payload, &mut self.scratch))
    }

    /// Ends the inspection of a flow.
    fn end(&mut self, flow: &mut Flow) {
        self.release(flow);
        flow.inspected = true;
        if flow.more().is_some() {
            let labels = &mut flow.more_mut().labels;
            labels.take_if(|labels| labels.is_empty());
        }
    }

    /// Frees the memory of the inspection of a flow.
    fn release(&mut self, flow: &mut Flow) {
        if flow.more().is_some()
            && let Some(inspection) = flow.more_mut().inspection.take()
        {
            self.held -= inspection.held();
        }
    }
}

/// Bytes of memory of the inspection of a flow.
fn held(flow: &Flow) -> usize {
    let inspection = flow.more().and_then(|more| more.inspection.as_ref());
    inspection.map_or(0, Inspection::held)
}

#[cfg(test)]
mod tests;
