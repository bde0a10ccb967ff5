//! The path of the kernel.

use std::env;
use std::path::{Path, PathBuf};

use super::KernelError;

/// The variable that names the kernel.
const VARIABLE: &str = "MARLINE_KERNEL";

/// A kernel for virtual time.
#[derive(Clone, Debug)]
pub struct Image {
    path: PathBuf,
}

impl Image {
    /// The kernel that `MARLINE_KERNEL` names, or the one that `make kernel` built last: `marline/kernel` in
    /// `XDG_CACHE_HOME`, or in `.cache` of the home directory.
    ///
    /// # Errors
    /// [`KernelError::NotBuilt`] if there is none.
    pub fn find() -> Result<Self, KernelError> {
        let path = match given(VARIABLE) {
            Some(path) => path,
            None => cache()?.join("marline/kernel"),
        };
        match path.canonicalize() {
            Ok(path) if path.is_file() => Ok(Self { path }),
            _ => Err(KernelError::NotBuilt { looked: path }),
        }
    }

    /// The program.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn cache() -> Result<PathBuf, KernelError> {
    let home = || given("HOME").map(|home| home.join(".cache"));
    given("XDG_CACHE_HOME")
        .or_else(home)
        .ok_or(KernelError::NoCache)
}

/// The path in a variable, unless it is empty.
fn given(variable: &str) -> Option<PathBuf> {
    let value = env::var_os(variable).filter(|value| !value.is_empty())?;
    Some(value.into())
}
