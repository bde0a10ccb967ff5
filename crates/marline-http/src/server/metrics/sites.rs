//! Metrics of each site.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::StatusCode;

use super::super::exposition::head;
use super::durations::Durations;

/// The extension of a response that names the site it is of, for the metrics. Names come from the configuration, never from
/// requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteName(Arc<str>);

impl SiteName {
    /// This name.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    pub(in crate::server) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The counters of sites by their names.
#[derive(Debug, Default)]
pub(super) struct SiteMetrics(RwLock<BTreeMap<Arc<str>, Counters>>);

#[derive(Debug, Default)]
struct Counters {
    /// By class: 1xx to 5xx.
    responses: [AtomicU64; 5],
    bytes: AtomicU64,
    durations: Durations,
}

impl SiteMetrics {
    /// Sets the sites to show from now on; those that were shown before continue their counters.
    pub(super) fn show(&self, sites: &[SiteName]) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *known);
        for SiteName(name) in sites {
            let counters = before.remove(name).unwrap_or_default();
            known.insert(Arc::clone(name), counters);
        }
    }

    /// Counts a response of `site`.
    pub(super) fn responded(
        &self,
        SiteName(site): &SiteName,
        status: StatusCode,
        bytes: u64,
        duration: Duration,
    ) {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        // The response may be of a site that the configuration has no longer.
        let Some(counters) = known.get(site) else {
            return;
        };
        counters.responses[super::class(status)].fetch_add(1, Relaxed);
        counters.bytes.fetch_add(bytes, Relaxed);
        counters.durations.add(duration);
    }

    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let name = "marline_site_responses_total";
        let help = "Responses of each site, by status class.";
        head(out, name, "counter", help)?;
        for (site, counters) in &*known {
            for (class, count) in (1..).zip(&counters.responses) {
                let count = count.load(Relaxed);
                writeln!(
                    out,
                    "{name}{{site=\"{site}\",status=\"{class}xx\"}} {count}"
                )?;
            }
        }
        let name = "marline_site_response_bytes_total";
        let help = "Bytes of response content sent by each site.";
        head(out, name, "counter", help)?;
        for (site, counters) in &*known {
            let bytes = counters.bytes.load(Relaxed);
            writeln!(out, "{name}{{site=\"{site}\"}} {bytes}")?;
        }
        let name = "marline_site_request_duration_seconds";
        let help = "As marline_http_request_duration_seconds, of each site.";
        head(out, name, "histogram", help)?;
        for (site, counters) in &*known {
            let labels = format!("site=\"{site}\",");
            counters.durations.write(out, name, &labels)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(metrics: &SiteMetrics) -> String {
        let mut out = String::new();
        metrics.write(&mut out).unwrap();
        out
    }

    #[test]
    fn sites_are_those_of_the_configuration_and_keep_their_counters() {
        let [a, b, c] = ["a.example", "b.example", "c.example"].map(SiteName::new);
        let metrics = SiteMetrics::default();
        metrics.show(&[a.clone(), b.clone()]);
        for site in [&a, &b, &c] {
            metrics.responded(site, StatusCode::NOT_FOUND, 7, Duration::from_millis(3));
        }
        let text = written(&metrics);
        let of_a = "marline_site_responses_total{site=\"a.example\",status=\"4xx\"} 1\n";
        assert!(text.contains(of_a), "{text}");
        assert!(text.contains("_seconds_bucket{site=\"a.example\",le=\"0.005\"} 1\n"));
        assert!(text.contains("_seconds_count{site=\"b.example\"} 1\n"));
        assert!(!text.contains("c.example"), "{text}");
        metrics.show(&[a, c]);
        let text = written(&metrics);
        assert!(text.contains(of_a) && !text.contains("b.example"), "{text}");
        let of_c = "marline_site_response_bytes_total{site=\"c.example\"} 0\n";
        assert!(text.contains(of_c), "{text}");
    }
}
