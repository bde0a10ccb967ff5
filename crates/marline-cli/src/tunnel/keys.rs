//! The settings of a tunnel in a TOML file. Flags of the command line override them.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use marline::settings::{Domain, List, Settings, field, keys, quote};
use marline_http::read_regular_file;

use crate::config_file::WrittenTable;
use crate::failure::Failure;

/// More than any configuration has, in bytes.
const MAX_FILE: u64 = 1 << 20;

const FILE: Domain = Domain::text("the name of a file");

/// The keys of a file, each of which is a flag as well.
#[derive(Clone, Debug, Default)]
struct Keys {
    server: Option<String>,
    token_file: Option<PathBuf>,
    cacert: Option<PathBuf>,
    path: Vec<String>,
    split: Vec<String>,
    mode: Option<String>,
    tcp: Option<String>,
    dns: Vec<String>,
    device: Option<String>,
}

impl Keys {
    const SETTINGS: Settings<Self> = &[
        field!(server: Domain::text("a host, or a host with a port"), "The server"),
        field!(token_file: FILE, "The file of the token"),
        field!(cacert: FILE, "The certificates that are trusted, in PEM"),
        &List {
            key: "path",
            domain: Domain::text(
                "a network as \"wlan0\", \"wwan0,backup\" or \"192.0.2.7,cap=1GB\"",
            ),
            about: "The networks that are used",
            field: |c: &mut Self| &mut c.path,
        },
        &List {
            key: "split",
            domain: Domain::text("addresses as \"192.0.2.0/24\""),
            about: "The destinations whose packets go through the tunnel; without it, all",
            field: |c: &mut Self| &mut c.split,
        },
        field!(mode: Domain::text("\"fast\", \"steady\" or \"save\""), "How several networks are used"),
        field!(tcp: Domain::text("\"streams\" or \"packets\""), "How connections of TCP are carried"),
        &List {
            key: "dns",
            domain: Domain::text("the address of a resolver, or \"none\""),
            about: "The resolvers while the tunnel is up",
            field: |c: &mut Self| &mut c.dns,
        },
        field!(device: Domain::text("the name of a network device"), "The network device"),
    ];
}

/// The settings of a file.
pub(super) struct TunnelFile {
    keys: Keys,
    written: WrittenTable,
}

impl TunnelFile {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is wrong: with file, line and key.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        let text = read_regular_file(path, MAX_FILE)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other))
            .map_err(|error| Failure::Failed(format!("cannot read {name}: {error}")))?;
        Self::parse(&name.to_string(), &text).map_err(Failure::Usage)
    }

    fn parse(name: &str, text: &str) -> Result<Self, String> {
        let written = WrittenTable::read(name, text)?;
        let known: Vec<_> = keys(Keys::SETTINGS).collect();
        written.refuse_unknown(&known)?;
        let mut keys = Keys::default();
        written.apply(Keys::SETTINGS, &mut keys)?;
        Ok(Self { keys, written })
    }

    pub(super) fn token_file(&self) -> Option<PathBuf> {
        self.keys.token_file.clone()
    }

    pub(super) fn cacert(&self) -> Option<PathBuf> {
        self.keys.cacert.clone()
    }

    /// The value of a key with one, read as that of its flag.
    ///
    /// # Errors
    /// The flag refuses it: with file, line and key.
    pub(super) fn one<T, E: Display>(
        &self,
        key: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Failure> {
        let text = match key {
            "server" => &self.keys.server,
            "mode" => &self.keys.mode,
            "tcp" => &self.keys.tcp,
            _ => &self.keys.device,
        };
        let value = text.as_deref().map(|text| self.value(key, text, read));
        value.transpose()
    }

    /// The values of a key with several, read as those of its flag.
    ///
    /// # Errors
    /// The flag refuses one: with file, line and key.
    pub(super) fn several<T, E: Display>(
        &self,
        key: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Vec<T>, Failure> {
        let texts = match key {
            "path" => &self.keys.path,
            "split" => &self.keys.split,
            _ => &self.keys.dns,
        };
        let values = texts.iter().map(|text| self.value(key, text, &read));
        values.collect()
    }

    fn value<T, E: Display>(
        &self,
        key: &str,
        text: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, Failure> {
        read(text).map_err(|why| {
            let place = self.written.place(&[key]);
            Failure::Usage(format!("{place}: {key}: \"{}\": {why}", quote(text)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::up::network;

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let text = "server = \"example.org\"\n\nsplit = [\"10.0.0.0/8\", \"x\"]\n";
        let file = TunnelFile::parse("t.toml", text).ok().unwrap();
        let Err(Failure::Usage(message)) = file.several("split", network) else {
            panic!("the network is refused");
        };
        assert!(message.starts_with("t.toml:3: split: \"x\": "), "{message}");
        for (text, place) in [
            ("\nmode = 1", "t.toml:2: "),
            ("server = 3", "t.toml:1: server"),
            ("dns = [\"1\"", "t.toml:1"),
            ("tcp = \"a\"\ntcp = \"b\"", "t.toml:2: tcp"),
        ] {
            let message = TunnelFile::parse("t.toml", text).err().unwrap();
            assert!(message.starts_with(place), "{message}");
        }
    }
}
