//! Accepting connections over TCP.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};

use crate::limits;
use crate::tcp::BACKLOG;

/// The pause before the next accept when the system is out of resources.
const PAUSE: Duration = Duration::from_millis(50);

/// A connection, and the address of its peer.
pub(super) struct Accepted<S> {
    pub(super) stream: S,
    pub(super) client: SocketAddr,
}

/// The next connection. While the system has no file descriptors or memory for one, tries again after a pause: accepting
/// fails at once until other connections are closed. Safe to cancel.
pub(super) async fn next(listener: &TcpListener) -> Accepted<TcpStream> {
    first_accepted(|| listener.accept()).await
}

/// Passes the connections to `begin` that the system has established, or is about to, when a server stops: their clients may have
/// sent requests already, and would be reset. Then closes `listener`.
pub(super) async fn last(listener: TcpListener, mut begin: impl FnMut(Accepted<TcpStream>)) {
    let end = Instant::now() + limits::DRAIN;
    while Instant::now() < end
        && let Ok(accepted) = timeout(limits::LAST_HANDSHAKES, next(&listener)).await
    {
        begin(accepted);
    }
    // The runtime's knowledge of the queue may be stale.
    let Ok(listener) = listener.into_std() else {
        return;
    };
    for (stream, client) in std::iter::from_fn(|| listener.accept().ok()).take(BACKLOG as usize) {
        if stream.set_nonblocking(true).is_ok()
            && let Ok(stream) = TcpStream::from_std(stream)
        {
            begin(Accepted { stream, client });
        }
    }
}

async fn first_accepted<S, F>(mut accept: impl FnMut() -> F) -> Accepted<S>
where
    F: Future<Output = io::Result<(S, SocketAddr)>>,
{
    loop {
        match accept().await {
            Ok((stream, client)) => return Accepted { stream, client },
            // The client closed the connection before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => sleep(PAUSE).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lack_of_descriptors_does_not_spin() {
        let mut attempts = 0;
        let started = tokio::time::Instant::now();
        let accepted = first_accepted(|| {
            attempts += 1;
            std::future::ready(match started.elapsed() < 3 * PAUSE {
                // EMFILE
                true => Err(io::Error::from_raw_os_error(24)),
                false => Ok(((), (Ipv4Addr::LOCALHOST, 1).into())),
            })
        })
        .await;
        assert_eq!(accepted.client.port(), 1);
        assert_eq!(attempts, 4);
    }
}
