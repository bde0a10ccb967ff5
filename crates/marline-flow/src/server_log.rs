//! The access log of a marline server as a source of labels.

use std::fs::File;
use std::io::{self, BufReader};
use std::net::SocketAddr;
use std::path::Path;

use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::decode::Transport;
use crate::inspect::HttpVersion;
use crate::limits::MAX_LOG_LINES;
use crate::lines::next_line;

/// Largest difference between the clocks of server and capture, and between a line and the packets of its flow.
const TOLERANCE_S: f64 = 2.0;

/// Versions of HTTP by the address of the client.
#[derive(Debug, Default)]
pub struct ServerLog {
    requests: FxHashMap<SocketAddr, Vec<Request>>,
    lines: usize,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    time_s: f64,
    version: HttpVersion,
}

#[derive(Deserialize)]
struct Line {
    time: f64,
    client: SocketAddr,
    http_version: String,
}

/// An access log cannot be used; the message names it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerLogError {
    /// It cannot be read.
    #[error("{name}: {error}")]
    Io {
        /// Its name.
        name: String,
        /// The cause.
        error: io::Error,
    },
    /// A line is not one of an access log.
    #[error("{name}:{line}: is not an access log line of marline: {error}")]
    Line {
        /// Its name.
        name: String,
        /// The number of the line.
        line: usize,
        /// The error.
        error: serde_json::Error,
    },
    /// It has more lines than are kept.
    #[error("{name}: has more than {MAX_LOG_LINES} lines")]
    TooMany {
        /// Its name.
        name: String,
    },
}

impl ServerLog {
    /// Reads the output of `marline serve --access-log`.
    ///
    /// # Errors
    ///
    /// [`ServerLogError`] if it cannot be read, or is not an access log.
    pub fn read(path: &Path) -> Result<Self, ServerLogError> {
        let mut log = Self::default();
        log.add(path)?;
        Ok(log)
    }

    /// Reads one more access log.
    ///
    /// # Errors
    ///
    /// [`ServerLogError`] if it cannot be read, or is not an access log.
    pub fn add(&mut self, path: &Path) -> Result<(), ServerLogError> {
        let name = || path.display().to_string();
        let io = |error| ServerLogError::Io {
            name: name(),
            error,
        };
        let mut reader = BufReader::new(File::open(path).map_err(io)?);
        let mut text = Vec::new();
        for line in 1.. {
            if !next_line(&mut reader, &mut text).map_err(io)? {
                break;
            }
            if text.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<Line>(&text) {
                Ok(line) => self.on_line(&line),
                Err(error) => {
                    let name = name();
                    return Err(ServerLogError::Line { name, line, error });
                }
            }
            if self.lines > MAX_LOG_LINES {
                return Err(ServerLogError::TooMany { name: name() });
            }
        }
        Ok(())
    }

    fn on_line(&mut self, line: &Line) {
        let version = match line.http_version.as_str() {
            "1.0" | "1.1" => HttpVersion::H1,
            "2" => HttpVersion::H2,
            "3" => HttpVersion::H3,
            _ => HttpVersion::Other,
        };
        let client = SocketAddr::new(line.client.ip().to_canonical(), line.client.port());
        self.lines += 1;
        self.requests.entry(client).or_default().push(Request {
            time_s: line.time,
            version,
        });
    }

    /// The version of the requests of a client over a transport between two times, in seconds since 1970.
    pub(crate) fn version(
        &self,
        client: SocketAddr,
        transport: Transport,
        start_s: f64,
        end_s: f64,
    ) -> Option<HttpVersion> {
        let during = start_s - TOLERANCE_S..=end_s + TOLERANCE_S;
        let requests = self.requests.get(&client)?;
        let request = requests.iter().find(|request| {
            let is_udp = request.version == HttpVersion::H3;
            during.contains(&request.time_s) && is_udp == (transport == Transport::Udp)
        })?;
        Some(request.version)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{HttpVersion, ServerLog, Transport};

    #[test]
    fn a_request_labels_the_flow_of_its_client_and_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        let line = |time, client, version| {
            format!(
                "{{\"time\":{time},\"client\":\"{client}\",\"http_version\":\"{version}\",\"x\":1}}\n"
            )
        };
        let lines = [
            line(100.5, "10.0.0.1:5000", "2"),
            line(900.0, "10.0.0.1:5000", "1.1"),
            line(100.0, "[::1]:5001", "3"),
        ];
        fs::write(&path, lines.concat()).unwrap();
        let log = ServerLog::read(&path).unwrap();
        let client = "10.0.0.1:5000".parse().unwrap();
        let (tcp, udp) = (Transport::Tcp, Transport::Udp);
        let version = |client, transport, start, end| log.version(client, transport, start, end);
        assert_eq!(version(client, tcp, 100.0, 101.0), Some(HttpVersion::H2));
        assert_eq!(version(client, tcp, 899.0, 905.0), Some(HttpVersion::H1));
        assert_eq!(version(client, tcp, 300.0, 400.0), None);
        // Another connection from the same port, which HTTP/2 does not use.
        assert_eq!(version(client, udp, 100.0, 101.0), None);
        let other = "[::1]:5001".parse().unwrap();
        assert_eq!(version(other, udp, 100.0, 101.0), Some(HttpVersion::H3));
        assert_eq!(version(other, tcp, 100.0, 101.0), None);
        fs::write(&path, "GET /\n").unwrap();
        let error = ServerLog::read(&path).unwrap_err();
        assert!(error.to_string().contains("access.log:1: "), "{error}");
    }
}
