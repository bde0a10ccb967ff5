//! Errors of sites.

use std::io;
use std::path::PathBuf;

use marline_http::proxy::UpstreamTlsError;
use marline_http::server::{ClientCertificatesError, IdentityError};

use crate::users::BasicAuthError;

/// The reason why a site cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The same with its place in a file.
    #[error("{place}: {cause}")]
    At {
        /// File, line and key, as `site.toml:12: burst`.
        place: String,
        /// The problem.
        cause: Box<Self>,
    },
    /// A directory cannot be read.
    #[error("cannot serve {}: {cause}; give a directory that can be read", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// The page for a status cannot be read.
    #[error("cannot read the page for {status}, {}: {cause}", path.display())]
    ErrorPage {
        /// The status, as written.
        status: String,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// Nothing says what to answer.
    #[error("{place} does not say what to answer; set `dir`, `to`, `redirect` or `respond`")]
    NoHandler {
        /// The site or the route.
        place: String,
    },
    /// A route that gets no requests.
    #[error(
        "{place} never answers: {earlier} before it does so for all its requests; write the more particular one first"
    )]
    Unreachable {
        /// The route.
        place: String,
        /// The route before it.
        earlier: String,
    },
    /// Several keys say what to answer.
    #[error(
        "{place} has both `{first}` and `{second}`, and can only do one of them; use routes for several"
    )]
    TwoHandlers {
        /// The site or the route.
        place: String,
        /// The key of the first.
        first: &'static str,
        /// The key of the second.
        second: &'static str,
    },
    /// A key that only makes sense with another one.
    #[error("{place} has `{key}`, which needs `{needs}`")]
    Needs {
        /// The site or the route.
        place: String,
        /// The key.
        key: &'static str,
        /// The other key.
        needs: &'static str,
    },
    /// A redirect with a status that is none.
    #[error("{place} redirects with the status {status}; 301, 302, 303, 307 and 308 do")]
    NoRedirect {
        /// The site or the route.
        place: String,
        /// The status.
        status: u16,
    },
    /// A status of a redirect without a target.
    #[error("{place} has the status {status} of a redirect, which needs `redirect`")]
    NoTarget {
        /// The site or the route.
        place: String,
        /// The status.
        status: u16,
    },
    /// A text with a status whose responses have none.
    #[error("{place} has a text and the status {status}, whose responses have no content")]
    NoContent {
        /// The site or the route.
        place: String,
        /// The status.
        status: u16,
    },
    /// A part of a path that no path has.
    #[error("{place} has {{rest}} in `{key}`, but no `path` of it has a *")]
    NoRest {
        /// The site or the route.
        place: String,
        /// The key.
        key: &'static str,
    },
    /// Two sites have one name, or two of them none.
    #[error("{first} and {second} both are for {name}; every name has one site")]
    SameName {
        /// The first site.
        first: String,
        /// The second site.
        second: String,
        /// The name.
        name: String,
    },
    /// TLS to applications cannot be used.
    #[error("{place}: {cause}")]
    UpstreamTls {
        /// The site or the route.
        place: String,
        /// The problem.
        cause: UpstreamTlsError,
    },
    /// A file of users cannot be used.
    #[error(transparent)]
    BasicAuth(#[from] BasicAuthError),
    /// Certificates of clients cannot be verified.
    #[error("{place}: {cause}")]
    ClientCertificates {
        /// The site.
        place: String,
        /// The problem.
        cause: ClientCertificatesError,
    },
    /// A route has other needs than the handshake, which comes before it, can meet.
    #[error(
        "{place} cannot have this `require`: clients are asked before they request, as its site says; give the site \"optional\", and the route \"always\""
    )]
    RouteCertificates {
        /// The route.
        place: String,
    },
    /// A certificate cannot be used.
    #[error("{place}: {cause}")]
    Identity {
        /// The site.
        place: String,
        /// The problem.
        cause: IdentityError,
    },
}

impl SiteError {
    /// The key of the site or of the route that is wrong, if it is one.
    pub(crate) fn key(&self) -> Option<&'static str> {
        Some(match self {
            Self::Directory { .. } => "dir",
            Self::ErrorPage { .. } => "error_pages",
            Self::TwoHandlers { second, .. } => second,
            Self::Needs { key, .. } | Self::NoRest { key, .. } => key,
            Self::NoRedirect { .. } | Self::NoTarget { .. } | Self::NoContent { .. } => "status",
            Self::SameName { .. } => "names",
            Self::UpstreamTls { .. } => "proxy",
            Self::BasicAuth(_) => "basic_auth",
            Self::ClientCertificates { .. } | Self::RouteCertificates { .. } => {
                "client_certificates"
            }
            Self::Identity { .. } => "cert",
            Self::Unreachable { .. } => "path",
            Self::NoHandler { .. } | Self::At { .. } => return None,
        })
    }
}
