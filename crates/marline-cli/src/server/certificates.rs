//! The certificates that a server obtains by itself.

use std::fmt::Display;
use std::sync::Arc;

use marline::TokioRuntime;
use marline_certificates::{
    AcmeConfig, CertificateDays, CertificateError, Certificates, Challenge, Prepared,
    ServedCertificate, SiteAcme, Stapling, Wanted,
};
use marline_http::HostPattern;
use marline_http::server::{
    Challenges, Identity, MetricsSource, NamedIdentity, ServerConfig, StateDirectory,
};
use marline_site::SiteConfig;

use crate::failure::Failure;
use crate::listen::Listen;

/// The addresses of a server that names none: with certificates of an authority, those at which authorities validate names.
pub(crate) fn default_addresses(listen: &mut Vec<Listen>, redirect_http: &mut Option<Listen>) {
    if listen.is_empty() {
        listen.push(Listen::everywhere(443));
        redirect_http.get_or_insert_with(|| Listen::everywhere(80));
    }
}

/// A certificate of a site.
pub(crate) struct OfSite {
    /// Its place among the sites.
    pub(crate) site: usize,
    pub(crate) wanted: Wanted,
}

/// The certificates that `sites` get from an authority; `acme` is that of sites that name none.
///
/// # Errors
/// A site cannot get one, or none has a name.
pub(crate) fn wanted(
    sites: &[SiteConfig],
    acme: Option<&AcmeConfig>,
) -> Result<Vec<OfSite>, Failure> {
    let failed = |error: CertificateError| Failure::Usage(error.to_string());
    let mut all = Vec::new();
    let mut is_asked = acme.is_some();
    for (index, site) in sites.iter().enumerate() {
        let of_site = match (&site.acme, acme) {
            (Some(SiteAcme::Off), _) | (None, None) => continue,
            (Some(SiteAcme::Contact(_)), _) if !site.certificates.is_empty() => {
                return Err(Failure::Usage(format!(
                    "{} has a certificate, and `acme` as well; leave one out",
                    site.title()
                )));
            }
            (None, Some(_)) if !site.certificates.is_empty() => continue,
            (Some(SiteAcme::Contact(contact)), base) => AcmeConfig {
                contact: Some(contact.clone()),
                ..base.cloned().unwrap_or_default()
            },
            (None, Some(base)) => base.clone(),
        };
        is_asked = true;
        let wanted = Wanted::new(&site.title(), &site.names, &of_site).map_err(failed)?;
        all.extend(wanted.map(|wanted| OfSite {
            site: index,
            wanted,
        }));
    }
    match is_asked && all.is_empty() && !sites.iter().any(|site| !site.certificates.is_empty()) {
        true => Err(Failure::Usage(
            "acme: no site has a name that an authority can certify; give --name example.org, or `names` of a site"
                .to_owned(),
        )),
        false => Ok(all),
    }
}

/// The certificates of a server from one configuration to the next.
#[derive(Clone)]
pub(super) struct OpenCertificates {
    pub(super) challenges: Challenges,
    pub(super) stapling: Stapling,
    days: CertificateDays,
    /// None without a state directory.
    certificates: Option<Certificates>,
}

impl OpenCertificates {
    /// Without certificates so far; `has_http` is whether challenges over HTTP can be answered.
    pub(super) fn new(
        state: Option<&Arc<StateDirectory>>,
        has_http: bool,
    ) -> Result<Self, Failure> {
        let challenges = Challenges::default();
        let failed = |error: &dyn Display| Failure::Failed(format!("cannot start: {error}"));
        let runtime = Arc::new(TokioRuntime::current().map_err(|error| failed(&error))?);
        let stapling = Stapling::new(state.cloned(), Arc::clone(&runtime) as _);
        let stapling = stapling.map_err(|error| failed(&error))?;
        let days = CertificateDays::new(Arc::clone(&runtime) as _);
        let mut kinds = vec![Challenge::TlsAlpn];
        if has_http {
            kinds.insert(0, Challenge::Http);
        }
        let certificates = state.map(|state| {
            Certificates::new(
                Arc::clone(state),
                runtime,
                challenges.clone(),
                stapling.clone(),
                kinds,
            )
        });
        Ok(Self {
            challenges,
            stapling,
            days,
            certificates,
        })
    }

    /// Their reports.
    pub(super) fn metrics(&self) -> impl Iterator<Item = Arc<dyn MetricsSource>> {
        let certificates = self.certificates.clone();
        let certificates = certificates.map(|one| Arc::new(one) as Arc<dyn MetricsSource>);
        let stapling: Arc<dyn MetricsSource> = Arc::new(self.stapling.clone());
        let days: Arc<dyn MetricsSource> = Arc::new(self.days.clone());
        certificates.into_iter().chain([stapling, days])
    }

    /// Obtains these certificates from now on, and the status of all that are `served` and ask for it.
    pub(super) fn apply(&self, prepared: Prepared, served: Vec<ServedCertificate>) {
        if let Some(certificates) = &self.certificates {
            certificates.apply(prepared);
        }
        let identities = served.iter().map(|one| one.identity.clone()).collect();
        self.days.apply(served);
        self.stapling.apply(identities);
    }

    /// Does so until it is dropped.
    pub(super) async fn run(self) {
        let obtaining = async {
            if let Some(certificates) = self.certificates {
                certificates.run().await;
            }
        };
        tokio::join!(obtaining, self.stapling.run());
    }

    /// The certificates of a server, to which what is known of their status is stapled.
    pub(super) fn stapled(&self, config: &ServerConfig) -> Vec<ServedCertificate> {
        let served = |name: Option<&HostPattern>, identity: &Identity| ServedCertificate {
            name: name.map_or("default".to_owned(), ToString::to_string),
            identity: identity.clone(),
        };
        let named = config.named_identities.iter();
        let named = named.map(|one| served(one.names.first(), &one.identity));
        let default = config.identity.iter().map(|one| served(None, one));
        let all: Vec<_> = named.chain(default).collect();
        for one in &all {
            self.stapling.prepare(&one.identity);
        }
        all
    }

    /// The certificates `wanted`, each that of `until_then` until it is issued.
    pub(super) fn prepare(
        &self,
        wanted: Vec<OfSite>,
        until_then: Option<&Identity>,
    ) -> Result<Prepared, Failure> {
        let failed = |error: CertificateError| Failure::Failed(error.to_string());
        let wanted: Vec<_> = wanted.into_iter().map(|one| one.wanted).collect();
        match (&self.certificates, until_then) {
            (Some(certificates), Some(until_then)) => {
                certificates.prepare(wanted, until_then).map_err(failed)
            }
            _ if wanted.is_empty() => Ok(Prepared::default()),
            _ => Err(failed(CertificateError::NoState)),
        }
    }
}

/// The certificates `prepared`, by their names.
pub(super) fn identities(prepared: &Prepared) -> Vec<NamedIdentity> {
    let all = prepared.certificates().into_iter();
    all.map(|one| NamedIdentity {
        names: one.names.iter().flat_map(|name| name.parse()).collect(),
        identity: one.identity,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(names: &[&str], acme: Option<&str>) -> SiteConfig {
        SiteConfig {
            names: names.iter().map(|name| name.parse().unwrap()).collect(),
            acme: acme.map(|acme| acme.parse().unwrap()),
            ..SiteConfig::default()
        }
    }

    #[test]
    fn sites_get_certificates_of_the_server_s_authority_or_of_their_own_account() {
        let server = AcmeConfig {
            contact: Some("ana@example.org".parse().unwrap()),
            directory: "https://ca.example/".to_owned(),
            ..AcmeConfig::default()
        };
        let sites = [
            site(&["a.example"], None),
            site(&["b.example"], Some("off")),
            site(&["c.example"], Some("ben@example.org")),
            site(&[], None),
        ];
        let all = wanted(&sites, Some(&server)).unwrap();
        let names: Vec<_> = all
            .iter()
            .map(|one| one.wanted.names()[0].as_str())
            .collect();
        assert_eq!(names, ["a.example", "c.example"]);
        assert_eq!(all[0].wanted.acme(), &server);
        assert_eq!(all[1].wanted.acme().directory, server.directory);
        let contact = all[1].wanted.acme().contact.as_ref().unwrap();
        assert_eq!(contact.to_string(), "ben@example.org");
        let alone = wanted(&sites, None).unwrap();
        assert_eq!(alone.len(), 1);
        assert!(wanted(&sites[..1], None).unwrap().is_empty());
    }

    #[test]
    fn a_server_without_a_name_is_refused() {
        let contact = Some("ana@example.org");
        for sites in [[site(&[], contact)], [site(&["localhost"], contact)]] {
            let Err(error) = wanted(&sites, None) else {
                panic!("a certificate for nothing")
            };
            assert!(error.to_string().contains("--name"), "{error}");
        }
        let Err(error) = wanted(&[site(&["*.example.org"], contact)], None) else {
            panic!("a wildcard")
        };
        assert!(error.to_string().contains("DNS-01"), "{error}");
    }
}
