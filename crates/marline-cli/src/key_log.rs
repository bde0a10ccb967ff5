//! `--keylog`: the secrets of connections, for programs that decrypt captures.

use std::path::PathBuf;

use clap::Args;
use marline_http::transport::KeyLogFile;

use crate::failure::{Failure, print_message};
use crate::transport::RESEARCH;

/// The flag, shared by server and client.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct KeyLogFlags {
    /// Append the secrets of connections to FILE, with which `marline flow` and Wireshark decrypt captures: for debugging
    /// only, because anyone who reads FILE can do so, too [default: $SSLKEYLOGFILE]
    #[arg(long, value_name = "FILE", help_heading = RESEARCH, hide_short_help = true)]
    keylog: Option<PathBuf>,
}

impl KeyLogFlags {
    /// Opens the file, if one is wanted.
    pub(crate) fn open(&self) -> Result<Option<KeyLogFile>, Failure> {
        let variable = || Some(PathBuf::from(std::env::var_os("SSLKEYLOGFILE")?));
        let Some(path) = self.keylog.clone().or_else(variable) else {
            return Ok(None);
        };
        let log = KeyLogFile::open(&path).map_err(|error| {
            let path = path.display();
            Failure::Failed(format!(
                "{path}: {error}; choose another file with --keylog"
            ))
        })?;
        let path = path.display();
        print_message(&format!(
            "the secrets of connections are written to {path}: whoever reads it can decrypt them"
        ));
        Ok(Some(log))
    }
}
