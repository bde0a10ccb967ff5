//! The metrics that runs have, by their names: those that an experiment asks for are checked before its first run.

use std::collections::BTreeSet;

use super::document::{Item, Node, Table};
use super::error::{Place, Problem, unknown};
use super::model::{Settings, StreamDef, Workload};

/// With more streams than these, no stream has a metric of its own.
pub(crate) const MOST_NAMED_STREAMS: usize = 64;

/// Of the sender, in every workload.
const SENDER: [&str; 13] = [
    "packets_sent",
    "packets_lost",
    "packets_lost_spuriously",
    "loss_ratio",
    "fluctuations",
    "largest_window_bytes",
    "min_rtt_s",
    "rtt_median_ms",
    "rtt_p99_ms",
    "bundle_decisions",
    "bundle_fluctuations",
    "bundle_left_slow_start_s",
    "coalesced",
];

/// Of a workload that completes.
const TRANSFER: [&str; 6] = [
    "completion_s",
    "goodput_mbps",
    "ideal_s",
    "first_fluctuation_s",
    "first_fluctuation_packets",
    "first_fluctuation_window_bytes",
];

/// Of the receiver, with several paths.
const RECEIVER: [&str; 3] = [
    "longest_pause_s",
    "out_of_order_mean_bytes",
    "out_of_order_max_bytes",
];

const PAGE: [&str; 14] = [
    "page_load_s",
    "first_byte_s",
    "first_render_s",
    "load_event_s",
    "connections",
    "largest_connection_ratio",
    "handshakes",
    "pipes",
    "pipes_spare",
    "peer_loss_estimate",
    "mean_window_bytes",
    "mptcp_connections",
    "mptcp_joins",
    "mptcp_subflows",
];

const DEVICES: [&str; 7] = [
    "page_load_mean_s",
    "page_load_max_s",
    "connections",
    "together_s",
    "jain_index",
    "jain_index_5s",
    "utilization_ratio",
];

const VISITS: [&str; 14] = [
    "latency_s",
    "initial_window_bytes",
    "early_data_accepted",
    "first_flight_loss_ratio",
    "careful_jumps",
    "careful_retreats",
    "careful_s",
    "background_before_mbps",
    "background_during_mbps",
    "background_after_mbps",
    "background_before_loss_ratio",
    "background_during_loss_ratio",
    "background_after_loss_ratio",
    "background_missing_bytes",
];

const MEASURE: [&str; 10] = [
    "goodput_mbps",
    "smallest_connection_goodput_mbps",
    "share",
    "background_share",
    "jain_index",
    "jain_index_connections",
    "utilization_ratio",
    "background_goodput_mbps",
    "smallest_background_goodput_mbps",
    "background_share_of_fair",
];

const VIDEO: [&str; 6] = [
    "video_bitrate_mbps",
    "video_startup_s",
    "video_stalls",
    "video_stalled_s",
    "video_switches",
    "video_quality_mbps",
];

const CALL: [&str; 6] = [
    "call_frames",
    "call_late_ratio",
    "call_lost_ratio",
    "call_delay_median_ms",
    "call_delay_p95_ms",
    "call_longest_freeze_ms",
];

/// Of a transfer with `features`.
const FEATURES: [&str; 29] = [
    "server_mean_ipt_us",
    "client_mean_ipt_us",
    "server_var_ipt",
    "client_var_ipt",
    "server_burstiness",
    "client_burstiness",
    "server_burstiness_10",
    "client_burstiness_10",
    "server_burstiness_50",
    "client_burstiness_50",
    "server_burstiness_100",
    "client_burstiness_100",
    "mean_delay_us",
    "var_delay",
    "loss_probability",
    "out_of_order_probability",
    "ack_freq",
    "mean_cwnd_bytes",
    "var_cwnd",
    "slow_start_freq_percent",
    "congestion_avoidance_freq_percent",
    "app_limited_freq_percent",
    "recovery_freq_percent",
    "declared_lost",
    "spurious_losses",
    "recoveries",
    "spurious_recoveries",
    "slow_start_exits",
    "spurious_slow_start_exits",
];

/// The metrics that runs with `settings` may have. Some depend on the course of a run: a transfer without bundles has none of
/// bundles.
pub(super) fn of(settings: &Settings) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut all = |of_kind: &[&str]| names.extend(of_kind.iter().map(|&name| name.to_owned()));
    all(&SENDER);
    match &settings.workload {
        Workload::Measure { .. } => all(&MEASURE),
        Workload::Call { .. } => all(&CALL),
        Workload::Devices { .. } => all(&DEVICES),
        _ => all(&TRANSFER),
    }
    match &settings.workload {
        Workload::Files { .. } => all(&["files"]),
        Workload::Streams { .. } => all(&["last_byte_s"]),
        Workload::Page { .. } => all(&PAGE),
        Workload::Video { .. } => all(&VIDEO),
        Workload::Visits { .. } => {
            all(&VISITS);
            all(&["background_recovery_s"]);
        }
        Workload::Transfer { features: true, .. } => all(&FEATURES),
        _ => {}
    }
    names.extend(of_workload(&settings.workload));
    names.extend(of_links(settings));
    names
}

/// The metrics whose names have a part from the workload, as the number of a stream.
fn of_workload(workload: &Workload) -> Vec<String> {
    match workload {
        Workload::Streams { streams, .. } => of_streams(streams),
        Workload::Page { loads, .. } if *loads > 1 => {
            let each = |load| ["page_load_s", "pipes_open"].map(|name| format!("{name} {load:03}"));
            (1..=*loads).flat_map(each).collect()
        }
        Workload::Devices { count, .. } => {
            let mut names = Vec::new();
            for device in 1..=*count {
                names.push(format!("device_{device}_page_load_s"));
                names.push(format!("device_{device}_connections"));
                let active = (device..=*count).map(|active| active.to_string());
                names.extend(
                    active.map(|active| format!("device_{device}_of_{active}_goodput_mbps")),
                );
            }
            names
        }
        _ => Vec::new(),
    }
}

fn of_streams(streams: &[StreamDef]) -> Vec<String> {
    let groups: BTreeSet<_> = streams
        .iter()
        .filter_map(|one| one.group.as_ref())
        .collect();
    let groups = groups.into_iter().map(|group| format!("streams_{group}"));
    let mut names = Vec::new();
    for group in groups.chain(["streams".to_owned()]) {
        for statistic in ["mean", "max"] {
            names.push(format!("{group}_{statistic}_s"));
            names.push(format!("{group}_last_byte_{statistic}_s"));
        }
    }
    if streams.len() <= MOST_NAMED_STREAMS {
        for StreamDef { id, .. } in streams {
            names.push(format!("stream_{id}_s"));
            names.push(format!("stream_{id}_last_byte_s"));
        }
    }
    names
}

/// The metrics of paths, links, pipes and background traffic.
fn of_links(settings: &Settings) -> Vec<String> {
    let mut names = Vec::new();
    let is_one_connection = matches!(
        settings.workload,
        Workload::Streams { .. } | Workload::Transfer { .. }
    );
    if is_one_connection && (settings.path.is_some() || settings.is_multipath()) {
        names.extend(RECEIVER.map(str::to_owned));
        for path in 1..=settings.topology.links.len() {
            names.push(format!("path_{path}_bytes"));
            names.push(format!("path_{path}_percent"));
        }
    }
    if matches!(settings.workload, Workload::Page { .. }) {
        for link in &settings.topology.links {
            names.push(format!("connections_on_{}", link.name));
            names.push(format!("bytes_on_{}", link.name));
        }
        if settings.http.gateway {
            let pipes = 0..marline_http::limits::MAX_PIPES;
            names.extend(pipes.map(|pipe| format!("pipe_{pipe}_bytes")));
        }
    }
    let measured = (1..).zip(&settings.background);
    let measured = measured.filter(|(_, background)| background.measured);
    names.extend(measured.map(|(number, _)| format!("background_{number}_mbps")));
    names
}

/// Checks that each metric that `root` names, and each of the `defaults` if it names none, is one of some run.
///
/// # Errors
/// The first that is not, at its place.
pub(super) fn check<'s>(
    root: &Table,
    defaults: &[String],
    settings: impl Iterator<Item = &'s Settings>,
) -> Result<(), Problem> {
    let known: BTreeSet<String> = settings.flat_map(of).collect();
    let unknown = |name: &str| {
        let known = known.iter().map(String::as_str);
        unknown("metric of this workload", name, known)
    };
    for node in named(root) {
        let name = node.text()?;
        if !known.contains(&name) {
            return Err(node.problem(unknown(&name)));
        }
    }
    let is_default = members(root, METRICS).next().is_none();
    match defaults.iter().find(|name| !known.contains(*name)) {
        Some(name) if is_default => {
            let text = format!(
                "metrics are missing; name them, as the default is an {}",
                unknown(name)
            );
            Err(Problem::new(&Place::File, text))
        }
        _ => Ok(()),
    }
}

const METRICS: &str = "metrics";

fn members<'a>(root: &'a Table, key: &str) -> impl Iterator<Item = &'a Node> {
    root.get(key).into_iter().flat_map(Node::members)
}

/// The names of metrics in `root`.
fn named(root: &Table) -> Vec<&Node> {
    let mut named: Vec<_> = members(root, METRICS).collect();
    for key in ["comparison", "published", "correlation", "must"] {
        for node in members(root, key) {
            if let Item::Table(entry) = &node.item {
                named.extend(["metric", "x", "y"].iter().filter_map(|key| entry.get(key)));
            }
        }
    }
    named
}
