//! The policy for the host's addresses that a client's connections use.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use marline_proto::scheduling::path::PathStatus;
use marline_proto::settings::read_bytes;

/// The policy for the host's addresses that a client's connections use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPolicy {
    /// One path for each rule that has an address. The connection begins on the first that works, backups
    /// last.
    pub rules: Vec<PathRule>,
    /// The time that a handshake may take before another is started in parallel from the next address: the Connection
    /// Attempt Delay of RFC 8305.
    pub head_start: Duration,
    /// The interval at which the host's addresses are read.
    pub poll: Duration,
    /// The longest pause before a path that failed is opened again. The first pause is a second, and each is
    /// twice as long as the one before.
    pub longest_pause: Duration,
    /// The application's error code with which a connection closes when the only path it has left has
    /// [spent its cap](PathRule::cap_bytes).
    pub close_code: u64,
}

impl Default for PathPolicy {
    /// No rules. Handshakes start half a second apart: longer than a round trip over most networks, shorter
    /// than the first probe timeout of a second. Addresses are read every second, pauses are at most a minute.
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            head_start: Duration::from_millis(500),
            poll: Duration::from_secs(1),
            longest_pause: Duration::from_secs(60),
            close_code: 0,
        }
    }
}

/// A path that connections should have.
///
/// RawValue as `NAME[,backup][,cap=SIZE]`: `wlan0`, `wwan0,backup,cap=10MB`, `192.0.2.7`. Sizes are
/// [written](marline_proto::settings::units) as those of settings, or as a number of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// Its local end.
    pub source: PathSource,
    /// A [backup](PathStatus::Backup) carries data only while no other path works.
    pub status: PathStatus,
    /// The most bytes to send and receive over it, IP headers included, over all connections of the manager
    /// together; `None` for no limit. When they are [spent](Self::spent), the path is abandoned and not opened
    /// again; a connection that has no other is closed.
    ///
    /// Bytes are counted ten times a second, and more often as the cap is approached. The cap can be exceeded
    /// by what the path carries between two counts and until PATH_ABANDON has reached the server.
    pub cap_bytes: Option<u64>,
    /// The bytes that its paths have carried. A clone of the rule has the same count, so that its cap holds over managers.
    pub spent: SpentBytes,
}

impl PathRule {
    /// A path for ordinary use, without a cap.
    pub fn new(source: PathSource) -> Self {
        Self {
            source,
            status: PathStatus::Available,
            cap_bytes: None,
            spent: SpentBytes::default(),
        }
    }
}

/// A count of bytes that paths have carried. Clones are the same count.
#[derive(Clone, Debug, Default)]
pub struct SpentBytes(Arc<AtomicU64>);

impl SpentBytes {
    /// A count that begins at `bytes`, as of an earlier process.
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(bytes.into()))
    }

    /// The bytes so far.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Begins at 0 again: a [cap](PathRule::cap_bytes) that was spent is not any more, and the path is opened again.
    pub fn reset(&self) {
        self.0.store(0, Relaxed);
    }

    pub(super) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Relaxed);
    }
}

impl PartialEq for SpentBytes {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for SpentBytes {}

/// The local end of a path: a network interface of this host, or one of its addresses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathSource {
    /// An interface by its name, with an address of the server's family.
    Interface(String),
    /// An address.
    Address(IpAddr),
    /// An interface that the application names while connections are open; never written as text.
    Assigned(AssignedInterface),
}

impl PathSource {
    /// The name of the interface, if it has one now.
    pub(super) fn interface(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Interface(name) => Some(name.into()),
            Self::Address(_) => None,
            Self::Assigned(assigned) => assigned.name().map(Cow::Owned),
        }
    }
}

impl fmt::Display for PathSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
            Self::Assigned(assigned) => {
                f.write_str(assigned.name().as_deref().unwrap_or("no interface"))
            }
        }
    }
}

/// An interface that changes: a path has another local end as soon as the manager reads the host's addresses again
/// ([`PathPolicy::poll`]). Clones are the same interface, and no others are equal.
#[derive(Clone, Debug, Default)]
pub struct AssignedInterface(Arc<Mutex<Option<String>>>);

impl AssignedInterface {
    /// Its present name.
    pub fn name(&self) -> Option<String> {
        self.lock().clone()
    }

    /// Names another interface, or none.
    pub fn assign(&self, name: Option<String>) {
        *self.lock() = name;
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for AssignedInterface {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for AssignedInterface {}

impl Hash for AssignedInterface {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl FromStr for PathSource {
    type Err = InvalidPathRule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse::<IpAddr>() {
            Ok(address) if address.is_unspecified() || address.is_multicast() => {
                Err(InvalidPathRule::Address(address))
            }
            Ok(address) => Ok(Self::Address(address.to_canonical())),
            Err(_) if text.is_empty() || text.contains([' ', '/', '=']) => {
                Err(InvalidPathRule::Name(text.to_owned()))
            }
            Err(_) => Ok(Self::Interface(text.to_owned())),
        }
    }
}

impl FromStr for PathRule {
    type Err = InvalidPathRule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = text.split(',').map(str::trim);
        let mut rule = Self::new(words.next().unwrap_or_default().parse()?);
        for word in words {
            match word.split_once('=') {
                None if word == "backup" => rule.status = PathStatus::Backup,
                Some(("cap", bytes)) => rule.cap_bytes = Some(size(bytes)?),
                _ => return Err(InvalidPathRule::Word(word.to_owned())),
            }
        }
        Ok(rule)
    }
}

/// Why a text is not a [`PathRule`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPathRule {
    /// Neither an address nor a valid interface name.
    #[error("`{0}` is neither an address nor the name of an interface")]
    Name(String),
    /// Not a unicast address.
    #[error("nothing can be sent from {0}")]
    Address(IpAddr),
    /// An unknown word.
    #[error("unknown word `{0}`; write a path as NAME[,backup][,cap=SIZE]")]
    Word(String),
    /// Not a size.
    #[error("`{0}` is not a size above 0; write it as 500kB, 10MB or 2GB")]
    Size(String),
}

fn size(text: &str) -> Result<u64, InvalidPathRule> {
    let read = text.parse().or_else(|_| read_bytes(text));
    let wrong = || InvalidPathRule::Size(text.to_owned());
    read.ok().filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<PathRule, String> {
        text.parse::<PathRule>().map_err(|error| error.to_string())
    }

    #[test]
    fn rules_parse_with_their_options() {
        let plain = PathRule::new(PathSource::Interface("wlan0".to_owned()));
        assert_eq!(read("wlan0"), Ok(plain.clone()));
        let second = PathRule {
            source: PathSource::Interface("wwan0".to_owned()),
            status: PathStatus::Backup,
            cap_bytes: Some(10_000_000),
            spent: SpentBytes::default(),
        };
        assert_eq!(read("wwan0,backup,cap=10MB"), Ok(second.clone()));
        assert_eq!(read("wwan0, cap=10000kB, backup"), Ok(second));
        let address = |text: &str| PathRule::new(PathSource::Address(text.parse().unwrap()));
        assert_eq!(read("127.0.0.2"), Ok(address("127.0.0.2")));
        assert_eq!(read("::ffff:127.0.0.2"), Ok(address("127.0.0.2")));
        assert_eq!(read("2001:db8::1"), Ok(address("2001:db8::1")));
        assert_eq!(read("eth0,cap=2GiB").unwrap().cap_bytes, Some(2 << 30));
        assert_eq!(plain.source.to_string(), "wlan0");
    }

    #[test]
    fn errors_name_the_invalid_part() {
        for (text, word) in [
            ("", "``"),
            ("wlan0,bakcup", "`bakcup`"),
            ("wlan0,cap=", "`` is not a size"),
            ("wlan0,cap=10 bananas", "`10 bananas`"),
            ("wlan0,cap=0MB", "`0MB`"),
            ("wlan0,cap=99999999999999999999", "`99999999999999999999`"),
            ("wlan0,cap=99999999999999GiB", "not a size"),
            ("0.0.0.0", "nothing can be sent from 0.0.0.0"),
            ("a b", "`a b`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
