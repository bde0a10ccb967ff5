//! Faults of a server's certificate.

use std::path::Path;

use marline_http::client::{CertificateProblem, ClientError, HttpVersion, Trust, parse_url};
use marline_http::server::{Identity, directory};
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, IsCa, KeyPair};

use crate::common::{TestServer, client_with, directory_of};

/// Files with a new certificate for `names`, marked as an authority's or not.
fn certificate(names: &[&str], authority: bool) -> tempfile::TempDir {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name = DistinguishedName::new();
    if authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    directory_of(&[
        ("cert.pem", pem.as_bytes()),
        ("key.pem", key.serialize_pem().as_bytes()),
    ])
}

/// The problem with which a client that trusts `trusted` refuses a server that presents `shown`.
async fn refused(shown: &Path, trusted: &Path, version: HttpVersion) -> CertificateProblem {
    let root = directory_of(&[]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        let [cert, key] = ["cert.pem", "key.pem"].map(|name| shown.join(name));
        config.identity = Some(Identity::from_pem_files(&cert, &key).unwrap());
    })
    .await;
    let client = client_with(|config| {
        config.version = version;
        config.trust = Trust::File(trusted.join("cert.pem"));
    });
    let url = parse_url(&server.url(version, "/"), version).unwrap();
    match client.connect(&url.origin).await.unwrap_err() {
        ClientError::Certificate { problem, .. } => problem,
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn untrusted_nameless_and_misnamed_certificates_are_told_apart() {
    let other = certificate(&["127.0.0.1"], true);
    for version in [HttpVersion::Http3, HttpVersion::Http2] {
        for authority in [true, false] {
            let unknown = certificate(&["127.0.0.1"], authority);
            let nameless = certificate(&[], authority);
            let misnamed = certificate(&["example.org"], authority);
            for (shown, trusted, problem) in [
                (&unknown, &other, CertificateProblem::NotTrusted),
                (&nameless, &nameless, CertificateProblem::NoName),
                (&misnamed, &misnamed, CertificateProblem::Invalid),
            ] {
                let found = refused(shown.path(), trusted.path(), version).await;
                assert_eq!(found, problem, "{version:?}, authority: {authority}");
            }
        }
    }
}
