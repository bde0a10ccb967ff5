//! The format of libpcap (draft-ietf-opsawg-pcap).

use std::io::Read;

use super::error::Problem;
use super::input::Input;
use super::{ByteOrder, LinkType, Packet};
use crate::limits::MAX_PACKET;

const HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

/// The bits of the header's last field that are the link type; the others are about a frame check sequence.
const LINK_TYPE: u32 = 0x03ff_ffff;

/// The content of the header.
#[derive(Debug)]
pub(super) struct Pcap {
    order: ByteOrder,
    /// Nanoseconds of a unit of the second field of timestamps.
    unit_ns: u64,
    link: LinkType,
}

impl Pcap {
    /// The format of a file that begins with `magic`, if it is this one; the link type is not known yet.
    pub(super) fn of(magic: [u8; 4]) -> Option<Self> {
        [ByteOrder::Little, ByteOrder::Big]
            .into_iter()
            .find_map(|order| {
                let unit_ns = match order.u32(magic) {
                    0xa1b2_c3d4 => 1000,
                    0xa1b2_3c4d => 1,
                    _ => return None,
                };
                Some(Self {
                    order,
                    unit_ns,
                    link: LinkType::Raw,
                })
            })
    }

    /// Reads the header.
    pub(super) fn begin<R: Read>(self, input: &mut Input<R>) -> Result<Self, Problem> {
        if !input.has(HEADER)? {
            return Err(Problem::Truncated(0));
        }
        let link = LinkType::from_number(self.order.u32(input.array(20)) & LINK_TYPE);
        if let LinkType::Other(number) = link {
            return Err(Problem::LinkType(number));
        }
        input.consume(HEADER);
        Ok(Self { link, ..self })
    }

    #[inline(always)]
    pub(super) fn next<'a, R: Read>(
        &mut self,
        input: &'a mut Input<R>,
    ) -> Result<Option<Packet<'a>>, Problem> {
        if !input.has(PACKET_HEADER)? {
            return match input.bytes() {
                [] => Ok(None),
                _ => Err(Problem::Truncated(input.position())),
            };
        }
        let header: [u8; PACKET_HEADER] = input.array(0);
        let field = |at| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            self.order.u32(bytes)
        };
        let (seconds, part) = (field(0), field(4));
        let (captured, length) = (field(8) as usize, field(12) as usize);
        let at = input.position();
        if captured > MAX_PACKET {
            let what = "a packet has more than 256 KiB";
            return Err(Problem::Malformed { at, what });
        }
        if !input.has(PACKET_HEADER + captured)? {
            return Err(Problem::Truncated(at));
        }
        let bytes = input.take(PACKET_HEADER + captured);
        Ok(Some(Packet {
            time_ns: u64::from(seconds) * 1_000_000_000 + u64::from(part) * self.unit_ns,
            link: self.link,
            length: length.max(captured),
            data: &bytes[PACKET_HEADER..],
        }))
    }
}
