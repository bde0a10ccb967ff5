//! Clients, and requests.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use marline_http::Body;
use marline_http::client::{self, Origin, ParsedUrl, parse_url};
use tokio::runtime::Runtime;

use crate::connection::Connection;
use crate::failure::{Failure, at, bytes, or_null, text};
use crate::limit::TimeLimit;
use crate::options::Options;
use crate::response::Response;

/// Connections that a client keeps for later requests; the application decides to how many servers it speaks.
const MAX_KEPT: usize = 64;

/// Bytes of datagrams that wait for the application.
const DATAGRAM_BUFFER: usize = 256 << 10;

/// A client: sessions, and connections to servers.
pub struct Client {
    runtime: Arc<Runtime>,
    client: client::Client,
    kept: Mutex<HashMap<Origin, Arc<client::Connection>>>,
    max_time: Option<Duration>,
}

/// A header field.
#[repr(C)]
pub struct Header {
    /// Its name.
    pub name: *const c_char,
    /// Its value.
    pub value: *const c_char,
}

impl Client {
    /// A client with these options. It has a thread of its own.
    ///
    /// # Errors
    /// If the thread or a socket cannot be had, or a file that the options name cannot be read.
    pub fn new(options: &Options) -> Result<Self, Failure> {
        let mut config = options.config();
        let transport = Arc::make_mut(&mut config.quic.transport);
        transport
            .datagram_receive_buffer
            .get_or_insert(DATAGRAM_BUFFER);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("marline")
            .enable_all()
            .build()?;
        let client = {
            let _inside = runtime.enter();
            client::Client::new(config)?
        };
        Ok(Self {
            runtime: Arc::new(runtime),
            client,
            kept: Mutex::default(),
            max_time: options.max_time(),
        })
    }

    fn parse(&self, url: &str) -> Result<ParsedUrl, Failure> {
        Ok(parse_url(url, self.client.config().version)?)
    }

    /// The connection that is kept for `origin`, or a new one.
    async fn connection(&self, origin: &Origin) -> Result<Arc<client::Connection>, Failure> {
        if let Some(known) = self.kept().get(origin).filter(|known| !known.is_closed()) {
            return Ok(Arc::clone(known));
        }
        let connection = Arc::new(self.client.connect(origin).await?);
        let mut kept = self.kept();
        kept.retain(|_, known| !known.is_closed());
        if kept.len() < MAX_KEPT {
            kept.insert(origin.clone(), Arc::clone(&connection));
        }
        Ok(connection)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<Origin, Arc<client::Connection>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request, and waits for the header of its response. Connections are kept for later requests.
    ///
    /// # Errors
    /// If `url` is none, no connection can be had, or the response does not come.
    pub fn request(&self, url: &str, mut request: Request<Body>) -> Result<Response, Failure> {
        let ParsedUrl { origin, uri } = self.parse(url)?;
        *request.uri_mut() = uri;
        self.runtime.block_on(async {
            let mut limit = TimeLimit::new(self.max_time);
            let answer = async {
                let connection = self.connection(&origin).await?;
                let response = connection.request(&origin, request).await?;
                Ok((connection, response))
            };
            let (connection, response) = limit.within(answer).await?;
            let runtime = Arc::clone(&self.runtime);
            Ok(Response::new(runtime, connection, response, limit))
        })
    }

    /// Opens a QUIC connection for a protocol of the application, which `protocol` names (ALPN).
    ///
    /// # Errors
    /// If `url` is none, or no connection can be had.
    pub fn connect(&self, url: &str, protocol: &str) -> Result<Connection, Failure> {
        let ParsedUrl { origin, .. } = self.parse(url)?;
        let connecting = self.client.connect_for(protocol.as_bytes(), &origin);
        let connection = self.runtime.block_on(connecting)?;
        Ok(Connection::new(Arc::clone(&self.runtime), connection))
    }

    /// Closes all connections, which the servers are told.
    pub fn close(self) {
        self.runtime.block_on(self.client.close());
    }
}

/// The fields at `fields`.
///
/// # Safety
/// There are `count`, and their strings end with zero bytes.
unsafe fn headers(fields: *const Header, count: usize) -> Result<HeaderMap, Failure> {
    let mut map = HeaderMap::new();
    if fields.is_null() && count > 0 {
        return Err(Failure::new("headers is NULL"));
    }
    for index in 0..count {
        // SAFETY: as for this function.
        let (name, value) = unsafe {
            let field = &*fields.add(index);
            (text(field.name, "name")?, text(field.value, "value")?)
        };
        let wrong = || Failure::new(format!("`{name}: {value}` is not a header field"));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        map.append(key, HeaderValue::from_str(value).map_err(|_| wrong())?);
    }
    Ok(map)
}

/// A client with these options, or with the defaults for NULL. It has a thread of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_client_new(options: *const Options) -> *mut Client {
    // SAFETY: as the header says.
    let options = unsafe { options.as_ref() };
    or_null(match options {
        Some(options) => Client::new(options),
        None => Client::new(&Options::default()),
    })
}

/// Closes all connections of a client, and frees it. Calls for its responses, connections and streams fail from then on; they are
/// freed as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_client_free(client: *mut Client) {
    if !client.is_null() {
        // SAFETY: it is from `marline_client_new`, and not used again.
        unsafe { Box::from_raw(client) }.close();
    }
}

/// Sends a request, and waits for the header of its response. Connections are kept for later requests.
///
/// `method` as "GET"; `headers` may be NULL without fields, `content` without content.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_request(
    client: *const Client,
    method: *const c_char,
    url: *const c_char,
    headers: *const Header,
    header_count: usize,
    content: *const u8,
    content_length: usize,
) -> *mut Response {
    // SAFETY: as the header says.
    let response = unsafe { at(client, "client") }.and_then(|client| {
        // SAFETY: as the header says.
        let (method, url, fields, content) = unsafe {
            (
                text(method, "method")?,
                text(url, "url")?,
                self::headers(headers, header_count)?,
                bytes(content, content_length, "content")?,
            )
        };
        let body = match content.is_empty() {
            true => Body::empty(),
            false => Body::full(Bytes::copy_from_slice(content)),
        };
        let mut request = Request::new(body);
        *request.method_mut() = Method::from_bytes(method.as_bytes())
            .map_err(|_| Failure::new(format!("`{method}` is not a method")))?;
        *request.headers_mut() = fields;
        client.request(url, request)
    });
    or_null(response)
}

/// Opens a QUIC connection for a protocol of your own, which `protocol` names (ALPN). `url` has host and port, as
/// `https://example.org:4433`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_connect(
    client: *const Client,
    url: *const c_char,
    protocol: *const c_char,
) -> *mut Connection {
    // SAFETY: as the header says.
    let connection = unsafe { at(client, "client") }.and_then(|client| {
        // SAFETY: as the header says.
        let (url, protocol) = unsafe { (text(url, "url")?, text(protocol, "protocol")?) };
        client.connect(url, protocol)
    });
    or_null(connection)
}
