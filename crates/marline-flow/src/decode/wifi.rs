//! Frames of IEEE 802.11, and the headers that drivers add.

use super::layers::Layers;
use super::part::Part;
use super::{Decoded, Malformed, Skipped, link};

/// The check sequence at the end of a frame.
const FCS: usize = 4;

/// The header of a frame.
#[derive(Clone, Copy, Debug, Default)]
struct Notes {
    has_fcs: bool,
    /// Whether the check sequence is wrong, so that any byte of the frame may be.
    is_damaged: bool,
    /// Whether the header of the frame is padded to a multiple of four bytes.
    is_padded: bool,
}

/// Whether a frame begins: of data or management with its three addresses, or of control.
pub(super) fn is_frame(part: Part<'_>) -> bool {
    let Ok([first, second]) = part.array(0) else {
        return false;
    };
    // Some access points send pairs of bytes the other way around.
    let kind = if first & 3 == 0 { first } else { second };
    kind & 3 == 0
        && match kind >> 2 & 3 {
            0 | 2 => part.length >= 24,
            1 => part.length >= 10,
            _ => false,
        }
}

/// A frame without another header.
pub(super) fn frame<'a>(part: Part<'a>, layers: &mut Layers) -> Decoded<'a> {
    noted(part, Notes::default(), layers)
}

fn noted<'a>(part: Part<'a>, notes: Notes, layers: &mut Layers) -> Decoded<'a> {
    data_frame(part, notes, layers).unwrap_or_else(Decoded::Malformed)
}

/// A frame after a header of Radiotap (radiotap.org).
///
/// ```text
/// Header {
///   Version (8) = 0, Pad (8), Length (16),      // little-endian, as all
///   Present (32) ...,                           // bit 31: another one follows
///   TSFT (64),                                  // if bit 0, aligned to 8 bytes
///   Flags (8),                                  // if bit 1
///   ...
/// }
/// ```
pub(super) fn radiotap<'a>(part: Part<'a>, layers: &mut Layers) -> Result<Decoded<'a>, Malformed> {
    /// There are three kinds of fields so far.
    const MAX_WORDS: usize = 16;
    let [version, _, low, high] = part.array(0)?;
    let length = usize::from(u16::from_le_bytes([low, high]));
    if version != 0 || length < 8 {
        return Err(Malformed::Link);
    }
    let header = part.limit(length);
    let present = u32::from_le_bytes(part.array(4)?);
    let mut at = 8;
    let mut word = present;
    for _ in 0..MAX_WORDS {
        if word >> 31 == 0 {
            break;
        }
        word = u32::from_le_bytes(header.array(at)?);
        at += 4;
    }
    if present & 1 != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = match present & 2 {
        0 => 0,
        _ => header.u8(at)?,
    };
    let notes = Notes {
        has_fcs: flags & 0x10 != 0,
        is_padded: flags & 0x20 != 0,
        is_damaged: flags & 0x40 != 0,
    };
    Ok(noted(part.after(length)?, notes, layers))
}

/// A frame after a header of AVS: a magic number with the version, and the length, after which the frame begins.
pub(super) fn avs<'a>(part: Part<'a>, layers: &mut Layers) -> Result<Decoded<'a>, Malformed> {
    /// The magic number, the length and a time.
    const SMALLEST: usize = 16;
    let length = usize::try_from(part.u32(4)?).map_err(|_| Malformed::Link)?;
    if !is_avs(part)? || length < SMALLEST {
        return Err(Malformed::Link);
    }
    Ok(frame(part.after(length)?, layers))
}

fn is_avs(part: Part<'_>) -> Result<bool, Malformed> {
    Ok(matches!(part.u32(0)?, 0x8021_1001 | 0x8021_1002))
}

/// A frame after a header of Prism drivers, in the byte order of the machine: a message's code, and its length. Some drivers have a
/// header of AVS instead.
pub(super) fn prism<'a>(part: Part<'a>, layers: &mut Layers) -> Result<Decoded<'a>, Malformed> {
    /// Messages about a frame.
    const CODES: [u32; 2] = [0x41, 0x44];
    /// Code, length and the name of the device.
    const SMALLEST: u32 = 24;
    if is_avs(part)? {
        return avs(part, layers);
    }
    let [code, length] = [part.array(0)?, part.array(4)?];
    let length = match () {
        () if CODES.contains(&u32::from_le_bytes(code)) => u32::from_le_bytes(length),
        () if CODES.contains(&u32::from_be_bytes(code)) => u32::from_be_bytes(length),
        () => return Err(Malformed::Link),
    };
    if length < SMALLEST {
        return Err(Malformed::Link);
    }
    let length = usize::try_from(length).map_err(|_| Malformed::Link)?;
    Ok(frame(part.after(length)?, layers))
}

/// A packet after a Per-Packet Information header (CACE Technologies, PPI 1.0.7): of any link type, mostly 802.11.
///
/// ```text
/// Header { Version (8) = 0, Flags (8), Length (16), Link Type (32), Field (..) ... }
/// Field { Type (16), Length (16), Content (..) }     // little-endian, as all
/// ```
pub(super) fn ppi<'a>(part: Part<'a>, layers: &mut Layers) -> Result<Decoded<'a>, Malformed> {
    const WIFI: u32 = 105;
    /// Common information of 802.11, whose flags follow eight bytes of time.
    const COMMON: u16 = 2;
    let [version, _, low, high] = part.array(0)?;
    let length = usize::from(u16::from_le_bytes([low, high]));
    if version != 0 || length < 8 {
        return Err(Malformed::Link);
    }
    let number = u32::from_le_bytes(part.array(4)?);
    let content = part.after(length)?;
    if number != WIFI {
        return Ok(link::of_number(number, content, layers));
    }
    let mut notes = Notes::default();
    let mut fields = part.limit(length).after(8)?;
    while !fields.data.is_empty() {
        let [kind, size] = [0, 2].map(|at| fields.array(at).map(u16::from_le_bytes));
        if kind? == COMMON {
            let flags = fields.u8(4 + 8)?;
            notes.has_fcs = flags & 1 != 0;
            notes.is_damaged = flags & 4 != 0;
        }
        fields = fields.after(4 + usize::from(size?))?;
    }
    Ok(noted(content, notes, layers))
}

/// ```text
/// Frame {
///   Subtype (4), Type (2), Version (2),
///   Order (1), Protected (1), More Data (1), Power Management (1), Retry (1), More Fragments (1), From DS (1), To DS (1),
///   Duration (16), Addresses (48) x 3, Sequence Control (16),
///   Address 4 (48),                   // between access points
///   QoS Control (16), HT Control (32),
///   Body (..), FCS (32),
/// }
/// ```
fn data_frame<'a>(
    mut part: Part<'a>,
    notes: Notes,
    layers: &mut Layers,
) -> Result<Decoded<'a>, Malformed> {
    const DATA: u8 = 2;
    if notes.is_damaged {
        return Err(Malformed::Link);
    }
    if notes.has_fcs && part.length > FCS {
        part = part.limit(part.length - FCS);
    }
    let [mut kind, mut flags] = part.array(0)?;
    // Some access points send pairs of bytes the other way around (in CAPWAP).
    let is_swapped = kind & 3 != 0 && flags & 3 == 0;
    if is_swapped {
        (kind, flags) = (flags, kind);
    }
    let low = usize::from(is_swapped);
    let (is_data, subtype) = (kind & 0x0f == DATA << 2, kind >> 4);
    if kind & 3 != 0 {
        return Err(Malformed::Link);
    }
    // Others are of management or control, or have no content.
    if !is_data || subtype & 4 != 0 {
        return Ok(Decoded::Skipped(Skipped::NotIp));
    }
    if flags & 0x40 != 0 {
        return Ok(Decoded::Skipped(Skipped::Protected));
    }
    let mut at = if flags & 3 == 3 { 30 } else { 24 };
    let mut is_aggregate = false;
    if subtype & 8 != 0 {
        is_aggregate = part.u8(at + low)? & 0x80 != 0;
        at += 2;
        if flags & 0x80 != 0 {
            at += 4;
        }
    }
    if notes.is_padded {
        at = at.next_multiple_of(4);
    }
    let mut body = part.after(at)?;
    if part.u8(22 + low)? & 0xf > 0 {
        return Ok(Decoded::Skipped(Skipped::LoneFragment));
    }
    body.is_open |= flags & 4 != 0;
    match is_aggregate {
        true => Ok(Decoded::Aggregate(Aggregate {
            rest: body,
            depth: layers.get().len(),
        })),
        false => Ok(link::llc(body, layers)),
    }
}

/// Several frames in one (A-MSDU): addresses and a length before each, and padding between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aggregate<'a> {
    rest: Part<'a>,
    /// The number of layers around all of them.
    depth: usize,
}

impl<'a> Aggregate<'a> {
    /// Decodes the next frame; `None` if there are no more.
    pub(crate) fn next(&mut self, layers: &mut Layers) -> Option<Decoded<'a>> {
        const HEADER: usize = 14;
        layers.truncate(self.depth);
        let part = self.rest;
        if part.length < HEADER {
            return None;
        }
        let length = match part.u16(12) {
            Ok(length) => usize::from(length),
            Err(error) => {
                self.rest = Part::new(&[], 0);
                return Some(Decoded::Malformed(error));
            }
        };
        let next = (HEADER + length).next_multiple_of(4);
        self.rest = part.after(next).unwrap_or(Part::new(&[], 0));
        Some(match part.after(HEADER) {
            Ok(frame) => link::llc(frame.limit(length), layers),
            Err(why) => Decoded::Malformed(why),
        })
    }
}
