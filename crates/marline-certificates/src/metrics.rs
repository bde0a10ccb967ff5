//! Metrics of certificates.

use std::fmt::{self, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use marline::Runtime;
use marline_http::server::{Identity, MetricsSource, metric_head};

use crate::manager::Certificates;
use crate::schedule::earliest;

const DAY: f64 = 86_400.0;

/// A certificate that a server uses, from files or of an authority.
#[derive(Clone, Debug)]
pub struct ServedCertificate {
    /// The first name of its site, or `default`.
    pub name: String,
    /// The certificate.
    pub identity: Identity,
}

/// The metric of the time that the certificates of a server are still valid. All clones are one.
#[derive(Clone)]
pub struct CertificateDays {
    runtime: Arc<dyn Runtime>,
    served: Arc<Mutex<Vec<ServedCertificate>>>,
}

impl fmt::Debug for CertificateDays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateDays").finish_non_exhaustive()
    }
}

impl CertificateDays {
    /// For no certificates so far.
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self {
            runtime,
            served: Arc::default(),
        }
    }

    /// Reports these from now on, and no others.
    pub fn apply(&self, served: Vec<ServedCertificate>) {
        *self.served.lock().unwrap_or_else(PoisonError::into_inner) = served;
    }
}

impl MetricsSource for CertificateDays {
    fn write(&self, out: &mut String) -> fmt::Result {
        let name = "marline_certificate_days";
        let help =
            "Days until the certificate of a site expires; of several, until the first does.";
        metric_head(out, name, "gauge", help)?;
        let now = self.runtime.unix_time().as_secs_f64();
        let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = served.iter().filter_map(|one| {
            let dates = one.identity.dates()?;
            Some((one.name.as_str(), dates.not_after.as_secs_f64()))
        });
        for (site, end) in earliest(ends) {
            let days = (end - now) / DAY;
            writeln!(out, "{name}{{name=\"{site}\"}} {days:.3}")?;
        }
        Ok(())
    }
}

impl MetricsSource for Certificates {
    fn write(&self, out: &mut String) -> fmt::Result {
        let managed = self.managed();
        let name = "marline_certificate_renewed";
        let help = "Whether the last attempt to obtain the certificate succeeded, 1 or 0; without a value, there was none.";
        metric_head(out, name, "gauge", help)?;
        for one in &managed {
            if let Some(succeeded) = one.last_result() {
                let value = u8::from(succeeded);
                writeln!(out, "{name}{{name=\"{}\"}} {value}", one.name())?;
            }
        }
        let name = "marline_certificate_orders_total";
        let help = "Orders at certificate authorities, by ACME.";
        metric_head(out, name, "counter", help)?;
        writeln!(out, "{name} {}", self.orders().load(Relaxed))
    }
}
