//! How a configuration names certificates of clients, which a site asks for and routes can need.

use std::path::{Path, PathBuf};

use marline::settings::{Domain, Field, Named, Settings, Word};

/// The certificates that a site asks its clients for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificateFiles {
    /// The authorities that sign them, in PEM.
    pub ca: PathBuf,
    /// The lists of revoked certificates, in PEM.
    pub crl: Option<PathBuf>,
    /// Whether a client has to present one.
    pub require: Require,
}

/// Whether the requests of a route need a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteCertificates {
    /// Whether a client has to present one.
    pub require: Require,
}

/// Whether a client has to present a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Require {
    /// It is not asked for one.
    Never,
    /// It is asked for one, and may present none.
    Optional,
    /// It has to present one.
    #[default]
    Always,
}

impl Named for Require {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "never",
            about: "clients are asked for no certificate",
            value: Self::Never,
        },
        Word {
            name: "optional",
            about: "clients may present a certificate",
            value: Self::Optional,
        },
        Word {
            name: "always",
            about: "clients have to present a certificate",
            value: Self::Always,
        },
    ];
}

impl Require {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        let mut words = Self::WORDS.iter();
        let own = words.find(|word| word.value == self);
        own.map_or("", |word| word.name)
    }
}

const REQUIRE: Domain = Domain::words::<Require>();

impl ClientCertificateFiles {
    /// Its keys in settings.
    pub(crate) const SETTINGS: Settings<Self> = &[
        &Field::new(
            "ca",
            Domain::text("the path of a file"),
            "The certificates of the authorities that sign those of clients, in PEM",
            |c: &mut Self| &mut c.ca,
        ),
        &Field::new(
            "crl",
            Domain::text("the path of a file"),
            "The current lists of revoked certificates of all these authorities, in PEM",
            |c: &mut Self| &mut c.crl,
        ),
        &Field::new(
            "require",
            REQUIRE,
            "Whether a client has to present one; without one, its handshake fails",
            |c: &mut Self| &mut c.require,
        ),
    ];

    /// Makes its paths relative to `base`.
    pub(crate) fn resolve(&mut self, base: &Path) {
        if !self.ca.as_os_str().is_empty() {
            self.ca = base.join(&self.ca);
        }
        self.crl = self.crl.take().map(|crl| base.join(crl));
    }
}

impl RouteCertificates {
    /// Its keys in settings.
    pub(crate) const SETTINGS: Settings<Self> = &[&Field::new(
        "require",
        REQUIRE,
        "Whether requests need one: with \"always\", those without are answered with 403 where the site has \"optional\"",
        |c: &mut Self| &mut c.require,
    )];
}
