//! The amplification limit: bytes that may be sent to an unvalidated address (RFC 9000, section 8).

use crate::limits::AMPLIFICATION_FACTOR;

/// Bytes an endpoint may send to one peer address: three times the bytes received from it, until
/// the address is validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AmplificationLimit {
    /// Bytes left to send; `None` once the address is validated.
    credit: Option<u64>,
}

impl AmplificationLimit {
    /// The limit of an unvalidated address: nothing may be sent before a datagram arrives.
    pub(crate) const fn new() -> Self {
        Self { credit: Some(0) }
    }

    /// The limit of a known address of the peer: a client's server, or a client with a valid token.
    pub(crate) const fn validated() -> Self {
        Self { credit: None }
    }

    /// Whether the address is validated.
    pub(crate) const fn is_validated(&self) -> bool {
        self.credit.is_none()
    }

    /// Bytes of UDP payload that may be sent now; `u64::MAX` once validated.
    pub(crate) const fn credit(&self) -> u64 {
        match self.credit {
            Some(credit) => credit,
            None => u64::MAX,
        }
    }

    /// Counts a datagram of `bytes` from the address, even if its packets could not be opened (RFC
    /// 9000, section 8.1).
    pub(crate) const fn on_received(&mut self, bytes: u64) {
        if let Some(credit) = &mut self.credit {
            *credit = credit.saturating_add(bytes.saturating_mul(AMPLIFICATION_FACTOR));
        }
    }

    /// Counts a datagram of `bytes` sent to the address.
    pub(crate) const fn on_sent(&mut self, bytes: u64) {
        if let Some(credit) = &mut self.credit {
            *credit = credit.saturating_sub(bytes);
        }
    }

    /// Lifts the limit: the peer has shown that it receives at the address.
    pub(crate) const fn on_validated(&mut self) {
        self.credit = None;
    }
}

#[cfg(test)]
mod tests;
