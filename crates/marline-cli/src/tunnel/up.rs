//! `marline tunnel up`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use marline::{PathPolicy, PathRule};
use marline_http::client::{ClientConfig, Trust};
use marline_http::read_regular_file;
use marline_http::server::raise_open_file_limit;
use marline_tunnel::client::{OpenError, Report, UpConfig, UpError, up};
use marline_tunnel::counters::{Counters, Dropped};
use marline_tunnel::ipnet::IpNet;
use tokio::signal::unix::{SignalKind, signal};

use super::{CLIENT_DEVICE, PORT, Tcp, device_name};
use crate::failure::{Failure, advice, print_message};
use crate::transport::TransportFlags;

/// Bytes of a file with a token.
const MAX_TOKEN_FILE: u64 = 4096;

/// The variable of the environment with a token.
const TOKEN: &str = "MARLINE_TUNNEL_TOKEN";

/// Send the packets of this machine through a tunnel
///
/// All packets go through it, but those to the server and to networks that have routes of their own. While the connection is
/// lost, packets are dropped.
///
/// Prints `the tunnel is up` when packets pass. SIGTERM or Ctrl-C ends it and puts the routes back; after a crash, the next `up` or
/// `down` does.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    marline tunnel up server.example.org --token-file anna.token\n  \
    marline tunnel up server.example.org --token-file anna.token --path wlan0 --path wwan0,backup\n  \
    marline tunnel up 192.0.2.1 --token-file anna.token --cacert server.pem --split 10.0.0.0/8")]
pub(crate) struct Arguments {
    /// The server [port: 4433]
    #[arg(value_name = "HOST[:PORT]", value_parser = server)]
    host: String,

    /// The file of the token [default: the token in $MARLINE_TUNNEL_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Send only packets to these addresses through the tunnel; repeatable
    #[arg(long, value_name = "ADDR/LENGTH", value_parser = network)]
    split: Vec<IpNet>,

    /// Carry TCP as streams or packets [default: streams, where the server has --nat or this flag]
    #[arg(long, value_name = "HOW")]
    tcp: Option<Tcp>,

    /// Use this network interface or address of this machine, and no others; repeatable; as for `get`
    #[arg(long, value_name = "IFACE|ADDR[,backup][,cap=SIZE]")]
    path: Vec<PathRule>,

    /// Trust only the certificates in FILE (PEM) and those that they have signed
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,

    /// Trust every certificate, for tests
    #[arg(long)]
    insecure: bool,

    /// The name of the network device
    ///
    /// By default marline0, of a server marline-tunnel.
    #[arg(long, value_name = "NAME", value_parser = device_name)]
    device: Option<String>,

    #[command(flatten)]
    transport: TransportFlags,
}

/// Parses a server, which may be a URL without a path.
fn server(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").unwrap_or(text);
    let host = host.strip_suffix('/').unwrap_or(host);
    match host.is_empty() || host.contains(['/', '?', '#', '@']) {
        true => Err("write HOST or HOST:PORT, as server.example.org:4433; a tunnel has no path and no other scheme".to_owned()),
        false => Ok(host.to_owned()),
    }
}

/// Parses an address or a prefix.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    let network: marline_http::Network = text
        .parse()
        .map_err(|error: marline_http::InvalidNetwork| error.to_string())?;
    network
        .to_string()
        .parse()
        .map_err(|_| "not a network".to_owned())
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    // Each connection that is split has a socket.
    raise_open_file_limit();
    let config = config(&arguments)?;
    let counters = Arc::<Counters>::default();
    let listening = |kind| {
        signal(kind).map_err(|error| Failure::Failed(format!("cannot receive signals: {error}")))
    };
    // The terminal may be closed.
    let (mut terminate, mut hang_up) = (
        listening(SignalKind::terminate())?,
        listening(SignalKind::hangup())?,
    );
    let ended = tokio::select! {
        ended = up(config, Arc::clone(&counters), report) => ended,
        _ = tokio::signal::ctrl_c() => return finish(&counters),
        _ = terminate.recv() => return finish(&counters),
        _ = hang_up.recv() => return finish(&counters),
    };
    match ended {
        Ok(never) => match never {},
        Err(error) => Err(failure(&error)),
    }
}

fn config(arguments: &Arguments) -> Result<UpConfig, Failure> {
    let mut http = ClientConfig {
        trust: match (&arguments.cacert, arguments.insecure) {
            (Some(file), _) => Trust::File(file.clone()),
            (None, true) => Trust::Insecure,
            (None, false) => Trust::System,
        },
        qlog: arguments.transport.qlog_directory()?,
        // Without rules, the device of the tunnel would be one of the interfaces that are tried.
        migrate: !arguments.path.is_empty(),
        fallback: false,
        ..ClientConfig::default()
    };
    let mut transport = arguments.transport.config()?;
    if !arguments.path.is_empty() {
        let paths = arguments.path.len() as u32;
        let multipath = transport.multipath.get_or_insert_default();
        // One ID for each path, and one for a replacement.
        multipath.max_paths = multipath.max_paths.max(paths + 1);
        http.paths = Some(PathPolicy {
            rules: arguments.path.clone(),
            ..PathPolicy::default()
        });
    }
    http.quic.transport = transport.into();
    Ok(UpConfig {
        host: arguments.host.clone(),
        default_port: PORT,
        token: token(arguments)?,
        device: arguments.device.clone().unwrap_or(CLIENT_DEVICE.to_owned()),
        split: arguments.split.clone(),
        split_tcp: !matches!(arguments.tcp, Some(Tcp::Packets)),
        http,
    })
}

/// The token of the user. It is no argument, because other users of the machine see those.
fn token(arguments: &Arguments) -> Result<String, Failure> {
    let Some(file) = &arguments.token_file else {
        return std::env::var(TOKEN).map_err(|_| {
            Failure::Usage(format!(
                "a token is missing; give the file that `marline tunnel token` wrote with --token-file, or the token in ${TOKEN}"
            ))
        });
    };
    let text = read_regular_file(file, MAX_TOKEN_FILE)
        .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other));
    match text {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) => {
            let file = file.display();
            Err(Failure::Failed(format!(
                "cannot read the token in {file}: {error}"
            )))
        }
    }
}

fn list(nets: &[IpNet]) -> String {
    let texts: Vec<_> = nets.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

fn report(report: &Report<'_>) {
    match report {
        Report::Up {
            addresses,
            destinations,
            mtu,
            splits_tcp,
        } => print_message(&format!(
            "the tunnel is up: {} go through it, from {}, packets of at most {mtu} bytes{}",
            list(destinations),
            list(addresses),
            if *splits_tcp { ", TCP as streams" } else { "" }
        )),
        Report::NotSplit(why) => print_message(&format!("TCP is carried as packets: {why}")),
        Report::Mtu(mtu) => print_message(&format!("packets of at most {mtu} bytes pass now")),
        Report::Lost(why) => print_message(&format!("the tunnel is interrupted: {why}")),
        Report::Failed { error, pause } => print_message(&format!(
            "{error}; the next attempt is in {} s, and packets are dropped until `marline tunnel down`",
            pause.as_secs()
        )),
    }
}

fn finish(counters: &Counters) -> Result<(), Failure> {
    let (sent, received) = (counters.sent(), counters.received());
    let dropped = Dropped::ALL.map(|why| (why, counters.dropped(why)));
    let dropped = dropped.iter().filter(|(_, packets)| *packets > 0);
    let dropped: Vec<_> = dropped
        .map(|(why, packets)| format!("{packets} {}", why.name()))
        .collect();
    let dropped = match dropped.is_empty() {
        true => String::new(),
        false => format!("; dropped: {}", dropped.join(", ")),
    };
    let split = counters.split();
    let streams = match split.sent + split.received {
        0 => String::new(),
        _ => format!(
            "; TCP as streams: {} bytes sent, {} bytes received",
            split.sent, split.received
        ),
    };
    print_message(&format!(
        "the tunnel is down: {} packets ({} bytes) sent, {} packets ({} bytes) received{dropped}{streams}",
        sent.packets, sent.bytes, received.packets, received.bytes
    ));
    Ok(())
}

fn failure(error: &UpError) -> Failure {
    let advice = match error {
        UpError::Client(error) | UpError::Open(OpenError::Client(error)) => Some(advice(error)),
        UpError::Open(OpenError::Unauthorized) => {
            Some("ask its operator for a token, made with `marline tunnel token`".into())
        }
        UpError::Open(OpenError::NoTunnel { .. }) => {
            Some("check host and port; `marline tunnel serve` is the server".into())
        }
        _ => None,
    };
    Failure::Failed(match advice {
        Some(advice) => format!("{error}; {advice}"),
        None => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_be_a_url_without_a_path() {
        for (text, host) in [
            ("example.org", "example.org"),
            ("https://example.org/", "example.org"),
            ("https://example.org:443", "example.org:443"),
            ("[2001:db8::1]:443", "[2001:db8::1]:443"),
        ] {
            assert_eq!(server(text).unwrap(), host);
        }
        for text in ["", "https://", "http://example.org", "example.org/x", "a@b"] {
            let error = server(text).unwrap_err();
            assert!(error.contains("HOST:PORT"), "{error}");
        }
    }
}
