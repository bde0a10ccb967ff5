//! The text format of metrics for Prometheus.

use std::fmt::{self, Write};

/// Writes the lines that precede the values of a metric.
///
/// # Errors
/// Those of writing to `out`, which has none.
pub fn head(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
}
