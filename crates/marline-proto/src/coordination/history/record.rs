//! The record of a path, in memory and encoded.

use std::time::Duration;

use marline_wire::varint;
use marline_wire::{Reader, Truncated};

use super::average::{MAX_WINDOW_SAMPLES, State};
use super::{Capacity, SavedModel, Windows};
use crate::Instant;
use crate::congestion::MAXIMUM_WINDOW;

/// The first byte of an encoded record.
const VERSION: u8 = 2;

/// The previous version, whose capacities have no model. Its records are still read.
const WITHOUT_MODEL: u8 = 1;

const EMPTY: u8 = 0;
const MEAN: u8 = 1;
const LATEST: u8 = 2;
const EWMA: u8 = 3;

/// The record of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathRecord {
    /// The windows that connections reached.
    pub windows: Windows,
    /// The saved capacity, for careful resume.
    pub capacity: Option<Capacity>,
    /// The window of the connection that was open when the peer last resumed its session, in bytes.
    pub live: Option<u64>,
    /// Samples that went into `windows`.
    pub samples: u64,
    /// When it was last updated.
    pub seen_at: Instant,
}

/// The reason why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRecord {
    /// Another version wrote it, probably a later one.
    #[error(
        "a path record of version {0}; this program reads versions {WITHOUT_MODEL} and {VERSION}"
    )]
    Version(u8),
    /// It is not exactly one record with valid values.
    #[error("not a path record: too short, too long, or with values that none can have")]
    Malformed,
}

impl From<Truncated> for InvalidRecord {
    fn from(_: Truncated) -> Self {
        Self::Malformed
    }
}

impl PathRecord {
    /// The largest length of an [encoded](Self::encode) record, in bytes.
    pub const MAX_ENCODED: usize =
        1 + 2 * 8 + (1 + 8) + (1 + 3 * 8 + 1 + 2 * 8) + 2 + MAX_WINDOW_SAMPLES * 8;

    /// An empty record.
    pub fn new(now: Instant) -> Self {
        Self {
            windows: Windows::default(),
            capacity: None,
            live: None,
            samples: 0,
            seen_at: now,
        }
    }

    /// Whether its age is `lifetime` or more.
    pub fn is_expired(&self, now: Instant, lifetime: Duration) -> bool {
        now - self.seen_at >= lifetime
    }

    /// Encodes it. Times are written as ages in milliseconds, since the epoch of the clock is that of the
    /// process. `live` is left out: that connection ends with the process.
    ///
    /// Layout, integers as in RFC 9000, section 16: version (one byte), age, samples, capacity (0, or 1 and window in
    /// bytes, RTT in nanoseconds, age, model), windows (0; or 1, sum, count; or 2, count, windows; or 3 and an IEEE 754
    /// number, big endian). The model of a capacity: 0; or 1, or 2 if the bandwidth is the limit, and bandwidth in
    /// bytes per second, random losses in a million packets.
    pub fn encode(&self, now: Instant) -> Vec<u8> {
        let mut buf = vec![VERSION];
        put(age(self.seen_at, now), &mut buf);
        put(self.samples, &mut buf);
        match self.capacity {
            None => buf.push(0),
            Some(Capacity {
                window,
                rtt,
                at,
                model,
            }) => {
                buf.push(1);
                put(window.min(MAXIMUM_WINDOW), &mut buf);
                put(nanos(rtt), &mut buf);
                put(age(at, now), &mut buf);
                encode_model(model, &mut buf);
            }
        }
        match &self.windows.0 {
            State::Empty => buf.push(EMPTY),
            State::Mean { sum, count } => {
                buf.push(MEAN);
                put(*sum, &mut buf);
                put(*count, &mut buf);
            }
            State::Latest(latest) => {
                buf.push(LATEST);
                put(latest.len() as u64, &mut buf);
                for bytes in latest {
                    put(*bytes, &mut buf);
                }
            }
            State::Ewma(average) => {
                buf.push(EWMA);
                buf.extend_from_slice(&average.to_bits().to_be_bytes());
            }
        }
        buf
    }

    /// Decodes the result of [`encode`](Self::encode). Time that has passed since then must be subtracted
    /// from `now`. Times before the epoch become the epoch.
    ///
    /// # Errors
    ///
    /// [`InvalidRecord`] unless the bytes are exactly one record of this version, or the one before, with valid values.
    pub fn decode(bytes: &[u8], now: Instant) -> Result<Self, InvalidRecord> {
        let mut reader = Reader::new(bytes);
        let has_model = match reader.u8()? {
            VERSION => true,
            WITHOUT_MODEL => false,
            other => return Err(InvalidRecord::Version(other)),
        };
        let seen_at = now - Duration::from_millis(reader.varint()?);
        let samples = reader.varint()?;
        let capacity = match reader.u8()? {
            0 => None,
            1 => Some(Capacity {
                window: reader.varint()?,
                rtt: Duration::from_nanos(reader.varint()?),
                at: now - Duration::from_millis(reader.varint()?),
                model: match has_model {
                    true => decode_model(&mut reader)?,
                    false => None,
                },
            }),
            _ => return Err(InvalidRecord::Malformed),
        };
        let windows = decode_windows(&mut reader)?;
        let is_sound =
            windows.is_sound() && capacity.is_none_or(|known| known.window <= MAXIMUM_WINDOW);
        if !is_sound || !reader.rest().is_empty() {
            return Err(InvalidRecord::Malformed);
        }
        Ok(Self {
            windows: Windows(windows),
            capacity,
            live: None,
            samples,
            seen_at,
        })
    }
}

const NO_MODEL: u8 = 0;
const LOWER_BOUND: u8 = 1;
const LIMIT: u8 = 2;

fn encode_model(model: Option<SavedModel>, buf: &mut Vec<u8>) {
    let Some(model) = model.filter(SavedModel::is_sound) else {
        buf.push(NO_MODEL);
        return;
    };
    buf.push(if model.is_limit { LIMIT } else { LOWER_BOUND });
    put(model.bandwidth, buf);
    put(model.random_loss.into(), buf);
}

fn decode_model(reader: &mut Reader<'_>) -> Result<Option<SavedModel>, InvalidRecord> {
    let is_limit = match reader.u8()? {
        NO_MODEL => return Ok(None),
        LOWER_BOUND => false,
        LIMIT => true,
        _ => return Err(InvalidRecord::Malformed),
    };
    let model = SavedModel {
        bandwidth: reader.varint()?,
        is_limit,
        random_loss: u32::try_from(reader.varint()?).map_err(|_| InvalidRecord::Malformed)?,
    };
    match model.is_sound() {
        true => Ok(Some(model)),
        false => Err(InvalidRecord::Malformed),
    }
}

fn decode_windows(reader: &mut Reader<'_>) -> Result<State, InvalidRecord> {
    Ok(match reader.u8()? {
        EMPTY => State::Empty,
        MEAN => State::Mean {
            sum: reader.varint()?,
            count: reader.varint()?,
        },
        LATEST => {
            let count = reader.varint()?;
            if count > MAX_WINDOW_SAMPLES as u64 {
                return Err(InvalidRecord::Malformed);
            }
            let latest = (0..count).map(|_| reader.varint());
            State::Latest(latest.collect::<Result<_, _>>()?)
        }
        EWMA => State::Ewma(f64::from_bits(u64::from_be_bytes(reader.array()?))),
        _ => return Err(InvalidRecord::Malformed),
    })
}

fn put(value: u64, buf: &mut Vec<u8>) {
    varint::encode(value.min(varint::MAX), buf);
}

fn age(at: Instant, now: Instant) -> u64 {
    u64::try_from((now - at).as_millis()).unwrap_or(u64::MAX)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
