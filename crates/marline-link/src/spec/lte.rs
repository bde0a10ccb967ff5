//! The LTE radio at the client's end.

use std::time::Duration;

use super::key::{Key, Rate, Size, Value, name_of, named};
use super::units::Share;

/// An LTE cell as its one user sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct LteSpec {
    /// What the downlink gives on average, in bits per second.
    pub rate: u64,
    /// What the uplink gives on average, in bits per second.
    pub up_rate: u64,
    /// Standard deviation of the downlink's rate, in bits per second; the uplink's is in proportion.
    pub std: u64,
    /// How long the rate remembers what it was.
    pub tau: Duration,
    /// Of what the standard deviation is.
    pub std_scope: StdScope,
    /// Transport blocks that fail at first.
    pub bler: Share,
    /// From one chance to ask for the uplink to the next.
    pub sr: Duration,
    /// What is lost after the last try of the radio.
    pub loss: Share,
    /// What may wait in each direction, in bytes.
    pub queue: u64,
    /// The way through the operator's network, each way.
    pub core: Duration,
}

impl Default for LteSpec {
    fn default() -> Self {
        Self {
            rate: 65_900_000,
            up_rate: 20_000_000,
            std: 5_950_000,
            tau: Duration::from_secs(1),
            std_scope: StdScope::Window,
            bler: Share::from_billionths(80_000_000),
            sr: Duration::from_millis(5),
            loss: Share::from_billionths(900_000),
            queue: 1_000_000,
            core: Duration::from_micros(2870),
        }
    }
}

/// Of what a standard deviation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StdScope {
    /// Of the rate within a run.
    #[default]
    Window,
    /// Of the mean rate from run to run; within one it hardly varies.
    Run,
}

const SCOPES: &[(&str, StdScope)] = &[("window", StdScope::Window), ("run", StdScope::Run)];

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
    key!("lte.tau", tau, "how long the rate remembers"),
    Key {
        name: "lte.std-scope",
        help: "window or run: within a run, or of its mean",
        set: |lte, text| {
            lte.std_scope = named(text, SCOPES)?;
            Ok(())
        },
        show: |lte| name_of(&lte.std_scope, SCOPES),
    },
    key!("lte.bler", bler, "transport blocks that fail at first"),
    key!("lte.sr", sr, "period of scheduling requests"),
    key!("lte.loss", loss, "what is lost after the radio's last try"),
    key!("lte.queue", queue: Size, "what may wait in each direction"),
    key!("lte.core", core, "through the operator's network, each way"),
];
