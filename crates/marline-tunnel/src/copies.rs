//! Packets that are sent on two paths, for what is small and urgent; and filler, which finds the rate of a path.
//!
//! Each end announces by the field [`COPIES`] that it takes datagrams of the context [`CONTEXT`]: a sequence number of 32 bits in
//! network byte order, and a packet. Peers that do not announce it never get one. The receiver delivers the first datagram of each
//! number, and nothing of the context [`FILLER`].

use http::{HeaderMap, HeaderName, HeaderValue};

/// The field by which an end announces that it takes copies: a Boolean (RFC 8941, section 3.3.6), which a client gives the parameter
/// `steady`, if both ends are to copy more.
const COPIES: HeaderName = HeaderName::from_static("tunnel-copies");

/// The context ID of the datagrams: an even one, which clients allocate (RFC 9298, section 4).
const CONTEXT: u8 = 2;

/// The context ID of datagrams whose content means nothing. Receivers drop what is of a context that they do not know, so that
/// it needs no announcement; ends with a cap announce no copies, and get none of it either.
pub(crate) const FILLER: u8 = 4;

/// Bytes before the packet: the context ID, and the number.
pub(crate) const OVERHEAD: usize = 5;

/// Numbers before the largest one that are remembered: at 200 kbit/s and 100 bytes in a packet, several seconds.
const WINDOW: u32 = 2048;

/// Bits of a word of the window.
const WORD: u32 = u64::BITS;

/// The packets that are sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// Small ones of flows with little, and urgent ones.
    Small,
    /// Those of video calls as well.
    Interactive,
}

impl Copied {
    /// The rate below which the packets of a flow are copied, in bytes per second: 200 kbit/s, or 4 Mbit/s.
    pub(crate) const fn max_rate(self) -> f64 {
        match self {
            Self::Small => 25_000.0,
            Self::Interactive => 500_000.0,
        }
    }

    /// The largest packet, in bytes; those of WebRTC have 1200.
    pub(crate) const fn max_packet(self) -> u32 {
        match self {
            Self::Small => 500,
            Self::Interactive => 1232,
        }
    }
}

/// Announces that this end takes copies.
pub(crate) fn announce(fields: &mut HeaderMap, copied: Copied) {
    let value = match copied {
        Copied::Small => "?1",
        Copied::Interactive => "?1;steady",
    };
    fields.insert(COPIES, HeaderValue::from_static(value));
}

/// The copies that the sender of `fields` takes; none if it does not announce any.
pub(crate) fn announced(fields: &HeaderMap) -> Option<Copied> {
    let mut words = fields.get(COPIES)?.to_str().ok()?.split(';').map(str::trim);
    if words.next() != Some("?1") {
        return None;
    }
    Some(match words.any(|word| word == "steady") {
        true => Copied::Interactive,
        false => Copied::Small,
    })
}

/// The payload of a datagram with this number: of the context 0 and a packet, without that context ID.
pub(crate) fn encode(number: u32, packet: &[u8]) -> Vec<u8> {
    [&[CONTEXT], &number.to_be_bytes()[..], packet].concat()
}

/// A datagram of [`CONTEXT`].
pub(crate) struct Numbered<'a> {
    pub(crate) number: u32,
    pub(crate) packet: &'a [u8],
}

impl<'a> Numbered<'a> {
    /// Reads the payload of a datagram; `None` if it is of another context.
    pub(crate) fn decode(payload: &'a [u8]) -> Option<Self> {
        let rest = payload.strip_prefix(&[CONTEXT])?;
        let (number, packet) = rest.split_first_chunk()?;
        Some(Self {
            number: u32::from_be_bytes(*number),
            packet,
        })
    }
}

/// The numbers that have arrived.
#[derive(Debug)]
pub(crate) struct Deduplication {
    /// The number after the largest that has arrived.
    next: u32,
    /// A bit for each number of the window, at its remainder.
    arrived: [u64; (WINDOW / WORD) as usize],
}

impl Deduplication {
    pub(crate) fn new() -> Self {
        Self {
            next: 0,
            // As if all before 0 had arrived: numbers wrap.
            arrived: [u64::MAX; (WINDOW / WORD) as usize],
        }
    }

    /// Whether `number` arrives for the first time. One before the window counts as arrived.
    pub(crate) fn is_first(&mut self, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.next);
        if ahead < u32::MAX / 2 {
            for skipped in 0..ahead.min(WINDOW) {
                self.set(number.wrapping_sub(skipped + 1), false);
            }
            self.next = number.wrapping_add(1);
            self.set(number, true);
            return true;
        }
        let behind = self.next.wrapping_sub(number);
        let is_first = behind <= WINDOW && !self.has(number);
        if is_first {
            self.set(number, true);
        }
        is_first
    }

    fn has(&self, number: u32) -> bool {
        let bit = number % WINDOW;
        self.arrived[(bit / WORD) as usize] >> (bit % WORD) & 1 == 1
    }

    fn set(&mut self, number: u32, arrived: bool) {
        let bit = number % WINDOW;
        let (word, mask) = (&mut self.arrived[(bit / WORD) as usize], 1 << (bit % WORD));
        match arrived {
            true => *word |= mask,
            false => *word &= !mask,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_is_delivered_once() {
        let mut window = Deduplication::new();
        let delivered = [0, 1, 1, 0, 3, 2, 2, 3, 5000, 5000, 4, 4000, 4000]
            .map(|number| window.is_first(number));
        let first = [
            true, true, false, false, true, true, false, false, true, false, false, true, false,
        ];
        assert_eq!(delivered, first);
    }

    #[test]
    fn only_datagrams_of_the_context_have_a_number() {
        let encoded = encode(7, b"packet");
        let numbered = Numbered::decode(&encoded).unwrap();
        assert_eq!((numbered.number, numbered.packet), (7, &b"packet"[..]));
        assert_eq!(encoded.len(), OVERHEAD + 6);
        assert!(Numbered::decode(b"\0packet").is_none());
        assert!(Numbered::decode(b"\x02\0\0").is_none());
    }

    #[test]
    fn other_peers_do_not_take_copies() {
        let mut fields = HeaderMap::new();
        assert_eq!(announced(&fields), None);
        for other in ["?0", "steady", "", "?0;steady"] {
            fields.insert(COPIES, HeaderValue::from_static(other));
            assert_eq!(announced(&fields), None, "{other}");
        }
        for copied in [Copied::Small, Copied::Interactive] {
            announce(&mut fields, copied);
            assert_eq!(announced(&fields), Some(copied));
        }
        fields.insert(COPIES, HeaderValue::from_static("?1;later=3"));
        assert_eq!(announced(&fields), Some(Copied::Small));
    }

    proptest! {
        /// Numbers in any order, from any one on, and past the largest.
        #[test]
        fn no_number_is_delivered_twice_and_none_of_the_window_is_missed(
            begin in any::<u32>(),
            steps in prop::collection::vec(0..3000_u32, 1..300),
        ) {
            let mut window = Deduplication::new();
            window.next = begin;
            let mut delivered = BTreeSet::new();
            let mut largest = 0;
            for (n, step) in steps.iter().enumerate() {
                let offset = (n as u32 * 7).saturating_sub(step % 2500) + step / 2;
                let is_first = window.is_first(begin.wrapping_add(offset));
                let is_new = !delivered.contains(&offset);
                prop_assert!(is_new || !is_first);
                if is_new && offset + WINDOW > largest {
                    prop_assert!(is_first);
                }
                delivered.insert(offset);
                largest = largest.max(offset);
            }
        }
    }
}
