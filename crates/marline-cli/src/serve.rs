//! `marline serve`.

mod identity;
mod signals;
mod state;

#[cfg(unix)]
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::Args;
use marline::congestion::ControllerConfig;
use marline::settings::{Row, rows};
use marline::{EndpointConfig, Profile, Runtime, TokioRuntime, TransportConfig};
use marline_http::limits;
use marline_http::server::{
    AccessLog, Server, ServerConfig, ServerLimits, StateDirectory, directory, raise_open_file_limit,
};

use self::signals::Signals;
use crate::config_file::{ADDRESS, ConfigFile, LISTEN, WrittenTable};
use crate::failure::{Failure, print_message};
use crate::history::{History, Store, StoreLocation};
use crate::key_log::KeyLogFlags;
use crate::transport::{QuicVersion, TransportFlags};

/// Serve the files of a directory over HTTP/3, 2 and 1.1
///
/// All versions are served on one port number, UDP and TCP; responses over TCP advertise HTTP/3 (Alt-Svc).
/// Ranges, conditional requests and precompressed files (.br, .zst, .gz next to the file) are supported.
/// Nothing outside the directory is served.
///
/// Prints `listening on https://ADDR:PORT` when ready. SIGTERM or Ctrl-C stops it: requests in progress
/// have 10 seconds to finish, unless there is a second signal. SIGHUP reads configuration, certificate and
/// directory again, and opens the access log anew, while connections stay open; if one of them is wrong,
/// the error is printed and nothing changes.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
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

    /// The address to listen on, for TCP and UDP; port 0 selects a free one [default: port 4433 of localhost,
    /// 127.0.0.1 and ::1]
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    listen: Option<SocketAddr>,

    /// The certificate chain in PEM; without it, a self-signed certificate is made and kept, and how to trust it
    /// printed
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,

    /// The certificate's private key in PEM
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    /// Change connections to this version of QUIC if the client offers it; v1 and v2 are served in any case
    /// [default: the client's version]
    #[arg(long, value_name = "VERSION", value_enum)]
    quic_version: Option<QuicVersion>,
    /// Keep keys, sessions and the self-signed certificate in DIR, which is created if it does not exist, so that
    /// clients of a restarted server are reset at once and resume their sessions [default: $STATE_DIRECTORY,
    /// $XDG_STATE_HOME/marline or ~/.local/state/marline]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    /// Read settings from a TOML file; flags take precedence
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    transport: TransportFlags,

    #[command(flatten)]
    key_log: KeyLogFlags,

    #[cfg(feature = "tracing")]
    #[command(flatten)]
    log: crate::log::LogFlags,

    /// Keep the history of clients' networks in FILE, which is created if it does not exist; replaces
    /// `file` and `server` of [history]
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,

    /// Serve metrics for Prometheus as http://ADDR:PORT/metrics
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    metrics: Option<SocketAddr>,

    /// Append a JSON object for each request to FILE, or print it with `-`
    #[arg(long, value_name = "FILE|-")]
    access_log: Option<PathBuf>,

    /// Follow symbolic links out of the directory
    #[arg(long)]
    follow_links: bool,

    /// Also serve HTTP/1.1 without encryption on the same TCP port, for measurements
    #[arg(long)]
    cleartext: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    raise_open_file_limit();
    let signals = Signals::listen()?;
    let first = Wanted::read(arguments.clone())?;
    let kept = Kept {
        state: state::open(first.arguments.state.as_deref())?,
        history: first
            .tables
            .history
            .as_ref()
            .map(OpenHistory::open)
            .transpose()?,
    };
    #[cfg_attr(
        not(feature = "tracing"),
        expect(unused_mut, reason = "the log is added")
    )]
    let mut config = first.config(&kept)?;
    #[cfg(feature = "tracing")]
    first.arguments.log.start(&mut config.quic);
    config.state.clone_from(&kept.state);
    let identity = config.identity.clone();
    let access_log = Arc::new(Mutex::new(config.access_log.clone()));
    let server = Server::bind(config)
        .await
        .map_err(|error| Failure::Failed(error.to_string()))?;
    let handle = server.handle();
    if let Some(address) = server.metrics_addr() {
        errln!("metrics on http://{address}/metrics");
    }
    identity::print_trust(&identity, server.local_addrs(), kept.state.as_deref());
    for address in server.local_addrs() {
        errln!("listening on https://{address}");
    }
    let store = kept.history.as_ref().map(|history| history.store.clone());
    let current_log = Arc::clone(&access_log);
    tokio::spawn(signals.follow(handle.clone(), move || {
        let wanted = Wanted::read(arguments.clone())?;
        let config = wanted.config(&kept)?;
        let fixed = wanted.differences_that_need_a_restart(&first);
        if !fixed.is_empty() {
            let fixed = fixed.join(", ");
            print_message(&format!("changed, but only a restart applies it: {fixed}"));
        }
        let log = config.access_log.clone();
        let replaced = handle.reload(config);
        replaced.map_err(|error| Failure::Failed(error.to_string()))?;
        *lock(&current_log) = log;
        Ok(())
    }));
    let served = server.run().await;
    let access_log = lock(&access_log).take();
    if let Some(log) = access_log {
        log.finish(limits::LOG_FINISH);
    }
    if let Some(store) = store {
        store.finish();
    }
    served.map_err(|error| Failure::Failed(error.to_string()))
}

/// What the operator wants: the flags, and the configuration file.
struct Wanted {
    arguments: Arguments,
    tables: Tables,
}

/// What outlives a change of the configuration.
struct Kept {
    state: Option<Arc<StateDirectory>>,
    history: Option<OpenHistory>,
}

/// The history store, and the settings that it was opened with.
struct OpenHistory {
    history: History,
    store: Store,
}

impl OpenHistory {
    fn open(history: &History) -> Result<Self, Failure> {
        Ok(Self {
            history: history.clone(),
            store: history.open()?,
        })
    }
}

/// The settings that are not flags.
struct Tables {
    limits: ServerLimits,
    endpoint: Option<WrittenTable>,
    transport: WrittenTable,
    /// Set if connections use history.
    history: Option<History>,
}

impl Tables {
    /// The settings of the endpoint that are not secret.
    fn endpoint_rows(&self) -> Vec<Row> {
        let mut config = EndpointConfig::from_seed([0; 32]);
        if let Some(written) = &self.endpoint {
            // Checked when the file was read.
            let _ = written.apply(EndpointConfig::SETTINGS, &mut config);
        }
        rows(EndpointConfig::SETTINGS, "", &config)
    }
}

impl Arguments {
    /// Fills in flags that were not given from `file`, and returns the settings that are not flags.
    fn fill_from(&mut self, file: ConfigFile) -> Tables {
        self.dir = self.dir.take().or(file.dir);
        self.listen = self.listen.or(file.listen);
        self.cert = self.cert.take().or(file.cert);
        self.key = self.key.take().or(file.key);
        self.state = self.state.take().or(file.state);
        self.transport.profile = self.transport.profile.or(file.profile);
        self.transport.qlog = self.transport.qlog.take().or(file.qlog);
        #[cfg(feature = "tracing")]
        {
            self.log.log = self.log.log.take().or(file.log);
        }
        self.metrics = self.metrics.or(file.metrics);
        self.access_log = self.access_log.take().or(file.access_log);
        self.follow_links |= file.follow_links;
        self.cleartext |= file.cleartext;
        let has_history = self.history.is_some() || self.transport.profile() == Profile::History;
        let mut history = file.history.or_else(|| has_history.then(History::default));
        if let (Some(history), Some(path)) = (&mut history, self.history.take()) {
            history.location = StoreLocation::File(path);
        }
        Tables {
            limits: file.limits,
            endpoint: file.endpoint,
            transport: file.transport,
            history,
        }
    }
}

impl Wanted {
    /// Reads the configuration file, which `arguments` may name and take precedence over.
    fn read(mut arguments: Arguments) -> Result<Self, Failure> {
        let file = match &arguments.config {
            Some(path) => ConfigFile::read(path)?,
            None => ConfigFile::default(),
        };
        let tables = arguments.fill_from(file);
        Ok(Self { arguments, tables })
    }

    /// The configuration of a server. Directory, certificate and log are opened.
    fn config(&self, kept: &Kept) -> Result<ServerConfig, Failure> {
        let Self { arguments, tables } = self;
        let Some(dir) = &arguments.dir else {
            let message = "no directory to serve; name it, or set `dir` in the configuration file";
            return Err(Failure::Usage(message.to_owned()));
        };
        let site = directory(dir, arguments.follow_links).map_err(|error| {
            let dir = dir.display();
            Failure::Failed(format!(
                "cannot serve {dir}: {error}; give a directory that can be read"
            ))
        })?;
        let transport = transport(arguments, tables, kept.history.as_ref())?;
        let listen = arguments.listen.unwrap_or(LISTEN);
        let identity = identity::identity(arguments, listen.ip(), kept.state.as_deref())?;
        let mut config = ServerConfig::new(listen, identity, site);
        if arguments.listen.is_none() {
            config.also_listen = vec![IpAddr::V6(Ipv6Addr::LOCALHOST)];
        }
        config.qlog = arguments.transport.qlog_directory()?;
        config.protocols.cleartext = arguments.cleartext;
        config.metrics = arguments.metrics;
        config.access_log = arguments.access_log.as_deref().map(open_log).transpose()?;
        config.limits = tables.limits.clone();
        config.endpoint = tables.endpoint.as_ref().map(endpoint).transpose()?;
        config.quic.transport = transport.into();
        config.quic.preferred_version = arguments.quic_version.map(Into::into);
        config.quic.key_log = arguments.key_log.open()?;
        #[cfg(feature = "tracing")]
        arguments.log.observe(&mut config.quic);
        Ok(config)
    }

    /// The keys whose values differ from those that the server was started with, and which it cannot exchange.
    fn differences_that_need_a_restart(&self, first: &Self) -> Vec<&'static str> {
        let (now, then) = (&self.arguments, &first.arguments);
        let (tables, before) = (&self.tables, &first.tables);
        let differs = [
            ("listen", now.listen != then.listen),
            ("metrics", now.metrics != then.metrics),
            ("state", now.state != then.state),
            ("cleartext", now.cleartext != then.cleartext),
            (
                "http.max_connections",
                tables.limits.max_connections != before.limits.max_connections,
            ),
            (
                "[endpoint]",
                tables.endpoint_rows() != before.endpoint_rows(),
            ),
        ];
        let differing = differs.into_iter().filter(|(_, differs)| *differs);
        differing.map(|(key, _)| key).collect()
    }
}

/// An endpoint whose settings are `written` in a file.
fn endpoint(written: &WrittenTable) -> Result<EndpointConfig, Failure> {
    let seed = TokioRuntime::current().and_then(|runtime| runtime.seed());
    let seed = seed.map_err(|error| Failure::Failed(format!("cannot start: {error}")))?;
    let mut config = EndpointConfig::from_seed(seed);
    written
        .apply(EndpointConfig::SETTINGS, &mut config)
        .map_err(Failure::Usage)?;
    Ok(config)
}

/// The configuration of QUIC, with the history store that is open.
fn transport(
    arguments: &Arguments,
    tables: &Tables,
    open: Option<&OpenHistory>,
) -> Result<TransportConfig, Failure> {
    let flags = &arguments.transport;
    let mut transport = match (&tables.history, open) {
        (None, _) => flags.profile().config(),
        (Some(history), Some(open)) if history.has_store_of(&open.history) => {
            history.with_store(flags.profile(), &open.store)
        }
        (Some(_), _) => {
            let message =
                "history: only a restart switches it on, or changes its place and its limits";
            return Err(Failure::Usage(message.to_owned()));
        }
    };
    let written = &tables.transport;
    written
        .apply(TransportConfig::SETTINGS, &mut transport)
        .map_err(Failure::Usage)?;
    flags.adjust(&mut transport)?;
    check_fairness(&transport, written)?;
    Ok(transport)
}

/// Refuses a bundle that is `fair` with a controller that has no window to share. The bundle may be
/// `written` in a file.
fn check_fairness(transport: &TransportConfig, written: &WrittenTable) -> Result<(), Failure> {
    let is_fair = transport.bundle.as_ref().is_some_and(|bundle| bundle.fair);
    let controller = transport.controller.build(ControllerConfig::new(1200));
    if !is_fair || !controller.is_rate_based() {
        return Ok(());
    }
    let key = ["bundle", "fair"];
    let place = written.has(&key).then(|| written.place(&key));
    let place = place.map_or_else(String::new, |place| format!("{place}: "));
    let name = controller.name();
    Err(Failure::Usage(format!(
        "{place}`fair` divides a window, and {name} has none; leave `fair` out, or set `cc` to newreno or cubic"
    )))
}

fn open_log(path: &Path) -> Result<AccessLog, Failure> {
    if path.as_os_str() == "-" {
        let output = standard_output()
            .map_err(|error| Failure::Failed(format!("cannot write the access log: {error}")));
        return Ok(AccessLog::new(output?));
    }
    AccessLog::open(path).map_err(|error| {
        let path = path.display();
        Failure::Failed(format!(
            "cannot write the access log {path}: {error}; choose another"
        ))
    })
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("must be {ADDRESS}"))
}

/// Standard output without a buffer or a lock: what happens to a line is known, and a reader that stalls blocks nobody
/// else.
#[cfg(unix)]
fn standard_output() -> io::Result<File> {
    use std::os::fd::AsFd;

    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

#[cfg(not(unix))]
fn standard_output() -> io::Result<io::Stdout> {
    Ok(io::stdout())
}

/// Waits for Ctrl-C or SIGTERM.
pub(crate) async fn interrupted() {
    let ctrl_c = tokio::signal::ctrl_c();
    #[cfg(unix)]
    if let Ok(mut terminate) =
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
    {
        tokio::select! {
            _ = ctrl_c => {}
            _ = terminate.recv() => {}
        }
        return;
    }
    let _ = ctrl_c.await;
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Verb};

    fn config(flags: &[&str]) -> ServerConfig {
        let directory = tempfile::tempdir().unwrap();
        let arguments = ["marline", "serve", directory.path().to_str().unwrap()];
        let cli = Cli::try_parse_from([&arguments, flags].concat()).unwrap();
        let Verb::Serve(arguments) = cli.verb else {
            panic!("another verb");
        };
        let kept = Kept {
            state: None,
            history: None,
        };
        Wanted::read(arguments).unwrap().config(&kept).unwrap()
    }

    #[test]
    fn without_an_address_it_listens_on_both_loopbacks() {
        let default = config(&[]);
        assert_eq!(default.listen, LISTEN);
        assert_eq!(default.also_listen, [IpAddr::V6(Ipv6Addr::LOCALHOST)]);
        let named = config(&["--listen", "127.0.0.1:4433"]);
        assert!(named.also_listen.is_empty());
    }
}
