//! How much a server sends to an address it has not validated (RFC 9000, section 8.1).

use crate::packet::Glimpse;

/// Bytes each way on a new flow until the client has shown that it receives.
#[derive(Debug, Default)]
pub(crate) struct Amplification {
    to_server: u64,
    to_client: u64,
    validated: bool,
    /// Whether the flow began with an Initial packet: later paths are validated out of sight.
    watched: bool,
    worst: f64,
}

impl Amplification {
    /// A datagram is delivered to the server. A Handshake packet proves that the client received; a token in an
    /// Initial packet may, so nothing is claimed after either.
    pub(crate) fn delivered(&mut self, bytes: usize, seen: &Glimpse<'_>) {
        self.watched |= self.to_server == 0 && seen.initial;
        self.validated |= seen.handshake || seen.token;
        self.to_server += bytes as u64;
    }

    /// The server sent a datagram, whether it will reach the client or not.
    pub(crate) fn answered(&mut self, bytes: usize) {
        if !self.watched || self.validated {
            return;
        }
        self.to_client += bytes as u64;
        self.worst = self
            .worst
            .max(self.to_client as f64 / self.to_server as f64);
    }

    /// The largest ratio of bytes sent to bytes received; 0 if the flow was not watched.
    pub(crate) fn worst(&self) -> f64 {
        self.worst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_until_validated() {
        let mut flow = Amplification::default();
        let initial = Glimpse {
            initial: true,
            ..Glimpse::default()
        };
        flow.delivered(1200, &initial);
        flow.answered(1200);
        flow.answered(2400);
        assert!((flow.worst() - 3.0).abs() < 1e-9);
        flow.delivered(
            1200,
            &Glimpse {
                handshake: true,
                ..initial
            },
        );
        flow.answered(100_000);
        assert!((flow.worst() - 3.0).abs() < 1e-9);
    }
}
