//! The columns of records, in the order of every format.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::anonymize::Anonymizer;

use crate::decode::Transport;
use crate::measures::Spread;
use crate::record::{Record, Side};

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Integer(u64),
    Small(u32),
    Float(f64),
    Flag(bool),
    Text(Cow<'a, str>),
    /// One of a few names.
    Name(&'static str),
    Address(IpAddr),
    /// The name of a host.
    Host(Cow<'a, str>),
    Nothing,
}

/// Reads a value from a record. Every address or host name, by its type, passes the anonymizer, if any: no format sees the
/// original.
#[derive(Clone, Copy)]
pub(super) struct Source(fn(&Record) -> Value<'_>);

impl Source {
    pub(super) const fn new(read: fn(&Record) -> Value<'_>) -> Self {
        Self(read)
    }

    #[inline]
    pub(super) fn read<'a>(self, record: &'a Record, anonymizer: Option<&Anonymizer>) -> Value<'a> {
        let value = self.0(record);
        match (anonymizer, &value) {
            (Some(anonymizer), Value::Address(address)) => {
                Value::Address(anonymizer.address(*address))
            }
            (Some(anonymizer), Value::Host(name)) => Value::Host(anonymizer.name(name).into()),
            _ => value,
        }
    }
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A number of 64 bits.
    Integer,
    /// A number of 32 bits.
    Small,
    /// A floating-point number.
    Float,
    /// True or false.
    Flag,
    /// A text, which may be missing.
    Text,
}

/// A column of records.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) value: Source,
    /// Whether most rows have a value of their own.
    pub(super) is_distinct: bool,
    /// Whether the value may be missing.
    pub(super) is_optional: bool,
}

const fn column(name: &'static str, kind: Kind, value: fn(&Record) -> Value<'_>) -> Column {
    Column {
        name,
        kind,
        value: Source::new(value),
        is_distinct: false,
        is_optional: matches!(kind, Kind::Text),
    }
}

impl Column {
    const fn optional(self) -> Self {
        Self {
            is_optional: true,
            ..self
        }
    }

    const fn distinct(self) -> Self {
        Self {
            is_distinct: true,
            ..self
        }
    }
}

fn optional(text: Option<&str>) -> Value<'_> {
    text.map_or(Value::Nothing, |text| Value::Text(text.into()))
}

fn host(name: Option<&str>) -> Value<'_> {
    name.map_or(Value::Nothing, |name| Value::Host(name.into()))
}

fn name(text: Option<&'static str>) -> Value<'static> {
    text.map_or(Value::Nothing, Value::Name)
}

fn address(ip: Option<IpAddr>) -> Value<'static> {
    ip.map_or(Value::Nothing, Value::Address)
}

fn seconds(ns: Option<u64>) -> Value<'static> {
    ns.map_or(Value::Nothing, |ns| Value::Float(ns as f64 / 1e9))
}

/// A value of a spread, if any.
fn of_spread(spread: Option<Spread>, value: fn(&Spread) -> f64) -> Value<'static> {
    spread.map_or(Value::Nothing, |spread| Value::Float(value(&spread)))
}

/// The same, of a length in bytes.
fn length(spread: Option<Spread>, value: fn(&Spread) -> f64) -> Value<'static> {
    // Lengths have 32 bits.
    spread.map_or(Value::Nothing, |spread| Value::Small(value(&spread) as u32))
}

fn retransmissions(record: &Record, side: &Side) -> Value<'static> {
    match record.transport {
        Transport::Tcp => Value::Integer(side.measured.retransmissions),
        Transport::Udp => Value::Nothing,
    }
}

/// The columns.
pub(super) const TABLE: [Column; 64] = {
    use Kind::{Flag, Float, Integer, Small, Text};
    [
        column("flow_id", Integer, |r| Value::Integer(r.flow_id)).distinct(),
        column("start_s", Float, |r| Value::Float(r.start_s())).distinct(),
        column("end_s", Float, |r| Value::Float(r.end_s())).distinct(),
        column("duration_s", Float, |r| Value::Float(r.duration_s())).distinct(),
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
        column("sni", Text, |r| host(r.sni.as_deref())),
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
        column("client_min_packet_bytes", Small, |r| {
            length(r.client.measured.sizes, |sizes| sizes.min)
        })
        .optional(),
        column("client_max_packet_bytes", Small, |r| {
            length(r.client.measured.sizes, |sizes| sizes.max)
        })
        .optional(),
        column("client_mean_packet_bytes", Float, |r| {
            of_spread(r.client.measured.sizes, |sizes| sizes.mean)
        })
        .optional(),
        column("client_std_packet_bytes", Float, |r| {
            of_spread(r.client.measured.sizes, |sizes| sizes.deviation)
        })
        .optional(),
        column("client_min_interarrival_s", Float, |r| {
            of_spread(r.client.measured.intervals_s, |intervals| intervals.min)
        })
        .optional()
        .distinct(),
        column("client_max_interarrival_s", Float, |r| {
            of_spread(r.client.measured.intervals_s, |intervals| intervals.max)
        })
        .optional()
        .distinct(),
        column("client_mean_interarrival_s", Float, |r| {
            of_spread(r.client.measured.intervals_s, |intervals| intervals.mean)
        })
        .optional()
        .distinct(),
        column("client_std_interarrival_s", Float, |r| {
            of_spread(r.client.measured.intervals_s, |intervals| {
                intervals.deviation
            })
        })
        .optional()
        .distinct(),
        column("client_psh_packets", Integer, |r| {
            Value::Integer(r.client.measured.psh)
        }),
        column("client_rst_packets", Integer, |r| {
            Value::Integer(r.client.measured.rst)
        }),
        column("client_retransmissions", Integer, |r| {
            retransmissions(r, &r.client)
        })
        .optional(),
        column("server_min_packet_bytes", Small, |r| {
            length(r.server.measured.sizes, |sizes| sizes.min)
        })
        .optional(),
        column("server_max_packet_bytes", Small, |r| {
            length(r.server.measured.sizes, |sizes| sizes.max)
        })
        .optional(),
        column("server_mean_packet_bytes", Float, |r| {
            of_spread(r.server.measured.sizes, |sizes| sizes.mean)
        })
        .optional(),
        column("server_std_packet_bytes", Float, |r| {
            of_spread(r.server.measured.sizes, |sizes| sizes.deviation)
        })
        .optional(),
        column("server_min_interarrival_s", Float, |r| {
            of_spread(r.server.measured.intervals_s, |intervals| intervals.min)
        })
        .optional()
        .distinct(),
        column("server_max_interarrival_s", Float, |r| {
            of_spread(r.server.measured.intervals_s, |intervals| intervals.max)
        })
        .optional()
        .distinct(),
        column("server_mean_interarrival_s", Float, |r| {
            of_spread(r.server.measured.intervals_s, |intervals| intervals.mean)
        })
        .optional()
        .distinct(),
        column("server_std_interarrival_s", Float, |r| {
            of_spread(r.server.measured.intervals_s, |intervals| {
                intervals.deviation
            })
        })
        .optional()
        .distinct(),
        column("server_psh_packets", Integer, |r| {
            Value::Integer(r.server.measured.psh)
        }),
        column("server_rst_packets", Integer, |r| {
            Value::Integer(r.server.measured.rst)
        }),
        column("server_retransmissions", Integer, |r| {
            retransmissions(r, &r.server)
        })
        .optional(),
        column("first_rtt_s", Float, |r| seconds(r.first_rtt_ns()))
            .optional()
            .distinct(),
        column("client_rtt_s", Float, |r| seconds(r.client_rtt_ns))
            .optional()
            .distinct(),
        column("server_rtt_s", Float, |r| seconds(r.server_rtt_ns))
            .optional()
            .distinct(),
        column("vlan", Text, |r| optional(r.vlan.as_deref())),
        column("tunnel", Text, |r| {
            optional(r.tunnel.as_ref().map(|tunnel| &*tunnel.kinds))
        }),
        column("tunnel_client_ip", Text, |r| {
            address(r.tunnel.as_ref().and_then(|tunnel| tunnel.client_ip))
        }),
        column("tunnel_server_ip", Text, |r| {
            address(r.tunnel.as_ref().and_then(|tunnel| tunnel.server_ip))
        }),
        column("client_tunnel_id", Text, |r| {
            optional(
                r.tunnel
                    .as_ref()
                    .and_then(|tunnel| tunnel.client_ids.as_deref()),
            )
        }),
        column("server_tunnel_id", Text, |r| {
            optional(
                r.tunnel
                    .as_ref()
                    .and_then(|tunnel| tunnel.server_ids.as_deref()),
            )
        }),
        column("quic_version", Text, |r| {
            optional(r.quic_version.as_deref())
        }),
        column("address_changes", Small, |r| {
            Value::Small(r.address_changes)
        }),
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
