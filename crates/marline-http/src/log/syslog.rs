//! Messages of syslog (RFC 5424), over a socket of this machine or over UDP (RFC 5426).

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;

use super::{Entry, Sink, timestamp};
use crate::limits;

/// Where a syslog daemon receives.
pub(super) enum SyslogAddress {
    Socket(PathBuf),
    Udp(String),
}

/// The facility of daemons (RFC 5424, section 6.2.1).
const DAEMON: u8 = 3;

/// The name of the program.
const APP_NAME: &str = "marline";

/// An open socket to a syslog daemon.
pub(super) struct Syslog {
    socket: Socket,
    host: String,
}

enum Socket {
    #[cfg(unix)]
    Local {
        socket: std::os::unix::net::UnixDatagram,
        path: PathBuf,
    },
    Udp {
        socket: UdpSocket,
        address: SocketAddr,
    },
}

impl Syslog {
    /// Opens a socket to the daemon at `address`.
    pub(super) fn open(address: SyslogAddress) -> io::Result<Self> {
        let socket = match address {
            SyslogAddress::Socket(path) => Socket::local(path)?,
            SyslogAddress::Udp(host) => Socket::udp(&host)?,
        };
        Ok(Self {
            socket,
            host: host_name(),
        })
    }

    /// The message of `entry`.
    fn message(&self, entry: &Entry) -> Vec<u8> {
        let priority = DAEMON * 8 + entry.level.severity();
        let time = timestamp(entry.time);
        let (host, process, subject) = (&self.host, std::process::id(), entry.subject);
        let head = format!("<{priority}>1 {time} {host} {APP_NAME} {process} {subject} - ");
        let mut message = head.into_bytes();
        message.extend_from_slice(cut(&entry.text, limits::SYSLOG_TEXT_BYTES));
        message
    }
}

impl Sink for Syslog {
    fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let message = self.message(entry);
        match &self.socket {
            // By its path each time: the daemon may have been restarted.
            #[cfg(unix)]
            Socket::Local { socket, path } => socket.send_to(&message, path),
            Socket::Udp { socket, address } => socket.send_to(&message, address),
        }
        .map(drop)
    }
}

impl Socket {
    #[cfg(unix)]
    fn local(path: PathBuf) -> io::Result<Self> {
        use std::os::unix::net::UnixDatagram;

        // Fails if nothing receives there.
        UnixDatagram::unbound()?.connect(&path)?;
        let socket = UnixDatagram::unbound()?;
        Ok(Self::Local { socket, path })
    }

    #[cfg(not(unix))]
    fn local(_path: PathBuf) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn udp(host: &str) -> io::Result<Self> {
        let address = host.to_socket_addrs()?.next();
        let address = address.ok_or_else(|| io::Error::other("the host has no address"))?;
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => ([0; 4], 0).into(),
            SocketAddr::V6(_) => ([0; 16], 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        Ok(Self::Udp { socket, address })
    }
}

/// The beginning of `text` with at most `limit` bytes, which ends with a whole character.
pub(super) fn cut(text: &[u8], limit: usize) -> &[u8] {
    if text.len() <= limit {
        return text;
    }
    let is_inside = |at: &usize| text[*at] & 0xc0 == 0x80;
    let end = (0..=limit).rev().find(|at| !is_inside(at)).unwrap_or(0);
    &text[..end]
}

/// The name of this machine as a field of RFC 5424, or `-`.
fn host_name() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    #[cfg(not(unix))]
    let name = String::new();
    match !name.is_empty() && name.len() <= 255 && name.bytes().all(|byte| byte.is_ascii_graphic())
    {
        true => name,
        false => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Level;

    fn entry(text: &str) -> Entry {
        Entry {
            time: 1.7e9,
            level: Level::Warning,
            subject: "tls",
            text: text.as_bytes().to_vec(),
        }
    }

    fn check(received: &[u8]) {
        let text = std::str::from_utf8(received).unwrap();
        let fields: Vec<_> = text.splitn(8, ' ').collect();
        let process = std::process::id().to_string();
        // 3 * 8 + 4.
        assert_eq!(fields[0], "<28>1");
        assert_eq!(fields[1], "2023-11-14T22:13:20.000Z");
        assert!(!fields[2].is_empty());
        assert_eq!(
            fields[3..],
            ["marline", &process, "tls", "-", "a message"],
            "{text}"
        );
    }

    #[test]
    fn a_message_over_udp_has_the_fields_of_the_rfc() {
        let daemon = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = daemon.local_addr().unwrap();
        let mut syslog = Syslog::open(SyslogAddress::Udp(address.to_string())).unwrap();
        syslog.write(&entry("a message")).unwrap();
        let mut received = [0; 1000];
        let length = daemon.recv(&mut received).unwrap();
        check(&received[..length]);
    }

    #[cfg(unix)]
    #[test]
    fn a_daemon_that_was_restarted_gets_messages_again() {
        use std::os::unix::net::UnixDatagram;

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        assert!(Syslog::open(SyslogAddress::Socket(path.clone())).is_err());
        let daemon = UnixDatagram::bind(&path).unwrap();
        let mut syslog = Syslog::open(SyslogAddress::Socket(path.clone())).unwrap();
        drop(daemon);
        assert!(syslog.write(&entry("lost")).is_err());
        std::fs::remove_file(&path).unwrap();
        let daemon = UnixDatagram::bind(&path).unwrap();
        syslog.write(&entry("a message")).unwrap();
        let mut received = [0; 1000];
        let length = daemon.recv(&mut received).unwrap();
        check(&received[..length]);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut("aéb".as_bytes(), 2), b"a");
        assert_eq!(cut("aéb".as_bytes(), 3), "aé".as_bytes());
        assert_eq!(cut(b"ab", 2), b"ab");
    }
}
