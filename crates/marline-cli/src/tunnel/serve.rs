//! `marline tunnel serve`.

use std::convert::Infallible;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use marline::TokioRuntime;
use marline_http::limits;
use marline_http::log::{Level, LogOutput, MessageLog, Subject, emit};
use marline_http::server::{
    AlsoListen, ClientCertificates, Handle, Identity, Protocols, Server, ServerConfig,
    StateDirectory, raise_open_file_limit,
};
use marline_tunnel::server::{self as tunnel, Tunnels};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::PORT;
use crate::config_file::FlagsFile;
use crate::failure::{Failure, print_message};
use crate::listen::{Listen, MetricsListen};
use crate::server::state;
use crate::server::{OpenTunnels, TunnelFlags};
use crate::transport::TransportFlags;
use crate::workers::Workers;

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
    #[command(flatten)]
    tunnels: TunnelFlags,

    /// Accept users with a certificate of these authorities (PEM) as well
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,

    /// The current lists of revoked certificates of all these authorities, in PEM
    #[arg(long, value_name = "FILE")]
    client_crl: Option<PathBuf>,

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

    /// Serve metrics for Prometheus as http://ADDR:PORT/metrics
    ///
    /// A port alone, as :9100, is that of this host alone; write *:9100 for all addresses. Others are written as those of --listen.
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<MetricsListen>,

    #[command(flatten)]
    transport: TransportFlags,
}

impl Arguments {
    /// These, with what they leave open from the file that they name.
    fn complete(mut self) -> Result<Self, Failure> {
        let Some(path) = &self.config else {
            return Ok(self);
        };
        let file = FlagsFile::read::<Self>(path)?;
        self.read(&file)?;
        Ok(self)
    }

    fn read(&mut self, file: &FlagsFile) -> Result<(), Failure> {
        self.tunnels.read(file)?;
        file.file("client_ca", &mut self.client_ca)?;
        file.file("client_crl", &mut self.client_crl)?;
        file.one("listen", &mut self.listen, str::parse)?;
        self.read_identity(file)?;
        file.file("state", &mut self.state)?;
        file.one("metrics", &mut self.metrics, str::parse)
    }

    /// Reads the authorities of users with a certificate. Clients need not present one.
    fn client_certificates(&self) -> Result<Option<ClientCertificates>, Failure> {
        if self.client_crl.is_some() && self.client_ca.is_none() {
            let message = "client_crl needs client_ca, the authorities of the certificates";
            return Err(Failure::Usage(message.to_owned()));
        }
        let revoked = self.client_crl.as_deref();
        let ca = self.client_ca.as_deref();
        let read = ca.map(|ca| ClientCertificates::from_pem_files(ca, revoked, false));
        let read = read.transpose();
        read.map_err(|error| Failure::Failed(error.to_string()))
    }

    /// Reads the certificate. Flags about it replace those of the file as a whole.
    fn read_identity(&mut self, file: &FlagsFile) -> Result<(), Failure> {
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
    let certificates = arguments.client_certificates()?;
    let accepted = certificates.iter().cloned().collect();
    let mut open = OpenTunnels::open(&arguments.tunnels, accepted)?;
    let tunnels = Arc::clone(open.tunnels());
    let server = Server::bind(config(&arguments, certificates.as_ref(), &tunnels)?);
    let server = server.await.map_err(|error| failed(&error))?;
    // The port is ours: now packets may pass.
    open.begin()?;
    for address in server.metrics_addrs() {
        print_message(&format!("metrics on http://{address}/metrics"));
    }
    for address in server.local_addrs() {
        print_message(&format!("listening on https://{address}"));
    }
    tokio::spawn(stop(server.handle(), signals));
    let running = Running {
        arguments,
        tunnels,
        handle: server.handle(),
    };
    tokio::spawn(follow_users(Arc::new(running), hang_up));
    let served = tokio::select! {
        gone = open.run() => Err(gone),
        served = server.run() => served.map_err(|error| failed(&error)),
    };
    drop(open);
    MessageLog::finish(limits::LOG_FINISH);
    served
}

/// A server whose users can be read again.
struct Running {
    arguments: Arguments,
    tunnels: Arc<Tunnels>,
    handle: Handle,
}

impl Running {
    /// Reads the users again, and the authorities of their certificates. Returns how many have a token.
    fn read_users(&self) -> Result<usize, Failure> {
        let certificates = self.arguments.client_certificates()?;
        let accepted = certificates.iter().cloned().collect();
        let tokens = self.arguments.tunnels.users(accepted)?;
        if certificates.is_some() {
            // Handshakes ask for other certificates now.
            let config = config(&self.arguments, certificates.as_ref(), &self.tunnels)?;
            let replaced = self.handle.reload(config);
            replaced.map_err(|error| Failure::Failed(error.to_string()))?;
        }
        let users = tokens.len();
        self.tunnels.replace_tokens(tokens);
        Ok(users)
    }
}

/// Reads the users again at each signal.
async fn follow_users(running: Arc<Running>, mut hang_up: Signal) {
    while hang_up.recv().await.is_some() {
        let running = Arc::clone(&running);
        // A disk may not answer.
        let read = tokio::task::spawn_blocking(move || running.read_users()).await;
        let (level, text) = match read {
            Ok(Ok(users)) => (
                Level::Information,
                format!("read the tokens again: users: {users}"),
            ),
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

fn config(
    arguments: &Arguments,
    certificates: Option<&ClientCertificates>,
    tunnels: &Arc<Tunnels>,
) -> Result<ServerConfig, Failure> {
    let listen = arguments.listen.unwrap_or(Listen::everywhere(PORT));
    let state = state::open(arguments.state.as_deref())?;
    let identity = identity(arguments, listen.first.ip(), state.as_deref())?;
    let mut config = ServerConfig::new(listen.first, identity, tunnels.site());
    config.client_rules.add(&[], certificates);
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
        tunnels: false,
        http3_tunnels: true,
    };
    let metrics = arguments.metrics.map(MetricsListen::addresses);
    config.metrics = metrics.map(|listen| listen.first);
    config
        .also_metrics
        .extend(metrics.and_then(|listen| listen.also));
    config.more_metrics = vec![Arc::clone(tunnels) as _];
    let workers = Workers::default().count(config.endpoint.as_ref());
    config.workers = workers.map_err(Failure::Usage)?;
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
    use crate::config_file::flags_testing::{ignored, refused};

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
            "client_crl" => "\"r.pem\"\nclient_ca = \"a.pem\"",
            _ => "\"example\"",
        };
        let complete = |file: &FlagsFile| {
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
        let Err(Failure::Usage(message)) =
            OpenTunnels::open(&arguments().tunnels, Vec::new()).map(drop)
        else {
            panic!("the users are missing");
        };
        assert!(message.contains("--tokens"), "{message}");
    }
}
