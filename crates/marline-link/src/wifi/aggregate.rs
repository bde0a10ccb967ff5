//! What goes into one PPDU.

use super::config::{StationConfig, WifiConfig};
use super::frame;

/// What the medium and the sender allow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes, by the size of an A-MPDU and by the time on the air.
    pub(super) bytes: u32,
    /// MPDUs.
    mpdus: u32,
    /// Bytes of an A-MSDU; zero if there is none.
    amsdu_bytes: u32,
    /// Up to how many bytes a packet is small.
    small_bytes: u32,
    /// Small packets.
    small: u32,
}

impl Limits {
    /// Those of one station.
    pub(super) fn new(medium: &WifiConfig, station: &StationConfig) -> Self {
        let in_time = medium.phy.bytes_within(medium.max_ppdu);
        let (mpdus, amsdu_bytes) = if station.aggregation {
            (medium.max_mpdus, medium.max_amsdu_bytes.unwrap_or(0))
        } else {
            (1, 0)
        };
        Self {
            bytes: u32::try_from(in_time)
                .unwrap_or(u32::MAX)
                .min(medium.max_ampdu_bytes),
            mpdus,
            amsdu_bytes,
            small_bytes: medium.small_bytes,
            small: station.ack_aggregation.unwrap_or(u32::MAX),
        }
    }
}

/// A PPDU that is put together, packet after packet.
#[derive(Debug)]
pub(super) struct Ppdu {
    limits: Limits,
    /// MPDUs, the last included.
    mpdus: u32,
    /// Bytes of the A-MPDU, the last MPDU not included.
    closed: u32,
    /// Bytes of the last MPDU.
    last: u32,
    /// Bytes of the last MPDU's packets as an A-MSDU.
    amsdu: u32,
    /// Small packets.
    small: u32,
}

impl Ppdu {
    /// Holds nothing.
    pub(super) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            mpdus: 0,
            closed: 0,
            last: 0,
            amsdu: 0,
            small: 0,
        }
    }

    /// Adds a packet of `ip` bytes as an MPDU of its own, if that is allowed. The first always is.
    pub(super) fn begin(&mut self, ip: u32) -> bool {
        let closed = if self.mpdus == 0 {
            0
        } else {
            frame::ampdu(self.closed, self.last)
        };
        let last = frame::mpdu(ip);
        if self.mpdus > 0
            && (self.mpdus == self.limits.mpdus
                || frame::ampdu(closed, last) > self.limits.bytes
                || !self.allows_small(ip))
        {
            return false;
        }
        self.mpdus += 1;
        self.closed = closed;
        self.last = last;
        self.amsdu = frame::amsdu(0, ip);
        self.count_small(ip);
        true
    }

    /// Adds a packet of `ip` bytes to the last MPDU, as an A-MSDU, if that is allowed.
    pub(super) fn join(&mut self, ip: u32) -> bool {
        let amsdu = frame::amsdu(self.amsdu, ip);
        let last = frame::mpdu_of_amsdu(amsdu);
        if self.mpdus == 0
            || amsdu > self.limits.amsdu_bytes
            || frame::ampdu(self.closed, last) > self.limits.bytes
            || !self.allows_small(ip)
        {
            return false;
        }
        self.amsdu = amsdu;
        self.last = last;
        self.count_small(ip);
        true
    }

    /// How many MPDUs it has.
    pub(super) const fn mpdus(&self) -> u32 {
        self.mpdus
    }

    /// How many bytes it has. One MPDU alone is no A-MPDU.
    pub(super) const fn bytes(&self) -> u32 {
        if self.mpdus == 1 {
            self.last
        } else {
            frame::ampdu(self.closed, self.last)
        }
    }

    const fn allows_small(&self, ip: u32) -> bool {
        ip > self.limits.small_bytes || self.small < self.limits.small
    }

    const fn count_small(&mut self, ip: u32) {
        if ip <= self.limits.small_bytes {
            self.small += 1;
        }
    }
}

#[cfg(test)]
mod tests;
