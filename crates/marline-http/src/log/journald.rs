//! The journal of systemd, by its native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL).

use std::io;

use super::syslog::cut;
use super::{Entry, Sink};
use crate::limits;

/// The socket of the journal.
#[cfg(unix)]
const SOCKET: &str = "/run/systemd/journal/socket";

/// A socket to the journal.
pub(super) struct Journald {
    #[cfg(unix)]
    socket: std::os::unix::net::UnixDatagram,
    #[cfg(unix)]
    path: std::path::PathBuf,
}

impl Journald {
    /// Opens a socket to the journal of this machine.
    #[cfg(unix)]
    pub(super) fn open() -> io::Result<Self> {
        Self::at(SOCKET.into())
    }

    #[cfg(not(unix))]
    pub(super) fn open() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(unix)]
    fn at(path: std::path::PathBuf) -> io::Result<Self> {
        use std::os::unix::net::UnixDatagram;

        // Fails if nothing receives there.
        UnixDatagram::unbound()?.connect(&path)?;
        let socket = UnixDatagram::unbound()?;
        Ok(Self { socket, path })
    }
}

/// The fields of `entry`. The message has its length before it, so that nothing in it can look like another field.
fn fields(entry: &Entry) -> Vec<u8> {
    let text = cut(&entry.text, limits::JOURNALD_TEXT_BYTES);
    let head = format!(
        "PRIORITY={}\nSYSLOG_IDENTIFIER=marline\nMARLINE_SUBJECT={}\nMESSAGE\n",
        entry.level.severity(),
        entry.subject
    );
    let mut fields = head.into_bytes();
    fields.extend_from_slice(&(text.len() as u64).to_le_bytes());
    fields.extend_from_slice(text);
    fields.push(b'\n');
    fields
}

impl Sink for Journald {
    fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let fields = fields(entry);
        // By its path each time: the journal may have been restarted.
        #[cfg(unix)]
        let sent = self.socket.send_to(&fields, &self.path);
        #[cfg(not(unix))]
        let sent: io::Result<usize> = Err(io::ErrorKind::Unsupported.into());
        sent.map(drop)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;
    use crate::log::Level;

    #[test]
    fn an_entry_has_its_fields_and_none_that_its_text_imitates() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let journal = UnixDatagram::bind(&path).unwrap();
        let mut journald = Journald::at(path).unwrap();
        let entry = Entry {
            time: 1.7e9,
            level: Level::Error,
            subject: "server",
            text: b"x\n_UID=0".to_vec(),
        };
        journald.write(&entry).unwrap();
        let mut received = [0; 1000];
        let length = journal.recv(&mut received).unwrap();
        let expected = b"PRIORITY=3\nSYSLOG_IDENTIFIER=marline\nMARLINE_SUBJECT=server\nMESSAGE\n\x08\0\0\0\0\0\0\0x\n_UID=0\n";
        assert_eq!(&received[..length], expected);
    }
}
