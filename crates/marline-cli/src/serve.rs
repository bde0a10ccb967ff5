//! `marline serve`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use marline_http::proxy::UpstreamMetrics;
use marline_http::server::ServerConfig;
use marline_site::{Rules, SiteConfig};

use crate::config_file::{ConfigFile, FileKeys};
use crate::failure::Failure;
use crate::server::{ServerFlags, Serving};
use crate::transport::RESEARCH;

/// The end of the short help.
const SHORT: &str = "Examples:\n  \
    marline serve public\n  \
    marline serve public --listen :443 --cert chain.pem --key key.pem --access-log -\n  \
    marline serve --config site.toml\n\n\
    `marline serve --help` has more: the flags for transport research, and the keys of a configuration file.";

/// Serve the files of a directory over HTTP/3, 2 and 1.1
///
/// All versions are served on one port number, UDP and TCP; responses over TCP advertise HTTP/3 (Alt-Svc).
/// Ranges, conditional requests and precompressed files (.br, .zst, .gz next to the file) are supported.
/// Nothing outside the directory is served.
///
/// Prints `listening on https://ADDR:PORT` when ready. SIGTERM or Ctrl-C stops it: requests in progress
/// have 10 seconds to finish, unless there is a second signal. SIGHUP reads configuration, certificate and
/// directory again, and reopens the access log, while connections stay open; if one of them is wrong,
/// the error is printed and nothing changes. SIGUSR2 starts the program anew, which takes over without a
/// lost request.
#[derive(Clone, Debug, Args)]
#[command(after_help = SHORT, after_long_help = "Examples:\n  \
    marline serve public\n  \
    marline serve public --listen 0.0.0.0:443 --cert chain.pem --key key.pem --access-log -\n  \
    marline serve public --profile bundle\n  \
    marline serve public --listen 0.0.0.0:4433 --profile multipath --scheduler hbes\n  \
    marline serve public --history paths.redb\n  \
    marline serve --config site.toml\n\n\
    The keys of a configuration file are the names of the flags, and the settings that `marline reference settings` \
    lists. [http] has limits, [endpoint] what all connections share. Three tables switch a feature on under any \
    profile: [bundle] coordinates the connections of a client (docs/bundle.md), [history] lets \
    connections begin with the capacity that earlier ones of the client's network found (docs/history.md), \
    [multipath] lets clients use several paths in one connection:\n  \
    dir = 'public'\n  \
    listen = '0.0.0.0:443'\n  \
    follow-links = false\n  \
    slow_start_exit = 'hybrid(factor=0.25)'\n  \
    receive_window = '4MiB'\n  \
    cc = 'cubic'          # `fair` needs newreno or cubic\n  \
    [bundle]\n  \
    fair = true           # together they get the share of one connection\n  \
    scope = 'active'      # or 'all': idle connections take part as well\n  \
    [history]\n  \
    file = 'paths.redb'   # survives a restart; without it, the history is in memory\n  \
    policy = 'careful'    # RFC 9959; or 'average': begin with the average window\n  \
    lifetime = '1h'\n  \
    [multipath]\n  \
    max_paths = 4         # of one connection, 1 to 16\n  \
    scheduler = 'water_filling'  # as --scheduler, which takes precedence\n  \
    probe_interval = '1s' # between probes of a suspected path\n  \
    give_up_after = '30s' # how long a path may be suspected; or 'never'\n  \
    keep_alive = 'never'  # how long a path may be idle before a PING\n  \
    reinjection = 0.05    # the share of sent bytes that may be copies on a faster path\n  \
    bundle_paths = false  # paths with the same addresses are coordinated")]
pub(crate) struct Arguments {
    /// The directory to serve
    #[arg(value_name = "DIR", required_unless_present = "config")]
    dir: Option<PathBuf>,

    #[command(flatten)]
    server: ServerFlags,

    /// Follow symbolic links out of the directory
    #[arg(long)]
    follow_links: bool,

    /// Also serve HTTP/1.1 without encryption on the same TCP port, for measurements
    #[arg(long, help_heading = RESEARCH, hide_short_help = true)]
    cleartext: bool,

    /// Do not accept Multipath TCP, which is otherwise on where the kernel has it
    #[arg(long, help_heading = RESEARCH, hide_short_help = true)]
    no_mptcp: bool,

    /// From the configuration file
    #[arg(skip)]
    sites: Vec<SiteConfig>,

    /// The metrics of applications of all its configurations, one after another
    #[arg(skip)]
    upstreams: Arc<UpstreamMetrics>,
}

impl Serving for Arguments {
    const KEYS: FileKeys = FileKeys::Serve;

    fn flags(&mut self) -> &mut ServerFlags {
        &mut self.server
    }

    fn fill_from(&mut self, file: &mut ConfigFile) {
        self.dir = self.dir.take().or(file.dir.take());
        self.sites = std::mem::take(&mut file.sites);
        self.follow_links |= file.follow_links;
        self.cleartext |= file.cleartext;
        self.no_mptcp |= file.mptcp == Some(false);
    }

    fn sites(&self) -> Result<Vec<SiteConfig>, Failure> {
        sites(self.dir.as_deref(), self.follow_links, &self.sites)
    }

    fn upstreams(&self) -> &Arc<UpstreamMetrics> {
        &self.upstreams
    }

    fn set_protocols(&self, config: &mut ServerConfig) {
        config.protocols.cleartext = self.cleartext;
        config.multipath_tcp = !self.no_mptcp;
    }

    fn needs_restart(&self, then: &Self) -> Vec<&'static str> {
        let differs = [
            ("cleartext", self.cleartext != then.cleartext),
            ("mptcp", self.no_mptcp != then.no_mptcp),
        ];
        let differing = differs.into_iter().filter(|(_, differs)| *differs);
        differing.map(|(key, _)| key).collect()
    }
}

/// The sites of a server: those of its file, or one of a directory.
///
/// # Errors
/// There are both, or neither.
pub(crate) fn sites(
    dir: Option<&Path>,
    follow_links: bool,
    sites: &[SiteConfig],
) -> Result<Vec<SiteConfig>, Failure> {
    match (dir, sites.is_empty()) {
        (None, false) => Ok(sites.to_vec()),
        (Some(_), false) => Err(Failure::Usage(
            "the configuration has sites, and a directory of its own as well; make it the `dir` of a site"
                .to_owned(),
        )),
        (None, true) => Err(Failure::Usage(
            "nothing to serve; name a directory, or set `dir` or [[site]] in the configuration file"
                .to_owned(),
        )),
        (Some(dir), true) => Ok(vec![SiteConfig::of(Rules {
            dir: Some(dir.to_owned()),
            follow_links,
            ..Rules::default()
        })]),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

    use clap::Parser;
    use marline_http::server::{AlsoListen, ServerConfig};

    use crate::cli::{Cli, Verb};
    use crate::server::Wanted;

    fn config(flags: &[&str]) -> ServerConfig {
        let directory = tempfile::tempdir().unwrap();
        let arguments = ["marline", "serve", directory.path().to_str().unwrap()];
        let cli = Cli::try_parse_from([&arguments, flags].concat()).unwrap();
        let Verb::Serve(arguments) = cli.verb else {
            panic!("another verb");
        };
        Wanted::config_of(arguments).unwrap()
    }

    #[tokio::test]
    async fn without_an_address_it_listens_on_both_loopbacks() {
        let default = config(&[]);
        let expected = SocketAddr::from((Ipv4Addr::LOCALHOST, 4433));
        assert_eq!(default.listen, expected);
        let also = AlsoListen::IfPresent(IpAddr::V6(Ipv6Addr::LOCALHOST));
        assert_eq!(default.also_listen, [also]);
        let named = config(&["--listen", "127.0.0.1:4433"]);
        assert!(named.also_listen.is_empty());
    }
}
