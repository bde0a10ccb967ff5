//! What newcomers try with `marline get`.

use std::fs;

use tempfile::TempDir;

use crate::{Server, run, site, text};

#[test]
fn a_self_signed_authority_is_trusted_as_the_certificate_of_its_server() {
    let root = site();
    let files = TempDir::new().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let (cert, private) = (files.path().join("cert.pem"), files.path().join("key.pem"));
    fs::write(&cert, certificate.pem()).unwrap();
    fs::write(&private, key.serialize_pem()).unwrap();
    let arguments = [
        text(root.path()),
        "--cert",
        text(&cert),
        "--key",
        text(&private),
    ];
    let server = Server::start(&arguments);
    for version in ["3", "2"] {
        let url = server.url("a.txt");
        let output = run(&["get", &url, "--cacert", text(&cert), "--http", version]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout, b"first");
    }
}
