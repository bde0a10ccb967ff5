//! The configuration of one end of a connection.

use crate::limits;
use crate::settings::Settings;

/// Limits and features of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of the largest field section that is accepted, as RFC 9114 section 4.2.2 counts them.
    pub max_field_section_size: u64,
    /// Bytes of the dynamic table that the peer's QPACK encoder may use.
    pub qpack_table_capacity: u64,
    /// Streams that may wait for the peer's QPACK encoder stream.
    pub qpack_blocked_streams: u64,
    /// Bytes of the dynamic table that this end's encoder uses, if the peer allows as many.
    pub qpack_encoder_capacity: u64,
    /// Streams of the peer that this end's encoder may let wait for its encoder stream. With 0, no loss on that stream
    /// delays a message, and a field that is new to the table is sent as a literal until the peer has acknowledged it.
    pub qpack_encoder_blocked_streams: u64,
    /// Whether extended CONNECT is accepted (RFC 9220).
    pub enable_connect_protocol: bool,
    /// Whether HTTP datagrams are accepted (RFC 9297).
    pub h3_datagram: bool,
    /// If set, a reserved setting and a reserved frame are sent, so that peers which do not ignore unknown ones are
    /// found (RFC 9114, sections 7.2.4.1 and 7.2.8). The number chooses them: use a random one.
    pub grease: Option<u64>,
}

impl Default for Config {
    /// The values of [`limits`], and no extensions.
    fn default() -> Self {
        Self {
            max_field_section_size: limits::MAX_FIELD_SECTION_BYTES,
            qpack_table_capacity: limits::QPACK_TABLE_BYTES,
            qpack_blocked_streams: limits::QPACK_BLOCKED_STREAMS,
            qpack_encoder_capacity: limits::QPACK_TABLE_BYTES,
            qpack_encoder_blocked_streams: 0,
            enable_connect_protocol: false,
            h3_datagram: false,
            grease: None,
        }
    }
}

impl Config {
    /// The settings that are announced.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            max_field_section_size: Some(self.max_field_section_size),
            qpack_max_table_capacity: self.qpack_table_capacity,
            qpack_blocked_streams: self.qpack_blocked_streams,
            enable_connect_protocol: self.enable_connect_protocol,
            h3_datagram: self.h3_datagram,
        }
    }
}
