//! The LTE radio at the client's end.

use std::time::Duration;

use super::key::{Key, Rate, Size, Value, name_of, named};
use super::units::Share;
use super::{Problem, SpecError};
use crate::lte::{Direction, LteConfig, RlcMode, StdScope};

/// An LTE link, as seen by its one user.
#[derive(Clone, Debug, PartialEq)]
pub struct LteSpec {
    /// Mean rate of the downlink, in bits per second.
    pub rate: u64,
    /// Mean rate of the uplink, in bits per second.
    pub up_rate: u64,
    /// Standard deviation of the downlink's rate over one-second averages, in bits per second; that of the
    /// uplink is in proportion.
    pub std: u64,
    /// Correlation time of the rate.
    pub tau: Duration,
    /// Over what the standard deviation is taken.
    pub std_scope: StdScope,
    /// Block error rate of first transmissions; that of retransmissions is a tenth of it.
    pub bler: Share,
    /// RLC mode, for blocks that fail all transmissions.
    pub rlc: RlcMode,
    /// Scheduling request period of the uplink, in whole milliseconds.
    pub sr: Duration,
    /// Residual loss after the last retransmission.
    pub loss: Share,
    /// Queue limit of each direction, in bytes.
    pub queue: u64,
    /// One-way delay of the operator's network.
    pub core: Duration,
}

impl Default for LteSpec {
    fn default() -> Self {
        Self {
            rate: 65_900_000,
            up_rate: 20_000_000,
            std: 5_100_000,
            tau: Duration::from_secs(1),
            std_scope: StdScope::Window,
            bler: Share::from_billionths(80_000_000),
            rlc: RlcMode::Acknowledged,
            sr: Duration::from_millis(5),
            loss: Share::from_billionths(900_000),
            queue: 1_000_000,
            core: Duration::from_micros(2870),
        }
    }
}

const SCOPES: &[(&str, StdScope)] = &[("window", StdScope::Window), ("run", StdScope::Run)];
const MODES: &[(&str, RlcMode)] = &[
    ("am", RlcMode::Acknowledged),
    ("um", RlcMode::Unacknowledged),
];

impl LteSpec {
    /// The settings of one direction.
    pub fn config(&self, direction: Direction) -> LteConfig {
        let (rate, std) = match direction {
            Direction::Downlink => (self.rate, self.std),
            Direction::Uplink => {
                let share = self.up_rate as f64 / self.rate as f64;
                (self.up_rate, (self.std as f64 * share) as u64)
            }
        };
        let bler = self.bler.as_f64();
        LteConfig {
            bits_per_second: rate,
            std_bits_per_second: std,
            std_scope: self.std_scope,
            tau: self.tau,
            block_error: bler,
            retry_error: 0.1 * bler,
            rlc_mode: self.rlc,
            request_period: self.sr.as_millis() as u64,
            queue_bytes: self.queue,
            residual_loss: self.loss.as_f64(),
            core_delay: self.core,
            ..LteConfig::default()
        }
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        let range = |key, value: String, range| Err(Problem::OutOfRange { value, range }.at(key));
        for (key, rate) in [("lte.rate", self.rate), ("lte.up-rate", self.up_rate)] {
            if rate == 0 {
                return range(key, Rate(rate).write(), "above 0");
            }
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(10)).contains(&self.sr) {
            return range("lte.sr", self.sr.write(), "1ms to 10s");
        }
        Ok(())
    }
}

macro_rules! key {
    ($name:literal, $field:ident, $help:literal) => {
        Key {
            name: $name,
            help: $help,
            set: |lte: &mut LteSpec, text| {
                lte.$field = Value::read(text)?;
                Ok(())
            },
            show: |lte| lte.$field.write(),
        }
    };
    ($name:literal, $field:ident: $kind:ident, $help:literal) => {
        Key {
            name: $name,
            help: $help,
            set: |lte: &mut LteSpec, text| {
                lte.$field = $kind::read(text)?.0;
                Ok(())
            },
            show: |lte| $kind(lte.$field).write(),
        }
    };
}

pub(super) const KEYS: &[Key<LteSpec>] = &[
    key!("lte.rate", rate: Rate, "mean rate of the downlink"),
    key!("lte.up-rate", up_rate: Rate, "mean rate of the uplink"),
    key!("lte.std", std: Rate, "standard deviation of the downlink's rate"),
    key!("lte.tau", tau, "correlation time of the rate"),
    Key {
        name: "lte.std-scope",
        help: "window or run: deviation within a run, or between runs",
        set: |lte, text| {
            lte.std_scope = named(text, SCOPES)?;
            Ok(())
        },
        show: |lte| name_of(&lte.std_scope, SCOPES),
    },
    key!("lte.bler", bler, "block error rate of first transmissions"),
    Key {
        name: "lte.rlc",
        help: "am or um: blocks that fail all transmissions are late, or lost",
        set: |lte, text| {
            lte.rlc = named(text, MODES)?;
            Ok(())
        },
        show: |lte| name_of(&lte.rlc, MODES),
    },
    key!("lte.sr", sr, "period of scheduling requests"),
    key!(
        "lte.loss",
        loss,
        "residual loss after the last retransmission"
    ),
    key!("lte.queue", queue: Size, "queue limit of each direction"),
    key!("lte.core", core, "one-way delay of the operator's network"),
];
