//! The counts of an export.

use serde::Serialize;

use crate::decode::{Malformed, Skipped};
use crate::keylog::Refused;
use crate::record::Record;
use crate::table::EndReason;

/// Counts of an export. Every packet belongs to a flow, is skipped, or is malformed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Statistics {
    /// Packets read; each of those in an aggregate frame counts.
    pub packets: u64,
    /// Their bytes on the link.
    pub bytes: u64,
    /// Records written.
    pub records: u64,
    /// Flows.
    pub flows: u64,
    /// Flows by transport.
    pub transports: Transports,
    /// Records by version of HTTP.
    pub http_versions: Versions,
    /// Records by the source of their label.
    pub label_sources: Sources,
    /// Records by the reason for their end.
    pub ended: Ended,
    /// Packets outside flows.
    pub skipped: SkippedCounts,
    /// Packets that cannot be decoded.
    pub malformed: MalformedCounts,
    /// Flows that ended because there were too many.
    pub evicted: u64,
    /// Connections that were not inspected because too many were in progress.
    pub uninspected: u64,
    /// Packets that were not captured completely.
    pub cut: u64,
    /// The number of packets more than ten seconds earlier than the previous one: they share no flows with those
    /// before.
    pub back_in_time: u64,
    /// Lines of key logs in captures.
    pub key_log_lines: KeyLogLines,
}

/// Flows by transport.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Transports {
    /// Over TCP.
    pub tcp: u64,
    /// Over UDP.
    pub udp: u64,
}

/// Records by version of HTTP.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Versions {
    /// HTTP/1.
    pub h1: u64,
    /// HTTP/2.
    pub h2: u64,
    /// HTTP/3.
    pub h3: u64,
    /// Another protocol.
    pub other: u64,
    /// Unknown.
    pub unknown: u64,
}

/// Records by the source of their label.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sources {
    /// The packets show it.
    pub handshake: u64,
    /// Secrets of a key log decrypted the packets that show it.
    pub keylog: u64,
    /// The access log of a server.
    pub server_log: u64,
}

/// Records by the reason for their end.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Ended {
    /// Both ends sent FIN.
    pub fin: u64,
    /// An end sent RST.
    pub reset: u64,
    /// By the idle time-out.
    pub idle: u64,
    /// By the active time-out; another record of the flow follows.
    pub active: u64,
    /// The same ports began another connection.
    pub reused: u64,
    /// There were too many flows.
    pub evicted: u64,
    /// The capture ended.
    pub capture: u64,
}

impl Ended {
    fn count(&mut self, reason: EndReason) {
        *match reason {
            EndReason::Fin => &mut self.fin,
            EndReason::Reset => &mut self.reset,
            EndReason::Idle => &mut self.idle,
            EndReason::Active => &mut self.active,
            EndReason::Reused => &mut self.reused,
            EndReason::Evicted => &mut self.evicted,
            EndReason::Capture => &mut self.capture,
        } += 1;
    }
}

/// Packets outside flows, by reason.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SkippedCounts {
    /// Neither IPv4 nor IPv6.
    pub not_ip: u64,
    /// Neither TCP nor UDP.
    pub other_transport: u64,
    /// Tunnels that are not decoded: of other kinds, without content, or too deep in others.
    pub tunnel: u64,
    /// Encrypted: ESP, frames of 802.11, CAPWAP over DTLS.
    pub protected: u64,
    /// Fragments without their first fragment.
    pub lone_fragment: u64,
    /// Later fragments of packets with tunnels, whose content counts with the first one.
    pub tunnel_fragment: u64,
    /// Unsupported link types, of some interfaces of a capture.
    pub link_type: u64,
}

/// Packets that cannot be decoded, by reason.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MalformedCounts {
    /// Too few bytes of the headers were captured.
    pub cut_header: u64,
    /// The header of the link.
    pub link: u64,
    /// The header of IP.
    pub ip: u64,
    /// The header of TCP or UDP.
    pub transport: u64,
}

/// Lines of key logs in captures, by outcome.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KeyLogLines {
    /// Read, including comments and secrets that are not needed.
    pub read: u64,
    /// Not lines of a key log.
    pub malformed: u64,
    /// Dropped, because secrets of too many connections are kept.
    pub too_many: u64,
}

impl KeyLogLines {
    pub(crate) fn count(&mut self, taken: Result<(), Refused>) {
        *match taken {
            Ok(()) => &mut self.read,
            Err(Refused::Malformed) => &mut self.malformed,
            Err(Refused::TooMany) => &mut self.too_many,
        } += 1;
    }
}

impl SkippedCounts {
    /// The total.
    pub fn total(&self) -> u64 {
        let Self {
            not_ip,
            other_transport,
            tunnel,
            protected,
            lone_fragment,
            tunnel_fragment,
            link_type,
        } = self;
        not_ip + other_transport + tunnel + protected + lone_fragment + tunnel_fragment + link_type
    }

    pub(crate) fn count(&mut self, why: Skipped) {
        *match why {
            Skipped::NotIp => &mut self.not_ip,
            Skipped::OtherTransport => &mut self.other_transport,
            Skipped::Tunnel => &mut self.tunnel,
            Skipped::Protected => &mut self.protected,
            Skipped::LoneFragment => &mut self.lone_fragment,
            Skipped::TunnelFragment => &mut self.tunnel_fragment,
            Skipped::LinkType => &mut self.link_type,
        } += 1;
    }
}

impl MalformedCounts {
    /// The total.
    pub fn total(&self) -> u64 {
        self.cut_header + self.link + self.ip + self.transport
    }

    pub(crate) fn count(&mut self, why: Malformed) {
        *match why {
            Malformed::Cut => &mut self.cut_header,
            Malformed::Link => &mut self.link,
            Malformed::Ip => &mut self.ip,
            Malformed::Transport => &mut self.transport,
        } += 1;
    }
}

impl Statistics {
    pub(crate) fn count_record(&mut self, record: &Record) {
        self.records += 1;
        self.ended.count(record.end_reason);
        *match record.http_version {
            Some("h1") => &mut self.http_versions.h1,
            Some("h2") => &mut self.http_versions.h2,
            Some("h3") => &mut self.http_versions.h3,
            Some(_) => &mut self.http_versions.other,
            None => &mut self.http_versions.unknown,
        } += 1;
        match record.label_source {
            Some("handshake") => self.label_sources.handshake += 1,
            Some("keylog") => self.label_sources.keylog += 1,
            Some(_) => self.label_sources.server_log += 1,
            None => {}
        }
    }
}
