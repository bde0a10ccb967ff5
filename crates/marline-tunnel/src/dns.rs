//! The resolvers of this host while a tunnel is up.
//!
//! With systemd-resolved they are settings of the tunnel's device, which end with it. Otherwise they are the content of
//! `/etc/resolv.conf`; the file of before stays beside it until it is put back, also after a crash or a restart of the machine.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::names::Name;
use crate::names::forwarder::{self, PORT};
use crate::packet::is_routable;

/// The field by which a server announces resolvers: addresses with commas between.
pub(crate) const FIELD: HeaderName = HeaderName::from_static("marline-dns");

/// Resolvers that a host uses (`resolv.conf(5)`).
pub const MAX_RESOLVERS: usize = 3;

/// The file of resolvers.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// The directory of systemd-resolved, which has the file that [`RESOLV_CONF`] then links to.
const RESOLVED: &str = "/run/systemd/resolve";

/// Its file that names systemd-resolved itself.
const STUB: &str = "stub-resolv.conf";

/// Its file of the resolvers of networks.
const RESOLVED_CONF: &str = "/run/systemd/resolve/resolv.conf";

/// Bytes of a file of resolvers.
const MAX_FILE: u64 = 64 * 1024;

/// The beginning of a file of ours, before the name of the device.
const MARK: &str = "# Of `marline tunnel up`, device ";

/// Why resolvers are not set, or not put back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DnsError {
    /// A file cannot be read, written or removed.
    #[error("cannot use {}: {cause}; with `--dns none`, the resolvers stay as they are", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: io::Error,
    },
    /// Another tunnel has set the resolvers.
    #[error(
        "{} is that of another tunnel; put it back with `marline tunnel down --device {device}`",
        path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
        /// The device of the other tunnel.
        device: String,
    },
    /// systemd-resolved refuses.
    #[error(
        "`resolvectl {arguments}` fails: {reason}; with `--dns none`, the resolvers stay as they are"
    )]
    Resolved {
        /// The arguments.
        arguments: String,
        /// The reason.
        reason: String,
    },
}

/// Announces resolvers in the fields of a response.
pub(crate) fn announce(fields: &mut HeaderMap, resolvers: &[IpAddr]) {
    let texts: Vec<_> = resolvers.iter().map(ToString::to_string).collect();
    if let Ok(value) = HeaderValue::try_from(texts.join(", "))
        && !texts.is_empty()
    {
        fields.insert(FIELD, value);
    }
}

/// The resolvers that the fields of a response announce, without those that no tunnel carries packets to.
pub(crate) fn announced(fields: &HeaderMap) -> Vec<IpAddr> {
    let text = fields.get(FIELD).and_then(|field| field.to_str().ok());
    let texts = text.unwrap_or_default().split(',');
    let addresses = texts.filter_map(|text| text.trim().parse().ok());
    let routable = addresses.filter(|address| is_routable(*address));
    routable.take(MAX_RESOLVERS).collect()
}

/// The resolvers of this host for a tunnel. Dropped, those of before are put back.
#[derive(Debug)]
pub struct Dns {
    device: String,
    /// The names that they are asked for, with all below; none for all.
    names: Vec<Name>,
    way: Way,
    resolvers: Vec<IpAddr>,
}

#[derive(Debug)]
enum Way {
    Resolved,
    File(Files),
}

impl Dns {
    /// Has this host use `resolvers` while the tunnel of `device` is up, for all names, or for `names` and those below them where
    /// systemd-resolved tells them apart.
    ///
    /// # Errors
    /// See [`DnsError`]. Nothing has changed then.
    pub fn set(device: &str, resolvers: &[IpAddr], names: &[Name]) -> Result<Self, DnsError> {
        let way = match is_resolved(!names.is_empty()) {
            true => Way::Resolved,
            false => Way::File(Files::of(device)),
        };
        let mut dns = Self {
            device: device.to_owned(),
            names: names.to_vec(),
            way,
            resolvers: Vec::new(),
        };
        dns.replace(resolvers)?;
        Ok(dns)
    }

    /// Has it use others.
    ///
    /// # Errors
    /// See [`DnsError`].
    pub fn replace(&mut self, resolvers: &[IpAddr]) -> Result<(), DnsError> {
        if self.resolvers == resolvers {
            return Ok(());
        }
        match &self.way {
            Way::Resolved => {
                let texts: Vec<_> = resolvers.iter().map(ToString::to_string).collect();
                let device = &*self.device;
                resolvectl(
                    &[
                        &["dns", device],
                        &texts.iter().map(|text| &**text).collect::<Vec<_>>()[..],
                    ]
                    .concat(),
                )?;
                let names = self.names.iter().map(|name| format!("~{name}"));
                let names: Vec<_> = names.collect();
                let names = names.iter().map(String::as_str);
                let (names, is_default) = match self.names.is_empty() {
                    true => (vec!["~."], "yes"),
                    false => (names.collect(), "no"),
                };
                resolvectl(&[&["domain", device], &names[..]].concat())?;
                resolvectl(&["default-route", device, is_default])?;
            }
            Way::File(files) => files.replace(&self.device, resolvers)?,
        }
        self.resolvers = resolvers.to_vec();
        Ok(())
    }

    /// The resolvers that were set.
    pub fn resolvers(&self) -> &[IpAddr] {
        &self.resolvers
    }

    /// The resolvers that this host has used before the tunnel of `device`, which may be up.
    /// Those of this host itself without any, as of `resolv.conf(5)`.
    pub(crate) fn of_before(device: &str) -> Vec<SocketAddr> {
        let file = match is_resolved(true) {
            true => PathBuf::from(RESOLVED_CONF),
            false => {
                let Files { current, before } = Files::of(device);
                if exists(&before) { before } else { current }
            }
        };
        listed(&read(&file).ok().flatten().unwrap_or_default())
    }

    /// Puts back what a killed client has left for this device; returns whether there was something.
    ///
    /// # Errors
    /// See [`DnsError`].
    pub fn put_back(device: &str) -> Result<bool, DnsError> {
        Files::of(device).put_back(device)
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        // What is left is put back by the next start, or by `tunnel down`.
        match &self.way {
            Way::Resolved => drop(resolvectl(&["revert", &self.device])),
            Way::File(files) => drop(files.put_back(&self.device)),
        }
    }
}

/// Whether programs use systemd-resolved; with `names`, only if they ask no resolver but it.
fn is_resolved(names: bool) -> bool {
    let file = fs::canonicalize(RESOLV_CONF);
    file.is_ok_and(|file| file.starts_with(RESOLVED) && (!names || file.ends_with(STUB)))
}

/// The resolvers that a file lists, but for ours.
fn listed(text: &str) -> Vec<SocketAddr> {
    let words = text.lines().map(str::split_whitespace);
    let resolver = |mut words: std::str::SplitWhitespace<'_>| match words.next() {
        Some("nameserver") => socket_address(words.next()?),
        _ => None,
    };
    let mut found: Vec<_> = words.filter_map(resolver).collect();
    found.retain(|resolver| resolver.ip().to_canonical() != forwarder::ADDRESS);
    found.truncate(MAX_RESOLVERS);
    match found.is_empty() {
        true => vec![(Ipv4Addr::LOCALHOST, PORT).into()],
        false => found,
    }
}

/// The address of a resolver, with its zone (RFC 4007) if it is of one link.
fn socket_address(text: &str) -> Option<SocketAddr> {
    let Some((address, zone)) = text.split_once('%') else {
        return Some((text.parse::<IpAddr>().ok()?, PORT).into());
    };
    let number = || {
        let file = Path::new("/sys/class/net").join(zone).join("ifindex");
        fs::read_to_string(file).ok()?.trim().parse().ok()
    };
    let zone = zone.parse().ok().or_else(number)?;
    Some(SocketAddrV6::new(address.parse().ok()?, PORT, 0, zone).into())
}

fn resolvectl(arguments: &[&str]) -> Result<(), DnsError> {
    let failed = |reason: String| DnsError::Resolved {
        arguments: arguments.join(" "),
        reason,
    };
    let output = Command::new("resolvectl").args(arguments).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        )),
    }
}

/// The file of resolvers, and that of before.
#[derive(Debug)]
struct Files {
    current: PathBuf,
    before: PathBuf,
}

impl Files {
    fn of(device: &str) -> Self {
        Self::at(Path::new(RESOLV_CONF), device)
    }

    fn at(current: &Path, device: &str) -> Self {
        let mut before = current.as_os_str().to_owned();
        before.push(format!(".before-{device}"));
        Self {
            current: current.to_owned(),
            before: before.into(),
        }
    }

    /// Keeps the file of before, unless that was done, and writes one with `resolvers`.
    fn replace(&self, device: &str, resolvers: &[IpAddr]) -> Result<(), DnsError> {
        let current = read(&self.current)?;
        match owner(current.as_deref()) {
            Some(other) if other != device => {
                return Err(DnsError::InUse {
                    path: self.current.clone(),
                    device: other.to_owned(),
                });
            }
            Some(_) => {}
            None => self.keep(current.as_deref())?,
        }
        let mut text = format!(
            "{MARK}{device}\n# `marline tunnel down --device {device}` puts the file of before back.\n"
        );
        for line in read(&self.before)?.unwrap_or_default().lines() {
            if line.starts_with("search ") || line.starts_with("domain ") {
                text.push_str(&format!("{line}\n"));
            }
        }
        for resolver in resolvers {
            text.push_str(&format!("nameserver {resolver}\n"));
        }
        // In place: the file of a container or a namespace is mounted, and cannot be replaced as a whole.
        let is_new = !exists(&self.current);
        on(&self.current, fs::write(&self.current, text))?;
        match is_new {
            true => on(
                &self.current,
                fs::set_permissions(&self.current, Permissions::from_mode(0o644)),
            ),
            false => Ok(()),
        }
    }

    /// Keeps the file with this content, or the link, if there is one.
    fn keep(&self, content: Option<&str>) -> Result<(), DnsError> {
        if is_link(&self.current) {
            return on(&self.current, fs::rename(&self.current, &self.before));
        }
        let Some(content) = content else {
            // Of a crash long ago.
            return remove(&self.before);
        };
        let directory = self.before.parent().unwrap_or(Path::new("/"));
        let write = || {
            let mut new = tempfile::NamedTempFile::new_in(directory)?;
            new.write_all(content.as_bytes())?;
            new.as_file()
                .set_permissions(Permissions::from_mode(0o644))?;
            new.as_file().sync_all()?;
            new.persist(&self.before)?;
            Ok(())
        };
        on(&self.before, write())
    }

    /// Puts the file of before back, unless somebody has replaced ours; returns whether there was something to put back.
    fn put_back(&self, device: &str) -> Result<bool, DnsError> {
        let current = read(&self.current)?;
        let has_before = exists(&self.before);
        // A crash leaves none, or an empty one, at the worst.
        let is_begun = has_before && current.as_deref().is_none_or(str::is_empty);
        if owner(current.as_deref()) != Some(device) && !is_begun {
            // That of before is out of date.
            remove(&self.before)?;
            return Ok(false);
        }
        if !has_before {
            remove(&self.current)?;
        } else if is_link(&self.before) {
            on(&self.current, fs::rename(&self.before, &self.current))?;
        } else {
            let content = read(&self.before)?.unwrap_or_default();
            on(&self.current, fs::write(&self.current, content))?;
            remove(&self.before)?;
        }
        Ok(true)
    }
}

/// The device in a file of ours.
fn owner(content: Option<&str>) -> Option<&str> {
    content?.lines().next()?.strip_prefix(MARK)
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

/// The content of a file; `None` if there is none, or a link to none.
fn read(path: &Path) -> Result<Option<String>, DnsError> {
    match marline_http::read_regular_file(path, MAX_FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => on(path, read).map(|bytes| Some(String::from_utf8_lossy(&bytes).into_owned())),
    }
}

fn remove(path: &Path) -> Result<(), DnsError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => on(path, removed),
    }
}

fn on<T>(path: &Path, result: io::Result<T>) -> Result<T, DnsError> {
    result.map_err(|cause| DnsError::File {
        path: path.to_owned(),
        cause,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "search example.org\noptions edns0\nnameserver 192.0.2.1\n";

    fn resolvers(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_in_place_and_put_back() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("resolv.conf");
        fs::write(&file, BEFORE).unwrap();
        let files = Files::at(&file, "tun0");
        for round in [["10.0.0.53", "fd00::53"], ["10.0.0.54", "fd00::54"]] {
            files.replace("tun0", &resolvers(&round)).unwrap();
            let text = fs::read_to_string(&file).unwrap();
            let expected = format!(
                "search example.org\nnameserver {}\nnameserver {}\n",
                round[0], round[1]
            );
            assert!(text.ends_with(&expected), "{text}");
        }
        let other = Files::at(&file, "tun1").replace("tun1", &[]).unwrap_err();
        assert!(other.to_string().contains("--device tun0"), "{other}");
        assert!(files.put_back("tun0").unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), BEFORE);
        assert!(!files.put_back("tun0").unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_and_the_lack_of_a_file_are_put_back() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("resolv.conf");
        let files = Files::at(&file, "tun0");
        files.replace("tun0", &resolvers(&["10.0.0.53"])).unwrap();
        assert!(files.put_back("tun0").unwrap());
        assert!(!exists(&file));
        let target = directory.path().join("managed");
        fs::write(&target, BEFORE).unwrap();
        std::os::unix::fs::symlink(&target, &file).unwrap();
        files.replace("tun0", &resolvers(&["10.0.0.53"])).unwrap();
        assert!(fs::read_to_string(&file).unwrap().contains("10.0.0.53"));
        assert_eq!(fs::read_to_string(&target).unwrap(), BEFORE);
        // A crash before ours was written.
        fs::remove_file(&file).unwrap();
        assert!(files.put_back("tun0").unwrap());
        assert_eq!(fs::read_link(&file).unwrap(), target);
    }

    #[test]
    fn what_somebody_has_written_meanwhile_stays() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("resolv.conf");
        fs::write(&file, BEFORE).unwrap();
        let files = Files::at(&file, "tun0");
        files.replace("tun0", &resolvers(&["10.0.0.53"])).unwrap();
        fs::write(&file, "nameserver 198.51.100.1\n").unwrap();
        assert!(!files.put_back("tun0").unwrap());
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, "nameserver 198.51.100.1\n");
        assert!(!exists(&files.before));
    }

    #[test]
    fn the_resolvers_of_before_are_those_of_the_file_or_of_the_host_itself() {
        let texts = |text: &str| -> Vec<_> {
            let listed = listed(text);
            listed.iter().map(ToString::to_string).collect()
        };
        let text = "search a\nnameserver ::ffff:169.254.77.53\nnameserver fe80::1%lo\nnameserver 192.0.2.1\n";
        assert_eq!(texts(text), ["[fe80::1%1]:53", "192.0.2.1:53"]);
        for none in [
            "",
            "nameserver 169.254.77.53\n",
            "nameserver fe80::1%none\n",
        ] {
            assert_eq!(texts(none), ["127.0.0.1:53"], "{none}");
        }
    }

    #[test]
    fn resolvers_are_announced_in_a_field() {
        let mut fields = HeaderMap::new();
        announce(&mut fields, &[]);
        assert!(announced(&fields).is_empty() && fields.is_empty());
        let all = resolvers(&["10.0.0.53", "fd00::53"]);
        announce(&mut fields, &all);
        assert_eq!(announced(&fields), all);
        // What no host should take over.
        let bad = "127.0.0.1, x, fe80::1, 10.0.0.1\t, 224.0.0.1,10.0.0.2, 10.0.0.3, 10.0.0.4";
        fields.insert(FIELD, HeaderValue::from_static(bad));
        let taken = resolvers(&["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
        assert_eq!(announced(&fields), taken);
    }
}
