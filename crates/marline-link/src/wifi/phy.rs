//! The physical layer: how long bytes are on the air.

use std::time::Duration;

/// Between a PPDU and its answer.
pub(super) const SIFS: u64 = 16_000;
/// The grid of contention.
pub(super) const SLOT: u64 = 9_000;
/// From the end of a PPDU that nobody understood to the end of waiting for its answer: a SIFS, a slot and the
/// detection of a preamble.
pub(super) const ANSWER_TIMEOUT: u64 = SIFS + SLOT + 20_000;
/// Bytes of an acknowledgment of one MPDU.
const ACK_BYTES: u64 = 14;
/// Bytes of a compressed block acknowledgment.
const BLOCK_ACK_BYTES: u64 = 32;
/// Bytes of a request to send.
const RTS_BYTES: u64 = 20;
/// Bytes of a clearance to send.
const CTS_BYTES: u64 = 14;
/// Bits before and after the bytes of a PPDU: the service field and the tail.
const SERVICE_AND_TAIL_BITS: u64 = 16 + 6;

/// The width of the channel, and the amendment that defines how it is used (IEEE 802.11-2020, clauses 19 and 21).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 802.11n, 20 MHz.
    Ht20,
    /// 802.11n, 40 MHz.
    Ht40,
    /// 802.11ac, 80 MHz.
    Vht80,
}

/// How a station modulates, in the 5 GHz band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Phy {
    /// The channel.
    pub width: Width,
    /// Modulation and coding of one spatial stream: 0 to 7, and to 9 in 802.11ac.
    pub mcs: u8,
    /// Spatial streams, 1 to 4.
    pub streams: u8,
    /// Symbols of 3.6 us instead of 4 us.
    pub short_guard_interval: bool,
}

impl Phy {
    /// 802.11n, whose index of 0 to 31 names the number of streams too: MCS 15 is MCS 7 on two streams.
    pub const fn ht(width: Width, index: u8, short_guard_interval: bool) -> Self {
        Self {
            width,
            mcs: index % 8,
            streams: index / 8 + 1,
            short_guard_interval,
        }
    }

    /// Whether the standard has such a modulation.
    pub(super) const fn is_valid(self) -> bool {
        let mcs = match self.width {
            Width::Ht20 | Width::Ht40 => 7,
            Width::Vht80 => 9,
        };
        self.mcs <= mcs && self.streams >= 1 && self.streams <= 4
    }

    /// Bits of data in a symbol, over all streams.
    pub(super) const fn bits_per_symbol(self) -> u64 {
        let subcarriers = match self.width {
            Width::Ht20 => 52,
            Width::Ht40 => 108,
            Width::Vht80 => 234,
        };
        // Bits of a subcarrier, and the code's rate.
        let (bits, data, coded) = match self.mcs {
            0 => (1, 1, 2),
            1 => (2, 1, 2),
            2 => (2, 3, 4),
            3 => (4, 1, 2),
            4 => (4, 3, 4),
            5 => (6, 2, 3),
            6 => (6, 3, 4),
            7 => (6, 5, 6),
            8 => (8, 3, 4),
            _ => (8, 5, 6),
        };
        subcarriers * bits * data * self.streams as u64 / coded
    }

    /// The rate while data flows, preambles and contention left out.
    pub fn bits_per_second(self) -> f64 {
        self.bits_per_symbol() as f64 * 1e9 / self.symbol() as f64
    }

    /// Nanoseconds of a symbol.
    const fn symbol(self) -> u64 {
        if self.short_guard_interval {
            3_600
        } else {
            4_000
        }
    }

    /// Nanoseconds before the first data symbol: a training field for each stream behind the fields that every
    /// station can read.
    const fn preamble(self) -> u64 {
        // Three streams train like four.
        let training = if self.streams == 3 { 4 } else { self.streams } as u64;
        let fixed = match self.width {
            Width::Ht20 | Width::Ht40 => 32_000,
            Width::Vht80 => 36_000,
        };
        fixed + 4_000 * training
    }

    /// Nanoseconds on the air of a PPDU that carries `bytes`. Stations see the channel in steps of 4 us, so short
    /// symbols are rounded up to those.
    pub(super) const fn ppdu(self, bytes: u64) -> u64 {
        let symbols = (SERVICE_AND_TAIL_BITS + 8 * bytes).div_ceil(self.bits_per_symbol());
        self.preamble() + (symbols * self.symbol()).next_multiple_of(4_000)
    }

    /// The most bytes that a PPDU of at most `limit` carries.
    pub(super) fn bytes_within(self, limit: Duration) -> u64 {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let data = limit.saturating_sub(self.preamble()) / 4_000 * 4_000;
        let bits = (data / self.symbol()).saturating_mul(self.bits_per_symbol());
        bits.saturating_sub(SERVICE_AND_TAIL_BITS) / 8
    }
}

/// Nanoseconds on the air of `bytes` at 24 Mb/s, which control frames use so that every station understands.
const fn control(bytes: u64) -> u64 {
    20_000 + 4_000 * (SERVICE_AND_TAIL_BITS + 8 * bytes).div_ceil(96)
}

/// From the end of a PPDU of `mpdus` MPDUs to the end of its answer.
pub(super) const fn answer(mpdus: u32) -> u64 {
    SIFS + control(if mpdus == 1 {
        ACK_BYTES
    } else {
        BLOCK_ACK_BYTES
    })
}

/// How stations take the medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct Air {
    pub(super) phy: Phy,
    /// From how many bytes on a PPDU is preceded by RTS and CTS.
    pub(super) rts_bytes: Option<u32>,
}

impl Air {
    /// From the beginning of an access to the end of its PPDU of `bytes`.
    pub(super) fn alone(self, bytes: u32) -> u64 {
        let reservation = if self.reserves(bytes) {
            control(RTS_BYTES) + SIFS + control(CTS_BYTES) + SIFS
        } else {
            0
        };
        reservation + self.phy.ppdu(bytes.into())
    }

    /// From the beginning of an access that meets another to the end of what is said.
    pub(super) fn collided(self, bytes: u32) -> u64 {
        if self.reserves(bytes) {
            control(RTS_BYTES)
        } else {
            self.phy.ppdu(bytes.into())
        }
    }

    fn reserves(self, bytes: u32) -> bool {
        self.rts_bytes.is_some_and(|least| bytes >= least)
    }
}

#[cfg(test)]
mod tests;
