//! `--log`: the events of connections, as lines on standard error.

use std::fmt;
use std::io;
use std::str::FromStr;

use clap::Args;
use marline::settings::unknown;
use marline::trace;
use marline_http::transport::{Observers, QuicOptions};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::transport::RESEARCH;

/// Flags of the log, shared by server and client.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LogFlags {
    /// Log events of QUIC connections to standard error: info, debug or trace, or other levels by target
    /// (info,marline::recovery=debug)
    #[arg(long, value_name = "LEVEL", help_heading = RESEARCH, hide_short_help = true)]
    pub(crate) log: Option<LogFilter>,
}

impl LogFlags {
    /// Starts the log, if it is wanted, and adds an observer to the connections of `quic`. Must be called
    /// only once.
    pub(crate) fn start(&self, quic: &mut QuicOptions) {
        self.observe(quic);
        let Some(filter) = &self.log else { return };
        tracing_subscriber::registry()
            .with(tracing_subscriber::fmt::layer().with_writer(io::stderr))
            .with(filter.0.clone())
            .init();
    }

    /// Adds the observer of a log that was started to the connections of `quic`.
    pub(crate) fn observe(&self, quic: &mut QuicOptions) {
        if self.log.is_some() {
            quic.observers = Some(Observers(trace::observer()));
        }
    }
}

/// A filter of the events to log.
#[derive(Clone, Debug)]
pub(crate) struct LogFilter(Targets);

impl FromStr for LogFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut targets = Targets::new();
        for part in text.split(',') {
            let (target, level) = match part.split_once('=') {
                Some((target, level)) => (Some(target), level),
                None => (None, part),
            };
            let known = LevelFilter::from_str(level).ok();
            // `LevelFilter` parses an empty text as `error`.
            let level = known.filter(|_| !level.is_empty()).ok_or_else(|| {
                format!(
                    "`{level}` is not a level; give off, error, warn, info, debug or trace, also for a target: \
                     marline::recovery=debug"
                )
            })?;
            targets = match target {
                Some(target) => targets.with_target(known_target(target)?, level),
                None => targets.with_default(level),
            };
        }
        Ok(Self(targets))
    }
}

/// Libraries below that emit events of their own.
const LIBRARIES: [&str; 7] = [
    "h2",
    "hyper",
    "hyper_util",
    "rustls",
    "tokio",
    "tower",
    "tower_http",
];

/// `target`, if anything has it: it or a part of it is a target of marline, or it is in a library.
fn known_target(target: &str) -> Result<&str, String> {
    let is_in = |whole: &str, part: &str| {
        let rest = whole.strip_prefix(part);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let of_marline = trace::TARGETS.iter().any(|known| is_in(known, target));
    match of_marline || LIBRARIES.iter().any(|library| is_in(target, library)) {
        true => Ok(target),
        false => Err(unknown("target", target, trace::TARGETS)),
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::LogFilter;

    fn level_of(filter: &str, target: &str) -> Option<LevelFilter> {
        let filter: LogFilter = filter.parse().unwrap();
        let mut levels = [LevelFilter::TRACE, LevelFilter::DEBUG, LevelFilter::INFO].into_iter();
        levels.find(|level| filter.0.would_enable(target, &level.into_level().unwrap()))
    }

    #[test]
    fn a_level_applies_to_all_targets_without_their_own() {
        let filter = "info,marline::recovery=debug,marline::keys=off";
        assert_eq!(level_of(filter, "marline::path"), Some(LevelFilter::INFO));
        assert_eq!(
            level_of(filter, "marline::recovery"),
            Some(LevelFilter::DEBUG)
        );
        assert_eq!(level_of(filter, "marline::keys"), None);
    }

    #[test]
    fn a_target_that_nothing_has_is_an_error_with_the_known_ones() {
        for text in [
            "marline::recovry=debug",
            "marlin=info",
            "info,marline::keys::x=off",
        ] {
            let error = text.parse::<LogFilter>().unwrap_err();
            assert!(error.contains("marline::recovery"), "{error}");
        }
        for text in ["marline=debug", "info,h2::proto=trace,hyper=debug"] {
            text.parse::<LogFilter>().unwrap();
        }
    }

    #[test]
    fn an_unknown_level_is_an_error_with_the_known_levels() {
        for text in ["inof", "", "marline::keys=loud", "info,"] {
            let error = text.parse::<LogFilter>().unwrap_err();
            assert!(error.contains("info, debug or trace"), "{error}");
        }
    }
}
