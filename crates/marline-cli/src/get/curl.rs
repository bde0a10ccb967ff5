//! The exit statuses of `get`: those of curl, where curl has one for the same failure.

use marline_http::client::{ClientError, ProxyError, Report};

/// QUIC or the runtime cannot be set up.
const FAILED_INIT: u8 = 2;
const URL_MALFORMAT: u8 = 3;
const COULDNT_RESOLVE_PROXY: u8 = 5;
const COULDNT_RESOLVE_HOST: u8 = 6;
const COULDNT_CONNECT: u8 = 7;
const PARTIAL_FILE: u8 = 18;
/// As with `--fail`.
const HTTP_RETURNED_ERROR: u8 = 22;
/// The content that arrived cannot be written.
pub(crate) const WRITE_ERROR: u8 = 23;
const OPERATION_TIMEDOUT: u8 = 28;
const RANGE_ERROR: u8 = 33;
const SSL_CONNECT_ERROR: u8 = 35;
const BAD_FUNCTION_ARGUMENT: u8 = 43;
const INTERFACE_FAILED: u8 = 45;
const GOT_NOTHING: u8 = 52;
const RECV_ERROR: u8 = 56;
const PEER_FAILED_VERIFICATION: u8 = 60;
const FILESIZE_EXCEEDED: u8 = 63;
const SSL_CACERT_BADFILE: u8 = 77;

/// The status for an error.
pub(crate) fn status(error: &ClientError) -> u8 {
    if error.is_timeout() {
        return OPERATION_TIMEDOUT;
    }
    match error {
        ClientError::Url { .. } => URL_MALFORMAT,
        ClientError::Header { .. } => BAD_FUNCTION_ARGUMENT,
        ClientError::Resolve { .. } => COULDNT_RESOLVE_HOST,
        ClientError::Connect { .. } | ClientError::NoMultipathTcp { .. } => COULDNT_CONNECT,
        ClientError::Proxy { cause, .. } => match cause {
            ProxyError::Resolve(_) => COULDNT_RESOLVE_PROXY,
            ProxyError::Connect { .. } => COULDNT_CONNECT,
            _ => RECV_ERROR,
        },
        ClientError::NoPath { .. } => INTERFACE_FAILED,
        ClientError::Certificate { .. } => PEER_FAILED_VERIFICATION,
        ClientError::WrongProtocol { .. } => SSL_CONNECT_ERROR,
        ClientError::NoResponse { .. } => GOT_NOTHING,
        ClientError::Truncated { .. } => PARTIAL_FILE,
        ClientError::WrongRange(_) => RANGE_ERROR,
        ClientError::TooLarge { .. } => FILESIZE_EXCEEDED,
        ClientError::File { .. } | ClientError::Output(_) => WRITE_ERROR,
        ClientError::Trust { .. } => SSL_CACERT_BADFILE,
        ClientError::Quic(_) | ClientError::Runtime(_) => FAILED_INIT,
        _ => 1,
    }
}

/// The status for the last object that is not complete; 0 if there is none.
pub(super) fn status_of(report: &Report) -> u8 {
    let failed = report.objects.iter().rev().find(|one| !one.is_complete());
    failed.map_or(0, |object| match object.failure.as_deref() {
        Some(error) => status(error),
        None => HTTP_RETURNED_ERROR,
    })
}
