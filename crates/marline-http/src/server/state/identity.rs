//! The self-signed certificate of a server without a given one.

use std::path::{Path, PathBuf};

use super::files::{self, Existing};
use super::{StateDirectory, StateError};
use crate::file::read_regular_file;
use crate::server::Identity;

/// The prefix of the certificate's names in the first line of its file.
const NAMES: &str = "names:";

impl StateDirectory {
    /// The path of the self-signed certificate, for clients that are to trust it.
    pub fn certificate_path(&self) -> PathBuf {
        self.path.join("certificate.pem")
    }

    /// The self-signed certificate of this directory for `names` (host names and IP addresses). It is made if there is
    /// none yet, and again if it lacks a name.
    ///
    /// # Errors
    /// A file cannot be used, or a name is not valid in certificates.
    pub fn self_signed(&self, names: &[String]) -> Result<Identity, StateError> {
        // Key and certificate in one file: of two servers that write it, one wins.
        let file = self.path.join("identity.pem");
        let mut all = match files::read(&file)? {
            Some(text) => names_of(&file, &text)?,
            None => Vec::new(),
        };
        let is_new = all.is_empty();
        if names.iter().any(|name| !all.contains(name)) {
            let missing = names.iter().filter(|name| !all.contains(name));
            all.extend(missing.cloned().collect::<Vec<_>>());
            let text = format!(
                "{NAMES} {}\n{}",
                all.join(" "),
                Identity::self_signed_pem(all.clone())?
            );
            let existing = match is_new {
                true => Existing::Keep,
                false => Existing::Replace,
            };
            files::write(&file, text.as_bytes(), existing)?;
        }
        let identity = Identity::from_self_signed_pem(&file)?;
        let public = identity.certificate_pem();
        let path = self.certificate_path();
        // Anything else, or an unreadable file, is replaced.
        let present = read_regular_file(&path, public.len() as u64);
        if present.ok().as_deref() != Some(public.as_bytes()) {
            files::write(&path, public.as_bytes(), Existing::Replace)?;
        }
        Ok(identity)
    }
}

fn names_of(path: &Path, text: &str) -> Result<Vec<String>, StateError> {
    let names = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix(NAMES));
    let Some(names) = names else {
        return Err(StateError::malformed(path, "it names no hosts"));
    };
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_certificate_stays_the_same_until_a_name_is_missing() {
        let directory = tempfile::tempdir().unwrap();
        let open = || StateDirectory::open(directory.path(), Duration::ZERO).unwrap();
        let state = open();
        let first = state.self_signed(&names(&["localhost", "::1"])).unwrap();
        let pem = std::fs::read_to_string(state.certificate_path()).unwrap();
        assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(!pem.contains("KEY"));
        let again = open().self_signed(&names(&["localhost"])).unwrap();
        assert_eq!(again.chain(), first.chain());
        assert!(first.pin().is_some() && again.pin() == first.pin());
        let other = open().self_signed(&names(&["192.0.2.1"])).unwrap();
        assert_ne!(other.chain(), first.chain());
        let both = open().self_signed(&names(&["::1", "192.0.2.1"])).unwrap();
        assert_eq!(both.chain(), other.chain());
    }

    #[test]
    fn a_wrong_file_is_refused_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(directory.path(), Duration::ZERO).unwrap();
        let path = directory.path().join("identity.pem");
        for text in ["", "certificate", "names: localhost\nno pem"] {
            files::write(&path, text.as_bytes(), Existing::Replace).unwrap();
            let error = state.self_signed(&names(&["localhost"])).unwrap_err();
            assert!(error.to_string().contains("identity.pem"), "{error}");
        }
    }
}
