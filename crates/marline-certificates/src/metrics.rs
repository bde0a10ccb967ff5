//! Metrics of certificates.

use std::fmt::{self, Write};
use std::sync::atomic::Ordering::Relaxed;

use marline_http::server::{MetricsSource, metric_head};

use crate::manager::Certificates;

const DAY: f64 = 86_400.0;

impl MetricsSource for Certificates {
    fn write(&self, out: &mut String) -> fmt::Result {
        let now = self.now().as_secs_f64();
        let managed = self.managed();
        let name = "marline_certificate_days";
        let help = "Days until the certificate that is used for a site expires.";
        metric_head(out, name, "gauge", help)?;
        for one in &managed {
            if let Some(dates) = one.identity().dates() {
                let days = (dates.not_after.as_secs_f64() - now) / DAY;
                writeln!(out, "{name}{{name=\"{}\"}} {days:.3}", one.name())?;
            }
        }
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
