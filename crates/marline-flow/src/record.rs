//! The record of a flow.

use std::net::IpAddr;

use crate::decode::{Endpoint, Layer, Transport, Tunnel, flags};
use crate::inspect::{Label, LabelSource, Labels, other};
use crate::measures::Measured;
use crate::server_log::ServerLog;
use crate::table::{ClientSource, EndReason, Flow, Paths};

/// A flow, client to server. The text of a peer is in lower case or percent-encoded.
#[derive(Clone, Debug)]
pub struct Record {
    /// A number shared by its parts; flows are numbered in the order of their first packets.
    pub flow_id: u64,
    /// The number of earlier records of the flow, which the active time-out ended.
    pub part: u32,
    /// Its first packet, in nanoseconds since 1970.
    pub start_ns: u64,
    /// Its last packet.
    pub end_ns: u64,
    /// The client's end.
    pub client: Side,
    /// The server's end.
    pub server: Side,
    /// TCP or UDP.
    pub transport: Transport,
    /// The name that the client asked for in TLS; with encrypted ClientHellos, the outer one.
    pub sni: Option<Box<str>>,
    /// The protocols that the client offered, separated by commas.
    pub alpn_offered: Option<Box<str>>,
    /// The protocol that the server chose.
    pub alpn_chosen: Option<Box<str>>,
    /// The version of HTTP: `h1`, `h2`, `h3` or `other`.
    pub http_version: Option<&'static str>,
    /// The source of the version: `handshake`, `keylog` or `server_log`.
    pub label_source: Option<&'static str>,
    /// Round-trip time from the capture point to the server: from the client's SYN to its answer, or from the client's first
    /// datagram to the server's, in nanoseconds. `None` if the SYN was repeated.
    pub server_rtt_ns: Option<u64>,
    /// Round-trip time from the capture point to the client: from the answer to the SYN to the client's ACK, in nanoseconds.
    pub client_rtt_ns: Option<u64>,
    /// The evidence by which the client was identified.
    pub client_source: ClientSource,
    /// The reason for its end.
    pub end_reason: EndReason,
    /// The VLANs of its packets, outermost first, separated by slashes.
    pub vlan: Option<Box<str>>,
    /// The tunnels around its packets, if any.
    pub tunnel: Option<Box<TunnelRecord>>,
    /// The version of QUIC: `1`, `2`, `draft-29`, `Q043` and the like.
    pub quic_version: Option<Box<str>>,
    /// The number of changes of the client's address, in a QUIC connection.
    pub address_changes: u32,
}

/// The tunnels around the packets of a flow, outermost first, separated by slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelRecord {
    /// Their kinds.
    pub kinds: Box<str>,
    /// The outer source address of the client's packets, of the outermost tunnel over IP.
    pub client_ip: Option<IpAddr>,
    /// Their outer destination address.
    pub server_ip: Option<IpAddr>,
    /// The identifiers in packets of the client: TEID, VNI, key, session, label; empty for kinds without one, or if unseen.
    pub client_ids: Option<Box<str>>,
    /// Those in packets of the server.
    pub server_ids: Option<Box<str>>,
}

/// An end of a flow, and its packets.
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
    /// Bytes of content of TCP or UDP, including repeated ones.
    pub payload_bytes: u64,
    /// Whether a SYN was seen; `false` for UDP.
    pub syn: bool,
    /// Whether an ACK was seen.
    pub ack: bool,
    /// Whether a FIN was seen.
    pub fin: bool,
    /// All flags of TCP that were seen, as in a header; 0 for UDP.
    pub flags: u8,
    /// The measures of its packets.
    pub measured: Measured,
}

impl Record {
    /// The record of a flow that has ended. `log` supplies labels that its packets do not show.
    pub(crate) fn of(
        flow: &Flow,
        end_reason: EndReason,
        paths: &Paths,
        log: Option<&ServerLog>,
    ) -> Self {
        let key = flow.key();
        let side = |end| {
            let (endpoint, sent) = (key.endpoint(end), flow.sent(end));
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
        let labels = flow.more().and_then(|more| more.labels.as_deref());
        let labels = labels.cloned().unwrap_or_default();
        let mut record = Self {
            flow_id: flow.id,
            part: flow.part(),
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
            vlan: None,
            tunnel: None,
            quic_version: None,
            address_changes: flow.address_changes(),
        };
        record.set_layers(flow, paths);
        record.set_labels(labels, log);
        record
    }

    fn set_layers(&mut self, flow: &Flow, paths: &Paths) {
        let mut of_ends = flow
            .paths(paths)
            .map(|path| path.map(|path| paths.layers(path)));
        of_ends.rotate_left(flow.client());
        let ([Some(layers), _] | [_, Some(layers)]) = of_ends else {
            return;
        };
        if layers.is_empty() {
            return;
        }
        let vlans = layers.iter().filter_map(|layer| match layer {
            Layer::Vlan(id) => Some(id.to_string()),
            Layer::Tunnel(_) => None,
        });
        self.vlan = joined(&vlans.collect::<Vec<_>>());
        let tunnels = |layers: &'_ [Layer]| -> Vec<Tunnel> {
            let tunnels = layers.iter().filter_map(|layer| match layer {
                Layer::Tunnel(tunnel) => Some(*tunnel),
                Layer::Vlan(_) => None,
            });
            tunnels.collect()
        };
        let kinds: Vec<_> = tunnels(layers)
            .iter()
            .map(|tunnel| tunnel.kind.name().to_owned())
            .collect();
        let Some(kinds) = joined(&kinds) else {
            return;
        };
        let [client_ids, server_ids] = of_ends.map(|layers| {
            let ids = tunnels(layers?).into_iter().map(|tunnel| tunnel.id);
            let ids: Vec<_> = ids
                .map(|id| id.map_or_else(String::new, |id| id.to_string()))
                .collect();
            joined(&ids).filter(|ids| ids.bytes().any(|byte| byte != b'/'))
        });
        let outer = flow.outer_ends(paths);
        let [client_ip, server_ip] =
            [0, 1].map(|end: usize| outer.map(|ends| Endpoint::new(ends[end], 0).ip()));
        self.tunnel = Some(Box::new(TunnelRecord {
            kinds,
            client_ip,
            server_ip,
            client_ids,
            server_ids,
        }));
    }

    fn set_labels(&mut self, labels: Labels, log: Option<&ServerLog>) {
        let from_log = || {
            // A request logged by the server has an answer: without content of both ends, it belongs to another connection.
            let is_answered = self.client.payload_bytes > 0 && self.server.payload_bytes > 0;
            let log = log.filter(|_| is_answered)?;
            let client = (self.client.ip, self.client.port).into();
            let version = log.version(client, self.transport, self.start_s(), self.end_s())?;
            let source = LabelSource::ServerLog;
            Some(Label { version, source })
        };
        let label = labels.label.or_else(from_log);
        self.quic_version = labels.quic_version.map(|version| version.name().into());
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

    /// The time from its first to its last packet, in seconds.
    pub fn duration_s(&self) -> f64 {
        seconds(self.end_ns.saturating_sub(self.start_ns))
    }
}

/// Texts separated by slashes; `None` if there are none.
fn joined(texts: &[String]) -> Option<Box<str>> {
    (!texts.is_empty()).then(|| texts.join("/").into())
}

/// Nanoseconds in seconds; exact to a quarter of a microsecond in this century.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
