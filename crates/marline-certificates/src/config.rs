//! Certificates to obtain, as files describe them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use marline::Sha256;
use marline::settings::{Domain, Field, Settings, text_values};
use marline_http::HostPattern;
use marline_http::server::{Identity, IdentityError};

use crate::error::CertificateError;

/// The directory of Let's Encrypt.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// A mail address to which a certificate authority writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcmeContact(String);

impl fmt::Display for AcmeContact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for AcmeContact {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = text.strip_prefix("mailto:").unwrap_or(text);
        // More than one address, or fields in a mailto URL, are refused by authorities (RFC 8555, section 7.3).
        let is_plain = address
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b",?&%<>\"".contains(&byte));
        let has_parts = address.split_once('@').is_some_and(|(user, host)| {
            !user.is_empty() && host.contains('.') && !host.contains('@')
        });
        match is_plain && has_parts {
            true => Ok(Self(address.to_owned())),
            false => Err(format!(
                "{text:?} is not a mail address; write it as ana@example.org"
            )),
        }
    }
}

text_values!(AcmeContact);

/// Whether a site gets its certificate by ACME.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteAcme {
    /// It does not.
    Off,
    /// It does, with this contact.
    Contact(AcmeContact),
}

impl fmt::Display for SiteAcme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Contact(contact) => contact.fmt(f),
        }
    }
}

impl FromStr for SiteAcme {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            _ => text.parse().map(Self::Contact),
        }
    }
}

text_values!(SiteAcme);

/// A certificate authority, and the account at it.
#[derive(Clone, PartialEq, Eq)]
pub struct AcmeConfig {
    /// The mail address of the account.
    pub contact: Option<AcmeContact>,
    /// The URL of the authority's directory (RFC 8555, section 7.1.1).
    pub directory: String,
    /// The file of the certificates that have signed that of the directory; by default those that this machine trusts.
    pub ca: Option<PathBuf>,
    /// The profile of certificates to ask for.
    pub profile: Option<String>,
    /// The key ID of an account that the authority has given (external account binding, RFC 8555, section 7.3.4).
    pub eab_key_id: Option<String>,
    /// Its key, in base64url.
    pub eab_hmac: Option<String>,
}

impl fmt::Debug for AcmeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcmeConfig")
            .field("contact", &self.contact)
            .field("directory", &self.directory)
            .field("ca", &self.ca)
            .field("profile", &self.profile)
            .field("eab_key_id", &self.eab_key_id)
            .finish_non_exhaustive()
    }
}

impl Default for AcmeConfig {
    fn default() -> Self {
        Self {
            contact: None,
            directory: LETS_ENCRYPT.to_owned(),
            ca: None,
            profile: None,
            eab_key_id: None,
            eab_hmac: None,
        }
    }
}

impl AcmeConfig {
    /// Its keys in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Field::new(
            "contact",
            Domain::text("a mail address, as \"ana@example.org\""),
            "The mail address of the account, to which the authority writes; by setting it you agree to the authority's terms of service",
            |c: &mut Self| &mut c.contact,
        ),
        &Field::new(
            "directory",
            Domain::text("a URL of https"),
            "The authority's directory",
            |c: &mut Self| &mut c.directory,
        ),
        &Field::new(
            "ca",
            Domain::text("the path of a file"),
            "The certificates in PEM that have signed that of the directory; by default, those that this machine trusts",
            |c: &mut Self| &mut c.ca,
        ),
        &Field::new(
            "profile",
            Domain::text("a name that the authority gives").or("none"),
            "The profile of certificates, as \"shortlived\"; by default, the authority's",
            |c: &mut Self| &mut c.profile,
        ),
        &Field::new(
            "eab_key_id",
            Domain::text("text"),
            "The key ID of an account that the authority has given (external account binding)",
            |c: &mut Self| &mut c.eab_key_id,
        ),
        &Field::new(
            "eab_hmac",
            Domain::text("a key in base64url"),
            "The key of that account, as the authority has given it",
            |c: &mut Self| &mut c.eab_hmac,
        ),
    ];

    /// Makes its paths relative to `base`.
    pub fn resolve(&mut self, base: &Path) {
        if let Some(ca) = &mut self.ca {
            *ca = base.join(&ca);
        }
    }

    /// The account that it uses.
    pub(crate) fn account(&self) -> String {
        let contact = self.contact.as_ref().map(ToString::to_string);
        let eab = self.eab_key_id.clone().unwrap_or_default();
        [self.directory.clone(), contact.unwrap_or_default(), eab].join("\n")
    }

    /// The name of the file of this account in the state directory.
    pub(crate) fn account_file(&self) -> String {
        format!("acme-account-{}.json", short(&self.account()))
    }

    /// Checks what can be checked without the authority.
    fn check(&self, place: &str) -> Result<(), CertificateError> {
        let wrong = |reason: &'static str| CertificateError::Config {
            place: place.to_owned(),
            reason,
        };
        if self.contact.is_none() {
            return Err(wrong(
                "set `contact` to a mail address; with it you agree to the terms of service of the authority",
            ));
        }
        if !self.directory.starts_with("https://") {
            return Err(wrong("`directory` has to be a URL of https"));
        }
        if self.eab_key_id.is_some() != self.eab_hmac.is_some() {
            return Err(wrong(
                "`eab_key_id` and `eab_hmac` belong together; set both, as the authority has given them",
            ));
        }
        Ok(())
    }
}

/// The way in which an authority validates a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// A resource over HTTP, on port 80 (`http-01`).
    Http,
    /// A handshake of TLS over TCP, on port 443 (`tls-alpn-01`).
    TlsAlpn,
}

/// A certificate to obtain, and to renew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    names: Vec<String>,
    acme: AcmeConfig,
}

impl Wanted {
    /// A certificate for those of `names` that an authority can certify; `place` is the site, for messages. None if there is no such name:
    /// `localhost` and addresses are of no authority.
    ///
    /// # Errors
    /// A name is a wildcard, or the configuration lacks something.
    pub fn new(
        place: &str,
        names: &[HostPattern],
        acme: &AcmeConfig,
    ) -> Result<Option<Self>, CertificateError> {
        let mut certified = Vec::new();
        for pattern in names {
            let name = pattern.to_string();
            if pattern.is_wildcard() {
                return Err(CertificateError::Wildcard {
                    place: place.to_owned(),
                    name,
                });
            }
            let is_local = name == "localhost" || name.ends_with(".localhost");
            if !is_local && name.parse::<std::net::IpAddr>().is_err() {
                certified.push(name);
            }
        }
        if certified.is_empty() {
            return Ok(None);
        }
        acme.check(place)?;
        Ok(Some(Self {
            names: certified,
            acme: acme.clone(),
        }))
    }

    /// The names, at least one.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The certificate that an authority has issued, as far as the state directory at `state` has one.
    ///
    /// # Errors
    /// Its file cannot be used.
    pub fn issued(&self, state: &Path) -> Result<Option<Identity>, IdentityError> {
        let file = state.join(self.file());
        match file.exists() {
            true => Identity::from_pem_files(&file, &file).map(Some),
            false => Ok(None),
        }
    }

    /// The name of its file in the state directory: by its first name, and the authority.
    pub(crate) fn file(&self) -> String {
        let authority = short(&self.acme.directory);
        format!("acme-{}-{authority}.pem", self.names[0])
    }

    /// The authority.
    pub fn acme(&self) -> &AcmeConfig {
        &self.acme
    }
}

/// A short hash of `text` for names of files.
fn short(text: &str) -> String {
    let hash = Sha256::of(text.as_bytes());
    hash.iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(names: &[&str], acme: &AcmeConfig) -> Result<Option<Wanted>, CertificateError> {
        let names: Vec<_> = names.iter().map(|name| name.parse().unwrap()).collect();
        Wanted::new("the site", &names, acme)
    }

    fn with_contact() -> AcmeConfig {
        AcmeConfig {
            contact: Some("ana@example.org".parse().unwrap()),
            ..AcmeConfig::default()
        }
    }

    #[test]
    fn only_names_that_an_authority_can_certify_are_wanted() {
        let acme = with_contact();
        let some = wanted(&["localhost", "WWW.example.org", "192.0.2.1"], &acme).unwrap();
        assert_eq!(some.unwrap().names(), ["www.example.org"]);
        for local in [&["localhost", "a.localhost"][..], &["::1"], &[]] {
            assert_eq!(wanted(local, &acme).unwrap(), None, "{local:?}");
        }
        let error = wanted(&["example.org", "*.example.org"], &acme).unwrap_err();
        assert!(error.to_string().contains("DNS-01"), "{error}");
    }

    #[test]
    fn what_an_account_lacks_is_named() {
        let named = |change: fn(&mut AcmeConfig)| {
            let mut acme = with_contact();
            change(&mut acme);
            wanted(&["example.org"], &acme).unwrap_err().to_string()
        };
        assert!(named(|acme| acme.contact = None).contains("`contact`"));
        assert!(named(|acme| acme.directory = "http://ca.example".to_owned()).contains("https"));
        assert!(named(|acme| acme.eab_hmac = Some("a".to_owned())).contains("`eab_key_id`"));
    }

    #[test]
    fn a_contact_is_one_mail_address() {
        for text in ["ana@example.org", "mailto:ana+x@example.org"] {
            assert!(text.parse::<AcmeContact>().is_ok(), "{text}");
        }
        for text in [
            "",
            "ana",
            "ana@",
            "@example.org",
            "a@b.c,d@e.f",
            "a@b.c?x=y",
            "a b@c.d",
        ] {
            assert!(text.parse::<AcmeContact>().is_err(), "{text}");
        }
        assert_eq!("off".parse(), Ok(SiteAcme::Off));
    }
}
