//! Accounts, certificates and attempts in the state directory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use instant_acme::AccountCredentials;
use marline_http::server::{Identity, StateDirectory};
use serde::{Deserialize, Serialize};

use crate::config::AcmeConfig;
use crate::error::CertificateError;
use crate::schedule::Orders;

/// The file of attempts.
const ATTEMPTS: &str = "acme-attempts.json";

/// The prefix of the certificate's names in the first line of its file.
const NAMES: &str = "names:";

/// The files of certificates in a state directory.
#[derive(Clone, Debug)]
pub(crate) struct Store(Arc<StateDirectory>);

/// A certificate that an authority has issued.
pub(crate) struct Stored {
    pub(crate) names: Vec<String>,
    pub(crate) identity: Identity,
}

/// The attempts of all certificates, so that a server that is started again and again does not order again and again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Attempts {
    pub(crate) orders: Orders,
    /// By the file of the certificate.
    pub(crate) failed: BTreeMap<String, Failed>,
}

/// Attempts that failed, one after another.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) times: u32,
    /// The time of the next attempt, in seconds since 1970.
    pub(crate) next: u64,
}

impl Failed {
    pub(crate) fn next(self) -> Duration {
        Duration::from_secs(self.next)
    }
}

impl Store {
    pub(crate) fn new(state: Arc<StateDirectory>) -> Self {
        Self(state)
    }

    /// The certificate of `file`, if there is one. A file that cannot be used is an error: it is the operator's to remove.
    pub(crate) fn certificate(&self, file: &str) -> Result<Option<Stored>, CertificateError> {
        let Some(text) = self.0.load(file)? else {
            return Ok(None);
        };
        let names = text.lines().next();
        let names = names.and_then(|line| line.strip_prefix(NAMES));
        let names = names.unwrap_or_default().split_whitespace();
        let path = self.0.path_of(file);
        Ok(Some(Stored {
            names: names.map(str::to_owned).collect(),
            identity: Identity::from_pem_files(&path, &path)?,
        }))
    }

    /// Keeps a certificate that was issued for `names`.
    pub(crate) fn keep(
        &self,
        file: &str,
        names: &[String],
        identity: &Identity,
    ) -> Result<(), CertificateError> {
        let text = format!(
            "{NAMES} {}\n{}{}",
            names.join(" "),
            identity.key_pem(),
            identity.certificate_pem()
        );
        Ok(self.0.save(file, &text)?)
    }

    /// The account of `acme`, if there is one.
    pub(crate) fn account(
        &self,
        acme: &AcmeConfig,
    ) -> Result<Option<AccountCredentials>, CertificateError> {
        let file = acme.account_file();
        let Some(text) = self.0.load(&file)? else {
            return Ok(None);
        };
        let path = self.0.path_of(&file);
        let account = serde_json::from_str(&text);
        account
            .map(Some)
            .map_err(|_| CertificateError::Account { path })
    }

    /// Keeps the account of `acme`.
    pub(crate) fn keep_account(
        &self,
        acme: &AcmeConfig,
        account: &AccountCredentials,
    ) -> Result<(), CertificateError> {
        let text = serde_json::to_string(account)
            .map_err(|error| CertificateError::Protocol(error.to_string()))?;
        Ok(self.0.save(&acme.account_file(), &text)?)
    }

    /// The attempts so far; none if they cannot be read.
    pub(crate) fn attempts(&self) -> Attempts {
        let text = self.0.load(ATTEMPTS).ok().flatten();
        text.and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    pub(crate) fn keep_attempts(&self, attempts: &Attempts) -> Result<(), CertificateError> {
        let text = serde_json::to_string(attempts)
            .map_err(|error| CertificateError::Protocol(error.to_string()))?;
        Ok(self.0.save(ATTEMPTS, &text)?)
    }
}
