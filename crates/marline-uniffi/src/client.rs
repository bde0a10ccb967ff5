//! Clients, requests and responses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use marline_ffi::{client, options::Options, response};
use marline_http::Body;

use crate::buffer::filled;
use crate::connection::Connection;
use crate::failure::MarlineError;

/// A client: sessions, and connections to servers. They are closed when it is destroyed.
#[derive(uniffi::Object)]
pub struct Client {
    /// `None` once it is dropped, as closing consumes it.
    inner: Option<client::Client>,
}

impl Client {
    fn inner(&self) -> Result<&client::Client, MarlineError> {
        let closed = || MarlineError::Failed("the client is closed".to_owned());
        self.inner.as_ref().ok_or_else(closed)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(client) = self.inner.take() {
            client.close();
        }
    }
}

/// A header field.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value. Bytes that are not UTF-8 are replaced.
    pub value: String,
}

/// A response, whose content arrives as it is read. A request that is not complete is cancelled when it is destroyed.
#[derive(uniffi::Object)]
pub struct Response {
    inner: Mutex<response::Response>,
}

fn fields(headers: Vec<Header>) -> Result<HeaderMap, MarlineError> {
    let mut map = HeaderMap::new();
    for Header { name, value } in headers {
        let key = HeaderName::from_bytes(name.as_bytes());
        let (Ok(key), Ok(field)) = (key, HeaderValue::from_str(&value)) else {
            let wrong = format!("`{name}: {value}` is not a header field");
            return Err(MarlineError::Failed(wrong));
        };
        map.append(key, field);
    }
    Ok(map)
}

#[uniffi::export]
impl Client {
    /// A client with these options, which `marline_options_set` in `marline.h` describes.
    ///
    /// # Errors
    /// If there is no such option or value, or a file that one names cannot be read.
    #[uniffi::constructor]
    pub fn new(options: HashMap<String, String>) -> Result<Arc<Self>, MarlineError> {
        let mut set = Options::default();
        for (key, value) in options {
            set.set(&key, &value)?;
        }
        let inner = Some(client::Client::new(&set)?);
        Ok(Arc::new(Self { inner }))
    }

    /// Sends a request, and waits for the header of its response. Connections are kept for later requests.
    ///
    /// # Errors
    /// If an argument is malformed, no connection can be had, or the response does not come.
    pub fn request(
        &self,
        method: &str,
        url: &str,
        headers: Vec<Header>,
        content: Vec<u8>,
    ) -> Result<Arc<Response>, MarlineError> {
        let body = match content.is_empty() {
            true => Body::empty(),
            false => Body::full(content),
        };
        let mut request = Request::new(body);
        *request.method_mut() = Method::from_bytes(method.as_bytes())
            .map_err(|_| MarlineError::Failed(format!("`{method}` is not a method")))?;
        *request.headers_mut() = fields(headers)?;
        let inner = Mutex::new(self.inner()?.request(url, request)?);
        Ok(Arc::new(Response { inner }))
    }

    /// Opens a QUIC connection for a protocol of the application, which `protocol` names (ALPN). `url` has host and port, as
    /// `https://example.org:4433`.
    ///
    /// # Errors
    /// If `url` is none, or no connection can be had.
    pub fn connect(&self, url: &str, protocol: &str) -> Result<Arc<Connection>, MarlineError> {
        let inner = self.inner()?.connect(url, protocol)?;
        Ok(Arc::new(Connection::new(inner)))
    }
}

#[uniffi::export]
impl Response {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.lock().status()
    }

    /// The version of HTTP, as "HTTP/3".
    pub fn version(&self) -> String {
        self.lock().version().to_owned()
    }

    /// Its header fields.
    pub fn headers(&self) -> Vec<Header> {
        let response = self.lock();
        let fields = response.fields().map(|(name, value)| Header {
            name: name.to_string_lossy().into_owned(),
            value: value.to_string_lossy().into_owned(),
        });
        fields.collect()
    }

    /// Reads up to `length` bytes of content, and not over a mebibyte, as soon as there are some. Empty when the content is complete.
    ///
    /// # Errors
    /// If the content is not complete and no more comes.
    pub fn read(&self, length: u32) -> Result<Vec<u8>, MarlineError> {
        filled(length, |into| self.lock().read(into))
    }

    /// The QUIC connection it came over, for its paths and statistics. None over TCP.
    pub fn connection(&self) -> Option<Arc<Connection>> {
        let connection = self.lock().connection()?;
        Some(Arc::new(Connection::new(connection)))
    }
}

impl Response {
    fn lock(&self) -> MutexGuard<'_, response::Response> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
