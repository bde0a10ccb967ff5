//! The server: connections to the destinations of CONNECT requests (RFC 9110, section 9.3.6).

use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use http::uri::Authority;
use http::{HeaderValue, Request, Response};
use marline_http::Body;
use marline_http::server::{Tunnel, metric_head};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::relay::{Joined, Stream};
use super::{FIELD, PACKETS};
use crate::counters::{SplitBytes, SplitCarried};
use crate::dial::{Destinations, Limits, Outcome, Outcomes, Place, Users};
use crate::tokens::{Tokens, User};

/// Streams of a client at a time.
pub(crate) const MAX_STREAMS: u64 = 1024;

/// Connections at a time.
const LIMITS: Limits = Limits {
    of_user: 2048,
    dials: 256,
    of_all: 16_384,
};

/// The time for a destination to answer.
const DIAL: Duration = Duration::from_secs(20);

/// Opens connections for users.
pub(crate) struct Dialer {
    destinations: Arc<Destinations>,
    users: Arc<Users>,
    bytes: Arc<SplitBytes>,
    outcomes: Outcomes,
}

impl Dialer {
    pub(crate) fn new(destinations: Arc<Destinations>, bytes: Arc<SplitBytes>) -> Self {
        Self {
            destinations,
            users: Users::new(LIMITS),
            bytes,
            outcomes: Outcomes::default(),
        }
    }

    /// Answers a CONNECT request of `user`, if it has a valid token. The connection ends when that is not among `tokens` any more.
    pub(crate) async fn answer(
        &self,
        user: Option<User>,
        mut tokens: watch::Receiver<Tokens>,
        request: Request<Body>,
    ) -> Response<Body> {
        let opened = match user {
            Some(user) => {
                let target = request.uri().authority().cloned();
                let opened = self.open(user.account(), target.as_ref()).await;
                opened.map(|stream| (stream, user))
            }
            // First, so that others learn nothing more.
            None => Err(Outcome::Unauthorized),
        };
        let outcome = opened.as_ref().err().copied().unwrap_or(Outcome::Opened);
        self.outcomes.count(outcome);
        match opened {
            Ok((stream, user)) => {
                let revoked = async move {
                    let _ = tokens.wait_for(|tokens| !tokens.has(&user)).await;
                };
                let joined = Joined::new(stream, request.into_body(), revoked);
                let mut response = Response::new(Body::new(joined));
                response.extensions_mut().insert(Tunnel);
                response
            }
            Err(refusal) => {
                let mut response = refusal.response();
                if refusal == Outcome::Packets {
                    let fields = response.headers_mut();
                    fields.insert(FIELD, HeaderValue::from_static(PACKETS));
                }
                response
            }
        }
    }

    async fn open(
        &self,
        user: &str,
        target: Option<&Authority>,
    ) -> Result<Arc<Stream<Place>>, Outcome> {
        let target = target.ok_or(Outcome::Target)?;
        let place = self.users.place(user)?;
        let opening = async {
            let allowed = self.destinations.allowed(target.as_str()).await?;
            TcpStream::connect(&*allowed)
                .await
                .map_err(|error| Outcome::of(&error))
        };
        let opened = timeout(DIAL, opening).await;
        let tcp = opened.unwrap_or(Err(Outcome::Timeout))?;
        place.opened();
        Ok(Stream::new(tcp, Arc::clone(&self.bytes), place))
    }

    /// Writes its metrics.
    pub(crate) fn write(&self, out: &mut String, carried: SplitCarried) -> fmt::Result {
        let name = "marline_tunnel_split_connections";
        let about = "Connections of TCP that are streams of clients now.";
        metric_head(out, name, "gauge", about)?;
        writeln!(out, "{name} {}", self.users.open())?;
        let name = "marline_tunnel_split_connections_total";
        let about = "Connections of TCP that clients have requested as streams, by the result.";
        metric_head(out, name, "counter", about)?;
        self.outcomes.write(out, name)?;
        let name = "marline_tunnel_split_bytes_total";
        let about = "Bytes of connections of TCP that were streams.";
        metric_head(out, name, "counter", about)?;
        for (direction, bytes) in [
            ("to_client", carried.sent),
            ("from_client", carried.received),
        ] {
            writeln!(out, "{name}{{direction=\"{direction}\"}} {bytes}")?;
        }
        Ok(())
    }
}
