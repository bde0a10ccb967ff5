//! Sockets that a manager of services opens for the server (sd_listen_fds(3)).

use std::net::SocketAddr;

use marline_http::server::GivenSockets;

use crate::failure::Failure;

/// More than one server has workers.
const MAX_SOCKETS: usize = 4096;

/// Takes the sockets that the environment describes (`LISTEN_FDS`, `LISTEN_PID`, `LISTEN_FDNAMES`). To be called before there are
/// threads, because it removes the variables that describe them.
///
/// # Errors
/// One is neither a listening socket of TCP nor one of UDP; `LISTEN_FDS` is not a number of sockets.
#[cfg(unix)]
pub(crate) fn take() -> Result<GivenSockets, Failure> {
    check_count()?;
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut passed = listenfd::ListenFd::from_env();
    let mut given = GivenSockets::default();
    for index in 0..passed.len() {
        let name = names.next().filter(|name| !name.is_empty());
        let name = name.map(str::to_owned);
        let mut take = || match passed.take_udp_socket(index) {
            Ok(Some(socket)) => given.add_udp(socket, name.clone()),
            _ => match passed.take_tcp_listener(index)? {
                Some(socket) => given.add_tcp(socket, name.clone()),
                None => Ok(()),
            },
        };
        take().map_err(|error| {
            let number = index + 3;
            let name = name.as_ref().map(|name| format!(" ({name})"));
            let name = name.unwrap_or_default();
            Failure::Failed(format!(
                "file descriptor {number}{name} was passed by LISTEN_FDS, but is not a TCP or UDP socket to serve on: {error}"
            ))
        })?;
    }
    Ok(given)
}

/// Refuses a number that cannot be that of sockets, each of which would be looked at.
#[cfg(unix)]
fn check_count() -> Result<(), Failure> {
    let variable = |name| std::env::var_os(name).unwrap_or_default();
    let count = variable("LISTEN_FDS");
    // Those of another process are left alone.
    let is_ours = variable("LISTEN_PID") == *std::process::id().to_string();
    if !is_ours || count.is_empty() {
        return Ok(());
    }
    let number = count.to_str().and_then(|count| count.parse::<usize>().ok());
    match number {
        Some(..=MAX_SOCKETS) => Ok(()),
        _ => Err(Failure::Usage(format!(
            "LISTEN_FDS is not a number of sockets up to {MAX_SOCKETS}: {}",
            count.display()
        ))),
    }
}

#[cfg(not(unix))]
pub(crate) fn take() -> Result<GivenSockets, Failure> {
    Ok(GivenSockets::default())
}

/// Refuses sockets that are left after the servers, which listen at `addresses`, have taken theirs.
pub(crate) fn refuse_unused(given: &GivenSockets, addresses: &[SocketAddr]) -> Result<(), Failure> {
    let unused = given.unused();
    if unused.is_empty() {
        return Ok(());
    }
    let list = |each: Vec<String>| each.join(", ");
    let unused = list(unused.iter().map(ToString::to_string).collect());
    let addresses = list(addresses.iter().map(ToString::to_string).collect());
    Err(Failure::Failed(format!(
        "sockets were passed by LISTEN_FDS that are not used: {unused}; the server listens on {addresses}; set `listen`, or change the unit of the sockets"
    )))
}
