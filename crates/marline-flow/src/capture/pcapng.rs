//! The format of Wireshark (draft-ietf-opsawg-pcapng).
//!
//! ```text
//! Block {
//!   Block Type (32),
//!   Block Total Length (32),
//!   Block Body (..),            // padded to 32 bits
//!   Block Total Length (32),
//! }
//! ```

use std::io::Read;

use super::error::Problem;
use super::input::Input;
use super::secrets::KeyLogBlock;
use super::{ByteOrder, Item, LinkType, Packet};
use crate::limits::{MAX_BLOCK, MAX_INTERFACES};

/// A Section Header Block: the same number in both byte orders.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Type and length before the body of a block.
const BLOCK_HEADER: usize = 8;
/// Both with the length after it.
const BLOCK_FRAME: usize = 12;

/// The state of a section.
#[derive(Debug, Default)]
pub(super) struct Pcapng {
    order: ByteOrder,
    interfaces: Vec<Interface>,
    /// The block whose lines are read next, if any.
    key_log: Option<KeyLogBlock>,
    /// The time of the last packet, for those that have none.
    last_ns: u64,
    /// Whether a readable packet was found, and the link type of an unreadable one.
    has_readable: bool,
    unreadable: Option<u32>,
    /// The most interfaces of a section that packets came from.
    used_interfaces: usize,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u32,
    clock: Clock,
    snap_len: usize,
    /// Whether a packet came from it.
    is_used: bool,
}

/// The unit and the offset of timestamps.
#[derive(Clone, Copy, Debug)]
struct Clock {
    unit: Unit,
    offset_s: i64,
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    /// This many nanoseconds each.
    Nanoseconds(u64),
    /// This many per second.
    PerSecond(u64),
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            unit: Unit::Nanoseconds(1000),
            offset_s: 0,
        }
    }
}

impl Clock {
    /// Nanoseconds since 1970, saturating.
    fn ns(self, timestamp: u64) -> u64 {
        let ns = match self.unit {
            Unit::Nanoseconds(each) => u128::from(timestamp) * u128::from(each),
            Unit::PerSecond(units) => u128::from(timestamp) * 1_000_000_000 / u128::from(units),
        };
        let offset = i128::from(self.offset_s) * 1_000_000_000;
        let ns = i128::try_from(ns).unwrap_or(i128::MAX);
        u64::try_from(ns.saturating_add(offset).max(0)).unwrap_or(u64::MAX)
    }
}

/// A packet within its block, which begins at `input`'s position.
struct Found {
    interface: usize,
    time: Option<u64>,
    length: usize,
    /// The range of its bytes in the block.
    data: std::ops::Range<usize>,
}

impl Pcapng {
    pub(super) fn next<'a, R: Read>(
        &mut self,
        input: &'a mut Input<R>,
    ) -> Result<Option<Item<'a>>, Problem> {
        loop {
            if let Some(block) = &mut self.key_log {
                if let Some(length) = block.next_line(input)? {
                    return Ok(Some(Item::KeyLogLine(input.take(length))));
                }
                self.key_log = None;
            }
            let at = input.position();
            if !input.has(BLOCK_FRAME)? {
                return match (input.bytes(), self.unreadable) {
                    // Unreadable packets of one interface among others are left out; a capture of nothing else
                    // has no flows.
                    ([], Some(link)) if !self.has_readable => Err(Problem::LinkType(link)),
                    ([], _) => Ok(None),
                    _ => Err(Problem::Truncated(at)),
                };
            }
            let kind: [u8; 4] = input.array(0);
            let is_section = kind == SECTION_HEADER.to_be_bytes();
            if is_section {
                self.begin_section(input.array(8), at)?;
            }
            let length = self.order.u32(input.array(4)) as usize;
            if length < BLOCK_FRAME || !length.is_multiple_of(4) {
                let what = "the length of a block is impossible";
                return Err(Problem::Malformed { at, what });
            }
            let kind = self.order.u32(kind);
            if kind == DECRYPTION_SECRETS {
                self.key_log = KeyLogBlock::begin(input, self.order, length)?;
                if self.key_log.is_some() {
                    continue;
                }
            }
            let needed = matches!(
                kind,
                INTERFACE | OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET
            );
            if is_section || !needed {
                if !input.skip(length as u64)? {
                    return Err(Problem::Truncated(at));
                }
                continue;
            }
            if length > MAX_BLOCK {
                let what = "a packet has more than 256 KiB";
                return Err(Problem::Malformed { at, what });
            }
            if !input.has(length)? {
                return Err(Problem::Truncated(at));
            }
            let body = &input.bytes()[BLOCK_HEADER..length - 4];
            if kind == INTERFACE {
                let interface = self
                    .interface(body)
                    .filter(|_| self.interfaces.len() < MAX_INTERFACES);
                let what = "an interface cannot be read, or there are too many";
                self.interfaces
                    .push(interface.ok_or(Problem::Malformed { at, what })?);
                input.consume(length);
                continue;
            }
            let what = "the fields of a packet contradict the length of its block";
            let found = self.packet(kind, body);
            let found = found.ok_or(Problem::Malformed { at, what })?;
            let what = "a packet is of an interface that is not described";
            let interface = self
                .interfaces
                .get_mut(found.interface)
                .ok_or(Problem::Malformed { at, what })?;
            let is_new = !std::mem::replace(&mut interface.is_used, true);
            let interface = *interface;
            if is_new {
                let used = self.interfaces.iter().filter(|one| one.is_used).count();
                self.used_interfaces = self.used_interfaces.max(used);
            }
            let link = LinkType::from_number(interface.link);
            match link {
                LinkType::Other(number) => self.unreadable = Some(number),
                _ => self.has_readable = true,
            }
            let time = found.time.map(|time| interface.clock.ns(time));
            self.last_ns = time.unwrap_or(self.last_ns);
            let block = input.take(length);
            return Ok(Some(Item::Packet(Packet {
                time_ns: self.last_ns,
                link,
                length: found.length.max(found.data.len()),
                data: &block[found.data],
            })));
        }
    }

    /// The most interfaces of a section that packets came from.
    pub(super) const fn used_interfaces(&self) -> usize {
        self.used_interfaces
    }

    fn begin_section(&mut self, magic: [u8; 4], at: u64) -> Result<(), Problem> {
        let orders = [ByteOrder::Little, ByteOrder::Big];
        let mut matching = orders
            .into_iter()
            .filter(|order| order.u32(magic) == BYTE_ORDER_MAGIC);
        let what = "a section has no byte order";
        self.order = matching.next().ok_or(Problem::Malformed { at, what })?;
        self.interfaces.clear();
        Ok(())
    }

    fn u16(&self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = bytes.get(at..)?.first_chunk()?;
        Some(self.order.u16(*bytes))
    }

    fn u32(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = bytes.get(at..)?.first_chunk()?;
        Some(self.order.u32(*bytes))
    }

    /// A timestamp in two halves, in any byte order.
    fn timestamp(&self, body: &[u8], at: usize) -> Option<u64> {
        let high = u64::from(self.u32(body, at)?);
        Some(high << 32 | u64::from(self.u32(body, at + 4)?))
    }

    fn packet(&self, kind: u32, body: &[u8]) -> Option<Found> {
        let (header, interface) = match kind {
            ENHANCED_PACKET => (20, self.u32(body, 0)? as usize),
            OBSOLETE_PACKET => (20, self.u16(body, 0)?.into()),
            _ => (4, 0),
        };
        let room = body.len().checked_sub(header)?;
        let (time, captured, length) = if header == 20 {
            let time = self.timestamp(body, 4)?;
            let [captured, length] = [12, 16].map(|at| self.u32(body, at));
            (Some(time), captured? as usize, length? as usize)
        } else {
            let length = self.u32(body, 0)? as usize;
            let snap_len = self.interfaces.first()?.snap_len;
            (None, length.min(snap_len).min(room), length)
        };
        (captured <= room).then_some(Found {
            interface,
            time,
            length,
            data: BLOCK_HEADER + header..BLOCK_HEADER + header + captured,
        })
    }

    fn interface(&self, body: &[u8]) -> Option<Interface> {
        const RESOLUTION: u16 = 9;
        const OFFSET: u16 = 14;
        let mut clock = Clock::default();
        let mut options = body.get(8..)?;
        while let (Some(code), Some(len)) = (self.u16(options, 0), self.u16(options, 2)) {
            let len = usize::from(len);
            let Some(value) = options.get(4..4 + len) else {
                break;
            };
            match (code, value) {
                (0, _) => break,
                (RESOLUTION, [resolution]) => clock.unit = unit(*resolution)?,
                (OFFSET, _) if len == 8 => {
                    let halves = [self.u32(value, 0)?, self.u32(value, 4)?].map(u64::from);
                    let offset = match self.order {
                        ByteOrder::Little => halves[1] << 32 | halves[0],
                        ByteOrder::Big => halves[0] << 32 | halves[1],
                    };
                    clock.offset_s = offset.cast_signed();
                }
                _ => {}
            }
            options = options
                .get(4 + len.next_multiple_of(4)..)
                .unwrap_or_default();
        }
        let snap_len = match self.u32(body, 4)? as usize {
            0 => usize::MAX,
            snap_len => snap_len,
        };
        Some(Interface {
            link: self.u16(body, 0)?.into(),
            clock,
            snap_len,
            is_used: false,
        })
    }
}

/// The unit in the option if_tsresol: a negative power of 10, or with the first bit set, of 2.
fn unit(resolution: u8) -> Option<Unit> {
    let exponent = u32::from(resolution & 0x7f);
    if resolution & 0x80 != 0 {
        return Some(Unit::PerSecond(1u64.checked_shl(exponent)?));
    }
    match exponent {
        0..=9 => Some(Unit::Nanoseconds(10u64.pow(9 - exponent))),
        _ => Some(Unit::PerSecond(10u64.checked_pow(exponent)?)),
    }
}
