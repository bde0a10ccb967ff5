//! An IPFIX collector (RFC 7011, section 10), over UDP or TCP.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use marline_flow::output::{IpfixEncoder, IpfixMessage, IpfixSession};
use marline_flow::{Anonymizer, IPFIX_UDP_MESSAGE, Record};

use crate::failure::{Failure, print_message};

/// The most bytes of a message over TCP, few enough for messages to be sent without delay.
const TCP_MESSAGE: usize = 16 << 10;

/// The time limit for opening a connection and for sending a message; the buffer of a capture lasts longer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The interval between attempts to reconnect.
const RETRY: Duration = Duration::from_secs(10);

/// The longest interval between templates over UDP. A collector that starts late, or lost the templates, cannot decode
/// the messages before the next ones.
const TEMPLATES_AFTER: Duration = Duration::from_secs(30);
const TEMPLATES_AFTER_MESSAGES: u32 = 200;

/// The time that records wait for others of their message, in nanoseconds.
const LINGER_NS: u64 = 1_000_000_000;

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CollectorUrl {
    is_udp: bool,
    /// The host, with its port.
    host: String,
}

impl FromStr for CollectorUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (is_udp, host) = match text.split_once("://") {
            Some(("udp", host)) => (true, host),
            Some(("tcp", host)) => (false, host),
            _ => return Err("give udp://HOST:PORT or tcp://HOST:PORT".into()),
        };
        let host = host.trim_end_matches('/');
        let has_port = host.rsplit_once(':').is_some_and(|(name, port)| {
            let is_number = port.parse::<u16>().is_ok_and(|port| port > 0);
            !name.is_empty() && is_number
        });
        match has_port {
            true => Ok(Self {
                is_udp,
                host: host.to_owned(),
            }),
            false => Err("a port is missing; collectors of IPFIX use 4739".into()),
        }
    }
}

impl fmt::Display for CollectorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_udp { "udp" } else { "tcp" };
        write!(f, "{scheme}://{}", self.host)
    }
}

/// The bytes that were sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    /// Records of messages that could not be sent, or were refused.
    pub(super) lost_records: u64,
}

/// A collector, and the message in preparation for it.
pub(super) struct Collector {
    url: CollectorUrl,
    connection: Connection,
    session: IpfixSession,
    encoder: IpfixEncoder,
    sent: Sent,
    /// The time at which the message in preparation is due.
    due_ns: u64,
    now_ns: u64,
    has_failed: bool,
}

enum Connection {
    Udp {
        socket: UdpSocket,
        templates_at: Instant,
        messages_since: u32,
        /// Records of the previous message, which may still be refused.
        last_records: u32,
    },
    Tcp {
        /// `None` while the collector cannot be reached.
        stream: Option<TcpStream>,
        retry_at: Instant,
    },
}

#[expect(
    clippy::disallowed_methods,
    reason = "a collector is sent to in real time"
)]
fn now() -> Instant {
    Instant::now()
}

impl Collector {
    /// Opens a socket, or connects, and sends the templates.
    pub(super) fn connect(
        url: &CollectorUrl,
        anonymizer: Option<Anonymizer>,
    ) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::Failed(format!(
                "{url}: {error}; check that a collector listens there"
            ))
        };
        let (connection, max_len) = match url.is_udp {
            true => {
                let connection = Connection::Udp {
                    socket: udp(&url.host).map_err(failed)?,
                    templates_at: now(),
                    messages_since: 0,
                    last_records: 0,
                };
                (connection, IPFIX_UDP_MESSAGE)
            }
            false => {
                let connection = Connection::Tcp {
                    stream: Some(tcp(&url.host).map_err(failed)?),
                    retry_at: now(),
                };
                (connection, TCP_MESSAGE)
            }
        };
        let mut collector = Self {
            url: url.clone(),
            connection,
            session: IpfixSession::default(),
            encoder: IpfixEncoder::new(max_len, anonymizer),
            sent: Sent::default(),
            due_ns: u64::MAX,
            now_ns: 0,
            has_failed: false,
        };
        collector.send_templates();
        Ok(collector)
    }

    pub(super) const fn sent(&self) -> Sent {
        self.sent
    }

    pub(super) fn add(&mut self, record: &Record) {
        let was_empty = self.encoder.is_empty();
        let full = self.encoder.add(record);
        if was_empty || full.is_some() {
            self.due_ns = self.now_ns.saturating_add(LINGER_NS);
        }
        if let Some(message) = full {
            self.send(message);
        }
    }

    /// Sends the message in preparation if it is due.
    #[inline]
    pub(super) fn advance(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        if now_ns >= self.due_ns {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.due_ns = u64::MAX;
        if let Some(message) = self.encoder.flush() {
            self.send(message);
        }
    }

    /// Begins another session, for which the name of the collector is resolved again; the one before is kept where that fails.
    pub(super) fn reopen(&mut self) {
        self.flush();
        self.take_refusal();
        let host = &self.url.host;
        let opened = match &mut self.connection {
            Connection::Udp { socket, .. } => udp(host).map(|opened| *socket = opened),
            Connection::Tcp { stream, .. } => tcp(host).map(|opened| {
                if let Some(before) = stream.replace(opened) {
                    // Sent data arrives, whatever becomes of the connection.
                    let _ = before.shutdown(Shutdown::Write);
                }
            }),
        };
        match opened {
            Ok(()) => {
                self.session = IpfixSession::default();
                self.has_failed = false;
                self.send_templates();
            }
            Err(error) => print_message(&format!("{}: not opened again: {error}", self.url)),
        }
    }

    /// Counts the records of the last message as lost if ICMP refused it.
    fn take_refusal(&mut self) {
        if let Connection::Udp {
            socket,
            last_records,
            ..
        } = &mut self.connection
            && let Ok(Some(error)) = socket.take_error()
        {
            let records = std::mem::take(last_records);
            self.on_error(&error, records);
        }
    }

    /// Sends the rest.
    pub(super) fn finish(mut self) -> Sent {
        self.flush();
        self.take_refusal();
        if let Connection::Tcp {
            stream: Some(stream),
            ..
        } = &self.connection
        {
            // Sent data arrives, whatever becomes of the connection.
            let _ = stream.shutdown(Shutdown::Write);
        }
        self.sent
    }

    /// Counts records as lost, and reports the error the first time.
    fn on_error(&mut self, error: &io::Error, records: u32) {
        self.sent.lost_records += u64::from(records);
        if !self.has_failed {
            self.has_failed = true;
            print_message(&format!("{}: {error}; records are lost", self.url));
        }
    }

    /// Sends a message, preceded by the templates if they are due.
    fn send(&mut self, message: IpfixMessage) {
        let is_due = match &mut self.connection {
            Connection::Udp {
                templates_at,
                messages_since,
                ..
            } => {
                *messages_since += 1;
                *messages_since > TEMPLATES_AFTER_MESSAGES
                    || templates_at.elapsed() >= TEMPLATES_AFTER
            }
            Connection::Tcp { stream, retry_at } => {
                stream.is_none() && now() >= *retry_at && self.reconnect()
            }
        };
        if is_due {
            self.send_templates();
        }
        self.transmit(message);
    }

    fn send_templates(&mut self) {
        if let Connection::Udp {
            templates_at,
            messages_since,
            ..
        } = &mut self.connection
        {
            *templates_at = now();
            *messages_since = 0;
        }
        let templates = self.encoder.templates();
        self.transmit(templates);
    }

    /// Reconnects; returns whether that succeeded.
    fn reconnect(&mut self) -> bool {
        let Connection::Tcp { stream, retry_at } = &mut self.connection else {
            return false;
        };
        match tcp(&self.url.host) {
            Ok(connected) => {
                *stream = Some(connected);
                self.session = IpfixSession::default();
                self.has_failed = false;
                print_message(&format!("{}: connected again", self.url));
                true
            }
            Err(_) => {
                *retry_at = now() + RETRY;
                false
            }
        }
    }

    fn transmit(&mut self, message: IpfixMessage) {
        let records = message.records();
        let message = self.session.next(message, Some(seconds_now()));
        let result = match &mut self.connection {
            Connection::Udp {
                socket,
                last_records,
                ..
            } => {
                let before = std::mem::replace(last_records, records);
                match socket.send(&message) {
                    // ICMP reported that the previous message was refused; this one was not sent.
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                        let again = socket.send(&message).map(|_| ());
                        self.on_error(&error, before);
                        again
                    }
                    sent => sent.map(|_| ()),
                }
            }
            Connection::Tcp {
                stream: Some(open), ..
            } => open.write_all(&message),
            Connection::Tcp { stream: None, .. } => {
                self.sent.lost_records += u64::from(records);
                return;
            }
        };
        match result {
            Ok(()) => {
                self.sent.messages += 1;
                self.sent.bytes += message.len() as u64;
            }
            Err(error) => {
                if let Connection::Tcp { stream, retry_at } = &mut self.connection {
                    // A part of a message may have been sent, so that no other can follow.
                    *stream = None;
                    *retry_at = now() + RETRY;
                }
                self.on_error(&error, records);
            }
        }
    }
}

fn seconds_now() -> u32 {
    #[expect(
        clippy::disallowed_methods,
        reason = "a message has the time at which it leaves"
    )]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() as u32
}

fn addresses(host: &str) -> io::Result<Vec<SocketAddr>> {
    Ok(host.to_socket_addrs()?.collect())
}

/// The error for a name without addresses.
fn none() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the name has no address")
}

fn udp(host: &str) -> io::Result<UdpSocket> {
    let mut last = none();
    for address in addresses(host)? {
        let local: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let bound = UdpSocket::bind(local);
        match bound.and_then(|socket| socket.connect(address).map(|()| socket)) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn tcp(host: &str) -> io::Result<TcpStream> {
    let mut last = none();
    for address in addresses(host)? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => {
                stream.set_write_timeout(Some(TIMEOUT))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_has_a_scheme_and_a_port() {
        for url in [
            "udp://127.0.0.1:4739",
            "tcp://[::1]:4739",
            "udp://collector.example:9995",
        ] {
            assert_eq!(url.parse::<CollectorUrl>().unwrap().to_string(), url);
        }
        for url in [
            "127.0.0.1:4739",
            "http://a:1",
            "udp://a",
            "udp://:1",
            "tcp://a:0",
            "udp://a:99999",
            "",
        ] {
            assert!(url.parse::<CollectorUrl>().is_err(), "{url}");
        }
    }
}
