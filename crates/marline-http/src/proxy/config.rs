//! The configuration of a reverse proxy.

use std::path::Path;
use std::time::Duration;

use marline::TransportConfig;
use marline::settings::{Domain, Field, List, Named, Settings, Table, Word};

use super::balance::{self, Balance};
use super::health::HealthPath;
use super::tls::UpstreamTls;
use super::url::WeightedUpstream;
use crate::limits;

/// The fields that tell the application about the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedFields {
    /// `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
    /// Both.
    Both,
    /// None.
    None,
}

impl ForwardedFields {
    pub(super) fn has_x_forwarded(self) -> bool {
        matches!(self, Self::XForwarded | Self::Both)
    }

    pub(super) fn has_forwarded(self) -> bool {
        matches!(self, Self::Forwarded | Self::Both)
    }
}

impl Named for ForwardedFields {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "x_forwarded",
            about: "X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host",
            value: Self::XForwarded,
        },
        Word {
            name: "forwarded",
            about: "Forwarded, as of RFC 7239",
            value: Self::Forwarded,
        },
        Word {
            name: "both",
            about: "All of them",
            value: Self::Both,
        },
        Word {
            name: "none",
            about: "None of them",
            value: Self::None,
        },
    ];
}

/// The treatment of fields about the client that the client itself has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientFields {
    /// They are removed: clients are not trusted.
    #[default]
    Replace,
    /// They are extended: all clients are trusted proxies.
    Append,
}

impl Named for ClientFields {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "replace",
            about: "They are removed",
            value: Self::Replace,
        },
        Word {
            name: "append",
            about: "They are continued",
            value: Self::Append,
        },
    ];
}

/// The treatment of fields by which a client names another path, host or method than its request has. Some frameworks
/// obey them, which bypasses the access control in front of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RewriteFields {
    /// They are removed.
    #[default]
    Remove,
    /// They are passed on.
    Keep,
}

impl Named for RewriteFields {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "remove",
            about: "They are removed",
            value: Self::Remove,
        },
        Word {
            name: "keep",
            about: "They are passed on",
            value: Self::Keep,
        },
    ];
}

/// The settings of a reverse proxy. Start from [`ProxyConfig::to`].
#[derive(Clone, Debug, PartialEq)]
pub struct ProxyConfig {
    /// The applications, of which [`balance`](Self::balance) chooses.
    pub upstreams: Vec<WeightedUpstream>,
    /// The policy by which requests get one of them.
    pub balance: Balance,
    /// The time in which an application that works again gets more and more requests, up to its share.
    pub slow_start: Option<Duration>,
    /// How often a request is sent again.
    pub retries: usize,
    /// The share of requests that are sent again after an application got them, from 0 to 1.
    pub retry_budget: f64,
    /// TLS to those at `https://` and `h3://`.
    pub tls: UpstreamTls,
    /// The fields that tell the application about the client.
    pub forwarded: ForwardedFields,
    /// The treatment of fields about the client that the client itself has sent.
    pub client_fields: ClientFields,
    /// Whether the application gets the host of the client's request, rather than its own: in `Host`, or in `:authority` of
    /// HTTP/2.
    pub preserve_host: bool,
    /// Bytes of the content of a request that are received before an application gets it; off, it is passed on as it arrives.
    pub buffer_uploads: Option<u64>,
    /// The time limit for connecting to an application.
    pub connect_timeout: Duration,
    /// The time limit of an application for the header of a response, counted from the last part of the request that it
    /// took.
    pub response_timeout: Duration,
    /// The time limit for the next part of a response, and for an idle tunnel.
    pub idle_timeout: Duration,
    /// Requests in progress at one application; more wait for [`place_timeout`](Self::place_timeout). A network of
    /// clients may have as many as are left for others; of n networks, each is entitled to one part in n + 1, and
    /// requests of those that have more are ended for it.
    pub max_requests: usize,
    /// The time limit of a request for its place among these.
    pub place_timeout: Duration,
    /// Idle connections that are kept to one application.
    pub max_idle_connections: usize,
    /// The time for which they are kept.
    pub keep_alive: Duration,
    /// Bytes of the header of a response.
    pub max_header_bytes: usize,
    /// Its fields.
    pub max_header_fields: usize,
    /// The treatment of fields by which a client names another path or method than its request has.
    pub rewrite_fields: RewriteFields,
    /// The time for which an application gets no requests after it could not be reached, if there
    /// are others.
    pub fail_time: Duration,
    /// The time after which the names of applications are resolved again.
    pub resolve_interval: Duration,
    /// The path that is requested to check whether an application works; without it, requests of
    /// clients show that.
    pub health_path: Option<HealthPath>,
    /// The time between these requests.
    pub health_interval: Duration,
}

/// The domain of time limits: a day at most.
const WAIT: Domain = Domain::time(Duration::from_millis(1), Duration::from_secs(24 * 3600));

impl ProxyConfig {
    /// Its keys in settings.
    pub const SETTINGS: Settings<Self> = &[
        &List {
            key: "to",
            domain: Domain::text(
                "an application, as \"http://127.0.0.1:8000\", or with a weight, as \"http://127.0.0.1:8000 weight=3\"",
            ),
            about: "The applications: http:// for HTTP/1.1, h2c:// for HTTP/2, https:// for both over TLS, h3:// for HTTP/3, unix: for HTTP/1.1 over a Unix socket",
            field: |c: &mut Self| &mut c.upstreams,
        },
        &Field::new(
            "balance",
            Domain::text(balance::ALLOWED),
            "The policy by which requests get one of several applications that work: random_two takes the less busy of two, `hash` the same one for the same address, cookie or field of a client",
            |c: &mut Self| &mut c.balance,
        ),
        &Field::new(
            "slow_start",
            WAIT.or("off"),
            "The time in which an application that works again after a failure gets more and more requests, up to its share",
            |c: &mut Self| &mut c.slow_start,
        ),
        &Field::new(
            "retries",
            Domain::integer(0, limits::MAX_RETRIES as u64),
            "How often a request is sent again: one of which nothing was sent, to another application; after 502, 503, 504 or a lost connection, one whose method is idempotent and whose content can be sent again",
            |c: &mut Self| &mut c.retries,
        ),
        &Field::new(
            "retry_budget",
            Domain::number(0.0, 1.0),
            "The share of requests that are sent again after an application got them",
            |c: &mut Self| &mut c.retry_budget,
        ),
        &Table {
            key: "tls",
            about: "How applications at https:// and h3:// are verified, and what is presented to them",
            settings: UpstreamTls::SETTINGS,
            bases: &[],
            get: |c: &Self| Some(&c.tls),
            open: |c: &mut Self| &mut c.tls,
            off: None,
        },
        &Field::new(
            "forwarded",
            Domain::words::<ForwardedFields>(),
            "The fields that tell the application about the client",
            |c: &mut Self| &mut c.forwarded,
        ),
        &Field::new(
            "client_fields",
            Domain::words::<ClientFields>(),
            "The treatment of such fields from clients: `append` is for clients that are trusted proxies",
            |c: &mut Self| &mut c.client_fields,
        ),
        &Field::new(
            "preserve_host",
            Domain::SWITCH,
            "Whether the application gets the host of the client's request, in Host or :authority, rather than that of its URL",
            |c: &mut Self| &mut c.preserve_host,
        ),
        &Field::new(
            "buffer_uploads",
            Domain::bytes(1, limits::MAX_BUFFERED_UPLOAD).or("off"),
            "Bytes of the content of a request that are received before an application gets it, so that slow clients keep no place there; of larger content, the rest follows as it arrives",
            |c: &mut Self| &mut c.buffer_uploads,
        ),
        &Field::new(
            "connect_timeout",
            WAIT,
            "The time limit for connecting to an application; then the status is 504",
            |c: &mut Self| &mut c.connect_timeout,
        ),
        &Field::new(
            "response_timeout",
            WAIT,
            "The time limit of an application for the header of a response; then the status is 504",
            |c: &mut Self| &mut c.response_timeout,
        ),
        &Field::new(
            "idle_timeout",
            WAIT,
            "The time limit for the next part of a response, and for an idle WebSocket; then it is aborted",
            |c: &mut Self| &mut c.idle_timeout,
        ),
        &Field::new(
            "max_requests",
            Domain::integer(1, 1_000_000),
            "Requests in progress at one application; more wait for place_timeout, and a network of clients may have as many as are left",
            |c: &mut Self| &mut c.max_requests,
        ),
        &Field::new(
            "place_timeout",
            WAIT,
            "The time limit of a request for its place among max_requests; then the status is 503",
            |c: &mut Self| &mut c.place_timeout,
        ),
        &Field::new(
            "max_idle_connections",
            Domain::integer(0, 100_000),
            "Idle connections that are kept to one application",
            |c: &mut Self| &mut c.max_idle_connections,
        ),
        &Field::new(
            "keep_alive",
            WAIT,
            "The time for which an idle connection is kept: less than in the application",
            |c: &mut Self| &mut c.keep_alive,
        ),
        &Field::new(
            "max_header_bytes",
            Domain::bytes(8192, 1 << 20),
            "Size of a response's header section; for a larger one, the status is 502",
            |c: &mut Self| &mut c.max_header_bytes,
        ),
        &Field::new(
            "max_header_fields",
            Domain::integer(32, 4096),
            "Fields of a response's header section; for more, the status is 502",
            |c: &mut Self| &mut c.max_header_fields,
        ),
        &Field::new(
            "rewrite_fields",
            Domain::words::<RewriteFields>(),
            "The treatment of X-Original-URL, X-Rewrite-URL, X-HTTP-Method-Override and the like, by which a client names another path, host or method than its request has",
            |c: &mut Self| &mut c.rewrite_fields,
        ),
        &Field::new(
            "fail_time",
            WAIT,
            "The time for which an application that could not be reached gets no requests, if there are others",
            |c: &mut Self| &mut c.fail_time,
        ),
        &Field::new(
            "resolve_interval",
            WAIT,
            "The time after which the names of applications are resolved again; requests use all addresses of a name in turn",
            |c: &mut Self| &mut c.resolve_interval,
        ),
        &Field::new(
            "health_path",
            Domain::text("a path, as \"/health\""),
            "The path requested to check whether an application works; without it, requests of clients show it",
            |c: &mut Self| &mut c.health_path,
        ),
        &Field::new(
            "health_interval",
            WAIT,
            "The time between these requests",
            |c: &mut Self| &mut c.health_interval,
        ),
    ];

    /// Makes its paths relative to `base`.
    pub fn resolve(&mut self, base: &Path) {
        self.tls.resolve(base);
        for upstream in &mut self.upstreams {
            upstream.url.resolve(base);
        }
    }

    /// The window of HTTP/2 and HTTP/3 for the content of all responses on a connection: as much as those of all streams together,
    /// so that unread ones do not block the others.
    pub(super) fn connection_window(&self) -> u32 {
        let streams = u32::try_from(self.max_requests).unwrap_or(u32::MAX);
        limits::UPSTREAM_STREAM_WINDOW
            .saturating_mul(streams)
            .min(limits::LARGEST_HTTP2_WINDOW)
    }

    /// The transport of HTTP/3 to applications: the default one, with the windows of HTTP/2. Its connections end when an
    /// application answers nothing for as long as connecting may take, also while a response takes long.
    pub(super) fn transport(&self) -> TransportConfig {
        let (least, most) = (
            limits::LEAST_UPSTREAM_SILENCE,
            limits::MOST_UPSTREAM_SILENCE,
        );
        let silence = self.connect_timeout.clamp(least, most);
        let stream = u64::from(limits::UPSTREAM_STREAM_WINDOW);
        let all = u64::from(self.connection_window());
        TransportConfig {
            max_idle_timeout: Some(silence),
            keep_alive: Some(silence / 3),
            stream_receive_window: Some(stream),
            max_stream_receive_window: stream,
            receive_window: Some(all),
            max_receive_window: all,
            ..TransportConfig::default()
        }
    }

    /// Passes requests to `upstreams`, with the default settings.
    pub fn to(upstreams: Vec<WeightedUpstream>) -> Self {
        Self {
            upstreams,
            balance: Balance::default(),
            slow_start: None,
            retries: limits::RETRIES,
            retry_budget: limits::RETRY_BUDGET,
            tls: UpstreamTls::default(),
            forwarded: ForwardedFields::default(),
            client_fields: ClientFields::default(),
            preserve_host: true,
            buffer_uploads: None,
            connect_timeout: limits::UPSTREAM_CONNECT_TIMEOUT,
            response_timeout: limits::UPSTREAM_RESPONSE_TIMEOUT,
            idle_timeout: limits::UPSTREAM_IDLE_TIMEOUT,
            max_requests: limits::MAX_UPSTREAM_REQUESTS,
            place_timeout: limits::UPSTREAM_PLACE_TIMEOUT,
            max_idle_connections: limits::MAX_IDLE_UPSTREAM_CONNECTIONS,
            keep_alive: limits::UPSTREAM_KEEP_ALIVE,
            max_header_bytes: limits::MAX_UPSTREAM_HEADER_BYTES,
            max_header_fields: limits::MAX_HEADER_FIELDS,
            rewrite_fields: RewriteFields::default(),
            fail_time: limits::UPSTREAM_FAIL_TIME,
            resolve_interval: limits::RESOLVE_INTERVAL,
            health_path: None,
            health_interval: limits::HEALTH_INTERVAL,
        }
    }
}

impl Default for ProxyConfig {
    /// Without applications.
    fn default() -> Self {
        Self::to(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_key() {
        let upstream: WeightedUpstream = "http://app".parse().unwrap();
        for setting in ProxyConfig::SETTINGS {
            // Samples of text are neither URLs nor policies.
            for sample in setting
                .samples()
                .into_iter()
                .filter(|_| !["to", "balance"].contains(&setting.key()))
            {
                let mut config = ProxyConfig::to(vec![upstream.clone()]);
                assert_eq!(setting.set(&mut config, &sample), Ok(()));
                assert!(setting.show(&config).is_some());
            }
        }
    }
}
