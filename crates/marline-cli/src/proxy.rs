//! `marline proxy`.

use std::sync::Arc;

use clap::Args;
use marline_http::proxy::{
    ForwardedFields, HealthPath, ProxyConfig, UpstreamMetrics, WeightedUpstream,
};
use marline_http::server::ServerConfig;
use marline_site::{Rules, SiteConfig};

use crate::config_file::{ConfigFile, FileKeys};
use crate::failure::Failure;
use crate::server::{ServerFlags, Serving};
use crate::values::named;

/// The end of the short help.
const SHORT: &str = "Examples:\n  \
    marline proxy --to http://127.0.0.1:8000\n  \
    marline proxy --to http://127.0.0.1:8000 --listen :443 --cert chain.pem --key key.pem --access-log -\n  \
    marline proxy --config site.toml\n\n\
    `marline proxy --help` has more: the flags for transport research, and the keys of a configuration file.";

/// Pass requests on to an application, over HTTP/3, 2 and 1.1 from clients
///
/// The application is a server of HTTP/1.1, HTTP/2 or HTTP/3, with or without TLS, at a port or a Unix socket. Certificates, log, metrics, limits, reload and end are those
/// of `marline serve`. Requests and responses are passed on as they arrive; what an application sends incompletely is
/// aborted. Where it gives no response, the answer is 502, 503 or 504, with the reason.
///
/// Prints `listening on https://ADDR:PORT` when ready. SIGTERM or Ctrl-C stops it: requests in progress have 10 seconds to
/// finish, unless there is a second signal. SIGHUP reads configuration and certificate again, and reopens the access log,
/// while connections stay open. SIGUSR2 starts the program anew, which takes over without a lost request.
#[derive(Clone, Debug, Args)]
#[command(after_help = SHORT, after_long_help = "Examples:\n  \
    marline proxy --to http://127.0.0.1:8000\n  \
    marline proxy --to http://127.0.0.1:8000 --listen 0.0.0.0:443 --cert chain.pem --key key.pem --access-log -\n  \
    marline proxy --to http://10.0.0.1:8000 --to http://10.0.0.2:8000 --health /health\n  \
    marline proxy --to h2c://127.0.0.1:50051\n  \
    marline proxy --to unix:/run/app.sock\n  \
    marline proxy --to h3://app.internal.example.org\n  \
    marline proxy --config site.toml\n\n\
    The keys of a configuration file are the names of the flags, and the settings that `marline reference settings` \
    lists. [proxy] is about the applications; [http], [endpoint], [bundle], [history] and [multipath] are as for `marline \
    serve` (docs/reference/proxy.md):\n  \
    listen = '0.0.0.0:443'\n  \
    [proxy]\n  \
    to = ['http://10.0.0.1:8000', 'http://10.0.0.2:8000']\n  \
    health_path = '/health'\n  \
    forwarded = 'both'         # X-Forwarded-... and Forwarded\n  \
    client_fields = 'replace'  # of these fields; 'append' if all clients are proxies of yours\n  \
    response_timeout = '20s'")]
pub(crate) struct Arguments {
    /// The application: http://HOST:PORT, https://HOST:PORT, h2c://HOST:PORT for HTTP/2 without TLS, h3://HOST:PORT for HTTP/3, or unix:PATH
    ///
    /// Repeatable: several applications take turns; 'http://HOST:PORT weight=3' has three. The certificate of one at https:// or h3:// must be valid; [proxy.tls] of a
    /// configuration file names others to trust.
    #[arg(long, value_name = "URL", required_unless_present = "config")]
    to: Vec<WeightedUpstream>,

    /// Request PATH of each application all the time, and pass requests only to those that answer
    ///
    /// Without this flag, applications get requests until they cannot be reached.
    #[arg(long, value_name = "PATH")]
    health: Option<HealthPath>,

    /// The fields that tell the application about the client [default: x_forwarded]
    #[arg(long, value_name = "FIELDS", value_parser = named::<ForwardedFields>("form of fields"))]
    forwarded: Option<ForwardedFields>,

    #[command(flatten)]
    server: ServerFlags,

    /// From the configuration file, completed by the flags
    #[arg(skip)]
    config: Option<ProxyConfig>,

    /// The metrics of all its configurations, one after another
    #[arg(skip)]
    metrics: Arc<UpstreamMetrics>,
}

impl Serving for Arguments {
    const KEYS: FileKeys = FileKeys::Proxy;

    fn flags(&mut self) -> &mut ServerFlags {
        &mut self.server
    }

    fn fill_from(&mut self, file: &mut ConfigFile) {
        let mut config = file.proxy.take().unwrap_or_default();
        if !self.to.is_empty() {
            config.upstreams.clone_from(&self.to);
        }
        config.forwarded = self.forwarded.unwrap_or(config.forwarded);
        config.health_path = self.health.take().or(config.health_path);
        self.config = Some(config);
    }

    fn sites(&self) -> Result<Vec<SiteConfig>, Failure> {
        sites(self.config.clone())
    }

    fn upstreams(&self) -> &Arc<UpstreamMetrics> {
        &self.metrics
    }

    fn set_protocols(&self, _config: &mut ServerConfig) {}

    fn needs_restart(&self, _then: &Self) -> Vec<&'static str> {
        Vec::new()
    }
}

/// The site that passes requests on to the applications of `config`.
///
/// # Errors
/// It names none.
pub(crate) fn sites(config: Option<ProxyConfig>) -> Result<Vec<SiteConfig>, Failure> {
    let config = config.filter(|config| !config.upstreams.is_empty());
    let config = config.ok_or_else(|| {
        let message = "no application; name it with --to URL, or set `to` in [proxy]";
        Failure::Usage(message.to_owned())
    })?;
    Ok(vec![SiteConfig::of(Rules {
        proxy: Some(config),
        ..Rules::default()
    })])
}
