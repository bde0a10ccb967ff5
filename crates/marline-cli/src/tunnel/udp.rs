//! `marline tunnel udp`.

use std::net::{Ipv4Addr, SocketAddr};

use clap::Args;
use marline_tunnel::client::OpenError;
use marline_tunnel::udp::client::{Forward, ForwardConfig, ForwardError};
use marline_tunnel::udp::target::Target;
use tokio::net::UdpSocket;
use tokio::signal::unix::{SignalKind, signal};

use super::PORT;
use super::peer::{Peer, advised, connection_advice, refusal_advice};
use crate::failure::{Failure, print_message};
use crate::transport::TransportFlags;

/// Pass datagrams of UDP on to one destination behind a server of tunnels
///
/// A socket of this machine takes datagrams of programs, and a socket of the server sends them to the destination (CONNECT-UDP,
/// RFC 9298). It needs no root, and changes no routes. Other servers that have CONNECT-UDP at /.well-known/masque/udp/ work too.
///
/// Prints `passing on` when ready. SIGTERM or Ctrl-C ends it.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  \
    marline tunnel udp server.example.org --token-file anna.token --listen 127.0.0.1:5353 --to 192.0.2.53:53")]
pub(crate) struct Arguments {
    #[command(flatten)]
    peer: Peer,

    /// The address that programs send to; :PORT is 127.0.0.1:PORT
    #[arg(long, value_name = "ADDR:PORT", value_parser = local)]
    listen: SocketAddr,

    /// The destination of the datagrams; the server resolves its name
    #[arg(long, value_name = "HOST:PORT")]
    to: Target,

    #[command(flatten)]
    transport: TransportFlags,
}

/// Parses an address with a port, or `:PORT`.
fn local(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').and_then(|port| port.parse().ok());
    let of_port = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    port.map(of_port)
        .map_or_else(|| text.parse(), Ok)
        .map_err(|_| {
            "write an address with a port, as 127.0.0.1:5353 or [::1]:5353, or :PORT".to_owned()
        })
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let config = ForwardConfig {
        host: arguments.peer.host()?,
        default_port: PORT,
        token: arguments.peer.token()?,
        target: arguments.to.clone(),
        http: arguments.peer.client(&arguments.transport)?,
    };
    let socket = UdpSocket::bind(arguments.listen).await;
    let socket = socket.map_err(|error| {
        Failure::Failed(format!("cannot listen on {}: {error}", arguments.listen))
    })?;
    let caught = |kind| {
        signal(kind).map_err(|error| Failure::Failed(format!("cannot receive signals: {error}")))
    };
    let (mut interrupt, mut terminate) = (
        caught(SignalKind::interrupt())?,
        caught(SignalKind::terminate())?,
    );
    let forward = Forward::open(config, socket)
        .await
        .map_err(|error| failure(&error))?;
    print_message(&format!(
        "passing on datagrams of {} to {}",
        forward.local_addr().unwrap_or(arguments.listen),
        arguments.to
    ));
    tokio::select! {
        ended = forward.run(report) => match ended {
            Ok(never) => match never {},
            Err(error) => Err(failure(&error)),
        },
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

fn report(error: &OpenError) {
    print_message(&advised(error, refusal_advice(error)));
}

fn failure(error: &ForwardError) -> Failure {
    Failure::Failed(match error {
        ForwardError::Client(cause) => advised(error, connection_advice(cause)),
        ForwardError::Open(cause) => advised(error, refusal_advice(cause)),
        _ => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_this_host() {
        assert_eq!(local(":53"), Ok(([127, 0, 0, 1], 53).into()));
        assert_eq!(local("[::1]:53"), Ok("[::1]:53".parse().unwrap()));
        for text in ["", "53", ":x", "localhost:53"] {
            assert!(local(text).unwrap_err().contains(":PORT"), "{text}");
        }
    }
}
