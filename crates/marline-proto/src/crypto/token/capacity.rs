//! The capacity of a path in an address validation token.

use std::time::Duration;

use marline_wire::{Reader, Truncated};

use crate::coordination::careful_resume::SavedModel;

/// A capacity for careful resume (RFC 9959). Layout in a token: window (8 bytes), minimum round-trip time
/// in microseconds (4), time of observation (8), source (8); then the model of a rate-based controller, if the token's kind
/// says so: bandwidth (8), whether that is the limit (1), packets of a million lost by chance (4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenCapacity {
    /// Congestion window confirmed by acknowledgments, in bytes.
    pub(crate) window: u64,
    /// Minimum round-trip time at that time, in whole microseconds up to 71 minutes.
    pub(crate) rtt: Duration,
    /// Time of observation, in seconds since the Unix epoch.
    pub(crate) observed: u64,
    /// Identifies the path of the connection that observed it; equal in all tokens of that path.
    pub(crate) source: u64,
    /// The model of a rate-based controller.
    pub(crate) model: Option<SavedModel>,
}

impl TokenCapacity {
    /// Encoded length without a model, in bytes.
    #[cfg(test)]
    pub(super) const LEN: usize = 8 + 4 + 8 + 8;

    /// Its age at `now` (seconds since the Unix epoch).
    pub(crate) fn age(&self, now: u64) -> Duration {
        Duration::from_secs(now.saturating_sub(self.observed))
    }

    pub(super) fn encode(&self, buf: &mut Vec<u8>) {
        let micros = u32::try_from(self.rtt.as_micros()).unwrap_or(u32::MAX);
        buf.extend_from_slice(&self.window.to_be_bytes());
        buf.extend_from_slice(&micros.to_be_bytes());
        buf.extend_from_slice(&self.observed.to_be_bytes());
        buf.extend_from_slice(&self.source.to_be_bytes());
        if let Some(model) = self.model {
            buf.extend_from_slice(&model.bandwidth.to_be_bytes());
            buf.push(model.is_limit.into());
            buf.extend_from_slice(&model.random_loss.to_be_bytes());
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>, has_model: bool) -> Result<Self, Truncated> {
        Ok(Self {
            window: u64::from_be_bytes(reader.array()?),
            rtt: Duration::from_micros(u32::from_be_bytes(reader.array()?).into()),
            observed: u64::from_be_bytes(reader.array()?),
            source: u64::from_be_bytes(reader.array()?),
            model: match has_model {
                true => Some(decode_model(reader)?),
                false => None,
            },
        })
    }
}

fn decode_model(reader: &mut Reader<'_>) -> Result<SavedModel, Truncated> {
    Ok(SavedModel {
        bandwidth: u64::from_be_bytes(reader.array()?),
        is_limit: reader.u8()? != 0,
        random_loss: u32::from_be_bytes(reader.array()?),
    })
}
