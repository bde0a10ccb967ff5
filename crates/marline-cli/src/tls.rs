//! Flags about TLS over TCP.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use marline::settings::Named;
use marline_http::{TlsVersion, TlsVersions};

use crate::failure::Failure;
use crate::values::by_name;

/// The versions of TLS that a client offers, by the names of curl.
#[derive(Clone, Debug, Args)]
pub(crate) struct TlsFlags {
    /// Use TLS 1.2 or later (the default)
    #[arg(long = "tlsv1.2", aliases = ["tlsv1", "tlsv1.0", "tlsv1.1"], overrides_with = "tlsv1_3", hide_short_help = true)]
    tlsv1_2: bool,

    /// Use TLS 1.3 or later
    #[arg(long = "tlsv1.3", overrides_with = "tlsv1_2", hide_short_help = true)]
    tlsv1_3: bool,

    /// Use this version of TLS or an earlier one [default: 1.3]
    ///
    /// 1.2 excludes HTTP/3, because QUIC uses TLS 1.3.
    #[arg(long, value_name = "VERSION", value_parser = most(), hide_short_help = true)]
    tls_max: Option<TlsVersion>,
}

impl TlsFlags {
    /// The versions.
    ///
    /// # Errors
    /// The flags exclude all versions.
    pub(crate) fn versions(&self) -> Result<TlsVersions, Failure> {
        let least = match self.tlsv1_3 {
            true => TlsVersion::Tls13,
            false => TlsVersion::Tls12,
        };
        TlsVersions::between(least, self.tls_max.unwrap_or(TlsVersion::Tls13))
            .map_err(|error| Failure::Usage(format!("{error}; leave --tlsv1.3 or --tls-max out")))
    }

    /// Whether QUIC may be used, which requires TLS 1.3.
    pub(crate) fn allow_quic(&self) -> bool {
        self.tls_max != Some(TlsVersion::Tls12)
    }

    /// Whether one of them is given.
    pub(crate) fn are_given(&self) -> bool {
        self.tlsv1_2 || self.tlsv1_3 || self.tls_max.is_some()
    }
}

/// Parses the latest version; `default` is what curl has for the latest that it knows.
fn most() -> impl TypedValueParser<Value = TlsVersion> {
    let names = TlsVersion::WORDS
        .iter()
        .map(|word| PossibleValue::new(word.name));
    let latest = PossibleValue::new("default").hide(true);
    PossibleValuesParser::new(names.chain([latest]))
        .map(|name| by_name(&name).unwrap_or(TlsVersion::Tls13))
}
