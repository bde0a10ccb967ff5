//! Packets in, records out.

use crate::capture::{Item, Packet};
use crate::decode::{Decoded, Segment, Skipped, TcpFields, Transport, decode, flags};
use crate::fragments::Fragments;
use crate::inspect::{Content, End, Labels, Progress, Quic, QuicContext, Tcp};
use crate::keylog::KeyLog;
use crate::limits::{MAX_BEFORE_QUIC, MAX_INSPECTED};
use crate::measures::Sample;
use crate::output::{OutputError, Sink};
use crate::record::Record;
use crate::server_log::ServerLog;
use crate::statistics::Statistics;
use crate::table::{
    ClientSource, Directed, EndReason, Flow, Inspection, Options, Phase, Slot, Table,
};

/// Where labels come from beside the packets.
#[derive(Debug, Default)]
pub struct Sources {
    /// Secrets of TLS, beside those in captures.
    pub keys: Option<KeyLog>,
    /// The access log of a server.
    pub server_log: Option<ServerLog>,
}

/// Makes records of flows from packets.
///
/// Packets are given in the order of their times, about; the clock of time-outs is their times alone.
pub struct Exporter<S> {
    table: Table,
    fragments: Fragments,
    inspector: Inspector,
    server_log: Option<ServerLog>,
    statistics: Statistics,
    sink: S,
    /// The latest time of a packet.
    clock_ns: u64,
}

/// What looks at the beginnings of connections.
struct Inspector {
    /// Those that were given, and those that captures have.
    keys: KeyLog,
    /// Bytes of all connections that are looked at.
    held: usize,
    scratch: Vec<u8>,
}

/// How far the times of a capture may be before those of the one before it: captures that follow each other overlap by a moment.
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
            },
            server_log: sources.server_log,
            statistics: Statistics::default(),
            sink,
            clock_ns: 0,
        }
    }

    /// What was counted so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// How many flows are under way.
    pub fn active_flows(&self) -> usize {
        self.table.len()
    }

    /// Takes a packet, or a secret that opens packets after it.
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
        match &decode(packet) {
            Decoded::Segment(segment) => self.segment(segment, now_ns),
            Decoded::Fragment(fragment) => {
                let of = self.fragments.find(&fragment.key, now_ns);
                let found = of.and_then(|of| Some((of.sender, self.table.find(&of.key)?)));
                match found {
                    Some((sender, slot)) => self.table.get_mut(slot).count(&Sample {
                        sender,
                        time_ns: now_ns,
                        ip_bytes: fragment.ip_bytes,
                        payload_bytes: fragment.payload_bytes,
                        tcp: None,
                    }),
                    None => self.statistics.skipped.count(Skipped::LoneFragment),
                }
                Ok(())
            }
            Decoded::Skipped(why) => {
                self.statistics.skipped.count(*why);
                Ok(())
            }
            Decoded::Malformed(why) => {
                self.statistics.malformed.count(*why);
                Ok(())
            }
        }
    }

    /// The time is `now_ns`, in nanoseconds since 1970, though no packet says so: flows that are idle end, and files that are due are
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

    /// Where records go.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    #[inline]
    fn segment(&mut self, segment: &Segment<'_>, now_ns: u64) -> Result<(), OutputError> {
        let directed = Directed::of(segment);
        let slot = match self.table.find(&directed.key) {
            Some(slot) => self.continue_flow(slot, &directed, segment, now_ns)?,
            None => self.begin_flow(&directed, now_ns)?,
        };
        let flow = self.table.get_mut(slot);
        flow.on_segment(directed.sender, segment, now_ns);
        if !flow.inspected {
            let uninspected = self.inspector.inspect(flow, directed.sender, segment);
            self.statistics.uninspected += u64::from(uninspected);
        }
        self.table.requeue_if_changed(slot);
        if let Some(key) = segment.fragment() {
            self.fragments.expect(key, directed, now_ns);
        }
        Ok(())
    }

    /// The flow that a packet belongs to, where there is one between its ports: that one, or another that begins.
    #[inline]
    fn continue_flow(
        &mut self,
        slot: Slot,
        directed: &Directed,
        segment: &Segment<'_>,
        now_ns: u64,
    ) -> Result<Slot, OutputError> {
        let timeouts = &self.table.options().timeouts;
        let flow = self.table.get(slot);
        let reason = if flow.is_reused_by(directed.sender, segment) {
            EndReason::Reused
        } else if flow.is_idle(timeouts, now_ns) {
            EndReason::Idle
        } else if flow.is_due(timeouts, now_ns) {
            EndReason::Active
        } else {
            return Ok(slot);
        };
        self.begin_next(slot, reason, directed, now_ns)
    }

    /// Ends a flow, and begins another between the same ports, or its next part.
    #[cold]
    fn begin_next(
        &mut self,
        slot: Slot,
        reason: EndReason,
        directed: &Directed,
        now_ns: u64,
    ) -> Result<Slot, OutputError> {
        if reason == EndReason::Active {
            let next = self.table.get_mut(slot).continued(directed.sender, now_ns);
            let ended = self.table.remove(slot);
            self.write(&ended, reason)?;
            return Ok(self.table.insert(next));
        }
        self.end(slot, reason)?;
        self.begin_flow(directed, now_ns)
    }

    fn begin_flow(&mut self, directed: &Directed, now_ns: u64) -> Result<Slot, OutputError> {
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
        Ok(self.table.insert(Flow::new(*directed, id, now_ns)))
    }

    fn end(&mut self, slot: Slot, reason: EndReason) -> Result<(), OutputError> {
        let mut flow = self.table.remove(slot);
        self.inspector.release(&mut flow);
        self.write(&flow, reason)
    }

    fn end_all(&mut self) -> Result<(), OutputError> {
        for mut flow in self.table.drain() {
            self.inspector.release(&mut flow);
            self.write(&flow, EndReason::Capture)?;
        }
        Ok(())
    }

    fn write(&mut self, flow: &Flow, reason: EndReason) -> Result<(), OutputError> {
        // What closed a connection is the reason of its end, not what made its record due.
        let reset = (flow.sent[0].flags | flow.sent[1].flags) & flags::RST != 0;
        let reason = match (flow.phase(), reset) {
            (Phase::Closed, true) => EndReason::Reset,
            (Phase::Closed, false) => EndReason::Fin,
            _ => reason,
        };
        let record = Record::of(flow, reason, self.server_log.as_ref());
        self.statistics.count_record(&record);
        self.sink.write(&record)
    }

    /// Ends all flows, and returns what was counted.
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

/// What an exporter leaves.
#[derive(Debug)]
pub struct Finished<S> {
    /// Where the records went.
    pub sink: S,
    /// What was counted.
    pub statistics: Statistics,
}

impl Inspector {
    /// Looks at a packet of a flow whose beginning is not known yet. Whether there was no memory for it.
    fn inspect(&mut self, flow: &mut Flow, sender: End, segment: &Segment<'_>) -> bool {
        if segment.payload.is_empty() {
            return false;
        }
        let before = flow.inspection.as_ref().map_or(0, Inspection::held);
        if before == 0 && self.held > MAX_INSPECTED {
            self.end(flow);
            return true;
        }
        let progress = match segment.tcp {
            Some(fields) => self.inspect_tcp(flow, sender, fields, segment.payload),
            None => self.inspect_datagram(flow, sender, segment.payload),
        };
        let client = match &flow.inspection {
            Some(Inspection::Tcp(tcp)) => tcp.client(),
            Some(Inspection::Quic(quic)) => Some(quic.client()),
            None => None,
        };
        if let Some(client) = client {
            flow.set_client(client, ClientSource::Handshake);
        }
        let after = flow.inspection.as_ref().map_or(0, Inspection::held);
        self.held = self.held + after - before;
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
        let syns = flow.sent.map(|sent| sent.syn);
        let inspection = flow
            .inspection
            .get_or_insert_with(|| Inspection::Tcp(Box::new(Tcp::new(syns))));
        let Inspection::Tcp(tcp) = inspection else {
            return Progress::Done;
        };
        // A SYN counts as one byte before the data that may come with it (RFC 7413).
        let syn = u32::from(fields.flags & flags::SYN != 0);
        let content = Content {
            sender,
            sequence: fields.sequence.wrapping_add(syn),
            payload,
            is_seen: flow.sent.map(|sent| sent.packets > 0),
        };
        let labels = flow.labels.get_or_insert_default();
        tcp.on_segment(&content, &self.keys, labels)
    }

    fn inspect_datagram(&mut self, flow: &mut Flow, sender: End, payload: &[u8]) -> Progress {
        let labels = flow.labels.get_or_insert_default();
        let mut context = QuicContext {
            keys: &self.keys,
            labels,
            scratch: &mut self.scratch,
        };
        if flow.inspection.is_none() {
            match Quic::begin(sender, payload, &mut context) {
                Some(quic) => flow.inspection = Some(Inspection::Quic(Box::new(quic))),
                None if flow.sent[0].packets + flow.sent[1].packets >= MAX_BEFORE_QUIC => {
                    return Progress::Done;
                }
                None => return Progress::Continues,
            }
        }
        match &mut flow.inspection {
            Some(Inspection::Quic(quic)) => quic.on_datagram(sender, payload, &mut context),
            _ => Progress::Done,
        }
    }

    /// Ends the inspection of a flow.
    fn end(&mut self, flow: &mut Flow) {
        self.release(flow);
        flow.inspected = true;
        if flow.labels.as_deref().is_some_and(Labels::is_empty) {
            flow.labels = None;
        }
    }

    /// Frees the memory of the inspection of a flow.
    fn release(&mut self, flow: &mut Flow) {
        if let Some(inspection) = flow.inspection.take() {
            self.held -= inspection.held();
        }
    }
}

#[cfg(test)]
mod tests;
