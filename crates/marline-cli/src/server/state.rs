//! The directory with the state that survives a restart of a server.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marline::{Runtime, TokioRuntime};
use marline_http::log::{Level, Subject, emit};
use marline_http::server::{SharedKeys, StateDirectory, StateError};

use crate::failure::Failure;

/// Opens the directory that was `given`, or the user's. Without one that can be created, the state is in memory.
///
/// It is on by default because the need for it shows only after the first crash, and because the user's directory is as
/// safe as the one that holds a certificate's key.
///
/// # Errors
/// The directory that was given cannot be used, or a file in either is not what it should be.
pub(crate) fn open(given: Option<&Path>) -> Result<Option<Arc<StateDirectory>>, Failure> {
    let runtime = TokioRuntime::current()
        .map_err(|error| Failure::Failed(format!("cannot start: {error}")))?;
    let unix_time = runtime.unix_time();
    let Some(path) = given.map(Path::to_owned).or_else(default_directory) else {
        let text = "there is no home directory for keys and sessions, so they end with this process; give --state DIR";
        emit(Level::Warning, Subject::Keys, text);
        return Ok(None);
    };
    match StateDirectory::open(&path, unix_time) {
        Ok(state) => Ok(Some(Arc::new(state))),
        Err(error @ StateError::Io { .. }) if given.is_none() => {
            let text = format!("keys and sessions end with this process: {error} with --state DIR");
            emit(Level::Warning, Subject::Keys, &text);
            Ok(None)
        }
        Err(error) => Err(Failure::Failed(error.to_string())),
    }
}

/// Whether [`open`] would succeed with the directory that was `given`, or with the user's. Nothing is written.
///
/// # Errors
/// As those of [`open`].
pub(crate) fn check(given: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = given.map(Path::to_owned).or_else(default_directory) else {
        return Ok(());
    };
    match StateDirectory::check(&path) {
        Err(StateError::Io { .. }) if given.is_none() => Ok(()),
        checked => checked.map_err(|error| Failure::Failed(error.to_string())),
    }
}

/// Reads the secret that several servers share.
///
/// # Errors
/// The file cannot be used.
pub(crate) fn open_shared(path: &Path) -> Result<Arc<SharedKeys>, Failure> {
    let runtime = TokioRuntime::current()
        .map_err(|error| Failure::Failed(format!("cannot start: {error}")))?;
    let keys = SharedKeys::read(path, runtime.unix_time());
    keys.map(Arc::new)
        .map_err(|error| Failure::Failed(format!("shared_secret_file: {error}")))
}

/// The directory that systemd provides, or the user's (XDG base directory specification 0.8).
pub(crate) fn default_directory() -> Option<PathBuf> {
    // Relative paths are to be ignored.
    let named = |name: &str| -> Option<PathBuf> {
        let value: OsString = env::var_os(name)?;
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    named("STATE_DIRECTORY")
        .or_else(|| Some(named("XDG_STATE_HOME")?.join("marline")))
        .or_else(|| Some(named("HOME")?.join(".local/state/marline")))
}
