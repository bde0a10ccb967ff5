//! The sites of a web server: names, routes, rules and access.
//!
//! ```text
//! request -> Sites: by host -> access and rules of the site
//!         -> Route: by path and method -> access and rules of the route
//!         -> files | application | redirect | fixed response
//!         -> fields and error pages of the route, then of the site
//! ```
//!
//! [`SiteConfig`] is a site as a file has it; [`sites()`] makes the service of all of them. A server of one directory, or before one
//! application, is a site without a name.

mod access;
mod answers;
mod client_certificates;
mod clients;
mod config;
mod error;
mod error_pages;
mod fields;
mod files;
mod paths;
mod rate;
mod rules;
mod sites;
mod template;
mod users;
mod written;

pub use self::client_certificates::{ClientCertificateFiles, Require, RouteCertificates};
pub use self::clients::SiteClients;
pub use self::config::{CertificateFiles, Handler, RouteConfig, Rules, SiteConfig};
pub use self::error::SiteError;
pub use self::fields::Origin;
pub use self::paths::PathPattern;
pub use self::rate::Rate;
pub use self::sites::{identities, redirect_to_https, site_names, sites};
pub use self::template::{PathTemplate, Template};
pub use self::users::BasicAuthError;
pub use self::written::WrittenAt;
