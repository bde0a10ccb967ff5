//! Summaries as text and as JSON.

use std::fmt::{self, Write};

use serde_json::{Map, Value, json};

use super::bundle::Line;
use super::{Bundle, Connection, InitialWindow, Numbers, ResumePhase, Summary};
use crate::terminal::write_line;
use crate::units;

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_line(f, format_args!("{}", self.file.display()))?;
        if let Some(error) = &self.first_error {
            let skipped = units::counted(self.skipped as u64, "record");
            write_line(f, format_args!("  {skipped} skipped; first, {error}"))?;
        }
        for connection in &self.connections {
            writeln!(f)?;
            write_line(f, format_args!("{}", name(connection)))?;
            write_numbers(f, &connection.total, "  ")?;
            for first in &connection.initial_windows {
                write_line(
                    f,
                    format_args!("  {:<16}{}", "initial window", first.text()),
                )?;
            }
            for phase in &connection.careful_resume {
                let text = phase.text(connection.start_s);
                write_line(f, format_args!("  {:<16}{text}", "careful resume"))?;
            }
            for bundle in &connection.bundles {
                for Line { key, value } in bundle.lines(connection.start_s) {
                    write_line(f, format_args!("  {key:<16}{value}"))?;
                }
            }
            if connection.paths.len() > 1 {
                for (tuple, numbers) in &connection.paths {
                    write_line(
                        f,
                        format_args!("  path {}", if tuple.is_empty() { "0" } else { tuple }),
                    )?;
                    write_numbers(f, numbers, "    ")?;
                }
            }
        }
        Ok(())
    }
}

fn name(connection: &Connection) -> String {
    let source = &connection.source;
    let mut name = "connection".to_owned();
    if !connection.group.is_empty() {
        let _ = write!(name, " {}", connection.group);
    }
    for part in [&source.vantage_point, &source.name, &source.title] {
        if !part.is_empty() {
            let _ = write!(name, ", {part}");
        }
    }
    name
}

fn write_numbers(f: &mut fmt::Formatter<'_>, numbers: &Numbers, indent: &str) -> fmt::Result {
    let n = numbers;
    let counted = |packets| units::counted(packets, "packet");
    let mut line =
        |key: &str, value: String| write_line(f, format_args!("{indent}{key:<16}{value}"));
    line("duration", units::seconds(n.duration_s))?;
    for (key, packets, bytes, rate) in [
        ("sent", n.packets_sent, n.bytes_sent, n.throughput_sent()),
        (
            "received",
            n.packets_received,
            n.bytes_received,
            n.throughput_received(),
        ),
    ] {
        let rate = rate.map_or_else(String::new, |r| format!(", {}", units::bit_rate(r)));
        line(
            key,
            format!("{}, {}{rate}", counted(packets), units::bytes(bytes as f64)),
        )?;
    }
    if n.packets_dropped > 0 {
        line("dropped", counted(n.packets_dropped))?;
    }
    let mut lost = counted(n.packets_lost());
    if let Some(ratio) = n.loss_ratio().filter(|_| n.packets_lost() > 0) {
        let _ = write!(lost, " ({:.2} %)", ratio * 100.0);
    }
    for (at, (trigger, count)) in n.lost.iter().enumerate() {
        let _ = write!(
            lost,
            "{} {trigger} {count}",
            if at == 0 { ":" } else { "," }
        );
    }
    line("lost", lost)?;
    line("spurious", counted(n.spurious_losses))?;
    if let Some(rtt) = n.rtt_s {
        line(
            "rtt",
            format!(
                "min {}, median {}, max {} ({})",
                units::seconds(rtt.min),
                units::seconds(rtt.median),
                units::seconds(rtt.max),
                units::counted(rtt.samples as u64, "sample")
            ),
        )?;
    }
    if let Some(window) = n.max_congestion_window {
        line("max window", units::bytes(window as f64))?;
    }
    if let Some(bytes) = n.max_bytes_in_flight {
        line("max in flight", units::bytes(bytes as f64))?;
    }
    for (state, seconds) in &n.states {
        let share = share(*seconds, n.duration_s) * 100.0;
        line(
            "time in",
            format!(
                "{state:<22}{:>10}  {share:>5.1} %",
                units::seconds(*seconds)
            ),
        )?;
    }
    Ok(())
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl Summary {
    /// The summary as a JSON object: times in seconds, sizes in bytes, rates in bits per second. Times
    /// of a bundle's decisions are relative to the log's reference time, so that logs can be compared;
    /// `start_s` is the connection's first event on that clock.
    pub fn to_json(&self) -> Value {
        let connections = self.connections.iter().map(connection_json);
        json!({
            "file": self.file.to_string_lossy(),
            "skipped_records": self.skipped,
            "first_error": self.first_error,
            "connections": connections.collect::<Vec<_>>(),
        })
    }
}

fn connection_json(connection: &Connection) -> Value {
    let mut object = numbers_json(&connection.total);
    let paths = connection.paths.iter().map(|(tuple, numbers)| {
        let mut path = numbers_json(numbers);
        path.insert("id".to_owned(), json!(tuple));
        Value::Object(path)
    });
    let bundles = connection.bundles.iter().map(Bundle::to_json);
    let initial_windows = connection
        .initial_windows
        .iter()
        .map(InitialWindow::to_json);
    let careful_resume = connection.careful_resume.iter().map(ResumePhase::to_json);
    for (key, value) in [
        ("start_s", json!(connection.start_s)),
        ("id", json!(connection.group)),
        ("title", json!(connection.source.title)),
        ("name", json!(connection.source.name)),
        ("vantage_point", json!(connection.source.vantage_point)),
        ("paths", paths.collect()),
        ("bundles", bundles.collect()),
        ("initial_windows", initial_windows.collect()),
        ("careful_resume", careful_resume.collect()),
    ] {
        object.insert(key.to_owned(), value);
    }
    Value::Object(object)
}

fn numbers_json(n: &Numbers) -> Map<String, Value> {
    let states = n.states.iter().map(|(state, seconds)| {
        let percent = share(*seconds, n.duration_s) * 100.0;
        json!({ "state": state, "seconds": seconds, "percent": percent })
    });
    let rtt = n.rtt_s.map(|rtt| {
        json!({
            "samples": rtt.samples, "min": rtt.min, "median": rtt.median, "max": rtt.max,
        })
    });
    [
        ("duration_s", json!(n.duration_s)),
        ("packets_sent", json!(n.packets_sent)),
        ("packets_received", json!(n.packets_received)),
        ("packets_dropped", json!(n.packets_dropped)),
        ("bytes_sent", json!(n.bytes_sent)),
        ("bytes_received", json!(n.bytes_received)),
        ("throughput_sent_bps", json!(n.throughput_sent())),
        ("throughput_received_bps", json!(n.throughput_received())),
        ("packets_lost", json!(n.packets_lost())),
        ("packets_lost_by_trigger", json!(n.lost)),
        ("spurious_losses", json!(n.spurious_losses)),
        ("rtt_s", json!(rtt)),
        ("max_congestion_window", json!(n.max_congestion_window)),
        ("max_bytes_in_flight", json!(n.max_bytes_in_flight)),
        ("congestion_states", states.collect()),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect()
}
