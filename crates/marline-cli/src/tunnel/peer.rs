//! The server of a client, by the flags of those that need one.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;

use clap::Args;
use marline::{PathPolicy, PathRule};
use marline_http::client::{ClientConfig, ClientError, Trust};
use marline_http::read_regular_file;
use marline_http::server::Identity;
use marline_tunnel::client::OpenError;

use crate::config_file::FlagsFile;
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

    /// The certificate of the user in PEM, in place of a token
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Its private key in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

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
    pub(super) fn complete(&mut self, file: &FlagsFile) -> Result<(), Failure> {
        file.one("server", &mut self.host, server)?;
        file.file("token_file", &mut self.token_file)?;
        if self.cert.is_none() {
            file.file("cert", &mut self.cert)?;
            file.file("key", &mut self.key)?;
            if self.cert.is_some() != self.key.is_some() {
                let message = "cert and key belong together; give both";
                return Err(Failure::Usage(message.to_owned()));
            }
        }
        // Flags about trust replace those of the file as a whole.
        if self.cacert.is_none() && !self.insecure {
            file.file("cacert", &mut self.cacert)?;
            file.switch("insecure", &mut self.insecure)?;
            if self.insecure && self.cacert.is_some() {
                let message = "cacert and insecure are both in the file; keep one of them";
                return Err(Failure::Usage(message.to_owned()));
            }
        }
        file.several("path", &mut self.path, str::parse)
    }

    /// The settings of connections to it.
    pub(super) fn client(&self, flags: &TransportFlags) -> Result<ClientConfig, Failure> {
        let identity = self.cert.as_ref().zip(self.key.as_ref());
        let identity = identity.map(|(cert, key)| Identity::from_pem_files(cert, key));
        let identity = identity.transpose();
        let mut http = ClientConfig {
            identity: identity.map_err(|error| Failure::Failed(error.to_string()))?,
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

    /// The token of the user, which one with a certificate need not have. Not a command-line argument: other users of the machine
    /// can read those.
    pub(super) fn token(&self) -> Result<Option<String>, Failure> {
        let Some(file) = &self.token_file else {
            let variable = std::env::var_os(TOKEN);
            return match self.cert.is_some() && variable.is_none() {
                true => Ok(None),
                false => token_in(variable).map(Some).map_err(Failure::Usage),
            };
        };
        let text = read_regular_file(file, MAX_TOKEN_FILE)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other));
        let file = file.display();
        match text {
            Ok(text) if text.trim().is_empty() => Err(Failure::Failed(format!(
                "{file} has no token; write the output of `marline tunnel token` into it"
            ))),
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) => Err(Failure::Failed(format!(
                "cannot read the token in {file}: {error}"
            ))),
        }
    }
}

/// The token in the variable with this value.
fn token_in(variable: Option<OsString>) -> Result<String, String> {
    let token = variable.map(|value| value.to_string_lossy().trim().to_owned());
    match token {
        Some(token) if !token.is_empty() => Ok(token),
        Some(_) => Err(format!(
            "the variable {TOKEN} is empty; give it a token, or the file of one with --token-file"
        )),
        None => Err(format!(
            "a token is missing; give the file that `marline tunnel token` wrote with --token-file, the token in ${TOKEN}, or a certificate with --cert and --key"
        )),
    }
}

/// A message with its advice, if there is any.
pub(super) fn advised(message: &dyn Display, advice: Option<Cow<'static, str>>) -> String {
    match advice {
        Some(advice) => format!("{message}; {advice}"),
        None => message.to_string(),
    }
}

/// Advice for whoever has no connection to a server.
pub(super) fn connection_advice(error: &ClientError) -> Option<Cow<'static, str>> {
    match error {
        ClientError::Certificate { .. }
        | ClientError::Resolve { .. }
        | ClientError::NoPath { .. }
        | ClientError::Trust { .. } => Some(advice(error)),
        ClientError::Connect { .. }
        | ClientError::ConnectTimeout { .. }
        | ClientError::NoResponse { .. }
        | ClientError::WrongProtocol { .. } => {
            Some("check host and port, and that no firewall drops UDP; `marline tunnel serve` is the server".into())
        }
        _ => None,
    }
}

/// Advice for whoever made a request that is refused.
pub(super) fn refusal_advice(error: &OpenError) -> Option<Cow<'static, str>> {
    match error {
        OpenError::Client(error) => connection_advice(error),
        OpenError::Unauthorized => Some(
            "ask its operator for a token, made with `marline tunnel token`, or for a certificate"
                .into(),
        ),
        OpenError::NoTunnel { .. } => {
            Some("check host and port; `marline tunnel serve` is the server".into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use marline_http::client::CertificateProblem;

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

    #[test]
    fn an_empty_variable_is_no_token() {
        let token = |text: &str| token_in(Some(text.into()));
        assert_eq!(token(" x\n"), Ok("x".to_owned()));
        for text in ["", " \n"] {
            let error = token(text).unwrap_err();
            assert!(error.contains("MARLINE_TUNNEL_TOKEN is empty"), "{error}");
        }
        assert!(token_in(None).unwrap_err().contains("--token-file"));
    }

    /// Those of `get`, which has more.
    #[test]
    fn advice_names_flags_that_a_tunnel_has() {
        let (host, address) = ("a.example".to_owned(), ([192, 0, 2, 1], 4433).into());
        let cause = || std::io::Error::other("x");
        let certificate = |problem| ClientError::Certificate {
            host: host.clone(),
            problem,
            cause: cause().into(),
        };
        let errors = [
            certificate(CertificateProblem::NotTrusted),
            certificate(CertificateProblem::NoName),
            certificate(CertificateProblem::Invalid),
            ClientError::Connect {
                host: host.clone(),
                address,
                cause: cause().into(),
            },
            ClientError::ConnectTimeout {
                host: host.clone(),
                address,
                limit: std::time::Duration::ZERO,
            },
            ClientError::NoPath {
                host: host.clone(),
                address,
            },
            ClientError::Resolve {
                host: host.clone(),
                cause: cause(),
            },
            ClientError::WrongProtocol {
                host: host.clone(),
                wanted: "HTTP/3",
                cause: cause().into(),
            },
            ClientError::NoResponse {
                cause: cause().into(),
            },
            ClientError::Trust {
                path: None,
                reason: String::new(),
            },
            ClientError::Tls {
                host,
                address,
                reason: "x",
                cause: cause().into(),
            },
        ];
        let command = Peer::augment_args(clap::Command::new("up"));
        let flags: Vec<_> = command
            .get_arguments()
            .filter_map(clap::Arg::get_long)
            .collect();
        for error in errors {
            let advice = connection_advice(&error).unwrap_or_default();
            for word in advice.split([' ', ',', ';', '`']) {
                let flag = word.strip_prefix("--").unwrap_or("path");
                assert!(flags.contains(&flag), "{error}: {advice}");
            }
        }
    }
}
