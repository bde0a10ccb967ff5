//! A temporary certificate.

use std::path::PathBuf;
use std::{env, fs, process};

use rcgen::CertifiedKey;

/// A self-signed certificate (ECDSA, P-256) and its key, in files that are removed on drop.
pub(crate) struct Identity {
    directory: PathBuf,
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl Identity {
    pub(crate) fn create() -> anyhow::Result<Self> {
        let names = vec!["localhost".into()];
        let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(names)?;
        let directory = env::temp_dir().join(format!("bench-peers-{}", process::id()));
        fs::create_dir(&directory)?;
        let identity = Self {
            cert: directory.join("cert.pem"),
            key: directory.join("key.pem"),
            directory,
        };
        fs::write(&identity.cert, cert.pem())?;
        fs::write(&identity.key, signing_key.serialize_pem())?;
        Ok(identity)
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        // If this fails, the files remain in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
