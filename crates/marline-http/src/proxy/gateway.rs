//! The gateway of a client: a site whose responses are those of an origin, fetched by a [`Client`].

use std::future::Future;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{
    ALT_SVC, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION,
    SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, TE,
};
use http::uri::PathAndQuery;
use http::{Method, Request, Response, StatusCode, Uri, Version};
use marline_h3::Protocol;
use tokio::time::timeout;
use tower::service_fn;
use tower::util::BoxCloneSyncService;

use super::connections::{Connections, ResponseSlot};
use super::content::Content;
use super::failure::{Failure, unreachable};
use super::fields::{self, Received};
use super::forward::Target;
use super::request_body::HeldBody;
use super::websocket::accept;
use crate::body::Body;
use crate::client::{Client, ClientError, Download, HttpVersion, Origin, Stalled, parse_url};
use crate::content::is_bodiless;
use crate::interim::Interim;
use crate::limits;
use crate::pipes::ObjectKind;
use crate::server::{PassedOn, Site, Tunnel};
use crate::whole::Whole;

/// The settings of a gateway. Start from [`GatewayConfig::to`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayConfig {
    /// The origin, as `https://HOST[:PORT]`.
    pub origin: String,
    /// Connections to the origin, which take turns. A client with [pools](crate::client::ClientConfig::pipes) uses the pipes of
    /// its pool instead: each request is an object, and requests from the opening of the first pipe until all are closed are
    /// a session.
    pub connections: usize,
    /// Names of hosts by which programs reach the gateway, in addition to addresses, the names of this machine and that
    /// of the origin.
    pub hosts: Hosts,
    /// The time limit of the origin for the next part of a response, and for an idle tunnel.
    pub idle_timeout: Duration,
}

/// Names by which a gateway is reached. A page of any host whose name resolves to the gateway could read the origin's
/// responses (DNS rebinding), unless its name is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Any.
    Any,
    /// These.
    Named(Vec<HostName>),
}

/// The name of a host, without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

/// A text is not a host name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a host name; write it without a port, as gateway.example.org")]
pub struct InvalidHostName(String);

impl FromStr for HostName {
    type Err = InvalidHostName;

    fn from_str(text: &str) -> Result<Self, InvalidHostName> {
        let target = Target::parse(text).filter(|target| target.has_no_port());
        let target = target.ok_or_else(|| InvalidHostName(text.to_owned()))?;
        Ok(Self(target.host))
    }
}

impl Hosts {
    /// Whether a request for `host`, in a gateway to `origin`, was meant for it.
    fn allow(&self, host: &str, origin: &str) -> bool {
        let Self::Named(names) = self else {
            return true;
        };
        let Some(target) = Target::parse(host) else {
            return false;
        };
        let host = target.host;
        host.parse::<IpAddr>().is_ok()
            || host == "localhost"
            || host.ends_with(".localhost")
            || Target::parse(origin).is_some_and(|origin| origin.host == host)
            || names.iter().any(|name| name.0 == host)
    }
}

impl GatewayConfig {
    /// A gateway to `origin` over one connection.
    pub fn to(origin: impl Into<String>) -> Self {
        Self {
            origin: origin.into(),
            connections: 1,
            hosts: Hosts::Named(Vec::new()),
            idle_timeout: limits::UPSTREAM_IDLE_TIMEOUT,
        }
    }
}

/// A site whose responses are those of an origin, over connections of `client`, which are opened when they are needed, and
/// again when they have ended.
///
/// # Errors
/// [`ClientError::Url`]: the origin is not valid.
pub fn gateway(
    client: impl Into<Arc<Client>>,
    config: &GatewayConfig,
) -> Result<Site, ClientError> {
    let client = client.into();
    let url = parse_url(&config.origin, client.config().version)?;
    if !matches!(url.uri.path(), "" | "/") || url.uri.query().is_some() {
        return Err(ClientError::Url {
            url: config.origin.clone(),
            reason: "an origin has no path; requests keep theirs",
        });
    }
    let scheme = match client.config().version {
        HttpVersion::Http11Cleartext => "http",
        _ => "https",
    };
    let gateway = Arc::new(Gateway {
        shown: format!("{scheme}://{}", url.origin.authority()),
        scheme,
        connections: Connections::new(Arc::clone(&client), &url.origin, config.connections),
        origin: url.origin,
        client,
        hosts: config.hosts.clone(),
        idle_timeout: config.idle_timeout,
    });
    Ok(BoxCloneSyncService::new(service_fn(move |request| {
        let gateway = Arc::clone(&gateway);
        async move { Ok(gateway.answer(request).await) }
    })))
}

struct Gateway {
    client: Arc<Client>,
    connections: Connections,
    origin: Origin,
    scheme: &'static str,
    shown: String,
    hosts: Hosts,
    idle_timeout: Duration,
}

struct Fetched {
    response: Response<Download>,
    slot: ResponseSlot,
}

impl Gateway {
    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let method = request.method().clone();
        let (parts, body) = request.into_parts();
        let key = parts.headers.get(SEC_WEBSOCKET_KEY).cloned();
        let content = HeldBody::new(body, false, &parts.extensions);
        let fetched = self.fetch(Request::from_parts(parts, ()), &content).await;
        let pipe = fetched.as_ref().ok().and_then(|one| one.slot.pipe());
        let fetched = match fetched {
            Ok(fetched) => self.pass_back(fetched, &method, key, content).await,
            Err(failure) => Err(failure),
        };
        let error = fetched.as_ref().err().map(ToString::to_string);
        let mut response = fetched.unwrap_or_else(Failure::into_response);
        let passed = PassedOn::to(Some(self.shown.clone()), error).over_pipe(pipe);
        response.extensions_mut().insert(passed);
        response
    }

    async fn fetch(&self, head: Request<()>, content: &HeldBody) -> Result<Fetched, Failure> {
        let head = self.prepare(head)?;
        let is_extended = head.extensions().get::<Protocol>().is_some();
        let place = self.connections.place(self.kind(&head));
        let place = self.in_time(place).await?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let connection = self.in_time(place.connection()).await?;
            if is_extended && connection.version() != HttpVersion::Http3 {
                let what = "WebSockets to an origin that is not reached over HTTP/3";
                return Err(Failure::Refused(what));
            }
            let mut request = Request::new(content.to_body());
            *request.method_mut() = head.method().clone();
            *request.uri_mut() = head.uri().clone();
            *request.headers_mut() = head.headers().clone();
            *request.extensions_mut() = head.extensions().clone();
            let error = match connection.request(&self.origin, request).await {
                Ok(response) => {
                    let bytes = response.body().expected();
                    let slot = place.carries(connection, bytes);
                    return Ok(Fetched { response, slot });
                }
                Err(error) => error,
            };
            // The connection may have been idle for too long.
            let again = connection.is_closed() && head.method().is_safe();
            if !again || !content.is_empty() || attempts >= limits::MAX_ATTEMPTS {
                return Err(match content.failure() {
                    Some(failure) => failure,
                    None => explain(&error),
                });
            }
        }
    }

    /// The kind of the requested object: by the field of a browser, or else by the path.
    fn kind(&self, head: &Request<()>) -> ObjectKind {
        let destination = head.headers().get("sec-fetch-dest");
        let destination = destination.and_then(|value| value.to_str().ok());
        destination
            .and_then(ObjectKind::of_destination)
            .unwrap_or_else(|| self.client.kind_of(head.uri().path()))
    }

    /// The result of `connecting`. Waiting for another request that opens the same connection counts as connecting.
    async fn in_time<T>(
        &self,
        connecting: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, Failure> {
        let limit = self.client.config().connect_timeout;
        match timeout(limit, connecting).await {
            Ok(connected) => connected.map_err(|error| explain(&error)),
            Err(_) => Err(Failure::ConnectTimeout(limit)),
        }
    }

    /// The header of a request as the origin gets it.
    fn prepare(&self, mut head: Request<()>) -> Result<Request<()>, Failure> {
        let protocol = head.extensions_mut().remove::<Protocol>();
        if *head.method() == Method::CONNECT && protocol.is_none() {
            return Err(Failure::Refused("CONNECT; it has one origin"));
        }
        if *head.method() == Method::TRACE {
            return Err(Failure::Refused("TRACE"));
        }
        let version = head.version();
        let interim = head.extensions_mut().remove::<Interim>();
        if let Some(host) = Received::of(&head, None, self.scheme).host {
            let host = String::from_utf8_lossy(host.as_bytes());
            let origin = self.origin.authority().as_str();
            if !self.hosts.allow(&host, origin) {
                return Err(Failure::Misdirected(host.into_owned()));
            }
        }
        let headers = head.headers_mut();
        if protocol.is_some() {
            headers.remove(CONTENT_LENGTH);
        } else {
            fields::content_length(headers)?;
        }
        if fields::has_other_coding(headers) {
            return Err(Failure::Refused("transfer codings other than chunked"));
        }
        let takes_trailers = fields::remove_hop_by_hop(headers);
        if takes_trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        headers.remove(EXPECT);
        headers.remove(fields::EARLY_DATA);
        // The local program's `Host` names this machine.
        headers.remove(HOST);
        headers.remove(SEC_WEBSOCKET_KEY);
        fields::add_via(headers, version).map_err(|_| Failure::ProxyLoop)?;
        let path = head.uri().path_and_query().cloned();
        let path = path.filter(|path| path.as_str().starts_with('/'));
        let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
        let uri = Uri::builder()
            .scheme(self.scheme)
            .authority(self.origin.authority().clone())
            .path_and_query(path)
            .build();
        *head.uri_mut() = uri.map_err(|_| Failure::Refused("this target"))?;
        *head.extensions_mut() = http::Extensions::new();
        if let Some(protocol) = protocol {
            head.extensions_mut().insert(protocol);
        }
        if let Some(interim) = interim {
            let passed = Interim::new(move |response: Response<()>| {
                let version = response.version();
                let max_bytes = limits::MAX_HEADER_BYTES as usize;
                let passed = fields::interim(response, version, max_bytes);
                passed.into_iter().for_each(|one| interim.send(one));
            });
            head.extensions_mut().insert(passed);
        }
        Ok(head)
    }

    /// The response as the local program gets it.
    async fn pass_back(
        &self,
        fetched: Fetched,
        method: &Method,
        key: Option<HeaderValue>,
        request: HeldBody,
    ) -> Result<Response<Body>, Failure> {
        let (mut parts, download) = fetched.response.into_parts();
        let is_new = parts.version >= Version::HTTP_2;
        let version = parts.version;
        fields::remove_hop_by_hop(&mut parts.headers);
        fields::add_via(&mut parts.headers, version).map_err(|_| Failure::ProxyLoop)?;
        // It refers to the origin's address, not to this one.
        parts.headers.remove(ALT_SVC);
        self.localise(&mut parts.headers);
        parts.version = Version::HTTP_11;
        parts.extensions = http::Extensions::new();
        if *method == Method::CONNECT && parts.status.is_success() {
            parts.status = StatusCode::OK;
            parts.headers.remove(CONTENT_LENGTH);
            parts.extensions.insert(Tunnel);
            if let Some(accept) = key.and_then(|key| accept(&key)) {
                parts.headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
            }
        }
        let length = download.expected();
        let length = length.filter(|_| !is_bodiless(method, parts.status));
        let mut body = Body::new(download);
        if let Some(length) = length.filter(|_| is_new) {
            let idle = self.idle_timeout;
            let confirming = timeout(idle, Whole::new(body, length).confirmed());
            let confirmed = confirming
                .await
                .map_err(|_| Failure::ResponseTimeout(idle))?;
            body = Body::new(confirmed.map_err(|error| Failure::Response(error.to_string()))?);
        }
        let slot = fetched.slot;
        let content = Content::new(body, length, self.idle_timeout, request, slot);
        Ok(Response::from_parts(parts, Body::new(content)))
    }

    /// Rewrites redirects to the origin into redirects to this gateway.
    fn localise(&self, headers: &mut HeaderMap) {
        let names: [HeaderName; 2] = [LOCATION, http::header::CONTENT_LOCATION];
        for name in names {
            let Some(value) = headers.get(&name).and_then(|value| value.to_str().ok()) else {
                continue;
            };
            let Some(rest) = value.strip_prefix(&self.shown) else {
                continue;
            };
            let path = match rest.chars().next() {
                Some('/') => rest.to_owned(),
                None | Some('?' | '#') => format!("/{rest}"),
                Some(_) => continue,
            };
            if let Ok(path) = HeaderValue::try_from(path) {
                headers.insert(name, path);
            }
        }
    }
}

/// The failure for a client's error.
fn explain(error: &ClientError) -> Failure {
    match error {
        ClientError::ConnectTimeout { limit, .. } => Failure::ConnectTimeout(*limit),
        ClientError::NoResponse { cause } => match cause.downcast_ref::<Stalled>() {
            Some(stalled) => Failure::ResponseTimeout(stalled.limit()),
            None => Failure::Response(cause.to_string()),
        },
        ClientError::Connect { cause, .. } => Failure::Connect(unreachable(cause)),
        ClientError::Resolve { cause, .. } => {
            Failure::Connect(format!("its name has no address: {cause}"))
        }
        other => Failure::Connect(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
