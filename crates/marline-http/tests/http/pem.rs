//! Messages about common mistakes in files of certificates and keys, made by OpenSSL.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use marline_http::server::{Identity, IdentityError};
use marline_http::{PemProblem, Validity};
use tempfile::TempDir;

/// A directory with a key, its certificate by an authority, and OpenSSL's conversions of them.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let files = Self(TempDir::new().unwrap());
        files.openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem");
        files.openssl(
            "req -x509 -key key.pem -subj /CN=a -addext subjectAltName=DNS:localhost -out cert.pem",
        );
        files.openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out other-key.pem");
        files.openssl("req -x509 -key other-key.pem -subj /CN=b -addext subjectAltName=DNS:localhost -out other-cert.pem");
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn openssl(&self, arguments: &str) {
        let output = Command::new("openssl")
            .args(arguments.split_whitespace())
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .output()
            .expect("openssl is installed by tools/deps.sh");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments}: {printed}");
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    fn identity(&self, cert: &str, key: &str) -> Result<Identity, IdentityError> {
        Identity::from_pem_files(&self.path(cert), &self.path(key))
    }

    /// The refusal of the certificate `cert` with the key `key`: the file that is named, and the
    /// message.
    #[track_caller]
    fn refused(&self, cert: &str, key: &str) -> (String, String) {
        let error = self.identity(cert, key).unwrap_err();
        let message = error.to_string();
        let IdentityError::File { path, .. } = error else {
            panic!("{message}");
        };
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        assert!(message.contains(path.to_str().unwrap()), "{message}");
        (name.to_owned(), message)
    }
}

fn utf_16(text: &str, mark: &[u8]) -> Vec<u8> {
    let units = text.encode_utf16().flat_map(u16::to_le_bytes);
    mark.iter().copied().chain(units).collect()
}

#[test]
fn keys_that_cannot_be_used_are_refused_with_the_cause_and_what_to_do() {
    let files = Files::new();
    for made in [
        "pkey -in key.pem -aes256 -passout pass:secret -out encrypted.pem",
        "ec -in key.pem -aes256 -passout pass:secret -out encrypted-old.pem",
        "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out rsa1024.pem",
        "rsa -in rsa1024.pem -traditional -out rsa1024-old.pem",
        "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:512 -out rsa512.pem",
        "genpkey -algorithm RSA-PSS -pkeyopt rsa_keygen_bits:2048 -out pss.pem",
        "dsaparam -genkey -noout -out dsa-old.pem 1024",
        "pkey -in dsa-old.pem -out dsa.pem",
        "genpkey -algorithm ED448 -out ed448.pem",
        "genpkey -algorithm X25519 -out x25519.pem",
        "ecparam -name secp256k1 -genkey -noout -out k1.pem",
        "ecparam -name secp256k1 -genkey -out k1-parameters.pem",
        "ecparam -name prime256v1 -out parameters.pem",
        "pkey -in key.pem -outform DER -out key.der",
        "pkey -in key.pem -pubout -out public.pem",
        "req -new -key key.pem -subj /CN=a -out request.pem",
        "pkcs12 -export -in cert.pem -inkey key.pem -passout pass:secret -out both.p12",
    ] {
        files.openssl(made);
    }
    let key = files.text("key.pem");
    files.write("empty.pem", "");
    files.write("blank.pem", "\r\n \n");
    files.write("utf16.pem", utf_16(&key, b"\xff\xfe"));
    files.write("utf16-no-mark.pem", utf_16(&key, b""));
    files.write("one-line.pem", key.replace('\n', "\\n"));
    files.write("one-line-no-end.pem", key.trim().replace('\n', "\\n"));
    files.write("joined.pem", key.replace('\n', ""));
    files.write("blanks.pem", key.replace('\n', " "));
    files.write(
        "joined-other.pem",
        key.replace('\n', "").replace("PRIVATE", "MY"),
    );
    files.write(
        "indented.pem",
        key.replace("\n", "\n    ")
            .replace("-----BEGIN", "    -----BEGIN"),
    );
    files.write("cut.pem", &key[..key.len() / 2]);
    let lines: Vec<_> = key.lines().collect();
    files.write(
        "short.pem",
        [lines[0], lines[1], lines[lines.len() - 1]].join("\n"),
    );
    files.write("noise.pem", key.replace(&lines[1][..8], "!!!!!!!!"));
    files.write(
        "dashes.pem",
        key.replace("BEGIN PRIVATE KEY-----", "BEGIN PRIVATE KEY---"),
    );
    files.write("no-block.pem", lines[1..lines.len() - 1].join("\n"));
    files.write("binary.pem", [0_u8, 1, 2, 255]);
    files.write("keystore.jks", b"\xfe\xed\xfe\xed\0\0\0\x02");
    files.write(
        "openssh.pem",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----\n",
    );
    files.write("several.pem", files.text("other-key.pem") + &key);
    for (name, words) in [
        (
            "encrypted.pem",
            "encrypted with a passphrase | openssl pkey -in FILE -out",
        ),
        (
            "encrypted-old.pem",
            "encrypted with a passphrase | openssl pkey -in FILE -out",
        ),
        ("rsa1024.pem", "1024 bits | 2048 to | rsa_keygen_bits:2048"),
        ("rsa1024-old.pem", "1024 bits | 2048 to"),
        ("rsa512.pem", "512 bits | 2048 to"),
        ("pss.pem", "RSA-PSS | openssl genpkey"),
        ("dsa-old.pem", "DSA | openssl genpkey"),
        ("dsa.pem", "DSA | openssl genpkey"),
        ("ed448.pem", "Ed448 | openssl genpkey"),
        ("x25519.pem", "X25519 | openssl genpkey"),
        ("k1.pem", "secp256k1 | openssl genpkey"),
        ("k1-parameters.pem", "secp256k1 | openssl genpkey"),
        ("parameters.pem", "EC PARAMETERS | no key"),
        ("key.der", "a private key in DER | openssl pkey -inform DER"),
        ("public.pem", "a public key only | private key"),
        ("request.pem", "CSR"),
        ("both.p12", "PKCS#12 | openssl pkcs12 | -nocerts"),
        ("cert.pem", "a certificate and no private key | swapped"),
        ("empty.pem", "it is empty"),
        ("blank.pem", "it is empty"),
        ("utf16.pem", "UTF-16 | iconv"),
        ("utf16-no-mark.pem", "UTF-16 | iconv"),
        ("one-line.pem", "\\n as text | printf"),
        ("one-line-no-end.pem", "\\n as text | printf"),
        ("joined.pem", "joined to one"),
        ("blanks.pem", "joined to one"),
        ("joined-other.pem", "joined to one"),
        ("indented.pem", "begin with blanks | sed"),
        ("cut.pem", "PRIVATE KEY has no end | cut off"),
        (
            "short.pem",
            "damaged, cut off | openssl pkey -in FILE -check",
        ),
        ("noise.pem", "damaged | not base64"),
        ("dashes.pem", "damaged | five dashes"),
        ("no-block.pem", "not a PEM file | -----BEGIN"),
        ("binary.pem", "binary"),
        ("keystore.jks", "Java | keytool"),
        ("openssh.pem", "OpenSSH | ssh-keygen"),
        (
            "other-key.pem",
            "another certificate | openssl pkey | openssl x509",
        ),
        ("several.pem", "2 private keys | leave only"),
        ("missing.pem", "No such file"),
    ] {
        let (named, message) = files.refused("cert.pem", name);
        assert_eq!(named, name, "{message}");
        for words in words.split(" | ") {
            assert!(message.contains(words), "{name}: `{words}` in {message}");
        }
        assert!(!message.contains('\n'), "{message}");
        for secret in &lines[1..lines.len() - 1] {
            assert!(!message.contains(&secret[..8]), "{name}: {message}");
        }
    }
}

#[test]
fn certificates_that_cannot_be_used_are_refused_with_the_cause_and_what_to_do() {
    let files = Files::new();
    files.write("ca.conf", "basicConstraints=critical,CA:true\n");
    for made in [
        "x509 -in cert.pem -outform DER -out cert.der",
        "x509 -in cert.pem -trustout -out trusted.pem",
        "req -new -key key.pem -subj /CN=a -out request.pem",
        "req -new -key key.pem -subj /CN=a -outform DER -out request.der",
        "x509 -req -in request.pem -signkey key.pem -out version1.pem",
        "crl2pkcs7 -nocrl -certfile cert.pem -out cert.p7b",
        "crl2pkcs7 -nocrl -certfile cert.pem -outform DER -out der.p7b",
        "pkcs12 -export -in cert.pem -inkey key.pem -passout pass:secret -out both.p12",
        "pkey -in key.pem -pubout -out public.pem",
        "pkey -in key.pem -aes256 -passout pass:secret -out encrypted.pem",
    ] {
        files.openssl(made);
    }
    files.write("index.txt", "");
    files.write(
        "ca.cnf",
        "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ndefault_md=sha256\ndefault_crl_days=9\n",
    );
    files.openssl("ca -config ca.cnf -gencrl -cert cert.pem -keyfile key.pem -out revoked.pem");
    files.openssl("crl -in revoked.pem -outform DER -out revoked.der");
    let cert = files.text("cert.pem");
    files.write("empty.pem", "");
    files.write("utf16.pem", utf_16(&cert, b"\xff\xfe"));
    files.write("one-line.pem", cert.replace('\n', "\\n"));
    files.write("cut.pem", &cert[..cert.len() / 2]);
    let lines: Vec<_> = cert.lines().collect();
    files.write(
        "short.pem",
        [lines[0], lines[1], lines[lines.len() - 1]].join("\n"),
    );
    files.write("order.pem", files.text("other-cert.pem") + &cert);
    files.write(
        "pgp.pem",
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n",
    );
    files.write("page.html", "<!doctype html><title>404</title>");
    for (name, words) in [
        (
            "cert.der",
            "a certificate in DER | openssl x509 -inform DER",
        ),
        ("trusted.pem", "trust settings | openssl x509 -in FILE -out"),
        ("request.pem", "CSR | openssl x509 -req"),
        ("request.der", "CSR"),
        ("version1.pem", "no extensions | subjectAltName"),
        ("revoked.pem", "CRL"),
        ("revoked.der", "CRL"),
        ("cert.p7b", "PKCS#7 | openssl pkcs7"),
        ("der.p7b", "PKCS#7 | -inform DER"),
        ("both.p12", "PKCS#12 | -nokeys"),
        ("public.pem", "a public key only | certificate"),
        ("key.pem", "a private key and no certificate | swapped"),
        (
            "encrypted.pem",
            "a private key and no certificate | swapped",
        ),
        ("empty.pem", "it is empty"),
        ("utf16.pem", "UTF-16"),
        ("one-line.pem", "\\n as text"),
        ("cut.pem", "CERTIFICATE has no end"),
        ("short.pem", "number 1 is damaged | openssl x509"),
        ("order.pem", "number 2 | put it first"),
        ("pgp.pem", "PGP"),
        ("page.html", "not a PEM file"),
    ] {
        let (named, message) = files.refused(name, "key.pem");
        assert_eq!(named, name, "{message}");
        for words in words.split(" | ") {
            assert!(message.contains(words), "{name}: `{words}` in {message}");
        }
    }
}

#[test]
fn what_surrounds_a_block_does_not_matter() {
    let files = Files::new();
    for made in [
        "ecparam -name prime256v1 -genkey -out parameters-first.pem",
        "req -x509 -key parameters-first.pem -subj /CN=a -addext subjectAltName=DNS:localhost -out its-cert.pem",
    ] {
        files.openssl(made);
    }
    assert!(
        files
            .text("parameters-first.pem")
            .starts_with("-----BEGIN EC PARAMETERS")
    );
    files
        .identity("its-cert.pem", "parameters-first.pem")
        .unwrap();
    let text = "Bag Attributes\n    friendlyName: a\nsubject=CN = a\n\n";
    type Change = fn(&str, &str) -> String;
    let changes: [Change; 4] = [
        |_, pem| pem.replace('\n', "\r\n"),
        |_, pem| format!("\u{feff}{pem}"),
        |text, pem| format!("{text}{pem}"),
        |_, pem| pem.trim_end().to_owned(),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        for name in ["cert.pem", "key.pem"] {
            files.write(&format!("changed-{name}"), change(text, &files.text(name)));
        }
        let read = files.identity("changed-cert.pem", "changed-key.pem");
        assert!(read.is_ok(), "change {number}: {read:?}");
    }
    // Both in one file.
    files.write("both.pem", files.text("key.pem") + &files.text("cert.pem"));
    files.identity("both.pem", "both.pem").unwrap();
}

#[test]
fn dates_of_certificates_are_named() {
    let files = Files::new();
    let identity = files.identity("cert.pem", "key.pem").unwrap();
    // It was made just now.
    let made = std::fs::metadata(files.path("cert.pem")).and_then(|file| file.modified());
    let now = made.unwrap().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(1);
    assert_eq!(identity.validity(now), None);
    let year = Duration::from_secs(365 * 24 * 3600);
    let expired = identity.validity(now + year).unwrap();
    assert!(matches!(expired, Validity::Expired { number: 1, .. }));
    assert!(expired.to_string().contains("expired at 20"), "{expired}");
    let early = identity.validity(now - year).unwrap();
    assert!(matches!(early, Validity::NotYet { number: 1, .. }));
    assert!(early.to_string().contains("check the clock"), "{early}");
}

#[test]
fn a_directory_is_named_as_such() {
    let files = Files::new();
    let error = Identity::from_pem_files(files.0.path(), Path::new("key.pem")).unwrap_err();
    let IdentityError::File { problem, .. } = error else {
        panic!("{error}");
    };
    assert!(matches!(problem, PemProblem::Unreadable(_)), "{problem}");
}
