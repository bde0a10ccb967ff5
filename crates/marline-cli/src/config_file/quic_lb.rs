//! The table `[quic_lb]`: connection IDs from which a load balancer reads the server.

use std::path::{Path, PathBuf};

use marline::settings::{Domain, Settings, field};
use marline::{QUIC_LB_KEY_LEN, QuicLbConfig, QuicLbError, QuicLbFormat, ServerId, quic_lb_key};
use marline_http::server::read_secret;

use super::written::WrittenTable;
use crate::failure::Failure;

/// The value of `key_file` for IDs that everybody can read.
const NONE: &str = "none";

/// The keys of the table, and where they are written.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuicLbKeys {
    server_id: Option<ServerId>,
    config: u8,
    key_file: Option<PathBuf>,
    nonce_length: Option<usize>,
    encode_length: bool,
    written: WrittenTable,
}

impl QuicLbKeys {
    /// Its keys in settings.
    pub(super) const SETTINGS: Settings<Self> = &[
        field!(
            server_id: Domain::text("1 to 15 bytes in hexadecimal, as \"c0ffee\""),
            "The name of this server in connection IDs, of one length for all servers of a configuration"
        ),
        field!(config: Domain::integer(0, 6), "The identifier of the configuration, in the first bits of connection IDs"),
        field!(
            key_file: Domain::text("the path of a file, or \"none\""),
            "The file with the key of connection IDs, 32 hexadecimal digits; with \"none\", everybody can read the server"
        ),
        field!(
            nonce_length: Domain::integer(8, 17),
            "Bytes of a connection ID that differ between IDs; by default, server_id and these are 16 bytes, and at least 8"
        ),
        field!(encode_length: Domain::SWITCH, "Whether the first byte of connection IDs has their length"),
    ];

    /// Checks what is `written`; relative paths start at `base`.
    ///
    /// # Errors
    /// A key is missing, or the lengths do not fit: with file and line.
    pub(super) fn check(&mut self, written: WrittenTable, base: &Path) -> Result<(), String> {
        self.written = written;
        if let Some(path) = self.key_file.as_mut().filter(|path| !is_none(path)) {
            *path = base.join(&path);
        }
        match &self.key_file {
            Some(_) => self.config_with(None).map(drop),
            None => Err(format!(
                "{}: quic_lb: connection IDs need a key, or observers can link those of one server; name its file by `key_file`, or write key_file = \"{NONE}\"",
                self.written.place(&[])
            )),
        }
    }

    /// The configuration, with the key.
    ///
    /// # Errors
    /// The key cannot be read: with file and line.
    pub(crate) fn open(&self) -> Result<QuicLbConfig, Failure> {
        let key = match self.key_file.as_deref().filter(|path| !is_none(path)) {
            None => None,
            Some(path) => {
                let place = self.written.place(&["key_file"]);
                let failed =
                    |error: String| Failure::Usage(format!("{place}: quic_lb.key_file: {error}"));
                let text = read_secret(path).map_err(|error| failed(error.to_string()))?;
                let key = quic_lb_key(&text)
                    .map_err(|error| failed(format!("{}: {error}", path.display())))?;
                Some(key)
            }
        };
        self.config_with(key).map_err(Failure::Usage)
    }

    fn config_with(&self, key: Option<[u8; QUIC_LB_KEY_LEN]>) -> Result<QuicLbConfig, String> {
        let Some(server_id) = self.server_id else {
            let place = self.written.place(&[]);
            return Err(format!(
                "{place}: quic_lb: this server has no name for the load balancer; give it one by `server_id`"
            ));
        };
        let default = QuicLbConfig::default_nonce_len(server_id.len());
        let nonce_len = self.nonce_length.unwrap_or(default);
        let format = QuicLbFormat::new(self.config, server_id.len(), nonce_len, key);
        let config =
            format.and_then(|format| QuicLbConfig::new(format, server_id, self.encode_length));
        config.map_err(|error: QuicLbError| {
            let key = match self.nonce_length {
                Some(_) => "nonce_length",
                None => "server_id",
            };
            format!("{}: quic_lb.{key}: {error}", self.written.place(&[key]))
        })
    }
}

fn is_none(path: &Path) -> bool {
    path == Path::new(NONE)
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;

    fn refused(text: &str) -> String {
        read(text).unwrap_err()
    }

    #[test]
    fn the_table_names_server_and_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lb.key");
        let text = |digits: &str| {
            std::fs::write(&path, digits).unwrap();
            #[cfg(unix)]
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .unwrap();
            format!(
                "dir = '.'\n[quic_lb]\nserver_id = 'c0ffee'\nconfig = 3\nkey_file = '{}'",
                path.display()
            )
        };
        let file = read(&text("8f95f09245765f80256934e50c66207f\n")).unwrap();
        let config = file.quic_lb.unwrap().open().unwrap();
        assert_eq!(config.id_len(), 18);
        let wrong = read(&text("8f95\n")).unwrap().quic_lb.unwrap().open();
        let Err(Failure::Usage(error)) = wrong else {
            panic!("{wrong:?}");
        };
        assert!(error.contains("site.toml:5: quic_lb.key_file: "), "{error}");
        assert!(error.contains("32 hexadecimal digits"), "{error}");
    }

    #[test]
    fn errors_name_line_and_key() {
        let none = "key_file = 'none'";
        for (text, expected) in [
            (
                format!("[quic_lb]\n{none}"),
                "site.toml:1: quic_lb: this server has no name",
            ),
            (
                "\n[quic_lb]\nserver_id = '01'".to_owned(),
                "site.toml:2: quic_lb: connection IDs need a key",
            ),
            (
                format!("[quic_lb]\nserver_id = '0'\n{none}"),
                "site.toml:2: quic_lb.server_id: ",
            ),
            (
                format!("[quic_lb]\nserver_id = '01'\nconfig = 7\n{none}"),
                "site.toml:3: quic_lb.config: ",
            ),
            (
                format!("[quic_lb]\nserver_id = '0102030405'\nnonce_length = 14\n{none}"),
                "site.toml:3: quic_lb.nonce_length: server ID and nonce make connection IDs of 21 bytes",
            ),
            (
                format!("[quic_lb]\nserver_id = '0102030405060708090a0b'\n{none}"),
                "site.toml:2: quic_lb.server_id: a nonce has at least 8 bytes, not 7",
            ),
            (
                format!("[endpoint]\nconnection_id_len = 8\n[quic_lb]\nserver_id = '01'\n{none}"),
                "site.toml:2: endpoint.connection_id_len: the length follows from [quic_lb]",
            ),
        ] {
            let error = refused(&text);
            assert!(error.contains(expected), "{error}");
        }
    }
}
