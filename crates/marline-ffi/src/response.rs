//! Responses.

use std::ffi::{CStr, CString, c_char};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use http::HeaderMap;
use marline_http::client::{self, Download};
use tokio::runtime::Runtime;

use crate::connection::Connection;
use crate::failure::{Failure, at, at_mut, buffer, or, or_null, text};
use crate::limit::TimeLimit;

/// A response, whose content arrives as it is read.
pub struct Response {
    runtime: Arc<Runtime>,
    connection: Arc<client::Connection>,
    status: u16,
    version: CString,
    fields: Vec<Field>,
    content: Download,
    /// Bytes that arrived and did not fit into the caller's buffer.
    rest: Bytes,
    limit: TimeLimit,
}

struct Field {
    name: CString,
    value: CString,
}

impl Response {
    pub(crate) fn new(
        runtime: Arc<Runtime>,
        connection: Arc<client::Connection>,
        response: http::Response<Download>,
        limit: TimeLimit,
    ) -> Self {
        let (parts, content) = response.into_parts();
        Self {
            runtime,
            status: parts.status.as_u16(),
            version: CString::new(connection.version().name()).unwrap_or_default(),
            connection,
            fields: fields(&parts.headers),
            content,
            rest: Bytes::new(),
            limit,
        }
    }

    /// The status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The version of HTTP, as "HTTP/3".
    pub fn version(&self) -> &str {
        self.connection.version().name()
    }

    /// Names and values of its header fields.
    pub fn fields(&self) -> impl Iterator<Item = (&CStr, &CStr)> {
        let fields = self.fields.iter();
        fields.map(|field| (field.name.as_c_str(), field.value.as_c_str()))
    }

    /// The QUIC connection it came over; `None` over TCP.
    pub fn connection(&self) -> Option<Connection> {
        let quic = self.connection.quic()?;
        Some(Connection::new(Arc::clone(&self.runtime), quic.clone()))
    }

    /// Reads content, as soon as there is some. Returns the number of bytes, which is 0 when the content is complete.
    ///
    /// # Errors
    /// If the content is not complete and no more comes.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Failure> {
        while self.rest.is_empty() && !into.is_empty() {
            let Self { content, limit, .. } = self;
            let chunk = async { Ok(content.chunk().await?) };
            match self.runtime.block_on(limit.within(chunk))? {
                Some(chunk) => self.rest = chunk,
                None => return Ok(0),
            }
        }
        let length = self.rest.len().min(into.len());
        self.rest.copy_to_slice(&mut into[..length]);
        Ok(length)
    }
}

/// The fields as strings of C: values have no zero bytes.
fn fields(headers: &HeaderMap) -> Vec<Field> {
    let string = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
    let fields = headers.iter().map(|(name, value)| Field {
        name: string(name.as_str().as_bytes()),
        value: string(value.as_bytes()),
    });
    fields.collect()
}

/// The status code, as 200; -1 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_response_status(response: *const Response) -> i32 {
    // SAFETY: as the header says.
    let response = unsafe { at(response, "response") };
    or(-1, response.map(|response| i32::from(response.status)))
}

/// The version of HTTP, as "HTTP/3". It is valid as long as the response.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_response_version(response: *const Response) -> *const c_char {
    // SAFETY: as the header says.
    let response = unsafe { at(response, "response") };
    or(
        std::ptr::null(),
        response.map(|response| response.version.as_ptr()),
    )
}

/// The value of the first field with this name, in any case, or NULL. It is valid as long as the response.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_response_header(
    response: *const Response,
    name: *const c_char,
) -> *const c_char {
    // SAFETY: as the header says.
    let value = unsafe { at(response, "response") }.and_then(|response| {
        // SAFETY: as the header says.
        let name = unsafe { text(name, "name") }?;
        let is_it = |field: &&Field| field.name.as_bytes().eq_ignore_ascii_case(name.as_bytes());
        let missing = || Failure::new(format!("the response has no field {name}"));
        let field = response.fields.iter().find(is_it).ok_or_else(missing)?;
        Ok(field.value.as_ptr())
    });
    or(std::ptr::null(), value)
}

/// Name and value of the field with this index, which are valid as long as the response. Returns 0, or -1 if there are not as
/// many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_response_header_at(
    response: *const Response,
    index: usize,
    name: *mut *const c_char,
    value: *mut *const c_char,
) -> i32 {
    // SAFETY: as the header says.
    let found = unsafe { at(response, "response") }.and_then(|response| {
        let missing = || Failure::new(format!("the response has no field {index}"));
        let field = response.fields.get(index).ok_or_else(missing)?;
        // SAFETY: as the header says.
        unsafe {
            *at_mut(name, "name")? = field.name.as_ptr();
            *at_mut(value, "value")? = field.value.as_ptr();
        }
        Ok(0)
    });
    or(-1, found)
}

/// Reads up to `length` bytes of content, as soon as there are some. Returns their number, 0 when the content is
/// complete, and -1 if it is not and no more comes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_response_read(
    response: *mut Response,
    into: *mut u8,
    length: usize,
) -> isize {
    // SAFETY: as the header says.
    let read = unsafe { at_mut(response, "response") }.and_then(|response| {
        // SAFETY: as the header says.
        let into = unsafe { buffer(into, length, "into") }?;
        response.read(into)
    });
    or(-1, read.map(|length| length as isize))
}

/// The QUIC connection of a response, for its paths and statistics. NULL over TCP.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_response_connection(response: *const Response) -> *mut Connection {
    // SAFETY: as the header says.
    let connection = unsafe { at(response, "response") }.and_then(|response| {
        let over_tcp = || Failure::new("the response came over TCP");
        response.connection().ok_or_else(over_tcp)
    });
    or_null(connection)
}

/// Frees a response. A request that is not complete is cancelled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_response_free(response: *mut Response) {
    if !response.is_null() {
        // SAFETY: it is from `marline_request`, and not used again.
        drop(unsafe { Box::from_raw(response) });
    }
}
