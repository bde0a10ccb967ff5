//! Metrics of `marline flow`, for Prometheus.

use std::fmt::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use marline_flow::Statistics;
use marline_http::server::{MetricsSource, metric_head as head, serve_metrics};
use serde::Serialize;
use serde_json::Value;

use super::output::Left;
use crate::failure::Failure;

/// The outcome of an export.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) statistics: Statistics,
    pub(super) active_flows: usize,
    /// Packets that the kernel dropped.
    pub(super) dropped: u64,
    pub(super) left: Left,
}

/// The metrics of an export, as of the last update.
#[derive(Debug, Default)]
pub(super) struct FlowMetrics(Mutex<Snapshot>);

impl FlowMetrics {
    /// Serves the metrics at `address` until the process ends.
    pub(super) fn serve(address: SocketAddr) -> Result<Arc<Self>, Failure> {
        let failed = |error| {
            Failure::Failed(format!(
                "cannot serve metrics on {address}: {error}; choose another address with --metrics"
            ))
        };
        let socket = TcpListener::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let bound = socket.local_addr().map_err(failed)?;
        let metrics = Arc::new(Self::default());
        let source = Arc::clone(&metrics);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let socket = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(socket).map_err(failed)?
        };
        thread::spawn(move || runtime.block_on(serve_metrics(socket, source)));
        errln!("metrics on http://{bound}/metrics");
        Ok(metrics)
    }

    pub(super) fn set(&self, snapshot: Snapshot) {
        *self.lock() = snapshot;
    }

    fn lock(&self) -> MutexGuard<'_, Snapshot> {
        // A snapshot is replaced as a whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MetricsSource for FlowMetrics {
    fn write(&self, out: &mut String) -> fmt::Result {
        let Snapshot {
            statistics,
            active_flows,
            dropped,
            left,
        } = self.lock().clone();
        let mut counter = |name: &str, help: &str, value: u64| {
            head(out, name, "counter", help)?;
            writeln!(out, "{name} {value}")
        };
        counter(
            "marline_flow_packets_total",
            "Packets read.",
            statistics.packets,
        )?;
        counter(
            "marline_flow_packet_bytes_total",
            "Their bytes on the link.",
            statistics.bytes,
        )?;
        counter(
            "marline_flow_dropped_packets_total",
            "Packets that the kernel dropped because they were not read in time.",
            dropped,
        )?;
        counter(
            "marline_flow_cut_packets_total",
            "Packets of which not every byte was captured.",
            statistics.cut,
        )?;
        counter(
            "marline_flow_uninspected_connections_total",
            "Connections whose beginning was not inspected because too many were in progress.",
            statistics.uninspected,
        )?;
        if let Some(sent) = left.collector {
            counter(
                "marline_flow_ipfix_messages_total",
                "Messages sent to the collector, templates included.",
                sent.messages,
            )?;
            counter("marline_flow_ipfix_bytes_total", "Their bytes.", sent.bytes)?;
            counter(
                "marline_flow_ipfix_lost_records_total",
                "Records that did not reach the collector.",
                sent.lost_records,
            )?;
        }
        if let Some(files) = left.files {
            counter(
                "marline_flow_written_bytes_total",
                "Bytes of files, with those of the open one as far as they are known.",
                files.bytes,
            )?;
            counter("marline_flow_files_total", "Files completed.", files.files)?;
            if let Some(last_ns) = files.last_ns {
                let name = "marline_flow_last_rotation_timestamp_seconds";
                let help = "When the last file was completed, since the Unix epoch.";
                head(out, name, "gauge", help)?;
                writeln!(out, "{name} {}", last_ns as f64 / 1e9)?;
            }
        }
        let name = "marline_flow_active_flows";
        head(out, name, "gauge", "Flows under way.")?;
        writeln!(out, "{name} {active_flows}")?;
        by_label(
            out,
            "marline_flow_skipped_packets_total",
            "Packets of no flow, by reason.",
            "reason",
            &statistics.skipped,
        )?;
        by_label(
            out,
            "marline_flow_malformed_packets_total",
            "Packets that cannot be decoded, by reason.",
            "reason",
            &statistics.malformed,
        )?;
        by_label(
            out,
            "marline_flow_flows_total",
            "Flows begun, by transport.",
            "transport",
            &statistics.transports,
        )?;
        by_label(
            out,
            "marline_flow_records_total",
            "Records written, by why the flow or its part ended.",
            "end_reason",
            &statistics.ended,
        )?;
        by_label(
            out,
            "marline_flow_http_versions_total",
            "Records by version of HTTP.",
            "version",
            &statistics.http_versions,
        )
    }
}

/// The metrics of an export to files in turn and to a collector, before its first packet.
#[cfg(test)]
pub(crate) fn of_an_export() -> String {
    let metrics = FlowMetrics::default();
    metrics.set(Snapshot {
        left: Left {
            files: Some(marline_flow::output::Written {
                last_ns: Some(0),
                ..Default::default()
            }),
            collector: Some(Default::default()),
        },
        ..Snapshot::default()
    });
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = metrics.write(&mut text);
    text
}

/// Writes a counter for each field of `counts`.
fn by_label(
    out: &mut String,
    name: &str,
    help: &str,
    label: &str,
    counts: &impl Serialize,
) -> fmt::Result {
    head(out, name, "counter", help)?;
    if let Ok(Value::Object(fields)) = serde_json::to_value(counts) {
        for (field, count) in fields {
            writeln!(out, "{name}{{{label}=\"{field}\"}} {count}")?;
        }
    }
    Ok(())
}
