//! A summary as text.

use super::source::{Connection, Path, Site, Summary, Upstream};

/// The alignment of a column.
#[derive(Clone, Copy)]
enum Column {
    Text(&'static str),
    Number(&'static str),
}

use Column::{Number, Text};

const CONNECTIONS: [Column; 12] = [
    Text("CLIENT"),
    Number("HTTP"),
    Number("AGE"),
    Number("REQUESTS"),
    Number("NOW"),
    Number("REQ/S"),
    Number("SENT"),
    Number("RATE"),
    Number("LOST"),
    Number("RTT"),
    Number("WINDOW"),
    Text("CONTROLLER"),
];

const SITES: [Column; 8] = [
    Text("SITE"),
    Number("RESPONSES"),
    Number("REQ/S"),
    Number("4XX"),
    Number("5XX"),
    Number("CONTENT"),
    Number("RATE"),
    Number("MEAN"),
];

const UPSTREAMS: [Column; 7] = [
    Text("APPLICATION"),
    Text(""),
    Number("REQUESTS"),
    Number("REQ/S"),
    Number("NOW"),
    Number("WAITING"),
    Number("FAILURES"),
];

/// The lines of `summary`.
pub(super) fn lines(summary: &Summary) -> Vec<String> {
    let open = &summary.open;
    let mut lines = vec![
        format!(
            "marline {} at {}, {}, up {}",
            summary.version,
            summary.address,
            summary.status,
            age(summary.uptime_s)
        ),
        format!(
            "{} requests/s, {} of content, {} failures/s, {} of packets lost",
            rate(summary.requests_per_s),
            bits(summary.content_bytes_per_s),
            rate(summary.failures_per_s),
            summary.lost_share.map_or_else(|| "none".to_owned(), share)
        ),
        format!(
            "{} connections: {} of HTTP/3, {} of HTTP/2, {} of HTTP/1.1",
            open.all, open.http3, open.http2, open.http1
        ),
    ];
    let upstreams = summary.upstreams.iter().map(upstream).collect();
    table(&mut lines, &UPSTREAMS, upstreams);
    table(&mut lines, &SITES, summary.sites.iter().map(site).collect());
    let connections = summary.connections.iter().flat_map(connection).collect();
    table(&mut lines, &CONNECTIONS, connections);
    let shown = summary.connections.len();
    if shown < open.all {
        lines.push(format!("and {} less active ones", open.all - shown));
    }
    lines
}

fn connection(one: &Connection) -> Vec<Vec<String>> {
    let mut row = vec![
        one.client.clone(),
        one.http_version.clone(),
        age(one.age_s),
        one.requests.to_string(),
        one.in_progress.to_string(),
        rate(one.requests_per_s),
        bytes(one.bytes_sent as f64),
        bits(one.bytes_sent_per_s),
        one.lost_share.map_or_else(String::new, share),
    ];
    match one.paths.as_slice() {
        [] => row.extend([String::new(), String::new(), String::new()]),
        [path] => row.extend(state(path)),
        paths => {
            let count = format!("{} paths", paths.len());
            row.extend([String::new(), String::new(), count]);
            let rows = paths.iter().map(|path| {
                let lost = path.packets_lost as f64 / path.packets_sent as f64;
                let mut row = vec![format!("  path {} {} {}", path.id, path.remote, path.stage)];
                row.extend(vec![String::new(); 7]);
                row.push(match path.packets_sent {
                    0 => String::new(),
                    _ => share(lost),
                });
                row.extend(state(path));
                row
            });
            return [row].into_iter().chain(rows).collect();
        }
    }
    vec![row]
}

fn state(path: &Path) -> [String; 3] {
    [
        path.rtt_s.map_or_else(String::new, time),
        bytes(path.window_bytes as f64),
        format!("{} {}", path.controller, path.phase),
    ]
}

fn site(one: &Site) -> Vec<String> {
    vec![
        one.site.clone(),
        one.responses.to_string(),
        rate(one.responses_per_s),
        one.responses_4xx.to_string(),
        one.responses_5xx.to_string(),
        bytes(one.bytes as f64),
        bits(one.bytes_per_s),
        one.mean_s.map_or_else(String::new, time),
    ]
}

fn upstream(one: &Upstream) -> Vec<String> {
    let state = if one.healthy {
        "healthy"
    } else {
        "not healthy"
    };
    vec![
        one.upstream.clone(),
        state.to_owned(),
        one.requests.to_string(),
        rate(one.requests_per_s),
        one.in_progress.to_string(),
        one.waiting.to_string(),
        one.failures.to_string(),
    ]
}

/// Appends a table after an empty line, unless it has no rows.
fn table(lines: &mut Vec<String>, columns: &[Column], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let title = |column: &Column| match column {
        Text(title) | Number(title) => (*title).to_owned(),
    };
    let head: Vec<_> = columns.iter().map(title).collect();
    let rows: Vec<_> = [head].into_iter().chain(rows).collect();
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns.len()).map(width).collect();
    lines.push(String::new());
    for row in &rows {
        let cells = row.iter().zip(columns).zip(&widths);
        let cells = cells.map(|((cell, column), &width)| match column {
            Text(_) => format!("{cell:<width$}"),
            Number(_) => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        lines.push(line.trim_end().to_owned());
    }
}

fn scaled(mut value: f64, units: &[&str]) -> String {
    let mut at = 0;
    while value >= 1000.0 && at + 1 < units.len() {
        value /= 1000.0;
        at += 1;
    }
    match value >= 100.0 || at == 0 {
        true => format!("{value:.0} {}", units[at]),
        false => format!("{value:.1} {}", units[at]),
    }
}

fn bytes(value: f64) -> String {
    scaled(value, &["B", "kB", "MB", "GB", "TB"])
}

fn bits(bytes: f64) -> String {
    scaled(bytes * 8.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s"])
}

fn rate(value: f64) -> String {
    match value >= 10.0 {
        true => format!("{value:.0}"),
        false => format!("{value:.1}"),
    }
}

fn share(value: f64) -> String {
    match value < 0.1 {
        true => format!("{:.2} %", value * 100.0),
        false => format!("{:.1} %", value * 100.0),
    }
}

fn time(seconds: f64) -> String {
    match seconds < 0.01 {
        true => format!("{:.1} ms", seconds * 1000.0),
        false => format!("{:.0} ms", seconds * 1000.0),
    }
}

fn age(seconds: f64) -> String {
    let seconds = seconds as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}
