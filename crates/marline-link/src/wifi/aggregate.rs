//! Aggregation of packets into one PPDU.

use std::time::Duration;

use super::config::{StationConfig, WifiConfig};
use super::frame;
use super::phy::Phy;

/// Aggregation limits of the medium and the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Size limit in bytes, by the maximum A-MPDU size and the maximum airtime.
    pub(super) bytes: u32,
    /// Maximum number of MPDUs.
    mpdus: u32,
    /// Maximum size of an A-MSDU in bytes; 0 if A-MSDUs are disabled.
    amsdu_bytes: u32,
    /// Largest size in bytes of a small packet.
    small_bytes: u32,
    /// Maximum number of small packets.
    small: u32,
    /// Maximum airtime, and the size limit that does not depend on the modulation.
    in_time: Duration,
    in_bytes: u32,
}

impl Limits {
    /// The limits of one station that transmits with `phy`.
    pub(super) fn new(medium: &WifiConfig, station: &StationConfig, phy: Phy) -> Self {
        let in_time = phy.bytes_within(medium.max_ppdu);
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
            in_time: medium.max_ppdu,
            in_bytes: medium.max_ampdu_bytes,
        }
    }

    /// Adapts the size limit to another modulation.
    pub(super) fn adapt(&mut self, phy: Phy) {
        let in_time = phy.bytes_within(self.in_time);
        self.bytes = u32::try_from(in_time)
            .unwrap_or(u32::MAX)
            .min(self.in_bytes);
    }
}

/// A PPDU under construction.
#[derive(Debug)]
pub(super) struct Ppdu {
    limits: Limits,
    /// Number of MPDUs, including the last.
    mpdus: u32,
    /// Size of the A-MPDU without the last MPDU, in bytes.
    closed: u32,
    /// Size of the last MPDU, in bytes.
    last: u32,
    /// Size of the last MPDU's packets as an A-MSDU, in bytes.
    amsdu: u32,
    /// Number of small packets.
    small: u32,
}

impl Ppdu {
    /// An empty PPDU.
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

    /// Adds a packet of `ip` bytes as an MPDU of its own, if permitted. The first packet always is.
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
                || !self.permits_small(ip))
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

    /// Adds a packet of `ip` bytes to the A-MSDU of the last MPDU, if permitted.
    pub(super) fn join(&mut self, ip: u32) -> bool {
        let amsdu = frame::amsdu(self.amsdu, ip);
        let last = frame::mpdu_of_amsdu(amsdu);
        if self.mpdus == 0
            || amsdu > self.limits.amsdu_bytes
            || frame::ampdu(self.closed, last) > self.limits.bytes
            || !self.permits_small(ip)
        {
            return false;
        }
        self.amsdu = amsdu;
        self.last = last;
        self.count_small(ip);
        true
    }

    /// Number of MPDUs.
    pub(super) const fn mpdus(&self) -> u32 {
        self.mpdus
    }

    /// Size in bytes. A single MPDU is sent without A-MPDU framing.
    pub(super) const fn bytes(&self) -> u32 {
        if self.mpdus == 1 {
            self.last
        } else {
            frame::ampdu(self.closed, self.last)
        }
    }

    const fn permits_small(&self, ip: u32) -> bool {
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
