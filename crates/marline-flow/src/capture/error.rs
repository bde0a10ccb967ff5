//! The reasons why a capture cannot be read.

use std::fmt;
use std::io;

use super::gzip::Fault;
use super::link::Named;

/// A capture cannot be read; the message names it and the remedy.
#[derive(Debug)]
pub struct CaptureError {
    name: String,
    problem: Problem,
}

/// The problem with a capture.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// Its bytes cannot be read.
    Io(io::Error),
    /// It has no bytes.
    Empty,
    /// It is neither pcap nor pcapng.
    NoCapture,
    /// It is compressed in another format than gzip, or twice.
    Compressed,
    /// Its link type, with this number, is not supported.
    LinkType(u32),
    /// It ends within the header, or within a packet, which begins at this byte.
    Truncated(u64),
    /// It is malformed at this byte.
    Malformed {
        /// The byte.
        at: u64,
        /// The kind of malformation.
        what: &'static str,
    },
}

impl CaptureError {
    pub(super) fn new(name: String, problem: Problem) -> Self {
        Self { name, problem }
    }

    /// The problem.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Whether the packets read before are complete: the capture was cut.
    pub fn is_truncation(&self) -> bool {
        matches!(self.problem, Problem::Truncated(_))
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        match &self.problem {
            Problem::Io(error) => write!(f, "{error}"),
            Problem::Empty => f.write_str("is empty"),
            Problem::NoCapture => f.write_str("is neither pcap nor pcapng"),
            Problem::Compressed => f.write_str("is compressed, and not by gzip alone"),
            Problem::LinkType(number) => write!(
                f,
                "has packets of link type {}, which is not Ethernet, 802.11, PPP, raw IP, Linux cooked, netfilter log or loopback",
                Named(*number)
            ),
            Problem::Truncated(at) => write!(f, "ends within the packet or block at byte {at}"),
            Problem::Malformed { at, what } => write!(f, "is malformed at byte {at}: {what}"),
        }
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        let fault = error.get_ref().and_then(|inner| inner.downcast_ref());
        match fault {
            Some(Fault { is_cut: true, at }) => Self::Truncated(*at),
            Some(Fault { is_cut: false, at }) => Self::Malformed {
                at: *at,
                what: "the compressed data is damaged",
            },
            None => Self::Io(error),
        }
    }
}
