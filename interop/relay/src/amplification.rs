//! The amplification limit before address validation (RFC 9000, section 8.1).

use crate::packet::PublicFields;

/// Bytes in each direction on a new flow until the client's address is validated.
#[derive(Debug, Default)]
pub(crate) struct Amplification {
    to_server: u64,
    to_client: u64,
    validated: bool,
    /// Whether the flow began with an Initial packet: the validation of later paths is encrypted.
    watched: bool,
    worst: f64,
}

impl Amplification {
    /// A datagram is delivered to the server. A Handshake packet validates the address; a token in an
    /// Initial packet may, so the count ends after either.
    pub(crate) fn delivered(&mut self, bytes: usize, seen: &PublicFields<'_>) {
        self.watched |= self.to_server == 0 && seen.initial;
        self.validated |= seen.handshake || seen.token;
        self.to_server += bytes as u64;
    }

    /// The server sent a datagram, whether or not it will reach the client.
    pub(crate) fn answered(&mut self, bytes: usize) {
        if !self.watched || self.validated {
            return;
        }
        self.to_client += bytes as u64;
        self.worst = self
            .worst
            .max(self.to_client as f64 / self.to_server as f64);
    }

    /// The largest ratio of bytes sent to bytes received; 0 if the flow was not tracked.
    pub(crate) fn worst(&self) -> f64 {
        self.worst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_until_validation() {
        let mut flow = Amplification::default();
        let initial = PublicFields {
            initial: true,
            ..PublicFields::default()
        };
        flow.delivered(1200, &initial);
        flow.answered(1200);
        flow.answered(2400);
        assert!((flow.worst() - 3.0).abs() < 1e-9);
        flow.delivered(
            1200,
            &PublicFields {
                handshake: true,
                ..initial
            },
        );
        flow.answered(100_000);
        assert!((flow.worst() - 3.0).abs() < 1e-9);
    }
}
