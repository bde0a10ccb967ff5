//! Redirects, repetition and rates: the flags about transfers.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use clap::Args;
use marline_http::client::{FetchOptions, LowSpeed, Redirects, Retry, Schemes};

use super::TRANSFERS;
use super::request::RequestFlags;
use super::size::size;
use crate::duration::duration;

/// The time of `-Y` without `-y`, and the rate of `-y` without `-Y`, as curl has them.
const LOW_TIME: Duration = Duration::from_secs(30);
const LOW_RATE: u64 = 1;

/// Objects that are fetched at once with `-Z`, unless --parallel-max says otherwise.
const PARALLEL: usize = 50;

#[derive(Debug, Args)]
pub(crate) struct TransferFlags {
    /// Follow redirects
    #[arg(short = 'L', long, help_heading = TRANSFERS)]
    location: bool,

    /// Follow redirects, and send credentials and cookies of the command to other servers, too
    #[arg(long, help_heading = TRANSFERS, hide_short_help = true)]
    location_trusted: bool,

    /// Follow at most N redirects; -1 means no limit
    #[arg(long, value_name = "N", default_value = "50", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1..), help_heading = TRANSFERS, hide_short_help = true)]
    max_redirs: i32,

    /// Send POST again after 301
    #[arg(long, help_heading = TRANSFERS, hide_short_help = true)]
    post301: bool,

    /// Send POST again after 302
    #[arg(long, help_heading = TRANSFERS, hide_short_help = true)]
    post302: bool,

    /// Send POST again after 303
    #[arg(long, help_heading = TRANSFERS, hide_short_help = true)]
    post303: bool,

    /// Fetch only these schemes, as =https or -http
    #[arg(long, value_name = "SCHEMES", value_parser = schemes, allow_hyphen_values = true, help_heading = TRANSFERS, hide_short_help = true)]
    proto: Option<Schemes>,

    /// Follow redirects only to these of --proto
    #[arg(long, value_name = "SCHEMES", value_parser = schemes, allow_hyphen_values = true, help_heading = TRANSFERS, hide_short_help = true)]
    proto_redir: Option<Schemes>,

    /// Fetch one object after another up to the first failure
    #[arg(long, help_heading = TRANSFERS, hide_short_help = true)]
    pub(super) fail_early: bool,

    /// Try again up to N times after what may pass: a time limit, an unknown name, the statuses 408, 429, 500, 502, 503, 504
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true, help_heading = TRANSFERS, hide_short_help = true)]
    retry: u32,

    /// Wait this long before each try [default: what the server says, or 1s, doubled each time]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = TRANSFERS, hide_short_help = true)]
    retry_delay: Option<Duration>,

    /// Do not try again after this long
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = TRANSFERS, hide_short_help = true)]
    retry_max_time: Option<Duration>,

    /// Try again after every error of the network or the server
    #[arg(long, help_heading = TRANSFERS, hide_short_help = true)]
    retry_all_errors: bool,

    /// Try again if a connection is refused
    #[arg(long, help_heading = TRANSFERS, hide_short_help = true)]
    retry_connrefused: bool,

    /// Send and receive each object with at most this many bytes a second; K, M and G are 1024, 1024² and 1024³
    #[arg(long, value_name = "BYTES", value_parser = size, help_heading = TRANSFERS, hide_short_help = true)]
    limit_rate: Option<u64>,

    /// Fail if less than --speed-limit arrives for this long [default with -Y: 30s]
    #[arg(short = 'y', long, value_name = "TIME", value_parser = duration, help_heading = TRANSFERS, hide_short_help = true)]
    speed_time: Option<Duration>,

    /// Fail if less than this many bytes a second arrive for --speed-time [default with -y: 1]
    #[arg(short = 'Y', long, value_name = "BYTES", value_parser = size, help_heading = TRANSFERS, hide_short_help = true)]
    speed_limit: Option<u64>,

    /// Fetch objects at the same time (the default)
    #[arg(short = 'Z', long, help_heading = TRANSFERS, hide_short_help = true)]
    parallel: bool,

    /// Fetch at most N objects from a server at the same time
    #[arg(long, value_name = "N", help_heading = TRANSFERS, hide_short_help = true)]
    parallel_max: Option<NonZeroUsize>,
}

impl TransferFlags {
    /// The redirects that are followed.
    pub(super) fn redirects(&self, request: &RequestFlags) -> Option<Redirects> {
        (self.location || self.location_trusted).then(|| Redirects {
            limit: u32::try_from(self.max_redirs).ok(),
            trusts_others: self.location_trusted,
            keeps_post: [self.post301, self.post302, self.post303],
            keeps_method: request.has_method(),
            posts: request.posts(),
            schemes: self.proto_redir.unwrap_or_default().within(self.schemes()),
            refers: request.refers(),
        })
    }

    /// Whether redirects are followed.
    pub(super) fn follows(&self) -> bool {
        self.location || self.location_trusted
    }

    /// The schemes of URLs.
    pub(super) fn schemes(&self) -> Schemes {
        self.proto.unwrap_or_default()
    }

    /// Puts the flags into `options`.
    pub(super) fn apply(&self, options: &mut FetchOptions) {
        let is_some = |limit: &Duration| !limit.is_zero();
        options.retry = Retry {
            times: self.retry,
            delay: self.retry_delay.filter(is_some),
            max_time: self.retry_max_time.filter(is_some),
            all_errors: self.retry_all_errors,
            refused: self.retry_connrefused,
        };
        options.fail_early = self.fail_early;
        options.rate = self.limit_rate.and_then(NonZeroU64::new);
        options.low_speed = (self.speed_time.is_some() || self.speed_limit.is_some())
            .then(|| LowSpeed {
                bytes_per_second: self.speed_limit.unwrap_or(LOW_RATE),
                time: self.speed_time.unwrap_or(LOW_TIME),
            })
            .filter(|limit| limit.bytes_per_second > 0 && !limit.time.is_zero());
        let default = self
            .parallel
            .then_some(PARALLEL)
            .and_then(NonZeroUsize::new);
        options.at_once = self.parallel_max.or(default);
    }
}

/// Schemes as curl names them: `all`, and names with `=`, `+` or `-`. Those of protocols that are curl's alone are passed over.
fn schemes(text: &str) -> Result<Schemes, String> {
    let mut schemes = Schemes::default();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (sign, name) = match part.strip_prefix(['=', '+', '-']) {
            Some(name) => (&part[..1], name),
            None => ("+", part),
        };
        if name.is_empty() {
            return Err(format!("`{part}` names no scheme"));
        }
        let is_all = name.eq_ignore_ascii_case("all");
        for (scheme, is_allowed) in [("http", &mut schemes.http), ("https", &mut schemes.https)] {
            let is_named = is_all || name.eq_ignore_ascii_case(scheme);
            *is_allowed = match sign {
                "=" => is_named,
                "-" => *is_allowed && !is_named,
                _ => *is_allowed || is_named,
            };
        }
    }
    Ok(schemes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_added_and_taken_away_in_order() {
        for (text, http, https) in [
            ("=https", false, true),
            ("-http", false, true),
            ("-all,https", false, true),
            ("=ftp", false, false),
            ("=HTTP,+https,-http", false, true),
            ("ftp", true, true),
        ] {
            assert_eq!(schemes(text), Ok(Schemes { http, https }), "{text}");
        }
        assert!(schemes("=").is_err());
    }
}
