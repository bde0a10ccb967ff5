//! How servers are reached: the flags about addresses and identity.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use marline_http::client::{
    AltServices, ClientConfig, ClientError, ConnectTo, Family, Hsts, Local, Network, Resolve,
};
use marline_http::server::Identity;

use super::NETWORK;
use super::file::MAX_LIST;
use crate::duration::duration;
use crate::failure::print_message;

#[derive(Debug, Args)]
pub(crate) struct NetworkFlags {
    /// Use IPv4 only
    #[arg(short = '4', long, overrides_with = "ipv6", help_heading = NETWORK, hide_short_help = true)]
    ipv4: bool,

    /// Use IPv6 only
    #[arg(short = '6', long, overrides_with = "ipv4", help_heading = NETWORK, hide_short_help = true)]
    ipv6: bool,

    /// Use these addresses for this host and port; the host * is any; repeatable
    #[arg(long, value_name = "HOST:PORT:ADDRESS[,ADDRESS]", help_heading = NETWORK, hide_short_help = true)]
    resolve: Vec<Resolve>,

    /// Connect to OTHER instead of HOST; the request and the name in TLS stay; repeatable
    #[arg(long, value_name = "HOST:PORT:OTHER:PORT", help_heading = NETWORK, hide_short_help = true)]
    connect_to: Vec<ConnectTo>,

    /// Connect from this address, or from that of this network interface; several at once: --path
    #[arg(long, value_name = "IFACE|ADDR", help_heading = NETWORK, hide_short_help = true)]
    interface: Option<Local>,

    /// Connect to this socket of Unix, over TCP's versions of HTTP
    #[arg(long, value_name = "FILE", help_heading = NETWORK, hide_short_help = true)]
    pub(super) unix_socket: Option<PathBuf>,

    /// End a connection attempt after this long [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = NETWORK, hide_short_help = true)]
    connect_timeout: Option<Duration>,

    /// Authenticate this client by the certificate in FILE (PEM)
    #[arg(short = 'E', long, value_name = "FILE", help_heading = NETWORK, hide_short_help = true)]
    cert: Option<PathBuf>,

    /// Keep the hosts that are only reached over TLS (HSTS) in FILE, "" is none [default: hsts.txt in $XDG_STATE_HOME/marline]
    #[arg(long, value_name = "FILE", help_heading = NETWORK, hide_short_help = true)]
    hsts: Option<PathBuf>,

    /// Keep what servers name for HTTP/3 (Alt-Svc) in FILE, "" is none [default: alt-svc.txt in $XDG_STATE_HOME/marline]
    #[arg(long, value_name = "FILE", help_heading = NETWORK, hide_short_help = true)]
    alt_svc: Option<PathBuf>,

    /// The private key of --cert (PEM) [default: it is in the same file]
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = NETWORK, hide_short_help = true)]
    key: Option<PathBuf>,
}

/// The caches about servers, and the files that keep them.
#[derive(Clone, Debug)]
pub(super) struct Caches {
    pub(super) hsts: Option<Arc<Hsts>>,
    pub(super) services: Option<Arc<AltServices>>,
    hsts_file: Option<PathBuf>,
    alt_file: Option<PathBuf>,
}

impl Caches {
    /// Writes back what has changed.
    pub(super) fn write(&self) {
        if let (Some(hsts), Some(path)) = (&self.hsts, &self.hsts_file) {
            write(path, &hsts.to_text());
        }
        if let (Some(services), Some(path)) = (&self.services, &self.alt_file) {
            write(path, &services.to_text());
        }
    }
}

/// The file that a flag names; the default one is in the directory for state.
fn file(flag: Option<&PathBuf>, default: &str) -> Option<PathBuf> {
    match flag {
        Some(path) => Some(path.clone()).filter(|path| !path.as_os_str().is_empty()),
        None => Some(crate::server::state_directory()?.join(default)),
    }
}

/// Writes a file whose first line is a comment, unless that is all, and there is none.
fn write(path: &Path, text: &str) {
    let known = super::file::read_text(path, MAX_LIST).unwrap_or_default();
    if text == known || known.is_empty() && text.lines().count() < 2 {
        return;
    }
    let directory = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    if let Err(error) = directory.and_then(|()| super::private::write(path, text.as_bytes())) {
        print_message(&format!("cannot write {}: {error}", path.display()));
    }
}

impl NetworkFlags {
    /// The caches about servers, read from files.
    pub(super) fn caches(&self) -> Caches {
        // A file that cannot be read is as one that is missing.
        let text = |file: &PathBuf| super::file::read_text(file, MAX_LIST).unwrap_or_default();
        let hsts_file = file(self.hsts.as_ref(), "hsts.txt");
        let alt_file = file(self.alt_svc.as_ref(), "alt-svc.txt");
        let (hsts, services) = (Hsts::default(), AltServices::default());
        hsts.read(&hsts_file.as_ref().map(text).unwrap_or_default());
        services.read(&alt_file.as_ref().map(text).unwrap_or_default());
        Caches {
            hsts: hsts_file.is_some().then(|| Arc::new(hsts)),
            services: alt_file.is_some().then(|| Arc::new(services)),
            hsts_file,
            alt_file,
        }
    }

    /// Puts the flags into `config`.
    ///
    /// # Errors
    /// The client's certificate cannot be used.
    pub(super) fn apply(&self, config: &mut ClientConfig) -> Result<(), ClientError> {
        config.network = Network {
            resolve: self.resolve.clone(),
            connect_to: self.connect_to.clone(),
            family: match (self.ipv4, self.ipv6) {
                (true, _) => Some(Family::V4),
                (_, true) => Some(Family::V6),
                _ => None,
            },
            local: self.interface.clone(),
            unix_socket: self.unix_socket.clone(),
        };
        if let Some(limit) = self.connect_timeout.filter(|limit| !limit.is_zero()) {
            config.connect_timeout = limit;
        }
        if let Some(cert) = &self.cert {
            let key = self.key.as_ref().unwrap_or(cert);
            config.identity = Some(Identity::from_pem_files(cert, key)?);
        }
        Ok(())
    }
}
