//! The LTE radio at the client's end.

use std::time::Duration;

use marline_settings::{Domain, Field, Named, Settings, Share, Word, write_rate, write_time};

use super::{RATE, SpecError};
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
    /// The averaging that the standard deviation refers to.
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

impl Named for StdScope {
    const WORDS: &'static [Word<Self>] = &[
        Word::new("window", "within a run", Self::Window),
        Word::new("run", "between runs", Self::Run),
    ];
}

impl Named for RlcMode {
    const WORDS: &'static [Word<Self>] = &[
        Word::new("am", "they are late", Self::Acknowledged),
        Word::new("um", "they are lost", Self::Unacknowledged),
    ];
}

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
        for (key, rate) in [("lte.rate", self.rate), ("lte.up-rate", self.up_rate)] {
            if rate == 0 {
                return Err(SpecError::out_of_range(key, &write_rate(rate), "above 0"));
            }
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(10)).contains(&self.sr) {
            return Err(SpecError::out_of_range(
                "lte.sr",
                &write_time(self.sr),
                "1ms to 10s",
            ));
        }
        Ok(())
    }
}

macro_rules! key {
    ($name:literal, $field:ident: $domain:expr, $about:literal) => {
        &Field::new($name, $domain, $about, |lte: &mut LteSpec| &mut lte.$field)
    };
}

pub(super) const KEYS: Settings<LteSpec> = &[
    key!("lte.rate", rate: RATE, "mean rate of the downlink"),
    key!("lte.up-rate", up_rate: RATE, "mean rate of the uplink"),
    key!("lte.std", std: RATE, "standard deviation of the downlink's rate"),
    key!("lte.tau", tau: Domain::TIME, "correlation time of the rate"),
    key!("lte.std-scope", std_scope: Domain::words::<StdScope>(), "over what the deviation is taken"),
    key!("lte.bler", bler: Domain::SHARE, "block error rate of first transmissions"),
    key!("lte.rlc", rlc: Domain::words::<RlcMode>(), "how the radio link control treats blocks that fail all transmissions"),
    key!("lte.sr", sr: Domain::TIME, "period of scheduling requests"),
    key!("lte.loss", loss: Domain::SHARE, "residual loss after the last retransmission"),
    key!("lte.queue", queue: Domain::SIZE, "queue limit of each direction"),
    key!("lte.core", core: Domain::TIME, "one-way delay of the operator's network"),
];
