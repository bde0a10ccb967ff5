//! The reasons why certificates were refused, because errors of QUIC contain them only as text.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

use super::CertificateProblem;
use crate::limits::MAX_REFUSALS;

/// The latest refused certificate of each server, of the latest [`MAX_REFUSALS`] servers.
///
/// A verifier of its own for each connection would prevent resumption: rustls resumes sessions only with the verifier
/// that accepted the server.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<VecDeque<Refusal>>);

#[derive(Debug)]
struct Refusal {
    server: ServerName<'static>,
    problem: CertificateProblem,
}

impl Refusals {
    /// The problem of the latest refused certificate of `host`, if one was refused.
    pub(super) fn latest(&self, host: &str) -> Option<CertificateProblem> {
        let server = ServerName::try_from(host).ok()?;
        let refusals = self.lock();
        let refusal = refusals.iter().find(|one| one.server == server)?;
        Some(refusal.problem)
    }

    fn record(&self, server: &ServerName<'_>, problem: CertificateProblem) {
        let mut refusals = self.lock();
        refusals.retain(|one| one.server != *server);
        if refusals.len() >= MAX_REFUSALS {
            refusals.pop_front();
        }
        refusals.push_back(Refusal {
            server: server.to_owned(),
            problem,
        });
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Refusal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A verifier that records what it refuses.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) verifier: Arc<dyn ServerCertVerifier>,
    pub(super) refusals: Arc<Refusals>,
}

impl ServerCertVerifier for Recording {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.verifier.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        if let Err(Error::InvalidCertificate(error)) = &verified {
            self.refusals
                .record(server_name, CertificateProblem::of(error));
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_refusal_of_each_server_counts() {
        let refusals = Refusals::default();
        let server = ServerName::try_from("localhost").unwrap();
        refusals.record(&server, CertificateProblem::NoName);
        refusals.record(&server, CertificateProblem::NotTrusted);
        assert_eq!(
            refusals.latest("LOCALHOST"),
            Some(CertificateProblem::NotTrusted)
        );
        assert_eq!(refusals.latest("127.0.0.1"), None);
    }

    #[test]
    fn refusals_of_many_servers_are_forgotten() {
        let refusals = Refusals::default();
        for number in 0..=MAX_REFUSALS {
            let server = ServerName::try_from(format!("host-{number}")).unwrap();
            refusals.record(&server, CertificateProblem::Invalid);
        }
        assert_eq!(refusals.latest("host-0"), None);
        assert!(refusals.latest("host-1").is_some());
        assert_eq!(refusals.lock().len(), MAX_REFUSALS);
    }
}
