use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, date_time_ymd,
};

use super::*;
use crate::tls::crypto_provider;

/// A certificate for `localhost` as `openssl req -x509` makes it: marked as an authority's.
fn authority(years: std::ops::Range<i32>) -> CertificateDer<'static> {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = date_time_ymd(years.start, 1, 1);
    params.not_after = date_time_ymd(years.end, 1, 1);
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, "localhost");
    params.distinguished_name = name;
    let key = KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().der().clone()
}

fn verify(
    trusted: &CertificateDer<'static>,
    shown: &CertificateDer<'static>,
    name: &'static str,
) -> Result<(), Error> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let verifier = Trusted::new(vec![trusted.clone()], roots, crypto_provider(false)).unwrap();
    let name = ServerName::try_from(name).unwrap();
    // In 2023.
    let now = UnixTime::since_unix_epoch(Duration::from_secs(1_690_000_000));
    verifier
        .verify_server_cert(shown, &[], &name, &[], now)
        .map(drop)
}

#[test]
fn a_server_may_show_the_authority_that_is_trusted() {
    let certificate = authority(2020..2030);
    verify(&certificate, &certificate, "localhost").unwrap();
}

#[test]
fn an_authority_of_the_same_name_is_not_trusted() {
    let certificate = authority(2020..2030);
    let other = authority(2020..2030);
    let error = verify(&certificate, &other, "localhost").unwrap_err();
    assert!(matches!(error, Error::InvalidCertificate(_)), "{error}");
}

#[test]
fn name_and_validity_of_a_trusted_certificate_are_checked() {
    let certificate = authority(2020..2030);
    let error = verify(&certificate, &certificate, "example.org").unwrap_err();
    assert!(
        matches!(
            error,
            Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
            )
        ),
        "{error}"
    );
    for years in [2020..2022, 2028..2030] {
        let certificate = authority(years);
        let error = verify(&certificate, &certificate, "localhost").unwrap_err();
        assert!(
            matches!(
                error,
                Error::InvalidCertificate(
                    CertificateError::Expired
                        | CertificateError::ExpiredContext { .. }
                        | CertificateError::NotValidYet
                        | CertificateError::NotValidYetContext { .. }
                )
            ),
            "{error}"
        );
    }
}
