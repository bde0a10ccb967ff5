//! The forward proxy: CONNECT, and requests of HTTP in absolute form (RFC 9110, section 7.6; RFC 9112, section 3.2.2).

mod destinations;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderValue, TRANSFER_ENCODING};
use http::uri::{PathAndQuery, Scheme};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::BodyExt;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use marline_h3::Protocol;
use tokio::net::TcpStream;
use tokio::time::{timeout, timeout_at};
use tower::service_fn;
use tower::util::BoxCloneSyncService;

pub(super) use self::destinations::Target;
pub use self::destinations::{AllowedHost, InvalidHost};
use self::destinations::{Rules, Verdict};
use super::content::Content;
use super::failure::{Failure, cause};
use super::fields;
use super::request_body::HeldBody;
use super::request_slots::{NoSlot, RequestSlot, RequestSlots, SlotHolders};
use super::tunnel::{Halves, Joined, Task};
use crate::body::{Body, with_source};
use crate::content::{content_length, is_bodiless};
use crate::limits;
use crate::server::{ClientAddress, PassedOn, Site, Tunnel};

/// The settings of a forward proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardConfig {
    /// The hosts that clients may reach, at any address; without any, all hosts with addresses of the public Internet,
    /// at the ports 80 and 443.
    pub allowed: Vec<AllowedHost>,
    /// The time limit for resolving and connecting.
    pub connect_timeout: Duration,
    /// The time limit of a server for the header of a response.
    pub response_timeout: Duration,
    /// The time limit for a tunnel or a response without data.
    pub idle_timeout: Duration,
    /// Tunnels and requests; more wait for [`connect_timeout`](Self::connect_timeout). A network of clients may have as
    /// many as are left for others; of n networks, each is entitled to one part in n + 1, and tunnels of those that
    /// have more are ended for it.
    pub max_tunnels: usize,
}

impl Default for ForwardConfig {
    fn default() -> Self {
        Self {
            allowed: Vec::new(),
            connect_timeout: limits::HANDSHAKE_TIMEOUT,
            response_timeout: limits::UPSTREAM_RESPONSE_TIMEOUT,
            idle_timeout: limits::UPSTREAM_IDLE_TIMEOUT,
            max_tunnels: limits::MAX_TUNNELS,
        }
    }
}

/// A site that is a forward proxy: tunnels of CONNECT, and requests with absolute targets of `http`.
pub fn forward_proxy(config: ForwardConfig) -> Site {
    let proxy = Arc::new(Forward {
        rules: Rules::new(config.allowed.clone()),
        places: RequestSlots::new(config.max_tunnels, SlotHolders::Networks),
        config,
    });
    BoxCloneSyncService::new(service_fn(move |request| {
        let proxy = Arc::clone(&proxy);
        async move { Ok(proxy.answer(request).await) }
    }))
}

struct Forward {
    config: ForwardConfig,
    rules: Rules,
    places: RequestSlots,
}

impl Forward {
    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let authority = request.uri().authority().map(ToString::to_string);
        let answered = self.pass_on(request).await;
        let error = answered.as_ref().err().map(ToString::to_string);
        let mut response = answered.unwrap_or_else(Failure::into_response);
        let passed = PassedOn::to(authority, error);
        response.extensions_mut().insert(passed);
        response
    }

    async fn pass_on(&self, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let is_connect = *request.method() == Method::CONNECT;
        if request.extensions().get::<Protocol>().is_some() {
            return Err(Failure::Refused("extended CONNECT"));
        }
        let target = request.uri().authority();
        let target = target.and_then(|authority| Target::parse(authority.as_str()));
        let target = target.ok_or(Failure::Refused(
            "requests without a whole URL; it is a forward proxy",
        ))?;
        let port = match (is_connect, request.uri().scheme()) {
            (true, _) => target
                .port
                .ok_or(Failure::Refused("CONNECT without a port"))?,
            (false, Some(scheme)) if *scheme == Scheme::HTTP => target.port.unwrap_or(80),
            _ => {
                return Err(Failure::Refused(
                    "URLs of schemes other than http; use CONNECT",
                ));
            }
        };
        let client = request.extensions().get::<ClientAddress>();
        let client = client.map_or(IpAddr::from([0, 0, 0, 0]), |client| client.get().ip());
        let place = self.places.take(Some(client), self.config.connect_timeout);
        let place = place.await.map_err(|NoSlot| Failure::Busy)?;
        let stream = self.connect(&target.host, port).await?;
        if is_connect {
            return Ok(self.tunnel(stream, request, place));
        }
        tokio::select! {
            biased;
            () = place.evicted() => Err(Failure::Busy),
            response = self.request(stream, request, place) => response,
        }
    }

    /// Connects to an address of `host` that is allowed: it is resolved once, so that the address checked is the one
    /// used.
    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, Failure> {
        let verdict = self.rules.judge(host, port);
        let shown = || match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        if verdict == Verdict::Forbidden {
            return Err(Failure::Forbidden(shown()));
        }
        let limit = self.config.connect_timeout;
        let connecting = async {
            let found = tokio::net::lookup_host((host, port)).await;
            let found: Vec<SocketAddr> = found.map_err(|error| connect_failure(&error))?.collect();
            let allowed = verdict.filter(found);
            if allowed.is_empty() {
                return Err(Failure::Forbidden(shown()));
            }
            let stream = TcpStream::connect(&*allowed).await;
            stream.map_err(|error| connect_failure(&error))
        };
        let stream = timeout(limit, connecting).await;
        let stream = stream.map_err(|_| Failure::ConnectTimeout(limit))??;
        // Without it, the end of each message would wait for the acknowledgment of the one before.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    fn tunnel(
        &self,
        stream: TcpStream,
        request: Request<Body>,
        place: RequestSlot,
    ) -> Response<Body> {
        let (parts, content) = request.into_parts();
        let content = HeldBody::new(content, false, &parts.extensions);
        let Halves { read, write } = Halves::of(stream);
        let joined = Joined::new(read, write, content.to_body());
        let guard = (place, joined.task);
        let idle = self.config.idle_timeout;
        let body = Content::new(joined.body, None, idle, content, guard);
        let mut response = Response::new(Body::new(body));
        response.extensions_mut().insert(Tunnel);
        response
    }

    /// Sends a request on a connection of its own.
    async fn request(
        &self,
        stream: TcpStream,
        request: Request<Body>,
        place: RequestSlot,
    ) -> Result<Response<Body>, Failure> {
        let method = request.method().clone();
        let (mut parts, body) = request.into_parts();
        let content = HeldBody::new(body, false, &parts.extensions);
        let length = fields::content_length(&mut parts.headers)?;
        if fields::has_other_coding(&parts.headers) {
            return Err(Failure::Refused("transfer codings other than chunked"));
        }
        fields::remove_hop_by_hop(&mut parts.headers);
        fields::add_via(&mut parts.headers, parts.version).map_err(|_| Failure::ProxyLoop)?;
        parts.headers.remove(EXPECT);
        parts.headers.remove(fields::EARLY_DATA);
        if !content.is_empty() && length.is_none() {
            // hyper would omit the content of GET and HEAD.
            let chunked = HeaderValue::from_static("chunked");
            parts.headers.insert(TRANSFER_ENCODING, chunked);
        }
        let authority = parts.uri.authority().map(|authority| authority.as_str());
        if let Some(host) = authority.and_then(|host| HeaderValue::from_str(host).ok()) {
            parts.headers.insert(HOST, host);
        }
        parts
            .headers
            .insert(CONNECTION, HeaderValue::from_static("close"));
        let path = parts.uri.path_and_query().cloned();
        parts.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        parts.version = Version::HTTP_11;
        parts.extensions = http::Extensions::new();
        let failed = |error: &hyper::Error| match error.is_parse_too_large() {
            true => Failure::Response(format!(
                "its header has more than {} bytes or {} fields",
                limits::MAX_UPSTREAM_HEADER_BYTES,
                limits::MAX_HEADER_FIELDS
            )),
            false => Failure::Response(cause(error)),
        };
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(limits::MAX_UPSTREAM_HEADER_BYTES)
            .max_headers(limits::MAX_HEADER_FIELDS)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failed(&error))?;
        let task = Task::spawn(async move {
            // Its errors are those of the response.
            let _ = connection.await;
        });
        let request = Request::from_parts(parts, content.to_body());
        let mut response = Box::pin(sender.send_request(request));
        let limit = self.config.response_timeout;
        let response = loop {
            match timeout_at(content.progressed() + limit, &mut response).await {
                Ok(response) => break response.map_err(|error| failed(&error))?,
                Err(_) if content.progressed() + limit > tokio::time::Instant::now() => {}
                Err(_) => return Err(Failure::ResponseTimeout(limit)),
            }
        };
        let (mut parts, body) = response.into_parts();
        let announced = parts.headers.get_all(CONTENT_LENGTH).iter().count();
        if announced > 1 || (announced == 1 && parts.headers.contains_key(TRANSFER_ENCODING)) {
            return Err(Failure::Response("its length is ambiguous".to_owned()));
        }
        if fields::has_other_coding(&parts.headers) {
            let what = "it has a transfer coding other than chunked";
            return Err(Failure::Response(what.to_owned()));
        }
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Failure::Response("it changes the protocol".to_owned()));
        }
        let length = content_length(&parts.headers);
        let length = length.filter(|_| !is_bodiless(&method, parts.status));
        fields::remove_hop_by_hop(&mut parts.headers);
        fields::add_via(&mut parts.headers, parts.version).map_err(|_| Failure::ProxyLoop)?;
        parts.version = Version::HTTP_11;
        parts.extensions = http::Extensions::new();
        let body = Body::new(body.map_err(with_source));
        let guard = (place, task);
        let content = Content::new(body, length, self.config.idle_timeout, content, guard);
        Ok(Response::from_parts(parts, Body::new(content)))
    }
}

fn connect_failure(error: &io::Error) -> Failure {
    Failure::Connect(error.to_string())
}
