//! The parts that all verbs with a server share: flags, configuration, signals, the life of the
//! server.

mod account;
pub(crate) mod certificates;
pub(crate) mod given;
mod identity;
mod logs;
mod manager;
mod pid_file;
mod signals;
pub(crate) mod state;
#[cfg(target_os = "linux")]
mod tunnels;
mod upgrade;
mod wanted;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::Args;
use clap::builder::BoolishValueParser;
use marline::{Runtime, TokioRuntime};
use marline_certificates::AcmeContact;
use marline_http::log::{Level, MessageLog, Subject, emit};
use marline_http::proxy::UpstreamMetrics;
use marline_http::server::{
    ClientRules, GivenSockets, Server, ServerConfig, SharedKeys, StateDirectory,
    raise_open_file_limit, report_panics_in_one_line,
};
use marline_http::{HostPattern, TlsVersion, limits};
#[cfg(target_os = "linux")]
use marline_site::SiteClients;
use marline_site::SiteConfig;
#[cfg(target_os = "linux")]
use marline_tunnel::tokens::Tokens;

pub(crate) use self::account::{Account, Privileges};
use self::certificates::OpenCertificates;
pub(crate) use self::logs::{ErrorLog, OUTPUT, ROTATION, ServerLogs, check_rotation};
pub(crate) use self::manager::ServiceManager;
use self::pid_file::PidFile;
pub(crate) use self::signals::{Signals, once_caught};
pub(crate) use self::state::default_directory as state_directory;
#[cfg(target_os = "linux")]
pub(crate) use self::tunnels::{OpenTunnels, Tcp, TunnelFlags, TunnelTable, device_name};
pub(crate) use self::upgrade::{Origin, Upgrader};
use self::wanted::Configured;
pub(crate) use self::wanted::Wanted;
use crate::config_file::{ConfigFile, FileKeys};
use crate::failure::Failure;
use crate::history::{History, Store};
use crate::key_log::KeyLogFlags;
use crate::listen::{Listen, MetricsListen};
use crate::on_this_thread;
use crate::transport::{QuicVersion, RESEARCH, TransportFlags};
use crate::values::named;
use crate::workers::Workers;

/// The flags of a server.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerFlags {
    /// The address to listen on, TCP and UDP [default: localhost:4433]
    ///
    /// localhost:PORT is 127.0.0.1 and ::1; :PORT, *:PORT and PORT alone are all addresses, of IPv4 and IPv6. Port 0 selects a
    /// free one.
    ///
    /// Repeatable.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Vec<Listen>,

    /// Redirect requests without TLS at this address to https
    ///
    /// The address is written as that of --listen; usually it is :80.
    #[arg(long, value_name = "ADDR:PORT")]
    redirect_http: Option<Listen>,

    /// Obtain and renew certificates of Let's Encrypt by ACME; you agree to its terms of service, and it writes to this address
    ///
    /// The names are those of --name, or of the sites. They are validated at port 80 or 443: without --listen, the server listens on :443
    /// and redirects from :80. The table [acme] of a configuration file names another authority.
    #[arg(long, value_name = "EMAIL")]
    acme: Option<AcmeContact>,

    /// The name by which clients ask for the server; others are answered with 421 [default: all names]
    ///
    /// Repeatable.
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<HostPattern>,

    /// The certificate chain in PEM [default: a self-signed certificate]
    ///
    /// The self-signed certificate is kept in the state directory, and how to trust it is printed.
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,

    /// The certificate's private key in PEM
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    /// The lowest version of TLS over TCP [default: 1.2]
    ///
    /// QUIC has TLS 1.3 in any case.
    #[arg(long, value_name = "VERSION", value_parser = named::<TlsVersion>("version of TLS"))]
    tls_min: Option<TlsVersion>,

    /// Change connections to this version of QUIC if the client offers it; v1 and v2 are served in any case
    /// [default: the client's version]
    #[arg(long, value_name = "VERSION", value_enum, help_heading = RESEARCH, hide_short_help = true)]
    quic_version: Option<QuicVersion>,

    /// Keep keys, sessions and the self-signed certificate in DIR
    ///
    /// It is created if it does not exist. With it, clients of a restarted server are reset at once and resume their sessions.
    /// Without this flag it is $STATE_DIRECTORY, $XDG_STATE_HOME/marline or ~/.local/state/marline.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    /// Become this user of the machine once the sockets are open; only root can
    ///
    /// Everything but the sockets is opened as that user: it has to read configuration, certificates and keys, and to write logs and
    /// the state directory. Otherwise the server does not start.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// The group of that user's process [default: the user's]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    group: Option<String>,

    /// Write the process ID to FILE, and remove it at the end
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pid_file: Option<PathBuf>,

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
    #[arg(long, value_name = "FILE", help_heading = RESEARCH, hide_short_help = true)]
    history: Option<PathBuf>,

    /// The threads that serve connections, or auto: one for each core [default: auto]
    #[arg(long, value_name = "N|auto", hide_short_help = true)]
    workers: Option<Workers>,

    /// Serve metrics for Prometheus as http://ADDR:PORT/metrics
    ///
    /// A port alone, as :9100, is that of this host alone; write *:9100 for all addresses. Others are written as those of --listen.
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<MetricsListen>,

    /// Compress text for clients that accept it [default: on for files, off for applications]
    ///
    /// Zstandard, Brotli and gzip, from 1 KiB on. Responses that have a content coding stay as they are. Do not compress pages of
    /// an application that repeat input of a request beside a secret: their length then tells the secret (BREACH).
    #[arg(long, value_name = "on|off", value_parser = BoolishValueParser::new())]
    compress: Option<bool>,

    #[command(flatten)]
    logs: ServerLogs,
}

/// A verb that runs a server.
pub(crate) trait Serving: Clone + Send + Sync + 'static {
    /// Its keys in a configuration file, beside those of every server.
    const KEYS: FileKeys;

    /// The flags of the server.
    fn flags(&mut self) -> &mut ServerFlags;

    /// Fills in flags that were not given from `file`.
    fn fill_from(&mut self, file: &mut ConfigFile);

    /// The sites that answer requests.
    ///
    /// # Errors
    /// A setting is missing.
    fn sites(&self) -> Result<Vec<SiteConfig>, Failure>;

    /// The metrics of applications, which a new configuration does not reset.
    fn upstreams(&self) -> &Arc<UpstreamMetrics>;

    /// Sets the versions of HTTP, their transport and their features.
    fn set_protocols(&self, config: &mut ServerConfig);

    /// The keys whose values in `then` differ and which only a restart applies.
    fn needs_restart(&self, then: &Self) -> Vec<&'static str>;
}

/// Runs the server of a verb until it is stopped. It serves at the sockets that are `given`, where they fit.
///
/// # Errors
/// It cannot start, or its endpoint has failed.
pub(crate) fn run<S: Serving>(arguments: S, given: GivenSockets) -> Result<(), Failure> {
    raise_open_file_limit();
    report_panics_in_one_line();
    let wanted = Wanted::read(arguments.clone(), &[])?;
    let flags = wanted.flags;
    #[cfg(target_os = "linux")]
    TunnelTable::refuse_user(wanted.tables.tunnel.as_ref(), flags.user.as_deref())?;
    let account = Account::find(flags.user.as_deref(), flags.group.as_deref())?;
    // There are no threads before the runtime.
    let privileges = match account {
        Some(account) => account.assume()?,
        None => Privileges::unchanged(),
    };
    on_this_thread(start(arguments, given, privileges))
}

async fn start<S: Serving>(
    arguments: S,
    mut given: GivenSockets,
    privileges: Privileges,
) -> Result<(), Failure> {
    let signals = Signals::listen()?;
    let origin = Origin::of_process(&mut given).await?;
    let assumed = privileges.clone();
    let as_user = |failure| assumed.explain(failure);
    // Read again, as the user who has to read it at each reload.
    let addresses = given.addresses();
    let read = move || Wanted::read(arguments.clone(), &addresses);
    let first = read().map_err(as_user)?;
    let error_log = first.flags.logs.open_error_log().map_err(as_user)?;
    error_log.install();
    let served = serve(read, first, given, origin, signals, privileges, &error_log).await;
    let served = served.map_err(as_user);
    if let Err(failure) = &served {
        error_log.ended(failure);
    }
    MessageLog::finish(limits::LOG_FINISH);
    served
}

async fn serve<S: Serving>(
    read: impl Fn() -> Result<Wanted<S>, Failure> + Send + Sync + 'static,
    first: Wanted<S>,
    mut given: GivenSockets,
    origin: Origin,
    signals: Signals,
    privileges: Privileges,
    error_log: &ErrorLog,
) -> Result<(), Failure> {
    let manager = ServiceManager::of_environment()?;
    let state = state::open(first.flags.state.as_deref())?;
    let has_http = first.flags.redirect_http.is_some();
    #[cfg(target_os = "linux")]
    let mut open_tunnels = open_tunnels(&first, &origin)?;
    let kept = Kept {
        #[cfg(target_os = "linux")]
        tunnels: open_tunnels.as_ref().map(|open| Arc::clone(open.tunnels())),
        certificates: OpenCertificates::new(state.as_ref(), has_http)?,
        state,
        shared: first
            .tables
            .shared_secret
            .as_deref()
            .map(state::open_shared)
            .transpose()?,
        secret: Some(origin.secret()),
        history: first
            .tables
            .history
            .as_ref()
            .map(OpenHistory::open)
            .transpose()?,
    };
    let Configured {
        server: mut config,
        certificates: prepared,
    } = first.config(&kept)?;
    let served = kept.certificates.stapled(&config);
    #[cfg(feature = "tracing")]
    first.flags.log.start(&mut config.quic);
    config.state.clone_from(&kept.state);
    config.shared.clone_from(&kept.shared);
    config.secret = kept.secret;
    let identity = config.identity.clone();
    let access_log = Arc::new(Mutex::new(config.access_log.clone()));
    let server = Server::bind_given(config, &mut given)
        .await
        .map_err(|error| Failure::Failed(error.to_string()))?;
    let handle = server.handle();
    let redirecting = match first.redirecting(server.local_addr().port(), &kept) {
        None => None,
        Some(config) => {
            let redirecting = Server::bind_given(config, &mut given).await;
            Some(redirecting.map_err(|error| Failure::Failed(error.to_string()))?)
        }
    };
    if !origin.takes_over() {
        given::refuse_unused(&given, server.local_addrs())?;
    }
    // Nothing would accept connections on the rest.
    drop(given);
    #[cfg(target_os = "linux")]
    if let Some(open) = &mut open_tunnels {
        open.begin()?;
    }
    privileges.drop_all()?;
    let mut servers = vec![handle.clone()];
    servers.extend(redirecting.as_ref().map(Server::handle));
    let secret = origin.secret();
    let pid_path = first.flags.pid_file.clone();
    let mut pid_file = pid_path.as_deref().map(PidFile::open).transpose()?;
    origin.take_over(&servers).await?;
    if let Some(pid_file) = &mut pid_file {
        pid_file.write();
    }
    if let Some(redirecting) = &redirecting {
        for address in redirecting.local_addrs() {
            error_log.announce(&format!("redirecting http://{address} to https"));
        }
    }
    for address in server.metrics_addrs() {
        error_log.announce(&format!("metrics on http://{address}/metrics"));
    }
    if let Some(identity) = identity {
        identity::print_trust(&identity, server.local_addrs(), kept.state.as_deref());
    }
    for address in server.local_addrs() {
        error_log.announce(&format!("listening on https://{address}"));
    }
    kept.certificates.apply(prepared, served);
    let renewing = AbortOnDrop(tokio::spawn(kept.certificates.clone().run()));
    manager.started("https", &server);
    let upgrader = Upgrader {
        servers,
        secret,
        manager: manager.clone(),
        renewing: Some(renewing.0.abort_handle()),
        pid_file: pid_path,
    };
    let store = kept.history.as_ref().map(|history| history.store.clone());
    let current_log = Arc::clone(&access_log);
    // They do not end by themselves.
    #[cfg(target_os = "linux")]
    let stopping = {
        let tunnels = kept.tunnels.clone();
        move || tunnels.iter().for_each(|tunnels| tunnels.close())
    };
    #[cfg(not(target_os = "linux"))]
    let stopping = || ();
    let reloaded = handle.clone();
    let reload = move || {
        let wanted = read()?;
        let Configured {
            server: config,
            certificates: prepared,
        } = wanted.config(&kept)?;
        let fixed = wanted.differences_that_need_a_restart(&first);
        if !fixed.is_empty() {
            let fixed = fixed.join(", ");
            let text = format!("changed, but only a restart applies it: {fixed}");
            emit(Level::Warning, Subject::Configuration, &text);
        }
        let error_log = wanted.flags.logs.open_error_log()?;
        let log = config.access_log.clone();
        let served = kept.certificates.stapled(&config);
        #[cfg(target_os = "linux")]
        let users = kept.users(&wanted, &config.client_rules)?;
        let replaced = reloaded.reload(config);
        replaced.map_err(|error| Failure::Failed(error.to_string()))?;
        #[cfg(target_os = "linux")]
        if let Some(tunnels) = &kept.tunnels {
            tunnels.replace_tokens(users);
        }
        error_log.install();
        kept.certificates.apply(prepared, served);
        *lock(&current_log) = log;
        Ok(())
    };
    let followed = signals.follow(handle, manager, upgrader, reload, stopping);
    tokio::spawn(followed);
    let running = async {
        let Some(redirecting) = redirecting else {
            return server.run().await;
        };
        let stop = redirecting.handle();
        let redirects = tokio::spawn(redirecting.run());
        let served = server.run().await;
        // A redirect takes no time.
        stop.hurry();
        let _ = redirects.await;
        served
    };
    #[cfg(target_os = "linux")]
    let without_tunnels = async {
        let Some(open) = &open_tunnels else {
            return std::future::pending().await;
        };
        let gone = open.run().await;
        open.tunnels().close();
        let text = format!("{gone}; there are no tunnels until a restart");
        emit(Level::Error, Subject::Server, &text);
        std::future::pending().await
    };
    #[cfg(not(target_os = "linux"))]
    let without_tunnels = std::future::pending();
    let served = tokio::select! {
        served = running => served.map_err(|error| Failure::Failed(error.to_string())),
        never = without_tunnels => never,
    };
    drop((renewing, pid_file));
    let access_log = lock(&access_log).take();
    if let Some(log) = access_log {
        log.finish(limits::LOG_FINISH);
    }
    if let Some(store) = store {
        store.finish();
    }
    served
}

/// A task that ends with its owner.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// State that outlives a change of the configuration.
struct Kept {
    state: Option<Arc<StateDirectory>>,
    shared: Option<Arc<SharedKeys>>,
    /// That of keys without a state directory.
    secret: Option<[u8; 32]>,
    certificates: OpenCertificates,
    history: Option<OpenHistory>,
    #[cfg(target_os = "linux")]
    tunnels: Option<Arc<marline_tunnel::server::Tunnels>>,
}

impl Kept {
    /// The users of tunnels under a configuration; without one of tunnels, nobody.
    ///
    /// # Errors
    /// Their file cannot be used.
    #[cfg(target_os = "linux")]
    fn users<S>(&self, wanted: &Wanted<S>, asked: &ClientRules) -> Result<Tokens, Failure> {
        match (&self.tunnels, &wanted.tables.tunnel) {
            (Some(_), Some(table)) => table.flags.users(table.certificates(asked)?),
            _ => Ok(Tokens::default()),
        }
    }
}

/// The tunnels of a server, if it has any.
///
/// # Errors
/// They cannot be opened.
#[cfg(target_os = "linux")]
fn open_tunnels<S: Serving>(
    wanted: &Wanted<S>,
    origin: &Origin,
) -> Result<Option<OpenTunnels>, Failure> {
    let Some(table) = &wanted.tables.tunnel else {
        return Ok(None);
    };
    if origin.takes_over() {
        let text = "[tunnel]: another process cannot take over tunnels; restart the server";
        return Err(Failure::Failed(text.to_owned()));
    }
    let asked = SiteClients::of(&wanted.sites()?);
    let asked = asked.map_err(|error| Failure::Failed(error.to_string()))?;
    let certificates = table.certificates(asked.rules())?;
    OpenTunnels::open(&table.flags, certificates).map(Some)
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

/// Messages about lists of revoked certificates that have expired. The server starts nevertheless, as with its own certificates.
pub(crate) fn expired_lists(rules: &ClientRules) -> Vec<String> {
    let Ok(now) = TokioRuntime::current().map(|runtime| runtime.unix_time()) else {
        return Vec::new();
    };
    let all = rules.all().into_iter();
    let expired = all.filter_map(|rules| rules.expired_list(now));
    expired.map(ToString::to_string).collect()
}

/// Gives the site of a server of one the `names`.
///
/// # Errors
/// The sites have names of their own.
pub(crate) fn name_site(sites: &mut [SiteConfig], names: &[HostPattern]) -> Result<(), Failure> {
    match sites {
        _ if names.is_empty() => Ok(()),
        [site] if site.names.is_empty() => {
            site.names = names.to_vec();
            Ok(())
        }
        _ => Err(Failure::Usage(
            "--name is for a server of one site; the configuration has `names` of its sites"
                .to_owned(),
        )),
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
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
