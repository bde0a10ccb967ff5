//! The server of a client, by the flags of those that need one.

use std::borrow::Cow;
use std::path::PathBuf;

use clap::Args;
use marline::{PathPolicy, PathRule};
use marline_http::client::{ClientConfig, Trust};
use marline_http::read_regular_file;
use marline_tunnel::client::OpenError;

use super::keys::TunnelFile;
use crate::failure::{Failure, advice};
use crate::transport::TransportFlags;

/// Bytes of a file with a token.
const MAX_TOKEN_FILE: u64 = 4096;

/// The variable of the environment with a token.
const TOKEN: &str = "MARLINE_TUNNEL_TOKEN";

#[derive(Clone, Debug, Args)]
pub(super) struct Peer {
    /// The server [port: 4433]
    #[arg(value_name = "HOST[:PORT]", value_parser = server)]
    host: Option<String>,

    /// The file of the token [default: the token in $MARLINE_TUNNEL_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Use this network interface or address of this machine, and no others; repeatable; as for `get`
    #[arg(long, value_name = "IFACE|ADDR[,backup][,cap=SIZE]")]
    path: Vec<PathRule>,

    /// Trust only the certificates in FILE (PEM) and those that they have signed
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,

    /// Trust every certificate, for tests
    #[arg(long)]
    insecure: bool,
}

/// Parses a server, which may be a URL without a path.
fn server(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").unwrap_or(text);
    let host = host.strip_suffix('/').unwrap_or(host);
    match host.is_empty() || host.contains(['/', '?', '#', '@']) {
        true => Err("write HOST or HOST:PORT, as server.example.org:4433; a tunnel has no path and no other scheme".to_owned()),
        false => Ok(host.to_owned()),
    }
}

impl Peer {
    /// The server, as the user has written it.
    pub(super) fn host(&self) -> Result<String, Failure> {
        let missing = || Failure::Usage("the server is missing; give HOST or HOST:PORT".to_owned());
        self.host.clone().ok_or_else(missing)
    }

    /// Takes over from a file what the flags leave open.
    pub(super) fn complete(&mut self, file: &TunnelFile) -> Result<(), Failure> {
        if self.host.is_none() {
            self.host = file.one("server", server)?;
        }
        if self.token_file.is_none() {
            self.token_file = file.token_file();
        }
        if self.cacert.is_none() && !self.insecure {
            self.cacert = file.cacert();
        }
        if self.path.is_empty() {
            self.path = file.several("path", str::parse)?;
        }
        Ok(())
    }

    /// The settings of connections to it.
    pub(super) fn client(&self, flags: &TransportFlags) -> Result<ClientConfig, Failure> {
        let mut http = ClientConfig {
            trust: match (&self.cacert, self.insecure) {
                (Some(file), _) => Trust::File(file.clone()),
                (None, true) => Trust::Insecure,
                (None, false) => Trust::System,
            },
            qlog: flags.qlog_directory()?,
            // Without rules, the device of the tunnel would be one of the interfaces that are tried.
            migrate: !self.path.is_empty(),
            fallback: false,
            ..ClientConfig::default()
        };
        let mut transport = flags.config()?;
        if !self.path.is_empty() {
            let paths = self.path.len() as u32;
            let multipath = transport.multipath.get_or_insert_default();
            // One ID for each path, and one for a replacement.
            multipath.max_paths = multipath.max_paths.max(paths + 1);
            http.paths = Some(PathPolicy {
                rules: self.path.clone(),
                ..PathPolicy::default()
            });
        }
        http.quic.transport = transport.into();
        Ok(http)
    }

    /// The token of the user. It is no argument, because other users of the machine see those.
    pub(super) fn token(&self) -> Result<String, Failure> {
        let Some(file) = &self.token_file else {
            return std::env::var(TOKEN).map_err(|_| {
                Failure::Usage(format!(
                    "a token is missing; give the file that `marline tunnel token` wrote with --token-file, or the token in ${TOKEN}"
                ))
            });
        };
        let text = read_regular_file(file, MAX_TOKEN_FILE)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other));
        match text {
            Ok(text) => Ok(text.trim().to_owned()),
            Err(error) => {
                let file = file.display();
                Err(Failure::Failed(format!(
                    "cannot read the token in {file}: {error}"
                )))
            }
        }
    }
}

/// Advice for whoever made a request that is refused.
pub(super) fn refusal_advice(error: &OpenError) -> Option<Cow<'static, str>> {
    match error {
        OpenError::Client(error) => Some(advice(error)),
        OpenError::Unauthorized => {
            Some("ask its operator for a token, made with `marline tunnel token`".into())
        }
        OpenError::NoTunnel { .. } => {
            Some("check host and port; `marline tunnel serve` is the server".into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_be_a_url_without_a_path() {
        for (text, host) in [
            ("example.org", "example.org"),
            ("https://example.org/", "example.org"),
            ("https://example.org:443", "example.org:443"),
            ("[2001:db8::1]:443", "[2001:db8::1]:443"),
        ] {
            assert_eq!(server(text).unwrap(), host);
        }
        for text in ["", "https://", "http://example.org", "example.org/x", "a@b"] {
            let error = server(text).unwrap_err();
            assert!(error.contains("HOST:PORT"), "{error}");
        }
    }
}
