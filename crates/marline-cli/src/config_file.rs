//! The settings of a server in a TOML file. Flags of the command line override them.

#[cfg(target_os = "linux")]
mod flags;
mod foreign;
mod history;
mod quic_lb;
mod short_table;
mod written;

use std::io;
use std::path::{Path, PathBuf};

#[cfg(feature = "tracing")]
use marline::settings::{Derived, FieldValue, Value};
use marline::settings::{
    Domain, Field, List, RawValue, Row, Settings, Table, Tables, apply, field, keys, rows,
};
use marline::{EndpointConfig, Profile, TransportConfig};
use marline_certificates::AcmeConfig;
use marline_http::log::{Level, LogOutput, LogRotation};
use marline_http::proxy::ProxyConfig;
use marline_http::server::{AccessLogFormat, ServerLimits, TrustedProxies};
use marline_http::{HostPattern, TlsVersion, read_regular_file};
use marline_site::SiteConfig;

#[cfg(all(test, target_os = "linux"))]
pub(crate) use self::flags::testing as flags_testing;
#[cfg(target_os = "linux")]
pub(crate) use self::flags::{FlagsFile, choice, flag_keys};
pub(crate) use self::history::HistoryKeys;
pub(crate) use self::quic_lb::QuicLbKeys;
use self::short_table::ShortTable;
pub(crate) use self::written::WrittenTable;
use crate::failure::Failure;
use crate::history::History;
use crate::listen::{ADDRESS, Listen, METRICS_ADDRESS, MetricsListen};
use crate::server::{OUTPUT, ROTATION};
use crate::workers::MOST;

/// The default address.
pub(crate) const LISTEN: Listen = Listen::localhost(4433);

/// More than any configuration has, in bytes.
const MAX_SIZE: u64 = 16 << 20;

/// The settings of a file: the keys of [`Self::SETTINGS`] and [`TransportConfig::SETTINGS`], the table `history`, and the table
/// `endpoint` with [`EndpointConfig::SETTINGS`].
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigFile {
    pub(crate) dir: Option<PathBuf>,
    pub(crate) listen: Vec<Listen>,
    pub(crate) redirect_http: Option<Listen>,
    pub(crate) names: Vec<HostPattern>,
    pub(crate) acme: Option<AcmeConfig>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) tls_min: Option<TlsVersion>,
    pub(crate) zero_rtt: Option<bool>,
    pub(crate) state: Option<PathBuf>,
    pub(crate) user: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) pid_file: Option<PathBuf>,
    pub(crate) shared_secret_file: Option<PathBuf>,
    pub(crate) quic_lb: Option<QuicLbKeys>,
    pub(crate) profile: Option<Profile>,
    pub(crate) qlog: Option<PathBuf>,
    #[cfg(feature = "tracing")]
    pub(crate) log: Option<crate::log::LogFilter>,
    pub(crate) workers: Option<usize>,
    pub(crate) metrics: Option<MetricsListen>,
    pub(crate) access_log: Option<LogOutput>,
    pub(crate) access_log_format: Option<AccessLogFormat>,
    pub(crate) error_log: Option<LogOutput>,
    pub(crate) error_log_level: Option<Level>,
    pub(crate) log_rotate: Option<LogRotation>,
    pub(crate) compress: Option<bool>,
    pub(crate) follow_links: bool,
    pub(crate) cleartext: bool,
    pub(crate) mptcp: Option<bool>,
    pub(crate) limits: ServerLimits,
    pub(crate) trusted: TrustedProxies,
    pub(crate) proxy: Option<ProxyConfig>,
    pub(crate) sites: Vec<SiteConfig>,
    pub(crate) history: Option<History>,
    #[cfg(target_os = "linux")]
    pub(crate) tunnel: Option<crate::server::TunnelTable>,
    /// The keys of [`EndpointConfig::SETTINGS`].
    pub(crate) endpoint: Option<WrittenTable>,
    /// The keys of [`TransportConfig::SETTINGS`].
    pub(crate) transport: WrittenTable,
    /// The whole file.
    written: WrittenTable,
}

/// The verb that a file configures; keys of another verb are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKeys {
    /// Of `serve`.
    Serve,
    /// Of `proxy`.
    Proxy,
}

/// The table of the settings of history.
const HISTORY: &str = "history";

/// The table of the settings of the endpoint.
const ENDPOINT: &str = "endpoint";

/// The table of the tunnels of `serve`.
#[cfg(target_os = "linux")]
const TUNNEL: &str = "tunnel";

/// The table of connection IDs for a load balancer.
const QUIC_LB: &str = "quic_lb";

const FILE: Domain = Domain::text("the path of a file");
const DIRECTORY: Domain = Domain::text("the path of a directory");

impl ConfigFile {
    /// The keys that are not settings of the transport; most are flags as well.
    const SETTINGS: Settings<Self> = &[
        &List {
            key: "listen",
            domain: Domain::text(ADDRESS),
            about: "The addresses to listen on, TCP and UDP; port 0 selects a free one; localhost is 127.0.0.1 and ::1",
            field: |c: &mut Self| &mut c.listen,
        },
        field!(
            redirect_http: Domain::text(ADDRESS),
            "The address at which requests without TLS are redirected to https, as \":80\""
        ),
        &List {
            key: "name",
            domain: Domain::text("the name of a host, as \"example.org\" or \"*.example.org\""),
            about: "The names by which clients ask for a server without [[site]]; without it, all",
            field: |c: &mut Self| &mut c.names,
        },
        &ShortTable {
            table: Table {
                key: "acme",
                about: "The authority that issues and renews the certificates of sites without one (ACME); with it, the default addresses are \":443\", and \":80\" for redirect_http",
                settings: AcmeConfig::SETTINGS,
                bases: &[],
                get: |c: &Self| c.acme.as_ref(),
                open: |c: &mut Self| c.acme.get_or_insert_default(),
                off: None,
            },
            short: "contact",
        },
        field!(cert: FILE, "The certificate chain in PEM; by default, a self-signed certificate is made"),
        field!(key: FILE, "The certificate's private key in PEM"),
        field!(tls_min: Domain::words::<TlsVersion>(), "The lowest version of TLS over TCP; QUIC always uses TLS 1.3"),
        field!(zero_rtt: Domain::SWITCH, "Whether clients may request in 0-RTT (QUIC)"),
        field!(
            state: DIRECTORY,
            "The directory of keys, sessions and the self-signed certificate; by default, the user's state directory"
        ),
        field!(user: Domain::text("the name of a user"), "The user of this machine that a server of root becomes once its sockets are open; everything else is opened as that user"),
        field!(group: Domain::text("the name of a group"), "The group of that user's process; by default, the user's"),
        field!(pid_file: FILE, "The file with the ID of the process, which is removed at the end"),
        field!(
            shared_secret_file: FILE,
            "The file with a secret, at least 32 bytes of text, from which all servers behind one address derive the keys of tickets, address tokens and resets; without 0-RTT"
        ),
        &Table {
            key: QUIC_LB,
            about: "Connection IDs from which a load balancer reads the server (QUIC-LB)",
            settings: QuicLbKeys::SETTINGS,
            bases: &[],
            get: |c: &Self| c.quic_lb.as_ref(),
            open: |c: &mut Self| c.quic_lb.get_or_insert_default(),
            off: None,
        },
        field!(profile: Domain::words::<Profile>(), "The set of policies to use"),
        field!(qlog: DIRECTORY, "The directory for a qlog file of each QUIC connection"),
        #[cfg(feature = "tracing")]
        &Derived {
            key: "log",
            domain: Domain::text(
                "a level, or levels by target, as \"info,marline::recovery=debug\"",
            ),
            about: "The levels of the log of QUIC connections on standard error",
            get: |c: &Self| Some(c.log.as_ref().map(ToString::to_string).to_value()),
            set: |c: &mut Self, value: &Value| {
                let text = String::from_value(value).unwrap_or_default();
                c.log = Some(text.parse()?);
                Ok(())
            },
        },
        field!(
            workers: Domain::integer(1, MOST).or("auto"),
            "The threads that serve connections; by default, one for each core"
        ),
        field!(metrics: Domain::text(METRICS_ADDRESS), "The address that serves metrics for Prometheus, as http://ADDR:PORT/metrics"),
        field!(access_log: Domain::text(OUTPUT), "The destination of a line for each request"),
        field!(access_log_format: Domain::words::<AccessLogFormat>(), "The form of these lines"),
        field!(error_log: Domain::text(OUTPUT), "The destination of messages; by default standard error"),
        field!(error_log_level: Domain::words::<Level>(), "The least serious messages of the error log"),
        field!(
            log_rotate: Domain::text(ROTATION),
            "When new files of both logs begin; days begin at midnight in UTC"
        ),
        field!(
            compress: Domain::SWITCH,
            "Whether text is compressed for clients that accept it; by default it is by serve, and not by proxy"
        ),
        &List {
            key: "trusted_proxies",
            domain: Domain::text("an address, or a network as \"192.0.2.0/24\""),
            about: "The proxies and load balancers in front of this server that are trusted about the addresses of clients",
            field: |c: &mut Self| &mut c.trusted.networks,
        },
        &Field::new(
            "client_field",
            Domain::text(
                "the name of a field, as \"X-Forwarded-For\", \"Forwarded\" or \"CF-Connecting-IP\"",
            ),
            "The field in which trusted proxies report the client",
            |c: &mut Self| &mut c.trusted.field,
        ),
        &Field::new(
            "proxy_protocol",
            Domain::SWITCH,
            "Whether connections of trusted proxies over TCP begin with a header of the PROXY protocol, version 1 or 2; others do not",
            |c: &mut Self| &mut c.trusted.proxy_protocol,
        ),
        &Table {
            key: "http",
            about: "Limits on the resources of the server that clients can use",
            settings: ServerLimits::SETTINGS,
            bases: &[],
            get: |c: &Self| Some(&c.limits),
            open: |c: &mut Self| &mut c.limits,
            off: None,
        },
    ];

    /// The keys of `serve` alone.
    const OF_SERVE: Settings<Self> = &[
        field!(dir: DIRECTORY, "The directory whose files to serve"),
        field!(follow_links: Domain::SWITCH, "Whether symbolic links may lead out of the directory"),
        field!(cleartext: Domain::SWITCH, "Whether HTTP/1.1 is answered without encryption, too, on the same TCP port"),
        field!(mptcp: Domain::SWITCH, "Whether connections over TCP may use Multipath TCP, where the kernel has it"),
        &Tables {
            key: "site",
            about: "The sites, in place of `dir`: names, and what is answered to their requests",
            settings: SiteConfig::SETTINGS,
            field: |c: &mut Self| &mut c.sites,
        },
    ];

    /// The keys of `proxy` alone.
    const OF_PROXY: Settings<Self> = &[&Table {
        key: "proxy",
        about: "The applications, and how requests are passed on to them",
        settings: ProxyConfig::SETTINGS,
        bases: &[],
        get: |c: &Self| c.proxy.as_ref(),
        open: |c: &mut Self| c.proxy.get_or_insert_default(),
        off: None,
    }];

    /// The keys of one verb alone.
    fn only_of(verb: FileKeys) -> Settings<Self> {
        match verb {
            FileKeys::Serve => Self::OF_SERVE,
            FileKeys::Proxy => Self::OF_PROXY,
        }
    }

    /// Its keys for the reference, with the values without a file.
    pub(crate) fn rows() -> Vec<Row> {
        let without = Self {
            listen: vec![LISTEN],
            profile: Some(Profile::default()),
            proxy: Some(ProxyConfig::default()),
            quic_lb: Some(QuicLbKeys::default()),
            mptcp: Some(true),
            compress: Some(true),
            tls_min: Some(TlsVersion::default()),
            zero_rtt: Some(true),
            access_log_format: Some(AccessLogFormat::default()),
            error_log_level: Some(Level::default()),
            ..Self::default()
        };
        let mut all = rows(Self::OF_SERVE, "", &without);
        #[cfg(target_os = "linux")]
        all.push(Row {
            key: TUNNEL.to_owned(),
            about: "Tunnels beside the sites: flags of `tunnel serve`, and the `names` that have tunnels, by default all",
            allowed: format!("a table: {}", crate::server::TunnelTable::keys()),
            words: Vec::new(),
            default: String::new(),
        });
        all.extend(rows(Self::SETTINGS, "", &without));
        all.extend(rows(Self::OF_PROXY, "", &without));
        all
    }

    /// The keys of the table `endpoint` for the reference.
    pub(crate) fn endpoint_rows() -> Vec<Row> {
        let prefix = format!("{ENDPOINT}.");
        let default = EndpointConfig::from_seed([0; 32]);
        rows(EndpointConfig::SETTINGS, &prefix, &default)
    }

    /// Reads `path`; relative paths in it start at its directory.
    pub(crate) fn read(path: &Path, verb: FileKeys) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let text = read_limited(path).map_err(|error| {
            Failure::Usage(format!("cannot read {name}: {error}; check the path"))
        })?;
        let base = path.parent().unwrap_or(Path::new(""));
        let mut file = Self::parse(&name, &text, base, verb).map_err(Failure::Usage)?;
        let paths = [
            &mut file.dir,
            &mut file.cert,
            &mut file.key,
            &mut file.state,
            &mut file.pid_file,
            &mut file.shared_secret_file,
            &mut file.qlog,
        ];
        for path in paths.into_iter().flatten() {
            *path = base.join(&path);
        }
        if let Some(proxy) = &mut file.proxy {
            proxy.resolve(base);
        }
        if let Some(acme) = &mut file.acme {
            acme.resolve(base);
        }
        for site in &mut file.sites {
            site.resolve(base);
        }
        for log in [&mut file.access_log, &mut file.error_log] {
            *log = log.take().map(|log| log.relative_to(base));
        }
        Ok(file)
    }

    /// Parses `text`, the content of the file `name`; history is kept relative to `base`.
    pub(crate) fn parse(
        name: &str,
        text: &str,
        base: &Path,
        verb: FileKeys,
    ) -> Result<Self, String> {
        let written = WrittenTable::read(name, text)?;
        let transport = written.only(TransportConfig::SETTINGS);
        transport.refuse_initial_window()?;
        // Every key is checked here, also where it is used later only.
        transport.apply(TransportConfig::SETTINGS, &mut TransportConfig::default())?;
        let own = Self::SETTINGS.iter().chain(Self::only_of(verb));
        let own = own.map(|setting| setting.key());
        let of_transport = keys(TransportConfig::SETTINGS);
        let tables = [HISTORY, ENDPOINT].into_iter();
        #[cfg(target_os = "linux")]
        let tables = tables.chain((verb == FileKeys::Serve).then_some(TUNNEL));
        if verb == FileKeys::Serve && written.has(&["proxy"]) {
            let place = written.place(&["proxy"]);
            return Err(format!(
                "{place}: [proxy] is for `marline proxy`, and `marline serve` serves a directory; leave it out, or run `marline proxy --config {name}`, and `marline check --proxy {name}`"
            ));
        }
        if verb == FileKeys::Proxy && written.has(&["site"]) {
            let place = written.place(&["site"]);
            return Err(format!(
                "{place}: [[site]] is for `marline serve`, which passes requests on as well; run `marline serve --config {name}`, and `marline check {name}`"
            ));
        }
        written.refuse_unknown(&own.chain(tables).chain(of_transport).collect::<Vec<_>>())?;
        let endpoint = written.table(ENDPOINT)?;
        if let Some(endpoint) = &endpoint {
            let keys = EndpointConfig::SETTINGS.iter().map(|setting| setting.key());
            endpoint.refuse_unknown(&keys.collect::<Vec<_>>())?;
            let mut config = EndpointConfig::from_seed([0; 32]);
            endpoint.apply(EndpointConfig::SETTINGS, &mut config)?;
        }
        let history = written.table(HISTORY)?;
        let mut file = Self {
            history: history
                .map(|table| history::read(&table, base))
                .transpose()?,
            endpoint,
            transport,
            ..Self::default()
        };
        written.apply(Self::SETTINGS, &mut file)?;
        written.apply(Self::only_of(verb), &mut file)?;
        #[cfg(target_os = "linux")]
        if let Some(table) = written.table(TUNNEL)? {
            let table = crate::server::TunnelTable::read(table, base);
            file.tunnel = Some(table.map_err(|failure| failure.to_string())?);
        }
        if let (Some(keys), Some(table)) = (&mut file.quic_lb, written.table(QUIC_LB)?) {
            keys.check(table, base)?;
            const LENGTH: [&str; 2] = [ENDPOINT, "connection_id_len"];
            if written.has(&LENGTH) {
                let place = written.place(&LENGTH);
                return Err(format!(
                    "{place}: {}: the length follows from [quic_lb]; leave it out",
                    LENGTH.join(".")
                ));
            }
        }
        for (site, number) in file.sites.iter_mut().zip(1..) {
            let number = format!("[{number}]");
            site.written = written.written_at(&["site", &number]);
            for (route, of_site) in site.routes.iter_mut().zip(1..) {
                let of_site = format!("[{of_site}]");
                route.written = written.written_at(&["site", &number, "route", &of_site]);
            }
        }
        for (site, number) in file.sites.iter_mut().zip(1..) {
            inherit_proxy(&written, site, &format!("[{number}]"))?;
        }
        if file.trusted.networks.is_empty() {
            let keys = ["proxy_protocol", "client_field"];
            if let Some(key) = keys.into_iter().find(|key| written.has(&[key])) {
                let place = written.place(&[key]);
                return Err(format!(
                    "{place}: {key} is about the proxies in trusted_proxies, and there are none; name their networks there"
                ));
            }
        }
        file.written = written;
        Ok(file)
    }

    /// The file and the line of `key`, and its name.
    pub(crate) fn place(&self, key: &str) -> String {
        format!("{}: {key}", self.written.place(&[key]))
    }
}

/// Has the applications of routes start from the settings in `proxy` of `site`, which is the one with this `number`.
fn inherit_proxy(
    written: &WrittenTable,
    site: &mut SiteConfig,
    number: &str,
) -> Result<(), String> {
    let Some(of_site) = &site.rules.proxy else {
        return Ok(());
    };
    let mut is_inherited = false;
    for (route, of_site_number) in site.routes.iter_mut().zip(1..) {
        let Some(of_route) = route.rules.proxy.as_mut() else {
            continue;
        };
        is_inherited |= !of_route.upstreams.is_empty();
        let mut merged = ProxyConfig {
            upstreams: std::mem::take(&mut of_route.upstreams),
            ..of_site.clone()
        };
        let of_site_number = format!("[{of_site_number}]");
        let path = ["site", number, "route", &of_site_number, "proxy"];
        if let Some(RawValue::Table(entries)) = written.value(&path) {
            // They were read before.
            apply(ProxyConfig::SETTINGS, &mut merged, entries).map_err(|why| why.to_string())?;
        }
        *of_route = merged;
    }
    if is_inherited && of_site.upstreams.is_empty() {
        site.rules.proxy = None;
    }
    Ok(())
}

/// The text of the file at `path`, which may have [`MAX_SIZE`] bytes.
fn read_limited(path: &Path) -> io::Result<String> {
    let content = read_regular_file(path, MAX_SIZE)?;
    String::from_utf8(content).map_err(|_| io::Error::other("it is not text in UTF-8"))
}

#[cfg(test)]
mod tests;
