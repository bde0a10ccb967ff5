//! The exit statuses of `get`: those of curl, where curl has one for the same failure.

use marline_http::client::{ClientError, ObjectReport, ProxyError, Report};

use crate::failure::WRITE_ERROR;

const UNSUPPORTED_PROTOCOL: u8 = 1;
/// QUIC or the runtime cannot be set up.
const FAILED_INIT: u8 = 2;
pub(super) const URL_MALFORMAT: u8 = 3;
const COULDNT_RESOLVE_PROXY: u8 = 5;
const COULDNT_RESOLVE_HOST: u8 = 6;
const COULDNT_CONNECT: u8 = 7;
const PARTIAL_FILE: u8 = 18;
/// As with `--fail`.
const HTTP_RETURNED_ERROR: u8 = 22;
/// Content that is to be sent, or a file of flags, cannot be read.
pub(crate) const READ_ERROR: u8 = 26;
const OPERATION_TIMEDOUT: u8 = 28;
const RANGE_ERROR: u8 = 33;
const SSL_CONNECT_ERROR: u8 = 35;
pub(super) const BAD_FUNCTION_ARGUMENT: u8 = 43;
const INTERFACE_FAILED: u8 = 45;
const TOO_MANY_REDIRECTS: u8 = 47;
const GOT_NOTHING: u8 = 52;
const RECV_ERROR: u8 = 56;
const SSL_CERTPROBLEM: u8 = 58;
const PEER_FAILED_VERIFICATION: u8 = 60;
const BAD_CONTENT_ENCODING: u8 = 61;
const FILESIZE_EXCEEDED: u8 = 63;
const SEND_FAIL_REWIND: u8 = 65;
const SSL_CACERT_BADFILE: u8 = 77;

/// The statuses in the order of their numbers, with the reasons that the reference gives.
#[cfg(test)]
pub(crate) const REASONS: [(u8, &str); 25] = [
    (0, "every object arrived completely, with a status of 2xx"),
    (
        UNSUPPORTED_PROTOCOL,
        "the scheme is not `http`, `https` or of `--proto`; another failure",
    ),
    (FAILED_INIT, "wrong usage; QUIC cannot be set up"),
    (URL_MALFORMAT, "the URL is malformed"),
    (COULDNT_RESOLVE_PROXY, "the proxy's name has no address"),
    (COULDNT_RESOLVE_HOST, "the server's name has no address"),
    (COULDNT_CONNECT, "no connection"),
    (PARTIAL_FILE, "the response ended early"),
    (HTTP_RETURNED_ERROR, "the status is not 2xx"),
    (
        WRITE_ERROR,
        "the content cannot be written: the disk is full, or the reader of standard output has closed it",
    ),
    (
        READ_ERROR,
        "content to send, or a file of flags, cannot be read",
    ),
    (OPERATION_TIMEDOUT, "a time limit, or `--speed-limit`"),
    (
        RANGE_ERROR,
        "the response is not the range that was requested",
    ),
    (
        SSL_CONNECT_ERROR,
        "no TLS with the server, or it does not have the version of HTTP",
    ),
    (BAD_FUNCTION_ARGUMENT, "a header field cannot be sent"),
    (
        INTERFACE_FAILED,
        "none of the paths, or not `--interface`, can be used",
    ),
    (TOO_MANY_REDIRECTS, "more redirects than `--max-redirs`"),
    (GOT_NOTHING, "no response"),
    (
        RECV_ERROR,
        "the proxy opens no tunnel; the connection was reset",
    ),
    (SSL_CERTPROBLEM, "the client certificate cannot be used"),
    (PEER_FAILED_VERIFICATION, "the certificate is not trusted"),
    (BAD_CONTENT_ENCODING, "the content cannot be decompressed"),
    (
        FILESIZE_EXCEEDED,
        "larger than `--max-filesize`, or far larger when decompressed",
    ),
    (
        SEND_FAIL_REWIND,
        "a redirect asks for content again that can be read once",
    ),
    (
        SSL_CACERT_BADFILE,
        "the trusted certificates cannot be read",
    ),
];

/// The status for an error.
pub(crate) fn status(error: &ClientError) -> u8 {
    if error.is_timeout() {
        return OPERATION_TIMEDOUT;
    }
    if error.tls_alert().is_some() {
        return SSL_CONNECT_ERROR;
    }
    match error {
        ClientError::Url { .. } => URL_MALFORMAT,
        ClientError::Scheme { .. } | ClientError::SchemeNotAllowed { .. } => UNSUPPORTED_PROTOCOL,
        ClientError::Upload { .. } => READ_ERROR,
        ClientError::NotRepeatable { .. } => SEND_FAIL_REWIND,
        ClientError::TooManyRedirects { .. } => TOO_MANY_REDIRECTS,
        ClientError::Encoding { .. } => BAD_CONTENT_ENCODING,
        ClientError::Identity { .. } => SSL_CERTPROBLEM,
        ClientError::Tls { .. } => SSL_CONNECT_ERROR,
        ClientError::Header { .. } => BAD_FUNCTION_ARGUMENT,
        ClientError::Resolve { .. } => COULDNT_RESOLVE_HOST,
        ClientError::Connect { .. } | ClientError::NoMultipathTcp { .. } => COULDNT_CONNECT,
        ClientError::Proxy { cause, .. } => match cause {
            ProxyError::Resolve(_) => COULDNT_RESOLVE_PROXY,
            ProxyError::Connect { .. } => COULDNT_CONNECT,
            _ => RECV_ERROR,
        },
        ClientError::NoPath { .. } | ClientError::Local { .. } => INTERFACE_FAILED,
        ClientError::Certificate { .. } => PEER_FAILED_VERIFICATION,
        ClientError::WrongProtocol { .. } => SSL_CONNECT_ERROR,
        ClientError::NoResponse { .. } => GOT_NOTHING,
        ClientError::Truncated { .. } => PARTIAL_FILE,
        ClientError::WrongRange(_) => RANGE_ERROR,
        ClientError::TooLarge { .. } | ClientError::Expansion { .. } => FILESIZE_EXCEEDED,
        ClientError::File { .. } | ClientError::Output(_) => WRITE_ERROR,
        ClientError::Trust { .. } => SSL_CACERT_BADFILE,
        ClientError::Quic(_) | ClientError::Runtime(_) => FAILED_INIT,
        _ => 1,
    }
}

/// The status for the last object that is not complete; 0 if there is none.
pub(super) fn status_of(report: &Report) -> u8 {
    let failed = report.objects.iter().rev().find(|one| !one.is_complete());
    failed.map_or(0, status_of_object)
}

/// The status for one object.
pub(super) fn status_of_object(object: &ObjectReport) -> u8 {
    match object.failure.as_deref() {
        Some(error) => status(error),
        None if object.is_complete() => 0,
        None => HTTP_RETURNED_ERROR,
    }
}
