//! `marline gateway`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{ArgGroup, Args};
use marline::{PathPolicy, PathRule};
use marline_http::client::{Client, ClientConfig, HttpVersion, Trust};
use marline_http::limits;
use marline_http::log::{Level, MessageLog, Subject, emit};
use marline_http::proxy::{
    AllowedHost, ForwardConfig, GatewayConfig, HostName, Hosts, PipeMetrics, forward_proxy, gateway,
};
use marline_http::server::{
    AlsoListen, GivenSockets, MetricsSource, Server, ServerConfig, Site, raise_open_file_limit,
};

use crate::failure::Failure;
use crate::listen::{Listen, MetricsListen};
use crate::pipes::PipeFlags;
use crate::server::given::refuse_unused;
use crate::server::{ErrorLog, Origin, ServerLogs, ServiceManager, Signals, Upgrader};
use crate::tls::TlsFlags;
use crate::transport::{RESEARCH, TransportFlags};

/// The default address.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// The default number of connections of a bundle.
const BUNDLE: u16 = 3;

/// The end of the short help.
const SHORT: &str = "Examples:\n  \
    marline gateway --to https://example.org\n  \
    marline gateway --proxy --allow example.org --allow 192.0.2.1:8443\n\n\
    `marline gateway --help` has more: the flags for transport research.";

/// Let programs of this machine reach an origin through marline
///
/// Programs speak HTTP/1.1, or HTTP/2 without TLS, to the gateway; it fetches from the origin over HTTP/3, or over
/// HTTP/2 where HTTP/3 does not connect. Unchanged programs can thus use any profile, several connections, pools of
/// them (--pipes) and several paths. With --proxy it is a forward proxy for tunnels (CONNECT) and for http URLs, over
/// TCP.
///
/// Prints `listening on http://ADDR:PORT` when ready. If the origin does not respond, the status is 502 or 504, with
/// the reason. SIGTERM or Ctrl-C stops it: requests in progress have 10 seconds to finish, unless there is a second
/// signal.
#[derive(Clone, Debug, Args)]
#[command(
    group(ArgGroup::new("what").required(true).args(["to", "proxy"])),
    after_help = SHORT,
    after_long_help = "Examples:\n  \
    marline gateway --to https://example.org\n  \
    marline gateway --to https://example.org --listen 127.0.0.1:8080 --profile multipath --access-log -\n  \
    marline gateway --to https://example.org --bundle\n  \
    marline gateway --to https://example.org --pipes cba --metrics 127.0.0.1:9090\n  \
    marline gateway --to https://example.org --pipes rr --max-pipes 3\n  \
    marline gateway --to https://example.org --path wlan0 --path wwan0,backup\n  \
    marline gateway --proxy\n  \
    marline gateway --proxy --allow example.org --allow 192.0.2.1:8443"
)]
pub(crate) struct Arguments {
    /// The origin: https://HOST[:PORT]
    #[arg(long, value_name = "URL")]
    to: Option<String>,

    /// Be a forward proxy instead
    #[arg(long, conflicts_with = "pipes")]
    proxy: bool,

    /// Let clients of the forward proxy reach HOST
    ///
    /// At PORT, or at 80 and 443, regardless of its address; repeatable. Without this flag, they reach all hosts with addresses of
    /// the public Internet, at 80 and 443.
    #[arg(long, value_name = "HOST[:PORT]", requires = "proxy")]
    allow: Vec<AllowedHost>,

    /// The address to listen on [default: 127.0.0.1:8080]
    ///
    /// localhost:PORT is 127.0.0.1 and ::1; :PORT, *:PORT and PORT alone are all addresses, of IPv4 and IPv6, and need
    /// --allow-remote. Port 0 selects a free one.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<Listen>,

    /// Listen on an address that other machines reach
    ///
    /// Everybody there can use the gateway, without encryption.
    #[arg(long)]
    allow_remote: bool,

    /// Answer requests for this NAME of the gateway too
    ///
    /// Besides localhost, addresses and the name of the origin; repeatable. With --allow-remote and without this flag, every
    /// name is answered.
    #[arg(long, value_name = "NAME", conflicts_with = "proxy")]
    host: Vec<HostName>,

    /// Trust only the certificates in FILE (PEM) and those that they have signed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["insecure", "proxy"])]
    cacert: Option<PathBuf>,

    /// Trust every certificate, for tests
    #[arg(long, conflicts_with = "proxy")]
    insecure: bool,

    #[command(flatten)]
    tls: TlsFlags,

    /// Open up to N connections to the origin, which take turns [default: 1, or 3 with --bundle]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), conflicts_with = "proxy", help_heading = RESEARCH, hide_short_help = true)]
    connections: Option<u16>,

    /// Ask the origin to coordinate the connections
    #[arg(long, conflicts_with = "proxy", help_heading = RESEARCH, hide_short_help = true)]
    bundle: bool,

    /// Open a socket for each connection: networks that balance flows by port may route each over another path
    #[arg(long, conflicts_with_all = ["proxy", "bundle"], help_heading = RESEARCH, hide_short_help = true)]
    own_sockets: bool,

    /// Use this network interface or address of this machine, and no others; repeatable; as for `get`
    #[arg(
        long,
        value_name = "IFACE|ADDR[,backup][,cap=SIZE]",
        conflicts_with = "proxy", help_heading = RESEARCH, hide_short_help = true)]
    path: Vec<PathRule>,

    #[command(flatten)]
    pipes: PipeFlags,

    #[command(flatten)]
    transport: TransportFlags,

    /// Serve metrics for Prometheus as http://ADDR:PORT/metrics
    ///
    /// A port alone, as :9100, is that of this host alone; write *:9100 for all addresses. Others are written as those of --listen.
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<MetricsListen>,

    #[command(flatten)]
    logs: ServerLogs,
}

pub(crate) async fn run(arguments: Arguments, given: GivenSockets) -> Result<(), Failure> {
    raise_open_file_limit();
    let error_log = arguments.logs.open_error_log()?;
    error_log.install();
    let served = serve(&arguments, given, &error_log).await;
    if let Err(failure) = &served {
        error_log.ended(failure);
    }
    MessageLog::finish(limits::LOG_FINISH);
    served
}

async fn serve(
    arguments: &Arguments,
    mut given: GivenSockets,
    error_log: &ErrorLog,
) -> Result<(), Failure> {
    let signals = Signals::listen()?;
    let origin = Origin::of_process(&mut given).await?;
    let metrics = arguments.metrics.map(MetricsListen::addresses);
    let is_free = |address: &SocketAddr| !metrics.is_some_and(|metrics| metrics.has(*address));
    let default = given.addresses().into_iter().find(is_free);
    let default = default.unwrap_or(LISTEN);
    let listen = arguments.listen.unwrap_or(default.into());
    check_address(arguments, listen)?;
    let manager = ServiceManager::of_environment()?;
    let Served { site, more_metrics } = served(arguments)?;
    let mut config = ServerConfig::cleartext(listen.first, site);
    config
        .also_listen
        .extend(listen.also.map(AlsoListen::IfPresent));
    config.more_metrics = more_metrics;
    config.metrics = metrics.map(|listen| listen.first);
    config
        .also_metrics
        .extend(metrics.and_then(|listen| listen.also));
    config.access_log = arguments.logs.open_access_log()?;
    let access_log = config.access_log.clone();
    let server = Server::bind_given(config, &mut given)
        .await
        .map_err(|error| Failure::Failed(error.to_string()))?;
    if !origin.takes_over() {
        refuse_unused(&given, server.local_addrs())?;
    }
    // Nothing would accept connections on the rest.
    drop(given);
    let upgrader = Upgrader {
        servers: vec![server.handle()],
        secret: origin.secret(),
        manager: manager.clone(),
        renewing: None,
        pid_file: None,
    };
    origin.take_over(&upgrader.servers).await?;
    for address in server.metrics_addrs() {
        error_log.announce(&format!("metrics on http://{address}/metrics"));
    }
    for address in server.local_addrs() {
        error_log.announce(&format!("listening on http://{address}"));
    }
    manager.started("http", &server);
    let reload = || {
        let message = "a gateway has no configuration file to read again";
        Err(Failure::Failed(message.to_owned()))
    };
    tokio::spawn(signals.follow(server.handle(), manager, upgrader, reload, || ()));
    let served = server.run().await;
    if let Some(log) = access_log {
        log.finish(limits::LOG_FINISH);
    }
    served.map_err(|error| Failure::Failed(error.to_string()))
}

/// Refuses addresses that other machines reach, unless they are wanted.
fn check_address(arguments: &Arguments, listen: Listen) -> Result<(), Failure> {
    if listen.is_loopback() {
        return Ok(());
    }
    if !arguments.allow_remote {
        return Err(Failure::Usage(format!(
            "{listen} is reached from other machines, without encryption; listen on 127.0.0.1, or add --allow-remote"
        )));
    }
    let text = format!("anyone who reaches {listen} can use this gateway, without encryption");
    emit(Level::Warning, Subject::Server, &text);
    Ok(())
}

/// The site that programs reach.
struct Served {
    site: Site,
    /// Its own metrics, if any.
    more_metrics: Vec<Arc<dyn MetricsSource>>,
}

fn served(arguments: &Arguments) -> Result<Served, Failure> {
    let Some(origin) = &arguments.to else {
        if arguments.transport.any_is_given() {
            let message =
                "a forward proxy uses TCP, to which --profile and other flags of QUIC do not apply";
            return Err(Failure::Usage(message.to_owned()));
        }
        if arguments.tls.are_given() {
            let message =
                "a forward proxy passes TLS on as it is; leave --tls-max and --tlsv1.3 out";
            return Err(Failure::Usage(message.to_owned()));
        }
        let config = ForwardConfig {
            allowed: arguments.allow.clone(),
            ..ForwardConfig::default()
        };
        return Ok(Served {
            site: forward_proxy(config),
            more_metrics: Vec::new(),
        });
    };
    let failed = |error: marline_http::client::ClientError| Failure::Failed(error.to_string());
    let client = Arc::new(Client::new(client_config(arguments)?).map_err(failed)?);
    let default = if arguments.bundle { BUNDLE } else { 1 };
    let config = GatewayConfig {
        hosts: match arguments.allow_remote && arguments.host.is_empty() {
            true => Hosts::Any,
            false => Hosts::Named(arguments.host.clone()),
        },
        connections: arguments.connections.unwrap_or(default).into(),
        ..GatewayConfig::to(origin.clone())
    };
    let site = gateway(Arc::clone(&client), &config);
    let has_pipes = arguments.pipes.are_given();
    Ok(Served {
        site: site.map_err(|error| Failure::Usage(error.to_string()))?,
        more_metrics: has_pipes
            .then(|| Arc::new(PipeMetrics::of(client)) as _)
            .into_iter()
            .collect(),
    })
}

fn client_config(arguments: &Arguments) -> Result<ClientConfig, Failure> {
    let needs_quic = arguments.bundle
        || arguments.own_sockets
        || arguments.pipes.are_given()
        || !arguments.path.is_empty()
        || arguments.transport.any_is_given();
    if needs_quic && !arguments.tls.allow_quic() {
        let message = "--tls-max 1.2 excludes HTTP/3, whose QUIC has TLS 1.3; leave it out";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut config = ClientConfig {
        version: match arguments.tls.allow_quic() {
            true => HttpVersion::Http3,
            false => HttpVersion::Http2,
        },
        trust: match (&arguments.cacert, arguments.insecure) {
            (Some(file), _) => Trust::File(file.clone()),
            (None, true) => Trust::Insecure,
            (None, false) => Trust::System,
        },
        tls: arguments.tls.versions()?,
        fallback: !arguments.transport.any_is_given(),
        or_http11: true,
        bundle: arguments.bundle,
        own_sockets: arguments.own_sockets,
        pipes: arguments.pipes.config()?,
        qlog: arguments.transport.qlog_directory()?,
        ..ClientConfig::default()
    };
    let mut transport = arguments.transport.config()?;
    if !arguments.path.is_empty() {
        let paths = arguments.path.len() as u32;
        let multipath = transport.multipath.get_or_insert_default();
        // One ID for each path, and one for a replacement.
        multipath.max_paths = multipath.max_paths.max(paths + 1);
        config.paths = Some(PathPolicy {
            rules: arguments.path.clone(),
            ..PathPolicy::default()
        });
    }
    config.quic.transport = transport.into();
    Ok(config)
}
