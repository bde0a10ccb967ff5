//! Certificates that sites ask their clients for.

use http::{Request, Response};
use marline_http::Body;
use marline_http::server::{ClientCertificates, ClientRules, Refusal, TlsClient};

use crate::answers::refused;
use crate::client_certificates::Require;
use crate::config::{RouteConfig, SiteConfig};
use crate::error::SiteError;

/// The certificates that `sites` ask their clients for.
#[derive(Debug, Default)]
pub struct SiteClients {
    by_site: Vec<Option<ClientCertificates>>,
    rules: ClientRules,
}

impl SiteClients {
    /// Reads them.
    ///
    /// # Errors
    /// A file cannot be used, or a route needs what its site does not ask for.
    pub fn of(sites: &[SiteConfig]) -> Result<Self, SiteError> {
        let mut all = Self::default();
        for site in sites {
            let asked = read(site).map_err(|error| site.written.locate(error))?;
            for route in &site.routes {
                check(route, site).map_err(|error| route.written.locate(error))?;
            }
            all.rules.add(&site.names, asked.as_ref());
            all.by_site.push(asked);
        }
        Ok(all)
    }

    /// Those of the server, by the name that a client asks for.
    pub fn rules(&self) -> &ClientRules {
        &self.rules
    }

    /// Those of the site with this place among the sites.
    pub(crate) fn of_site(&self, index: usize) -> Option<&ClientCertificates> {
        self.by_site.get(index)?.as_ref()
    }
}

fn required(site: &SiteConfig) -> Require {
    let files = site.client_certificates.as_ref();
    files.map_or(Require::Never, |files| files.require)
}

fn read(site: &SiteConfig) -> Result<Option<ClientCertificates>, SiteError> {
    let Some(files) = &site.client_certificates else {
        return Ok(None);
    };
    let place = site.title();
    if files.ca.as_os_str().is_empty() {
        return Err(SiteError::Needs {
            place,
            key: "client_certificates",
            needs: "ca",
        });
    }
    let is_required = files.require == Require::Always;
    // Files are checked even if no client is asked for a certificate.
    let read = ClientCertificates::from_pem_files(&files.ca, files.crl.as_deref(), is_required);
    let read = read.map_err(|cause| SiteError::ClientCertificates { place, cause })?;
    Ok((files.require != Require::Never).then_some(read))
}

/// The handshake comes before the request: it asks for a certificate as the site says.
fn check(route: &RouteConfig, site: &SiteConfig) -> Result<(), SiteError> {
    let Some(of_route) = &route.client_certificates else {
        return Ok(());
    };
    match (required(site), of_route.require) {
        (Require::Always, Require::Never | Require::Optional)
        | (Require::Never, Require::Optional | Require::Always) => {
            Err(SiteError::RouteCertificates {
                place: format!("{} of {}", route.title(), site.title()),
            })
        }
        _ => Ok(()),
    }
}

/// The certificates that a site needs for its requests.
#[derive(Debug)]
pub(crate) struct Needed {
    asked: Option<ClientCertificates>,
    is_required: bool,
}

impl Needed {
    /// Those of `site`, which asks its clients for `asked`.
    pub(crate) fn new(site: &SiteConfig, asked: Option<&ClientCertificates>) -> Self {
        Self {
            asked: asked.cloned(),
            is_required: required(site) == Require::Always,
        }
    }

    /// Whether the requests of `route` need one.
    pub(crate) fn by_route(route: &RouteConfig) -> bool {
        let of_route = route.client_certificates.as_ref();
        of_route.is_some_and(|route| route.require == Require::Always)
    }

    /// The response to `request` if it may not be answered, because its connection was asked for other certificates (RFC 9110, section
    /// 15.5.20), or its route `needs_one` and it has none.
    pub(crate) fn refusal<B>(
        &self,
        request: &Request<B>,
        needs_one: bool,
    ) -> Option<Response<Body>> {
        let none = TlsClient::default();
        let client = request.extensions().get().unwrap_or(&none);
        if !client.was_asked_for(self.asked.as_ref()) {
            let text = "This connection was not asked for the certificate that this site needs\n";
            return Some(refused(Refusal::OtherCertificates, text));
        }
        let is_missing = (self.is_required || needs_one) && client.certificate().is_none();
        let text = "This needs a valid certificate of the client\n";
        is_missing.then(|| refused(Refusal::NoCertificate, text))
    }
}
