//! Errors.

use marline::{ConnectError, ConnectionError, OpenPathError, ReadError, WriteError};
use marline_h3::{SendError, StreamError};
use marline_sim::{BuildError, Stalled};

/// The reason why a scenario does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The scenario is not what it should be.
    #[error("the scenario: {0}")]
    Scenario(#[from] serde_json::Error),
    /// There is a link too many, or none.
    #[error("{0} links: one is expected, or two")]
    Links(usize),
    /// The file is too large to be simulated while someone waits.
    #[error("a file of {0} bytes: at most {max} are simulated", max = crate::scenario::MAX_FILE)]
    File(u64),
    /// The network cannot be built.
    #[error(transparent)]
    Network(#[from] BuildError),
    /// An endpoint cannot be made.
    #[error("endpoint: {0}")]
    Endpoint(#[from] std::io::Error),
    /// The configuration of TLS is refused.
    #[error("TLS: {0}")]
    Tls(String),
    /// Nothing will happen any more.
    #[error(transparent)]
    Stalled(#[from] Stalled),
    /// The client does not connect.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection ended.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// A second path is not opened.
    #[error("second path: {0}")]
    Path(#[from] OpenPathError),
    /// Nothing can be written on a stream.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Nothing can be read from a stream.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A message cannot be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// HTTP/3 ended the connection.
    #[error(transparent)]
    Http3(#[from] marline_h3::Error),
    /// A request failed.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A response is not what was asked for.
    #[error("{path}: {why}")]
    Response {
        /// The path of the request.
        path: String,
        /// The fault.
        why: &'static str,
    },
}
