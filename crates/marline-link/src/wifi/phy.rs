//! The physical layer: durations of transmissions.

use std::time::Duration;

/// Short interframe space, in nanoseconds: the time between a PPDU and its acknowledgment.
pub(super) const SIFS: u64 = 16_000;
/// Slot time, in nanoseconds.
pub(super) const SLOT: u64 = 9_000;
/// From the end of a PPDU that no station received to the end of the acknowledgment timeout, in
/// nanoseconds: SIFS, slot and preamble detection.
pub(super) const ANSWER_TIMEOUT: u64 = SIFS + SLOT + 20_000;
/// Size of an Ack frame in bytes.
const ACK_BYTES: u64 = 14;
/// Size of a compressed BlockAck frame in bytes.
const BLOCK_ACK_BYTES: u64 = 32;
/// Size of an RTS frame in bytes.
const RTS_BYTES: u64 = 20;
/// Size of a CTS frame in bytes.
const CTS_BYTES: u64 = 14;
/// Bits of the service field and the tail of a PPDU.
const SERVICE_AND_TAIL_BITS: u64 = 16 + 6;

/// Channel width, with the PHY that uses it (IEEE 802.11-2020, clauses 19 and 21).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 802.11n, 20 MHz.
    Ht20,
    /// 802.11n, 40 MHz.
    Ht40,
    /// 802.11ac, 80 MHz.
    Vht80,
}

/// Modulation of a station, in the 5 GHz band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Phy {
    /// Channel width.
    pub width: Width,
    /// Modulation and coding scheme of one spatial stream: 0 to 7, in 802.11ac 0 to 9.
    pub mcs: u8,
    /// Number of spatial streams, 1 to 4.
    pub streams: u8,
    /// Whether the symbol duration is 3.6 us instead of 4 us (short guard interval).
    pub short_guard_interval: bool,
}

impl Phy {
    /// An 802.11n modulation; its index of 0 to 31 includes the streams: MCS 15 is MCS 7 on two streams.
    pub const fn ht(width: Width, index: u8, short_guard_interval: bool) -> Self {
        Self {
            width,
            mcs: index % 8,
            streams: index / 8 + 1,
            short_guard_interval,
        }
    }

    /// Whether the standard defines this modulation.
    pub(super) const fn is_valid(self) -> bool {
        let mcs = match self.width {
            Width::Ht20 | Width::Ht40 => 7,
            Width::Vht80 => 9,
        };
        self.mcs <= mcs && self.streams >= 1 && self.streams <= 4
    }

    /// The modulations of this width, number of streams and guard interval, the slowest first.
    pub(super) fn alternatives(self) -> impl Iterator<Item = Self> {
        let all = (0..=9).map(move |mcs| Self { mcs, ..self });
        all.filter(|phy| phy.is_valid())
    }

    /// Bit error rate at a signal-to-noise ratio in dB. The standard's sensitivity is for 10 % of frames of 4,096 bytes
    /// failing (IEEE 802.11-2020, 19.3.19.1), which fixes one point; from there a decade per dB, which is chosen: a typical
    /// waterfall of convolutional codes, without fading.
    pub fn bit_error_rate(self, snr_db: f64) -> f64 {
        let at_sensitivity = -libm::expm1(libm::log(0.9) / (8.0 * 4096.0));
        let rate = at_sensitivity * libm::pow(10.0, self.least_snr_db() - snr_db);
        rate.min(0.5)
    }

    /// Data bits per symbol, over all streams.
    pub(super) const fn bits_per_symbol(self) -> u64 {
        let subcarriers = match self.width {
            Width::Ht20 => 52,
            Width::Ht40 => 108,
            Width::Vht80 => 234,
        };
        // Bits per subcarrier, and the code rate.
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

    /// PHY data rate in bits per second, without preambles and contention.
    pub fn bits_per_second(self) -> f64 {
        self.bits_per_symbol() as f64 * 1e9 / self.symbol() as f64
    }

    /// Minimum signal-to-noise ratio in dB at which receivers must decode this modulation: the sensitivity required by
    /// the standard (IEEE 802.11-2020, tables 19-23 and 21-25), over its assumed noise: -101 dBm in 20 MHz, and a noise
    /// figure of 10 dB. It is the same for all widths.
    pub const fn least_snr_db(self) -> f64 {
        let sensitivity = match self.mcs {
            0 => -82.0,
            1 => -79.0,
            2 => -77.0,
            3 => -74.0,
            4 => -70.0,
            5 => -66.0,
            6 => -65.0,
            7 => -64.0,
            8 => -59.0,
            _ => -57.0,
        };
        sensitivity + 101.0 - 10.0
    }

    /// Duration of a symbol in nanoseconds.
    const fn symbol(self) -> u64 {
        if self.short_guard_interval {
            3_600
        } else {
            4_000
        }
    }

    /// Duration of the preamble in nanoseconds: the legacy fields, and a training field for each
    /// stream.
    const fn preamble(self) -> u64 {
        // Three streams use four training fields.
        let training = if self.streams == 3 { 4 } else { self.streams } as u64;
        let fixed = match self.width {
            Width::Ht20 | Width::Ht40 => 32_000,
            Width::Vht80 => 36_000,
        };
        fixed + 4_000 * training
    }

    /// Duration of a PPDU with `bytes` bytes, in nanoseconds. The standard rounds short symbols up to
    /// multiples of 4 us.
    pub(super) const fn ppdu(self, bytes: u64) -> u64 {
        let symbols = (SERVICE_AND_TAIL_BITS + 8 * bytes).div_ceil(self.bits_per_symbol());
        self.preamble() + (symbols * self.symbol()).next_multiple_of(4_000)
    }

    /// The largest number of bytes in a PPDU of at most `limit`.
    pub(super) fn bytes_within(self, limit: Duration) -> u64 {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let data = limit.saturating_sub(self.preamble()) / 4_000 * 4_000;
        let bits = (data / self.symbol()).saturating_mul(self.bits_per_symbol());
        bits.saturating_sub(SERVICE_AND_TAIL_BITS) / 8
    }
}

/// Duration of a control frame of `bytes` bytes at the basic rate of 24 Mb/s, in nanoseconds.
const fn control(bytes: u64) -> u64 {
    20_000 + 4_000 * (SERVICE_AND_TAIL_BITS + 8 * bytes).div_ceil(96)
}

/// From the end of a PPDU of `mpdus` MPDUs to the end of its acknowledgment, in nanoseconds.
pub(super) const fn answer(mpdus: u32) -> u64 {
    SIFS + control(if mpdus == 1 {
        ACK_BYTES
    } else {
        BLOCK_ACK_BYTES
    })
}

/// Durations of accesses to the medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct Airtime {
    pub(super) phy: Phy,
    /// Minimum size in bytes of a PPDU preceded by RTS and CTS.
    pub(super) rts_bytes: Option<u32>,
}

impl Airtime {
    /// Duration of an access without collision, until the end of its PPDU of `bytes` bytes.
    pub(super) fn uncontended(self, bytes: u32) -> u64 {
        let reservation = if self.reserves(bytes) {
            control(RTS_BYTES) + SIFS + control(CTS_BYTES) + SIFS
        } else {
            0
        };
        reservation + self.phy.ppdu(bytes.into())
    }

    /// Duration of an access with a collision.
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
