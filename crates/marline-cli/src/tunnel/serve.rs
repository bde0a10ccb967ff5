//! `marline tunnel serve`.

use std::convert::Infallible;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use marline::TokioRuntime;
use marline_http::limits;
use marline_http::log::{Level, LogOutput, MessageLog, Subject, emit};
use marline_http::server::{
    AlsoListen, Handle, Identity, Protocols, Server, ServerConfig, StateDirectory,
    raise_open_file_limit,
};
use marline_tunnel::dns::MAX_RESOLVERS;
use marline_tunnel::gateway::{Gateway, GatewayConfig};
use marline_tunnel::ipnet::IpNet;
use marline_tunnel::packet::MIN_MTU;
use marline_tunnel::pool::Pool;
use marline_tunnel::server::{self as tunnel, Tunnels};
use marline_tunnel::tokens::Tokens;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::keys::{TunnelFile, choice};
use super::{PORT, Tcp, device_name};
use crate::failure::{Failure, print_message};
use crate::listen::{Listen, MetricsListen};
use crate::server::state;
use crate::transport::TransportFlags;

/// The network device of a server.
const DEVICE: &str = "marline-tunnel";

/// The prefixes of addresses without --pool: of 10.0.0.0/8 one that few networks have, and a unique local one of IPv6.
const POOL: [&str; 2] = ["10.77.0.0/24", "fd77:6d61:726c::/64"];

/// Tunnels of a user without --per-user.
const PER_USER: u16 = 8;

/// The largest packet without --mtu: what most paths carry in a datagram.
const MTU: u16 = 1400;

/// Serve tunnels: pass packets of clients on to other networks
///
/// Users with a token reach what this machine reaches, its own services included, unless --allow restricts that.
/// Without --nat, the networks behind have to route the pool to this machine.
///
/// Prints `listening on https://ADDR:PORT` when ready. SIGHUP reads the tokens again, and ends the tunnels of those that are gone.
/// SIGTERM or Ctrl-C stops it.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    marline tunnel serve --tokens tokens --nat\n  \
    marline tunnel serve --tokens tokens --cert chain.pem --key key.pem --pool 192.0.2.0/26 --pool 2001:db8:77::/64\n  \
    marline tunnel serve --tokens tokens --allow 10.0.0.0/8")]
pub(crate) struct Arguments {
    /// The file of users, to which `tunnel token` appends
    #[arg(long, value_name = "FILE", required_unless_present = "config")]
    tokens: Option<PathBuf>,

    /// Read settings from FILE (TOML), which flags override
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The address to listen on, UDP [default: :4433, all addresses]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<Listen>,

    /// The certificate chain in PEM [default: a self-signed certificate]
    ///
    /// The self-signed certificate is kept in the state directory, and how to trust it is printed.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// The certificate's private key in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// The name or address of this machine in its self-signed certificate; repeatable
    #[arg(long, value_name = "NAME", conflicts_with = "cert")]
    name: Vec<String>,

    /// Keep keys, sessions and the self-signed certificate in DIR
    ///
    /// It is created if it does not exist. With it, clients of a restarted server are reset at once and resume their sessions.
    /// Without this flag it is $STATE_DIRECTORY, $XDG_STATE_HOME/marline or ~/.local/state/marline.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    /// The prefix of clients' addresses, one of IPv4, one of IPv6, or both [default: 10.77.0.0/24 and fd77:6d61:726c::/64]
    #[arg(long, value_name = "ADDR/LENGTH", value_parser = network)]
    pool: Vec<IpNet>,

    /// Give packets of clients the address of this machine, with nftables
    #[arg(long)]
    nat: bool,

    /// Carry TCP as streams or packets [default: streams, where the server has --nat or this flag]
    #[arg(long, value_name = "HOW")]
    tcp: Option<Tcp>,

    /// Give clients sockets of UDP (CONNECT-UDP), which have the address of this machine, as --nat does
    #[arg(long)]
    udp: bool,

    /// Announce the address of a resolver to clients; repeatable, at most three
    #[arg(long, value_name = "ADDR")]
    dns: Vec<IpAddr>,

    /// Let clients reach these addresses only; repeatable [default: all]
    #[arg(long, value_name = "ADDR/LENGTH", value_parser = network)]
    allow: Vec<IpNet>,

    /// Tunnels of one user at a time [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    per_user: Option<u16>,

    /// The largest packet to clients, in bytes [default: 1400]
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u16>,

    /// The name of the network device
    ///
    /// By default marline0, of a server marline-tunnel.
    #[arg(long, value_name = "NAME", value_parser = device_name)]
    device: Option<String>,

    /// Serve metrics for Prometheus as http://ADDR:PORT/metrics
    ///
    /// A port alone, as :9100, is that of this host alone; write *:9100 for all addresses. Others are written as those of --listen.
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<MetricsListen>,

    #[command(flatten)]
    transport: TransportFlags,
}

/// Parses an address or a prefix.
fn network(text: &str) -> Result<IpNet, String> {
    let network: marline_http::Network = text
        .parse()
        .map_err(|error: marline_http::InvalidNetwork| error.to_string())?;
    network
        .to_string()
        .parse()
        .map_err(|_| "not a network".to_owned())
}

impl Arguments {
    /// These, with what they leave open from the file that they name.
    fn complete(mut self) -> Result<Self, Failure> {
        let Some(path) = &self.config else {
            return Ok(self);
        };
        let file = TunnelFile::read::<Self>(path)?;
        self.read(&file)?;
        Ok(self)
    }

    fn read(&mut self, file: &TunnelFile) -> Result<(), Failure> {
        file.file("tokens", &mut self.tokens)?;
        file.one("listen", &mut self.listen, str::parse)?;
        self.read_identity(file)?;
        file.file("state", &mut self.state)?;
        file.several("pool", &mut self.pool, network)?;
        file.switch("nat", &mut self.nat)?;
        file.one("tcp", &mut self.tcp, choice)?;
        file.switch("udp", &mut self.udp)?;
        file.several("dns", &mut self.dns, str::parse)?;
        file.several("allow", &mut self.allow, network)?;
        file.number("per_user", &mut self.per_user, 1)?;
        file.number("mtu", &mut self.mtu, MIN_MTU)?;
        file.one("device", &mut self.device, device_name)?;
        file.one("metrics", &mut self.metrics, str::parse)
    }

    /// Reads the certificate. Flags about it replace those of the file as a whole.
    fn read_identity(&mut self, file: &TunnelFile) -> Result<(), Failure> {
        if self.cert.is_some() || !self.name.is_empty() {
            return Ok(());
        }
        file.file("cert", &mut self.cert)?;
        file.file("key", &mut self.key)?;
        file.several("name", &mut self.name, |name| {
            Ok::<_, Infallible>(name.to_owned())
        })?;
        let problem = match (&self.cert, &self.key, self.name.is_empty()) {
            (Some(_), None, _) => "cert needs key, the private key of the certificate",
            (None, Some(_), _) => "key needs cert, the certificate of the private key",
            (Some(_), Some(_), false) => {
                "name is for a self-signed certificate; leave it out, or cert and key"
            }
            _ => return Ok(()),
        };
        Err(Failure::Usage(problem.to_owned()))
    }

    /// The file of users.
    fn tokens(&self) -> Result<&Path, Failure> {
        let missing = || {
            Failure::Usage(
                "the file of users is missing; name it with tokens, or --tokens".to_owned(),
            )
        };
        self.tokens.as_deref().ok_or_else(missing)
    }
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let arguments = arguments.complete()?;
    raise_open_file_limit();
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(error.to_string());
    let listening = |kind| {
        signal(kind).map_err(|error| Failure::Failed(format!("cannot receive signals: {error}")))
    };
    let signals = [
        listening(SignalKind::terminate())?,
        listening(SignalKind::interrupt())?,
    ];
    let hang_up = listening(SignalKind::hangup())?;
    let runtime = TokioRuntime::current()
        .map_err(|error| Failure::Failed(format!("cannot start: {error}")))?;
    let log = MessageLog::open(
        &LogOutput::Stderr,
        Level::default(),
        None,
        Arc::new(runtime),
    );
    log.map_err(|error| failed(&error))?.install();
    let file = arguments.tokens()?.to_owned();
    let tokens = Tokens::read_some(&file).map_err(|error| failed(&error))?;
    let pool = pool(&arguments)?;
    if arguments.dns.len() > MAX_RESOLVERS {
        return Err(Failure::Usage(format!(
            "--dns: give at most {MAX_RESOLVERS} addresses, which is what hosts use"
        )));
    }
    let gateway = GatewayConfig {
        device: arguments.device.clone().unwrap_or(DEVICE.to_owned()),
        mtu: arguments.mtu.unwrap_or(MTU),
        nat: arguments.nat,
    };
    let mut gateway = Gateway::open(gateway, &pool).map_err(|error| failed(&error))?;
    let tunnels = Tunnels::new(
        tunnel::ServerConfig {
            tokens,
            pool,
            destinations: destinations(&arguments),
            split_tcp: match arguments.tcp {
                Some(tcp) => matches!(tcp, Tcp::Streams),
                // Otherwise the networks behind see the addresses of clients.
                None => arguments.nat,
            },
            resolvers: arguments.dns.clone(),
            proxy_udp: arguments.udp || arguments.nat,
        },
        gateway.device(),
    );
    let server = Server::bind(config(&arguments, &tunnels)?);
    let server = server.await.map_err(|error| failed(&error))?;
    // The port is ours: now packets may pass.
    gateway.set_up().map_err(|error| failed(&error))?;
    for address in server.metrics_addrs() {
        print_message(&format!("metrics on http://{address}/metrics"));
    }
    for address in server.local_addrs() {
        print_message(&format!("listening on https://{address}"));
    }
    tokio::spawn(stop(server.handle(), signals));
    tokio::spawn(follow_tokens(file, Arc::clone(&tunnels), hang_up));
    let served = tokio::select! {
        gone = tunnels.run() => match gone {
            Ok(never) => match never {},
            Err(error) => Err(Failure::Failed(format!("the network device is gone: {error}"))),
        },
        served = server.run() => served.map_err(|error| failed(&error)),
    };
    drop(gateway);
    MessageLog::finish(limits::LOG_FINISH);
    served
}

/// Reads the tokens again at each signal.
async fn follow_tokens(path: PathBuf, tunnels: Arc<Tunnels>, mut hang_up: Signal) {
    while hang_up.recv().await.is_some() {
        let path = path.clone();
        // A disk may not answer.
        let read = tokio::task::spawn_blocking(move || Tokens::read(&path)).await;
        let (level, text) = match read {
            Ok(Ok(tokens)) => {
                let users = tokens.len();
                tunnels.replace_tokens(tokens);
                (
                    Level::Information,
                    format!("read the tokens again: users: {users}"),
                )
            }
            Ok(Err(error)) => (
                Level::Error,
                format!("{error}; the tokens stay as they were"),
            ),
            // The panic itself has been printed.
            Err(_) => (Level::Error, "reading the tokens again failed".to_owned()),
        };
        emit(level, Subject::Configuration, &text);
    }
}

/// Stops the server at the first signal, without waiting for tunnels, which do not end by themselves.
async fn stop(handle: Handle, [mut terminate, mut interrupt]: [Signal; 2]) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    handle.shut_down();
    handle.hurry();
}

fn pool(arguments: &Arguments) -> Result<Arc<Pool>, Failure> {
    let given = &arguments.pool;
    let default = POOL.iter().filter_map(|text| text.parse().ok());
    let prefixes: Vec<IpNet> = match given.is_empty() {
        true => default.collect(),
        false => given.clone(),
    };
    Pool::new(&prefixes, arguments.per_user.unwrap_or(PER_USER).into())
        .map_err(|error| Failure::Usage(format!("--pool: {error}")))
}

fn destinations(arguments: &Arguments) -> Vec<IpNet> {
    match arguments.allow.is_empty() {
        true => [IpNet::V4(Default::default()), IpNet::V6(Default::default())].into(),
        false => arguments.allow.clone(),
    }
}

fn config(arguments: &Arguments, tunnels: &Arc<Tunnels>) -> Result<ServerConfig, Failure> {
    let listen = arguments.listen.unwrap_or(Listen::everywhere(PORT));
    let state = state::open(arguments.state.as_deref())?;
    let identity = identity(arguments, listen.first.ip(), state.as_deref())?;
    let mut config = ServerConfig::new(listen.first, identity, tunnels.site());
    // Its keys let clients of a restarted server know at once.
    config.state = state;
    config
        .also_listen
        .extend(listen.also.map(AlsoListen::IfPresent));
    config.protocols = Protocols {
        http1: false,
        http2: false,
        http3: true,
        cleartext: false,
        tunnels: true,
    };
    let metrics = arguments.metrics.map(MetricsListen::addresses);
    config.metrics = metrics.map(|listen| listen.first);
    config
        .also_metrics
        .extend(metrics.and_then(|listen| listen.also));
    config.more_metrics = vec![Arc::clone(tunnels) as _];
    config.qlog = arguments.transport.qlog_directory()?;
    let mut transport = arguments.transport.config()?;
    // Whether there are several paths is the choice of clients.
    transport.multipath.get_or_insert_default();
    tunnel::set_transport(&mut transport);
    config.quic.transport = transport.into();
    Ok(config)
}

/// The certificate that was given, or the self-signed one of the state directory.
fn identity(
    arguments: &Arguments,
    address: IpAddr,
    state: Option<&StateDirectory>,
) -> Result<Identity, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(error.to_string());
    if let (Some(cert), Some(key)) = (&arguments.cert, &arguments.key) {
        return Identity::from_pem_files(cert, key).map_err(|error| failed(&error));
    }
    let mut names = vec!["localhost".to_owned()];
    if !address.is_unspecified() {
        names.push(address.to_string());
    }
    names.extend(arguments.name.iter().cloned());
    let Some(state) = state else {
        return Identity::self_signed(names).map_err(|error| failed(&error));
    };
    let identity = state.self_signed(&names).map_err(|error| failed(&error))?;
    let path = state.certificate_path();
    print_message(&format!(
        "self-signed certificate for {}; clients need a copy of {}: marline tunnel up --cacert FILE",
        names.join(", "),
        path.display()
    ));
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::tunnel::keys::testing::{ignored, refused};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments() -> Arguments {
        let words = ["serve", "--config", "t.toml"];
        Line::try_parse_from(words).unwrap().arguments
    }

    #[test]
    fn every_flag_is_a_key_of_the_file() {
        let value = |key: &str| match key {
            "listen" | "metrics" => "\"127.0.0.1:4434\"",
            "pool" | "allow" => "\"10.0.0.0/8\"",
            "dns" => "[\"192.0.2.53\"]",
            "tcp" => "\"packets\"",
            "nat" | "udp" => "true",
            "per_user" | "mtu" => "1300",
            // They belong together.
            "cert" => "\"c.pem\"\nkey = \"k.pem\"",
            "key" => "\"k.pem\"\ncert = \"c.pem\"",
            _ => "\"example\"",
        };
        let complete = |file: &TunnelFile| {
            let mut arguments = arguments();
            arguments.read(file).unwrap();
            format!("{arguments:?}")
        };
        assert_eq!(ignored::<Arguments>(value, complete), [""; 0]);
    }

    #[test]
    fn errors_of_the_file_name_line_and_key() {
        for (text, expected) in [
            (
                "per_user = 0",
                "t.toml:1: per_user: this must be a number from 1 to 65535, not 0",
            ),
            (
                "\nmtu = 500",
                "t.toml:2: mtu: this must be a number from 1280 to 65535, not 500",
            ),
            ("mtu = \"1400\"", "t.toml:1: mtu: "),
            ("nat = \"yes\"", "t.toml:1: nat: this must be true or false"),
            ("tcp = \"stream\"", "did you mean streams?"),
            (
                "\npool = [\"10.0.0.0/8\", \"x\"]",
                "t.toml:2: pool: \"x\": ",
            ),
            ("listen = \"x\"", "t.toml:1: listen: \"x\": "),
            (
                "tokns = \"t\"",
                "t.toml:1: unknown key \"tokns\"; did you mean tokens?",
            ),
            ("path = \"wlan0\"", "t.toml:1: unknown key \"path\""),
            ("cert = \"c.pem\"", "cert needs key"),
            ("cert = \"c\"\nkey = \"k\"\nname = \"n\"", "leave it out"),
        ] {
            let message = refused::<Arguments>(text, |file| arguments().read(file));
            assert!(message.contains(expected), "{text}: {message}");
        }
        let Err(Failure::Usage(message)) = arguments().tokens().map(drop) else {
            panic!("the users are missing");
        };
        assert!(message.contains("--tokens"), "{message}");
    }
}
