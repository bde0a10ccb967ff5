//! The columns of records, in the order of every format.

use std::net::IpAddr;

use crate::record::Record;

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Integer(u64),
    Small(u32),
    Seconds(f64),
    Flag(bool),
    Text(&'a str),
    /// One of few.
    Name(&'static str),
    Address(IpAddr),
    Nothing,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A number of 64 bits.
    Integer,
    /// A number of 32 bits.
    Small,
    /// Seconds, as a floating-point number.
    Seconds,
    /// True or false.
    Flag,
    /// A text, which may be missing.
    Text,
}

/// A column of records.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) value: fn(&Record) -> Value<'_>,
    /// Whether most rows have a value of their own.
    pub(super) is_distinct: bool,
}

const fn column(name: &'static str, kind: Kind, value: fn(&Record) -> Value<'_>) -> Column {
    Column {
        name,
        kind,
        value,
        is_distinct: false,
    }
}

impl Column {
    const fn distinct(self) -> Self {
        Self {
            is_distinct: true,
            ..self
        }
    }
}

fn optional(text: Option<&str>) -> Value<'_> {
    text.map_or(Value::Nothing, Value::Text)
}

fn name(text: Option<&'static str>) -> Value<'static> {
    text.map_or(Value::Nothing, Value::Name)
}

/// The columns.
pub(super) const TABLE: [Column; 31] = {
    use Kind::{Flag, Integer, Seconds, Small, Text};
    [
        column("flow_id", Integer, |r| Value::Integer(r.flow_id)).distinct(),
        column("start_s", Seconds, |r| Value::Seconds(r.start_s())).distinct(),
        column("end_s", Seconds, |r| Value::Seconds(r.end_s())).distinct(),
        column("duration_s", Seconds, |r| Value::Seconds(r.duration_s())).distinct(),
        column("client_ip", Text, |r| Value::Address(r.client.ip)),
        column("client_port", Small, |r| Value::Small(r.client.port.into())),
        column("server_ip", Text, |r| Value::Address(r.server.ip)),
        column("server_port", Small, |r| Value::Small(r.server.port.into())),
        column("transport", Text, |r| Value::Name(r.transport.name())),
        column("client_packets", Integer, |r| {
            Value::Integer(r.client.packets)
        }),
        column("server_packets", Integer, |r| {
            Value::Integer(r.server.packets)
        }),
        column("client_bytes", Integer, |r| Value::Integer(r.client.bytes)),
        column("server_bytes", Integer, |r| Value::Integer(r.server.bytes)),
        column("client_payload_bytes", Integer, |r| {
            Value::Integer(r.client.payload_bytes)
        }),
        column("server_payload_bytes", Integer, |r| {
            Value::Integer(r.server.payload_bytes)
        }),
        column("client_syn", Flag, |r| Value::Flag(r.client.syn)),
        column("client_ack", Flag, |r| Value::Flag(r.client.ack)),
        column("client_fin", Flag, |r| Value::Flag(r.client.fin)),
        column("server_syn", Flag, |r| Value::Flag(r.server.syn)),
        column("server_ack", Flag, |r| Value::Flag(r.server.ack)),
        column("server_fin", Flag, |r| Value::Flag(r.server.fin)),
        column("sni", Text, |r| optional(r.sni.as_deref())),
        column("alpn_offered", Text, |r| {
            optional(r.alpn_offered.as_deref())
        }),
        column("alpn_chosen", Text, |r| optional(r.alpn_chosen.as_deref())),
        column("http_version", Text, |r| name(r.http_version)),
        column("label_source", Text, |r| name(r.label_source)),
        column("client_source", Text, |r| {
            Value::Name(r.client_source.name())
        }),
        column("end_reason", Text, |r| Value::Name(r.end_reason.name())),
        column("part", Small, |r| Value::Small(r.part)),
        column("start_ns", Integer, |r| Value::Integer(r.start_ns)).distinct(),
        column("end_ns", Integer, |r| Value::Integer(r.end_ns)).distinct(),
    ]
};

/// The names of the columns.
pub const COLUMNS: [&str; TABLE.len()] = {
    let mut names = [""; TABLE.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = TABLE[i].name;
        i += 1;
    }
    names
};
