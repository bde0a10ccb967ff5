//! The secrets of one client's handshake, from its key log.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::KeyLog;
use rustls::crypto::tls13::OkmBlock;

use crate::crypto::SecretPair;

/// The secrets from which keys derive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Epoch {
    /// Keys of Handshake packets.
    Handshake,
    /// The first keys of 1-RTT packets.
    OneRtt,
}

/// A key log that keeps the traffic secrets of one connection, for the keys of a version other than the
/// one with which TLS was created, and passes everything on to the configured key log.
pub(super) struct SecretRecorder {
    configured: Arc<dyn KeyLog>,
    recorded: Mutex<Option<Recorded>>,
}

/// Secrets by epoch, one for each direction.
#[derive(Default)]
struct Recorded {
    client: [Option<OkmBlock>; 2],
    server: [Option<OkmBlock>; 2],
}

impl Recorded {
    fn slot(&mut self, label: &str) -> Option<&mut Option<OkmBlock>> {
        Some(match label {
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => &mut self.client[Epoch::Handshake as usize],
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => &mut self.server[Epoch::Handshake as usize],
            "CLIENT_TRAFFIC_SECRET_0" => &mut self.client[Epoch::OneRtt as usize],
            "SERVER_TRAFFIC_SECRET_0" => &mut self.server[Epoch::OneRtt as usize],
            _ => return None,
        })
    }
}

impl SecretRecorder {
    pub(super) fn new(configured: Arc<dyn KeyLog>) -> Self {
        Self {
            configured,
            recorded: Mutex::new(Some(Recorded::default())),
        }
    }

    /// Removes and returns the secrets of an epoch.
    pub(super) fn take(&self, epoch: Epoch) -> Option<SecretPair> {
        let mut recorded = self.lock();
        let recorded = recorded.as_mut()?;
        Some(SecretPair {
            client: recorded.client[epoch as usize].take()?,
            server: recorded.server[epoch as usize].take()?,
        })
    }

    /// Discards the secrets and records no more: the version is decided, and TLS uses it.
    pub(super) fn stop(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Recorded>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyLog for SecretRecorder {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if let Some(slot) = self.lock().as_mut().and_then(|all| all.slot(label)) {
            *slot = Some(OkmBlock::new(secret));
        }
        if self.configured.will_log(label) {
            self.configured.log(label, client_random, secret);
        }
    }

    fn will_log(&self, label: &str) -> bool {
        let is_recorded = self
            .lock()
            .as_mut()
            .is_some_and(|all| all.slot(label).is_some());
        is_recorded || self.configured.will_log(label)
    }
}

impl std::fmt::Debug for SecretRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretRecorder")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_recorded_until_the_version_is_decided() {
        let recorder = SecretRecorder::new(Arc::new(rustls::NoKeyLog));
        assert!(!recorder.will_log("EXPORTER_SECRET"));
        for label in ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"] {
            assert!(recorder.will_log(label));
            recorder.log(label, &[], &[7; 32]);
        }
        assert!(recorder.take(Epoch::Handshake).is_none());
        let pair = recorder.take(Epoch::OneRtt).expect("both were logged");
        assert_eq!(pair.client.as_ref(), [7; 32]);
        assert!(recorder.take(Epoch::OneRtt).is_none());
        recorder.stop();
        assert!(!recorder.will_log("CLIENT_TRAFFIC_SECRET_0"));
    }
}
