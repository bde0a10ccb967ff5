//! The reasons for which the server refuses requests itself, as the access log names them.

use std::sync::Arc;

use http::StatusCode;

/// The extension of a response by which the server refuses a request itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request comes from a network that is not allowed.
    Network,
    /// It needs a valid certificate of the client.
    NoCertificate,
    /// Its connection was asked for the certificates of another site.
    OtherCertificates,
    /// It has no name and password, or wrong ones.
    NoPassword,
    /// The client, or its network, sends too many.
    Rate,
    /// Its content is larger than the site allows.
    ContentTooLarge,
    /// Its header is too large.
    HeaderTooLarge,
    /// Its header, or what it announces, is malformed.
    Malformed,
    /// Its path has `.` or `..` in it, or cannot be rewritten.
    Path,
    /// It did not arrive in time.
    TooSlow,
    /// It may be a replay (RFC 8470).
    TooEarly,
    /// No site has its name.
    UnknownSite,
    /// Nothing answers at its path.
    NoRoute,
    /// There is no such file.
    NoFile,
    /// The name of the file begins with a dot.
    DotFile,
    /// Files are read, and not changed.
    Method,
    /// The site opens no tunnels.
    NoTunnel,
    /// The file has no such range.
    Range,
    /// A condition of the request does not hold.
    Condition,
    /// The server has too many open files.
    OpenFiles,
    /// The file cannot be read, or the program has a defect.
    Internal,
    /// The connection does not begin with TLS.
    NotTls,
    /// An application gave no response, or is not asked: the name of the error (RFC 9209).
    Upstream(&'static str),
}

impl Refusal {
    /// All but those about applications.
    pub const ALL: [Self; 22] = [
        Self::Network,
        Self::NoCertificate,
        Self::OtherCertificates,
        Self::NoPassword,
        Self::Rate,
        Self::ContentTooLarge,
        Self::HeaderTooLarge,
        Self::Malformed,
        Self::Path,
        Self::TooSlow,
        Self::TooEarly,
        Self::UnknownSite,
        Self::NoRoute,
        Self::NoFile,
        Self::DotFile,
        Self::Method,
        Self::NoTunnel,
        Self::Range,
        Self::Condition,
        Self::OpenFiles,
        Self::Internal,
        Self::NotTls,
    ];

    /// Its name in the access log. Names are stable.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::NoCertificate => "no_certificate",
            Self::OtherCertificates => "other_certificates",
            Self::NoPassword => "no_password",
            Self::Rate => "rate",
            Self::ContentTooLarge => "content_too_large",
            Self::HeaderTooLarge => "header_too_large",
            Self::Malformed => "malformed",
            Self::Path => "path",
            Self::TooSlow => "too_slow",
            Self::TooEarly => "too_early",
            Self::UnknownSite => "unknown_site",
            Self::NoRoute => "no_route",
            Self::NoFile => "no_file",
            Self::DotFile => "dot_file",
            Self::Method => "method",
            Self::NoTunnel => "no_tunnel",
            Self::Range => "range",
            Self::Condition => "condition",
            Self::OpenFiles => "open_files",
            Self::Internal => "internal",
            Self::NotTls => "not_tls",
            Self::Upstream(name) => name,
        }
    }

    /// The status of the response.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Network | Self::NoCertificate => StatusCode::FORBIDDEN,
            Self::OtherCertificates | Self::UnknownSite => StatusCode::MISDIRECTED_REQUEST,
            Self::NoPassword => StatusCode::UNAUTHORIZED,
            Self::Rate => StatusCode::TOO_MANY_REQUESTS,
            Self::ContentTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::HeaderTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Malformed | Self::Path | Self::NotTls => StatusCode::BAD_REQUEST,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooEarly => StatusCode::TOO_EARLY,
            Self::NoRoute | Self::NoFile | Self::DotFile => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::NoTunnel => StatusCode::NOT_IMPLEMENTED,
            Self::Range => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::Condition => StatusCode::PRECONDITION_FAILED,
            Self::OpenFiles => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Upstream(_) => StatusCode::BAD_GATEWAY,
        }
    }

    /// The reason for which a directory answers with `status`, if it refuses the request.
    pub fn of_file(status: StatusCode) -> Option<Self> {
        let all = [
            Self::NoFile,
            Self::Method,
            Self::Range,
            Self::Condition,
            Self::OpenFiles,
            Self::Internal,
        ];
        all.into_iter().find(|reason| reason.status() == status)
    }
}

/// The extension of a response that names the route it is of, for the access log. Names come from the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteName(Arc<str>);

impl RouteName {
    /// This name.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}
