//! The configuration of CBA.

use std::time::Duration;

use marline::settings::{Domain, Entry, Field, Settings};

use super::{BurstMode, Combine, Creation, HighRule, Mapping, MarginUnit, MaximumRule, Mean};
use crate::limits::MAX_PIPES;
use crate::pipes::PipePolicy;

/// Its name and parameters in settings.
pub(in crate::pipes) const ENTRY: Entry<PipePolicy, CbaConfig> = Entry {
    name: "cba",
    about: "As many connections as radio, round-trip time and losses call for, each object on one with capacity",
    parameters: CbaConfig::SETTINGS,
    default: CbaConfig::default,
    make: PipePolicy::BurstAware,
};

/// The configuration of CBA.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CbaConfig {
    /// The most pipes, regardless of the scores.
    pub max_pipes: usize,
    /// The combination of the scores of radio and connection.
    pub combine: Combine,
    /// The number of pipes that a score allows.
    pub mapping: Mapping,
    /// The method of averaging SINR.
    pub mean: Mean,
    /// The interval at which SINR is sampled.
    pub interval: Duration,
    /// Gamma of eq. 3.
    pub gamma: f64,
    /// P_j: the buffer of a pipe in bytes.
    pub buffer: u64,
    /// The bytes that count against the buffer.
    pub mode: BurstMode,
    /// Beta of eq. 8.
    pub beta: f64,
    /// The unit of the queue in eq. 8.
    pub unit: MarginUnit,
    /// The objects that get the pipe with the largest burst.
    pub high_rule: HighRule,
    /// The method by which pipes are opened.
    pub creation: Creation,
    /// Whether spare pipes are opened only for origins that used to get more requests than there are pipes.
    pub history: bool,
    /// Whether the application is in the foreground: one in the background has one pipe.
    pub foreground: bool,
}

impl CbaConfig {
    /// Its parameters in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Field::new(
            "max_pipes",
            Domain::integer(1, MAX_PIPES as u64),
            "The most connections, whatever the scores are",
            |c: &mut Self| &mut c.max_pipes,
        ),
        &Field::new(
            "combine",
            Domain::words::<Combine>(),
            "The combination of the scores of radio and connection",
            |c: &mut Self| &mut c.combine,
        ),
        &Field::new(
            "mapping",
            Domain::words::<Mapping>(),
            "The number of connections that a score allows",
            |c: &mut Self| &mut c.mapping,
        ),
        &Field::new(
            "mean",
            Domain::words::<Mean>(),
            "How SINR is averaged",
            |c: &mut Self| &mut c.mean,
        ),
        &Field::new(
            "interval",
            Domain::time(Duration::from_millis(1), Duration::from_secs(60)),
            "How often SINR is sampled",
            |c: &mut Self| &mut c.interval,
        ),
        &Field::new(
            "gamma",
            Domain::PART,
            "The weight of the round-trip time before a sample",
            |c: &mut Self| &mut c.gamma,
        ),
        &Field::new(
            "buffer",
            Domain::bytes(1, 1 << 32),
            "How much a connection may have to deliver before another is opened: P_j",
            |c: &mut Self| &mut c.buffer,
        ),
        &Field::new(
            "mode",
            Domain::words::<BurstMode>(),
            "The bytes that count against the buffer",
            |c: &mut Self| &mut c.mode,
        ),
        &Field::new(
            "beta",
            Domain::number(0.0, 100.0),
            "The part of the mean queue that is kept free",
            |c: &mut Self| &mut c.beta,
        ),
        &Field::new(
            "unit",
            Domain::words::<MarginUnit>(),
            "The unit of the queue",
            |c: &mut Self| &mut c.unit,
        ),
        &Field::new(
            "high_rule",
            Domain::words::<HighRule>(),
            "The objects that get the connection with the most capacity",
            |c: &mut Self| &mut c.high_rule,
        ),
        &Field::new(
            "creation",
            Domain::words::<Creation>(),
            "When connections are opened",
            |c: &mut Self| &mut c.creation,
        ),
        &Field::new(
            "history",
            Domain::SWITCH,
            "Whether spare connections are opened only to origins that used to get more requests than there are connections",
            |c: &mut Self| &mut c.history,
        ),
        &Field::new(
            "foreground",
            Domain::SWITCH,
            "Whether the application is in the foreground; one in the background has one connection",
            |c: &mut Self| &mut c.foreground,
        ),
    ];

    /// The rule for the most pipes by scores.
    pub fn maximum_rule(&self) -> MaximumRule {
        MaximumRule {
            combine: self.combine,
            mapping: self.mapping,
        }
    }
}

impl Default for CbaConfig {
    fn default() -> Self {
        Self {
            max_pipes: 5,
            combine: Combine::default(),
            mapping: Mapping::default(),
            mean: Mean::default(),
            interval: Duration::from_millis(200),
            gamma: 7.0 / 8.0,
            buffer: 256 << 10,
            mode: BurstMode::default(),
            beta: 1.2,
            unit: MarginUnit::default(),
            high_rule: HighRule::default(),
            creation: Creation::default(),
            history: true,
            foreground: true,
        }
    }
}
