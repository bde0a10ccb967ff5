//! Records as messages of IPFIX (RFC 7011), bidirectional (RFC 5103): the client is the source.
//!
//! All Information Elements are those of IANA's registry. Columns without one (names of hosts, ALPN, deviations, intervals,
//! retransmissions, round trips) are in Parquet and CSV only: elements of our own would need a private enterprise number.

use std::io::{self, Write};
use std::net::IpAddr;

use super::columns::{Source, Value};
use crate::anonymize::Anonymizer;
use crate::limits::IPFIX_FILE_MESSAGE;
use crate::record::{Record, Side};
use crate::table::{ClientSource, EndReason};

const VERSION: u16 = 10;
const HEADER: usize = 16;
const SET_HEADER: usize = 4;
/// The Set ID of templates.
const TEMPLATE_SET: u16 = 2;
/// Template IDs of flows over IPv4 and IPv6.
const TEMPLATE_V4: u16 = 256;
const TEMPLATE_V6: u16 = 257;
/// The only Observation Domain.
const DOMAIN: u32 = 1;
/// The Field Length for variable lengths.
const VARIABLE: u16 = 0xffff;
/// The enterprise bit of an element's number, and the number of the elements of the reverse direction (RFC 5103, section 6.1).
const ENTERPRISE: u16 = 0x8000;
const REVERSE: u32 = 29305;

/// A field of records.
struct Element {
    /// Its number in IANA's registry.
    id: u16,
    /// Whether it refers to the direction from server to client.
    is_reverse: bool,
    /// Its length in bytes.
    length: u16,
    value: Source,
}

const fn element(id: u16, length: u16, value: fn(&Record) -> Value<'_>) -> Element {
    Element {
        id,
        is_reverse: false,
        length,
        value: Source::new(value),
    }
}

/// The same, of the direction from server to client.
const fn reverse(id: u16, length: u16, value: fn(&Record) -> Value<'_>) -> Element {
    Element {
        is_reverse: true,
        ..element(id, length, value)
    }
}

/// sourceIPv4Address, destinationIPv4Address.
static ADDRESSES_V4: [Element; 2] = [
    element(8, 4, |r| Value::Address(r.client.ip)),
    element(12, 4, |r| Value::Address(r.server.ip)),
];

/// sourceIPv6Address, destinationIPv6Address.
static ADDRESSES_V6: [Element; 2] = [
    element(27, 16, |r| Value::Address(r.client.ip)),
    element(28, 16, |r| Value::Address(r.server.ip)),
];

/// The elements of both templates.
static ELEMENTS: [Element; 25] = [
    // sourceTransportPort, destinationTransportPort, protocolIdentifier.
    element(7, 2, |r| Value::Small(r.client.port.into())),
    element(11, 2, |r| Value::Small(r.server.port.into())),
    element(4, 1, |r| Value::Small(r.transport.number().into())),
    // flowStartMilliseconds, flowEndMilliseconds, which all collectors know; flowStartNanoseconds, flowEndNanoseconds.
    element(152, 8, |r| Value::Integer(r.start_ns / 1_000_000)),
    element(153, 8, |r| Value::Integer(r.end_ns / 1_000_000)),
    element(156, 8, |r| Value::Integer(ntp(r.start_ns))),
    element(157, 8, |r| Value::Integer(ntp(r.end_ns))),
    // packetDeltaCount, octetDeltaCount, transportOctetDeltaCount.
    element(2, 8, |r| Value::Integer(r.client.packets)),
    reverse(2, 8, |r| Value::Integer(r.server.packets)),
    element(1, 8, |r| Value::Integer(r.client.bytes)),
    reverse(1, 8, |r| Value::Integer(r.server.bytes)),
    element(401, 8, |r| Value::Integer(r.client.payload_bytes)),
    reverse(401, 8, |r| Value::Integer(r.server.payload_bytes)),
    // tcpControlBits.
    element(6, 2, |r| Value::Small(r.client.flags.into())),
    reverse(6, 2, |r| Value::Small(r.server.flags.into())),
    // minimumIpTotalLength, maximumIpTotalLength, of reduced size (RFC 7011, section 6.2).
    element(25, 4, |r| smallest(&r.client)),
    reverse(25, 4, |r| smallest(&r.server)),
    element(26, 4, |r| largest(&r.client)),
    reverse(26, 4, |r| largest(&r.server)),
    // flowId, flowEndReason, biflowDirection.
    element(148, 8, |r| Value::Integer(r.flow_id)),
    element(136, 1, |r| Value::Small(end_reason(r.end_reason))),
    element(239, 1, |r| Value::Small(direction(r.client_source))),
    // flowDurationMilliseconds, for collectors that cannot subtract.
    element(161, 4, |r| {
        Value::Integer(r.end_ns.saturating_sub(r.start_ns) / 1_000_000)
    }),
    // ipVersion.
    element(60, 1, |r| {
        Value::Small(if r.client.ip.is_ipv4() { 4 } else { 6 })
    }),
    // applicationName: the version of HTTP.
    element(96, VARIABLE, |r| {
        r.http_version.map_or(Value::Nothing, Value::Name)
    }),
];

fn smallest(side: &Side) -> Value<'static> {
    Value::Small(side.measured.sizes.map_or(0, |sizes| sizes.min as u32))
}

fn largest(side: &Side) -> Value<'static> {
    Value::Small(side.measured.sizes.map_or(0, |sizes| sizes.max as u32))
}

/// A time in the format of NTP, whose seconds are counted from 1900 (RFC 7011, section 6.1.10).
const fn ntp(ns: u64) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    const FROM_1900: u64 = 2_208_988_800;
    let seconds = (ns / SECOND + FROM_1900) & 0xffff_ffff;
    // Rounded up, so that a collector which rounds down has the same nanosecond.
    seconds << 32 | ((ns % SECOND) << 32).div_ceil(SECOND)
}

/// The values of flowEndReason.
const fn end_reason(reason: EndReason) -> u32 {
    match reason {
        EndReason::Idle => 1,
        EndReason::Active => 2,
        EndReason::Fin | EndReason::Reset | EndReason::Reused => 3,
        EndReason::Capture => 4,
        EndReason::Evicted => 5,
    }
}

/// The values of biflowDirection: the initiator of the flow, or arbitrary.
const fn direction(source: ClientSource) -> u32 {
    match source {
        ClientSource::Syn | ClientSource::Handshake => 1,
        ClientSource::Port | ClientSource::First => 0,
    }
}

fn elements(template: u16) -> impl Iterator<Item = &'static Element> {
    let addresses = match template {
        TEMPLATE_V4 => &ADDRESSES_V4,
        _ => &ADDRESSES_V6,
    };
    addresses.iter().chain(&ELEMENTS)
}

/// Makes messages of IPFIX from records.
#[derive(Debug)]
pub struct IpfixEncoder {
    /// Largest size of a message in bytes.
    max_len: usize,
    anonymizer: Option<Anonymizer>,
    message: IpfixMessage,
    /// The Set that the next record may continue.
    set: Option<Set>,
    scratch: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Set {
    /// Its position.
    at: usize,
    template: u16,
}

/// A message of IPFIX, whose header lacks the time and the sequence number, which depend on its transmission.
#[derive(Debug)]
pub struct IpfixMessage {
    bytes: Vec<u8>,
    records: u32,
    /// The latest time of its records.
    time_ns: u64,
}

/// Messages to one file, over one connection, or from one UDP socket to another. The templates go first, and over UDP again from
/// time to time.
#[derive(Clone, Copy, Debug, Default)]
pub struct IpfixSession {
    /// Records in earlier messages.
    sequence: u32,
}

impl IpfixSession {
    /// The bytes of a message as the next one. Its time is the export time `export_s`, in seconds since 1970; else that of its
    /// last record.
    pub fn next(&mut self, message: IpfixMessage, export_s: Option<u32>) -> Vec<u8> {
        let IpfixMessage {
            mut bytes,
            records,
            time_ns,
        } = message;
        let length = bytes.len() as u16;
        let seconds = export_s.unwrap_or((time_ns / 1_000_000_000) as u32);
        bytes[..2].copy_from_slice(&VERSION.to_be_bytes());
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        bytes[4..8].copy_from_slice(&seconds.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[12..HEADER].copy_from_slice(&DOMAIN.to_be_bytes());
        self.sequence = self.sequence.wrapping_add(records);
        bytes
    }
}

impl IpfixMessage {
    fn new() -> Self {
        Self {
            bytes: vec![0; HEADER],
            records: 0,
            time_ns: 0,
        }
    }

    /// The number of records.
    pub fn records(&self) -> u32 {
        self.records
    }
}

impl IpfixEncoder {
    /// An encoder of messages of at most `max_len` bytes, which is 512 at least and 65,535 at most.
    pub fn new(max_len: usize, anonymizer: Option<Anonymizer>) -> Self {
        Self {
            max_len: max_len.clamp(512, usize::from(u16::MAX)),
            anonymizer,
            message: IpfixMessage::new(),
            set: None,
            scratch: Vec::new(),
        }
    }

    /// A message with the templates.
    pub fn templates(&self) -> IpfixMessage {
        let mut message = IpfixMessage {
            time_ns: self.message.time_ns,
            ..IpfixMessage::new()
        };
        let bytes = &mut message.bytes;
        bytes.extend(TEMPLATE_SET.to_be_bytes());
        bytes.extend([0; 2]);
        for template in [TEMPLATE_V4, TEMPLATE_V6] {
            bytes.extend(template.to_be_bytes());
            bytes.extend((elements(template).count() as u16).to_be_bytes());
            for element in elements(template) {
                let bit = if element.is_reverse { ENTERPRISE } else { 0 };
                bytes.extend((element.id | bit).to_be_bytes());
                bytes.extend(element.length.to_be_bytes());
                if element.is_reverse {
                    bytes.extend(REVERSE.to_be_bytes());
                }
            }
        }
        end_set(bytes, HEADER);
        message
    }

    /// Adds a record; if it does not fit into the current message, returns that one.
    pub fn add(&mut self, record: &Record) -> Option<IpfixMessage> {
        let template = match record.client.ip {
            IpAddr::V4(_) => TEMPLATE_V4,
            IpAddr::V6(_) => TEMPLATE_V6,
        };
        let mut data = std::mem::take(&mut self.scratch);
        data.clear();
        for element in elements(template) {
            let value = element.value.read(record, self.anonymizer.as_ref());
            write_value(&mut data, element.length, &value);
        }
        let is_full = self.len() + SET_HEADER + data.len() > self.max_len;
        let full = if is_full { self.flush() } else { None };
        if self.set.is_none_or(|set| set.template != template) {
            self.end_set();
            let at = self.len();
            self.message.bytes.extend(template.to_be_bytes());
            self.message.bytes.extend([0; 2]);
            self.set = Some(Set { at, template });
        }
        self.message.bytes.extend(&data);
        self.scratch = data;
        self.message.records += 1;
        self.message.time_ns = self.message.time_ns.max(record.end_ns);
        full
    }

    /// The current message, if any.
    pub fn flush(&mut self) -> Option<IpfixMessage> {
        if self.is_empty() {
            return None;
        }
        self.end_set();
        Some(std::mem::replace(&mut self.message, IpfixMessage::new()))
    }

    /// Whether there is no current message.
    pub fn is_empty(&self) -> bool {
        self.message.records == 0
    }

    /// Bytes of the current message.
    fn len(&self) -> usize {
        self.message.bytes.len()
    }

    fn end_set(&mut self) {
        if let Some(set) = self.set.take() {
            end_set(&mut self.message.bytes, set.at);
        }
    }
}

/// Writes the length of a Set that ends here.
fn end_set(message: &mut [u8], at: usize) {
    let length = (message.len() - at) as u16;
    message[at + 2..at + SET_HEADER].copy_from_slice(&length.to_be_bytes());
}

fn write_value(out: &mut Vec<u8>, length: u16, value: &Value<'_>) {
    match value {
        Value::Integer(value) => write_number(out, length, *value),
        Value::Small(value) => write_number(out, length, (*value).into()),
        Value::Address(IpAddr::V4(address)) if length == 4 => out.extend(address.octets()),
        Value::Address(IpAddr::V6(address)) if length == 16 => out.extend(address.octets()),
        Value::Name(text) if length == VARIABLE => write_text(out, text),
        Value::Nothing if length == VARIABLE => out.push(0),
        value => {
            debug_assert!(false, "{value:?} is not of the type of its element");
            out.resize(out.len() + usize::from(length), 0);
        }
    }
}

/// Writes a number in `length` bytes, saturating.
fn write_number(out: &mut Vec<u8>, length: u16, value: u64) {
    let length = usize::from(length).min(8);
    let largest = u64::MAX >> (64 - 8 * length);
    out.extend(&value.min(largest).to_be_bytes()[8 - length..]);
}

/// Writes a text of less than 255 bytes, its length before it (RFC 7011, section 7).
fn write_text(out: &mut Vec<u8>, text: &str) {
    let length = text.len().min(254);
    out.push(length as u8);
    out.extend(&text.as_bytes()[..length]);
}

/// Writes a file of messages (RFC 5655).
pub(super) struct IpfixWriter<W> {
    encoder: IpfixEncoder,
    session: IpfixSession,
    out: W,
    /// Whether the templates are written.
    is_begun: bool,
    bytes: u64,
}

impl<W: Write> IpfixWriter<W> {
    pub(super) fn new(out: W, anonymizer: Option<Anonymizer>) -> Self {
        Self {
            encoder: IpfixEncoder::new(IPFIX_FILE_MESSAGE, anonymizer),
            session: IpfixSession::default(),
            out,
            is_begun: false,
            bytes: 0,
        }
    }

    pub(super) fn write(&mut self, record: &Record) -> io::Result<()> {
        let full = self.encoder.add(record);
        if !self.is_begun {
            self.begin()?;
        }
        match full {
            Some(message) => self.write_message(message),
            None => Ok(()),
        }
    }

    /// Writes the templates.
    fn begin(&mut self) -> io::Result<()> {
        self.is_begun = true;
        let templates = self.encoder.templates();
        self.write_message(templates)
    }

    /// Bytes of the messages.
    pub(super) fn size(&self) -> u64 {
        self.bytes + self.encoder.len() as u64
    }

    fn write_message(&mut self, message: IpfixMessage) -> io::Result<()> {
        let bytes = self.session.next(message, None);
        self.bytes += bytes.len() as u64;
        self.out.write_all(&bytes)
    }

    pub(super) fn finish(mut self) -> io::Result<W> {
        if !self.is_begun {
            self.begin()?;
        }
        if let Some(message) = self.encoder.flush() {
            self.write_message(message)?;
        }
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests;
