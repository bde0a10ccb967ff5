//! The counters of an export, as text and as JSON.

use std::fmt::Write;

use marline_flow::Statistics;
use marline_report::units::{bytes, count, counted};
use serde_json::{Value, json};

use super::output::Left;

/// One JSON object.
pub(super) fn json(output: &str, statistics: &Statistics, left: Left) -> Value {
    let mut document = json!({ "output": output });
    if let Some(files) = left.files {
        document["files"] = files.files.into();
        document["written_bytes"] = files.bytes.into();
    }
    if let Some(sent) = left.collector {
        document["ipfix_messages"] = sent.messages.into();
    }
    let counts = serde_json::to_value(statistics).unwrap_or_default();
    if let (Value::Object(document), Value::Object(counts)) = (&mut document, counts) {
        document.extend(counts);
    }
    document
}

/// A few lines.
pub(super) fn text(output: &str, statistics: &Statistics, left: Left) -> String {
    let Statistics {
        packets,
        records,
        flows,
        transports,
        http_versions: versions,
        label_sources: sources,
        skipped,
        malformed,
        key_log_lines,
        ..
    } = statistics;
    let mut text = format!(
        "{output}: {} of {} ({} over TCP, {} over UDP) from {}, {}\n",
        counted(*records, "record"),
        counted(*flows, "flow"),
        count(transports.tcp),
        count(transports.udp),
        counted(*packets, "packet"),
        bytes(statistics.bytes as f64),
    );
    if let Some(files) = left.files.filter(|files| files.files > 1) {
        let (number, size) = (counted(files.files, "file"), bytes(files.bytes as f64));
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "written: {number}, {size}");
    }
    line(
        &mut text,
        "versions of HTTP",
        &[
            ("h1", versions.h1),
            ("h2", versions.h2),
            ("h3", versions.h3),
            ("other", versions.other),
            ("not known", versions.unknown),
        ],
    );
    line(
        &mut text,
        "known by",
        &[
            ("handshake", sources.handshake),
            ("key log", sources.keylog),
            ("server log", sources.server_log),
        ],
    );
    line(
        &mut text,
        "packets skipped",
        &[
            ("not IP", skipped.not_ip),
            ("neither TCP nor UDP", skipped.other_transport),
            ("tunnels that are not opened", skipped.tunnel),
            ("encrypted", skipped.protected),
            ("fragments without their first", skipped.lone_fragment),
            ("later fragments of tunnels", skipped.tunnel_fragment),
            ("of link types that are not read", skipped.link_type),
        ],
    );
    line(
        &mut text,
        "packets malformed",
        &[
            ("headers not captured", malformed.cut_header),
            ("link", malformed.link),
            ("IP", malformed.ip),
            ("TCP or UDP", malformed.transport),
        ],
    );
    line(
        &mut text,
        "lines of key logs in captures",
        &[
            ("read", key_log_lines.read),
            ("malformed", key_log_lines.malformed),
            ("beyond the limit of connections", key_log_lines.too_many),
        ],
    );
    line(
        &mut text,
        "beyond limits",
        &[
            ("flows ended early", statistics.evicted),
            ("connections not inspected", statistics.uninspected),
        ],
    );
    text
}

/// A line of the counts that are not 0, if there are any.
fn line(text: &mut String, title: &str, counts: &[(&str, u64)]) {
    let seen = counts.iter().filter(|(_, number)| *number > 0);
    let words: Vec<_> = seen
        .map(|(name, number)| format!("{} {name}", count(*number)))
        .collect();
    if !words.is_empty() {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{title}: {}", words.join(", "));
    }
}
