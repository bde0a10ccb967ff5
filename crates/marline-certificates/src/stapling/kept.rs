//! Responses in the state directory.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use marline::Sha256;
use marline_http::server::{CertificateStatus, StatusQuery};
use serde::{Deserialize, Serialize};

/// The file of responses.
pub(super) const FILE: &str = "ocsp.json";

/// The SHA-256 of a certificate, in hexadecimal.
pub(super) type Fingerprint = String;

/// That of the certificate of `query`.
pub(super) fn fingerprint(query: &StatusQuery) -> Fingerprint {
    let hash = Sha256::of(query.certificate());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Responses in base64. Each is verified when it is used.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Kept(BTreeMap<Fingerprint, String>);

impl Kept {
    /// Those of `text`; none if it cannot be read: they are asked for again.
    pub(super) fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    pub(super) fn of<'a>(
        all: impl Iterator<Item = (&'a Fingerprint, &'a CertificateStatus)>,
    ) -> Self {
        let all = all.map(|(key, status)| (key.clone(), STANDARD.encode(status.response())));
        Self(all.collect())
    }

    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The one for `query`, if it is valid at `unix_time`.
    pub(super) fn status(
        &self,
        query: &StatusQuery,
        unix_time: Duration,
    ) -> Option<CertificateStatus> {
        let response = STANDARD.decode(self.0.get(&fingerprint(query))?).ok()?;
        query.verify(&response, unix_time).ok()
    }
}
