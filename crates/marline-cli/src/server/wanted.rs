//! The configuration that the operator wants.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use marline::settings::{Row, rows};
use marline::{EndpointConfig, Profile, Runtime, TokioRuntime, TransportConfig};
use marline_certificates::{AcmeConfig, Prepared};
use marline_http::log::{Level, Subject, emit};
use marline_http::server::{AlsoListen, ServerConfig, ServerLimits, TrustedProxies};
use marline_site::{SiteClients, SiteConfig, SiteError, redirect_to_https};

use super::{
    Kept, OpenHistory, ServerFlags, Serving, certificates, expired_lists, identity, name_site,
};
use crate::config_file::{ConfigFile, LISTEN, QuicLbKeys, WrittenTable};
use crate::failure::Failure;
use crate::history::{History, StoreLocation};
use crate::listen::{Listen, MetricsListen};
use crate::workers::Workers;

/// The configuration that the operator wants: the flags, and the file.
pub(crate) struct Wanted<S> {
    pub(super) serving: S,
    /// The flags of `serving`, completed from the file.
    pub(super) flags: ServerFlags,
    pub(super) tables: Tables,
}

/// A server, and the certificates that it is to obtain.
pub(super) struct Configured {
    pub(super) server: ServerConfig,
    pub(super) certificates: Prepared,
}

/// The settings that are not flags.
pub(super) struct Tables {
    pub(super) limits: ServerLimits,
    pub(super) trusted: TrustedProxies,
    pub(super) zero_rtt: Option<bool>,
    pub(super) shared_secret: Option<PathBuf>,
    pub(super) quic_lb: Option<QuicLbKeys>,
    pub(super) endpoint: Option<WrittenTable>,
    pub(super) transport: WrittenTable,
    #[cfg(target_os = "linux")]
    pub(super) tunnel: Option<super::TunnelTable>,
    /// Set if connections use history.
    pub(super) history: Option<History>,
    /// The authority of sites without certificates.
    pub(super) acme: Option<AcmeConfig>,
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

impl ServerFlags {
    /// Fills in flags that were not given from `file`, and returns the settings that are not flags.
    fn fill_from(&mut self, mut file: ConfigFile) -> Tables {
        self.logs.fill_from(&mut file);
        if self.listen.is_empty() {
            self.listen = file.listen;
        }
        self.redirect_http = self.redirect_http.or(file.redirect_http);
        if self.names.is_empty() {
            self.names = file.names;
        }
        let mut acme = file.acme;
        if let Some(contact) = &self.acme {
            acme.get_or_insert_default().contact = Some(contact.clone());
        }
        self.cert = self.cert.take().or(file.cert);
        self.key = self.key.take().or(file.key);
        self.tls_min = self.tls_min.or(file.tls_min);
        self.state = self.state.take().or(file.state);
        self.user = self.user.take().or(file.user);
        self.group = self.group.take().or(file.group);
        self.pid_file = self.pid_file.take().or(file.pid_file);
        self.transport.profile = self.transport.profile.or(file.profile);
        self.transport.qlog = self.transport.qlog.take().or(file.qlog);
        #[cfg(feature = "tracing")]
        {
            self.log.log = self.log.log.take().or(file.log);
        }
        self.workers = self.workers.or(file.workers.map(Workers::given));
        self.metrics = self.metrics.or(file.metrics);
        self.compress = self.compress.or(file.compress);
        let has_history = self.history.is_some() || self.transport.profile() == Profile::History;
        let mut history = file.history.or_else(|| has_history.then(History::default));
        if let (Some(history), Some(path)) = (&mut history, self.history.take()) {
            history.location = StoreLocation::File(path);
        }
        Tables {
            limits: file.limits,
            trusted: file.trusted,
            zero_rtt: file.zero_rtt,
            shared_secret: file.shared_secret_file,
            quic_lb: file.quic_lb,
            endpoint: file.endpoint,
            transport: file.transport,
            #[cfg(target_os = "linux")]
            tunnel: file.tunnel,
            history,
            acme,
        }
    }
}

impl<S: Serving> Wanted<S> {
    /// Reads the configuration file, which the flags may name and take precedence over. Without addresses to listen on, these
    /// are the `given` ones that are not for anything else.
    pub(super) fn read(mut serving: S, given: &[SocketAddr]) -> Result<Self, Failure> {
        let mut file = match &serving.flags().config {
            Some(path) => ConfigFile::read(path, S::KEYS)?,
            None => ConfigFile::default(),
        };
        serving.fill_from(&mut file);
        let tables = serving.flags().fill_from(file);
        let mut wanted = Self {
            flags: serving.flags().clone(),
            serving,
            tables,
        };
        if !wanted.certificates(&wanted.sites()?)?.is_empty() {
            let flags = &mut wanted.flags;
            certificates::default_addresses(&mut flags.listen, &mut flags.redirect_http);
        }
        let flags = &mut wanted.flags;
        if flags.listen.is_empty() {
            let metrics = flags.metrics.map(MetricsListen::addresses);
            let others = [flags.redirect_http, metrics];
            let is_other = |address| others.iter().flatten().any(|other| other.has(address));
            let free = given.iter().filter(|address| !is_other(**address));
            flags.listen = free.map(|address| Listen::from(*address)).collect();
        }
        Ok(wanted)
    }

    /// The certificates that `sites` get from an authority.
    pub(super) fn certificates(
        &self,
        sites: &[SiteConfig],
    ) -> Result<Vec<certificates::OfSite>, Failure> {
        certificates::wanted(sites, self.tables.acme.as_ref())
    }

    /// The configuration of a server. Opens the site, the certificate and the log.
    pub(super) fn config(&self, kept: &Kept) -> Result<Configured, Failure> {
        let Self {
            serving,
            flags,
            tables,
        } = self;
        let sites = self.sites()?;
        let failed = |error: SiteError| Failure::Failed(error.to_string());
        let clients = SiteClients::of(&sites).map_err(failed)?;
        for list in expired_lists(clients.rules()) {
            emit(Level::Warning, Subject::Tls, &list);
        }
        let site = marline_site::sites(&sites, &clients, serving.upstreams()).map_err(failed)?;
        let transport = transport(flags, tables, kept.history.as_ref())?;
        let (listen, also) = self.listen();
        let identity = identity::identity(flags, &sites, listen.ip(), kept.state.as_deref())?;
        let named = marline_site::identities(&sites).map_err(failed)?;
        let wanted = self.certificates(&sites)?;
        // Whether clients that ask for another name can get a certificate of a site.
        let have_own = sites.iter().enumerate().all(|(index, site)| {
            !site.certificates.is_empty() || wanted.iter().any(|one| one.site == index)
        });
        let is_given = flags.cert.is_some();
        let prepared = kept.certificates.prepare(wanted, identity.as_ref())?;
        let identity = identity.filter(|_| is_given || !have_own);
        let mut config = ServerConfig::new(listen, identity, site);
        config.named_identities = named;
        config.client_rules = clients.rules().clone();
        config.site_names = marline_site::site_names(&sites);
        config
            .named_identities
            .extend(certificates::identities(&prepared));
        config.challenges = kept.certificates.challenges.clone();
        config.also_listen = also;
        config.qlog = flags.transport.qlog_directory()?;
        serving.set_protocols(&mut config);
        config.protocols.tunnels = sites.iter().any(SiteConfig::has_applications);
        #[cfg(target_os = "linux")]
        if let (Some(table), Some(tunnels)) = (&tables.tunnel, &kept.tunnels) {
            config.site = tunnels.beside(config.site, table.names.clone());
            config.protocols.http3_tunnels = true;
            config.more_metrics.push(Arc::clone(tunnels) as _);
        }
        let metrics = flags.metrics.map(MetricsListen::addresses);
        config.metrics = metrics.map(|listen| listen.first);
        config
            .also_metrics
            .extend(metrics.and_then(|listen| listen.also));
        if config.protocols.tunnels {
            config
                .more_metrics
                .push(Arc::clone(serving.upstreams()) as _);
        }
        config.more_metrics.extend(kept.certificates.metrics());
        config.access_log = flags.logs.open_access_log()?;
        config.tls_min = flags.tls_min.unwrap_or_default();
        config.limits = tables.limits.clone();
        config.trusted = tables.trusted.clone();
        config.endpoint = tables.endpoint.as_ref().map(endpoint).transpose()?;
        config.quic_lb = tables.quic_lb.as_ref().map(QuicLbKeys::open).transpose()?;
        let workers = flags.workers.unwrap_or_default();
        let workers = workers.count(config.endpoint.as_ref());
        config.workers = workers.map_err(Failure::Usage)?;
        config.quic.transport = transport.into();
        config.quic.zero_rtt = tables.zero_rtt.unwrap_or(config.quic.zero_rtt);
        config.quic.preferred_version = flags.quic_version.map(Into::into);
        config.quic.key_log = flags.key_log.open()?;
        #[cfg(feature = "tracing")]
        flags.log.observe(&mut config.quic);
        Ok(Configured {
            server: config,
            certificates: prepared,
        })
    }

    /// The sites, with the flags that concern all of them.
    pub(super) fn sites(&self) -> Result<Vec<SiteConfig>, Failure> {
        let mut sites = self.serving.sites()?;
        name_site(&mut sites, &self.flags.names)?;
        if let Some(compress) = self.flags.compress {
            for site in &mut sites {
                let routes = site.routes.iter_mut().map(|route| &mut route.rules);
                for rules in routes.chain([&mut site.rules]) {
                    rules.compress.get_or_insert(compress);
                }
            }
        }
        Ok(sites)
    }

    /// The first address to listen on, and the others.
    fn listen(&self) -> (SocketAddr, Vec<AlsoListen>) {
        let mut all = self.flags.listen.iter().copied();
        let first = all.next().unwrap_or(LISTEN);
        let mut also: Vec<_> = first.also.map(AlsoListen::IfPresent).into_iter().collect();
        for next in all {
            also.push(AlsoListen::At(next.first));
            let second = next.also.map(|ip| SocketAddr::new(ip, next.first.port()));
            also.extend(second.map(AlsoListen::AtIfPresent));
        }
        (first.first, also)
    }

    /// The server that redirects requests without TLS to `port`, if there is one.
    pub(super) fn redirecting(&self, port: u16, kept: &Kept) -> Option<ServerConfig> {
        let listen = self.flags.redirect_http?;
        let site = redirect_to_https(port, kept.certificates.challenges.clone());
        let mut config = ServerConfig::cleartext(listen.first, site);
        config.protocols.tunnels = false;
        let also = listen.also.map(AlsoListen::IfPresent);
        config.also_listen.extend(also);
        config.limits = self.tables.limits.clone();
        config.trusted = self.tables.trusted.clone();
        Some(config)
    }

    /// The keys whose values differ from those that the server was started with, and which it cannot exchange.
    pub(super) fn differences_that_need_a_restart(&self, first: &Self) -> Vec<&'static str> {
        let (now, then) = (&self.flags, &first.flags);
        let (tables, before) = (&self.tables, &first.tables);
        let differs = [
            ("listen", now.listen != then.listen),
            ("redirect_http", now.redirect_http != then.redirect_http),
            ("workers", now.workers != then.workers),
            ("metrics", now.metrics != then.metrics),
            ("state", now.state != then.state),
            ("user", now.user != then.user),
            ("group", now.group != then.group),
            ("pid_file", now.pid_file != then.pid_file),
            (
                "shared_secret_file",
                tables.shared_secret != before.shared_secret,
            ),
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
        let mut keys: Vec<_> = differing.map(|(key, _)| key).collect();
        #[cfg(target_os = "linux")]
        if let Some(table) = &tables.tunnel
            && !before
                .tunnel
                .as_ref()
                .is_some_and(|before| before.flags.is_alike(&table.flags))
        {
            keys.push("[tunnel]");
        }
        keys.extend(self.serving.needs_restart(&first.serving));
        keys
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
    flags: &ServerFlags,
    tables: &Tables,
    open: Option<&OpenHistory>,
) -> Result<TransportConfig, Failure> {
    let flags = &flags.transport;
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
    #[cfg(target_os = "linux")]
    if tables.tunnel.is_some() {
        transport.multipath.get_or_insert_default();
        marline_tunnel::server::set_transport(&mut transport);
    }
    let written = &tables.transport;
    written
        .apply(TransportConfig::SETTINGS, &mut transport)
        .map_err(Failure::Usage)?;
    flags.adjust(&mut transport)?;
    Ok(transport)
}

#[cfg(test)]
impl<S: Serving> Wanted<S> {
    /// The configuration of a server that keeps nothing.
    pub(crate) fn config_of(serving: S) -> Result<ServerConfig, Failure> {
        let kept = Kept {
            state: None,
            shared: None,
            secret: None,
            certificates: certificates::OpenCertificates::new(None, false)?,
            history: None,
            #[cfg(target_os = "linux")]
            tunnels: None,
        };
        Ok(Self::read(serving, &[])?.config(&kept)?.server)
    }
}
