//! The record of a flow.

use std::net::IpAddr;

use crate::decode::{Transport, flags};
use crate::inspect::{Label, LabelSource, Labels, other};
use crate::measures::Measured;
use crate::server_log::ServerLog;
use crate::table::{ClientSource, EndReason, Flow};

/// A flow, client to server. The text of a peer is in lower case or percent-encoded.
#[derive(Clone, Debug)]
pub struct Record {
    /// A number that its parts share; flows are numbered in the order of their first packets.
    pub flow_id: u64,
    /// How many records of the flow precede, which the active time-out ended.
    pub part: u32,
    /// Its first packet, in nanoseconds since 1970.
    pub start_ns: u64,
    /// Its last packet.
    pub end_ns: u64,
    /// Where the client is.
    pub client: Side,
    /// Where the server is.
    pub server: Side,
    /// TCP or UDP.
    pub transport: Transport,
    /// The name that the client asked for in TLS; with encrypted ClientHellos, the outer one.
    pub sni: Option<Box<str>>,
    /// The protocols that the client offered, with commas between them.
    pub alpn_offered: Option<Box<str>>,
    /// The protocol that the server chose.
    pub alpn_chosen: Option<Box<str>>,
    /// The version of HTTP: `h1`, `h2`, `h3` or `other`.
    pub http_version: Option<&'static str>,
    /// How it is known: `handshake`, `keylog` or `server_log`.
    pub label_source: Option<&'static str>,
    /// From the place of the capture to the server and back: from the client's SYN to its answer, or from the client's first
    /// datagram to the server's, in nanoseconds. Of a SYN that was repeated, nothing.
    pub server_rtt_ns: Option<u64>,
    /// From the place of the capture to the client and back: from the answer to the SYN to the client's ACK, in nanoseconds.
    pub client_rtt_ns: Option<u64>,
    /// How it is known which end is the client.
    pub client_source: ClientSource,
    /// Why it ended.
    pub end_reason: EndReason,
}

/// An end of a flow, and what it sent.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// Its address.
    pub ip: IpAddr,
    /// Its port.
    pub port: u16,
    /// Packets.
    pub packets: u64,
    /// Bytes of packets of IP, with their headers.
    pub bytes: u64,
    /// Bytes of content of TCP or UDP, repeated ones included.
    pub payload_bytes: u64,
    /// Whether a SYN was seen; never of UDP.
    pub syn: bool,
    /// Whether an ACK was seen.
    pub ack: bool,
    /// Whether a FIN was seen.
    pub fin: bool,
    /// All flags of TCP that were seen, as in a header; 0 of UDP.
    pub flags: u8,
    /// What was measured of its packets.
    pub measured: Measured,
}

impl Record {
    /// The record of a flow that has ended. What its packets do not show, `log` may.
    pub(crate) fn of(flow: &Flow, end_reason: EndReason, log: Option<&ServerLog>) -> Self {
        let key = flow.key();
        let side = |end| {
            let (endpoint, sent) = (key.endpoint(end), flow.sent[end]);
            Side {
                ip: endpoint.ip(),
                port: endpoint.port(),
                packets: sent.packets,
                bytes: sent.bytes,
                payload_bytes: sent.payload,
                syn: sent.flags & flags::SYN != 0,
                ack: sent.flags & flags::ACK != 0,
                fin: sent.flags & flags::FIN != 0,
                flags: sent.flags,
                measured: flow.measured(end),
            }
        };
        let [client, server] = [flow.client(), other(flow.client())].map(side);
        let round_trip = flow.round_trip();
        let labels = flow.labels.as_deref().cloned().unwrap_or_default();
        let mut record = Self {
            flow_id: flow.id,
            part: flow.part,
            start_ns: flow.start_ns,
            end_ns: flow.last_ns,
            client,
            server,
            transport: key.transport(),
            sni: None,
            alpn_offered: None,
            alpn_chosen: None,
            http_version: None,
            label_source: None,
            server_rtt_ns: round_trip.answer_ns,
            client_rtt_ns: round_trip.confirmation_ns,
            client_source: flow.client_source(),
            end_reason,
        };
        record.set_labels(labels, log);
        record
    }

    fn set_labels(&mut self, labels: Labels, log: Option<&ServerLog>) {
        let from_log = || {
            // A request that the server logged has an answer: without content of both ends, it is of another connection.
            let is_answered = self.client.payload_bytes > 0 && self.server.payload_bytes > 0;
            let log = log.filter(|_| is_answered)?;
            let client = (self.client.ip, self.client.port).into();
            let version = log.version(client, self.transport, self.start_s(), self.end_s())?;
            let source = LabelSource::ServerLog;
            Some(Label { version, source })
        };
        let label = labels.label.or_else(from_log);
        self.sni = labels.sni;
        self.alpn_offered = labels.alpn_offered;
        self.alpn_chosen = labels.alpn_chosen;
        self.http_version = label.map(|label| label.version.name());
        self.label_source = label.map(|label| label.source.name());
    }

    /// Its first packet, in seconds since 1970.
    pub fn start_s(&self) -> f64 {
        seconds(self.start_ns)
    }

    /// Its last packet, in seconds since 1970.
    pub fn end_s(&self) -> f64 {
        seconds(self.end_ns)
    }

    /// The first round trip between client and server, in nanoseconds: over TCP, from the SYN to the ACK of its answer; over UDP,
    /// from the first datagram to the first answer.
    pub fn first_rtt_ns(&self) -> Option<u64> {
        match self.transport {
            Transport::Tcp => Some(self.server_rtt_ns? + self.client_rtt_ns?),
            Transport::Udp => self.server_rtt_ns,
        }
    }

    /// From its first to its last packet, in seconds.
    pub fn duration_s(&self) -> f64 {
        seconds(self.end_ns.saturating_sub(self.start_ns))
    }
}

/// Nanoseconds in seconds; exact to a quarter of a microsecond in this century.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
