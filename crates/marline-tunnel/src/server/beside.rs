//! Tunnels on a server of other sites.

use std::convert::Infallible;
use std::sync::Arc;

use http::header::PROXY_AUTHORIZATION;
use http::{Method, Request, Response, Version};
use marline_h3::Protocol;
use marline_http::server::{Refusal, Site};
use marline_http::{Body, HostPattern};
use tower::util::BoxCloneSyncService;
use tower::{ServiceExt, service_fn};

use super::Tunnels;
use crate::scope::PROTOCOL;
use crate::udp;

/// Who answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answerer {
    /// The tunnels.
    Tunnels,
    /// The other sites.
    Sites,
    /// Nobody: it asks for a tunnel that is not there.
    Nobody,
}

impl Tunnels {
    /// `sites`, and these tunnels for requests over HTTP/3 at one of `names`, or at any if there are none. CONNECT without a name of the
    /// server is answered to requests with a token or a certificate.
    pub fn beside(self: &Arc<Self>, sites: Site, names: Vec<HostPattern>) -> Site {
        let (tunnels, names) = (Arc::clone(self), Arc::new(names));
        BoxCloneSyncService::new(service_fn(move |request: Request<Body>| {
            let (tunnels, names, sites) = (Arc::clone(&tunnels), Arc::clone(&names), sites.clone());
            async move {
                match tunnels.answerer(&request, &names) {
                    Answerer::Tunnels => Ok::<_, Infallible>(tunnels.answer(request).await),
                    Answerer::Sites => sites.oneshot(request).await,
                    Answerer::Nobody => Ok(no_tunnel()),
                }
            }
        }))
    }

    fn answerer(&self, request: &Request<Body>, names: &[HostPattern]) -> Answerer {
        if *request.method() != Method::CONNECT || request.version() != Version::HTTP_3 {
            return Answerer::Sites;
        }
        let is_here = match request.extensions().get::<Protocol>().map(Protocol::as_str) {
            // Its authority is the destination.
            None => {
                let has_token = request.headers().contains_key(PROXY_AUTHORIZATION);
                self.dialer.is_some() && (has_token || self.certified(request).is_some())
            }
            Some(PROTOCOL) => is_named(request, names),
            Some(udp::PROTOCOL) => self.udp.is_some() && is_named(request, names),
            Some(_) => return Answerer::Sites,
        };
        match is_here {
            true => Answerer::Tunnels,
            false => Answerer::Nobody,
        }
    }
}

fn is_named<B>(request: &Request<B>, names: &[HostPattern]) -> bool {
    let host = request.uri().host().unwrap_or_default();
    names.is_empty() || names.iter().any(|name| name.matches(host))
}

/// The response of a server without tunnels.
fn no_tunnel() -> Response<Body> {
    let refusal = Refusal::NoTunnel;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = refusal.status();
    response.extensions_mut().insert(refusal);
    response
}
