//! Web pages, loaded as browsers do.

mod loader;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marline_http::client::ConnectionReport;
use marline_http::har::Har;
use marline_http::page::{LoadOptions, Page, PageReport};
use marline_http::pipes::{PipeReport, PipeState};
use marline_report::input;

use self::loader::{Loaded, Loader};
use super::http::{Served, assignment, identity, kernel, network_metrics, scheme, serve};
use super::kernel::{WindowSamples, announced, mean, sum};
use super::measures::{Measured, watched};
use super::{PORT, Probe, Testbed, failed, sleep};
use crate::scenario::{Job, Outcome, RunError, Topology, Watched, WatchedObject, Workload};
use crate::workload;

/// The name of series of windows.
const WINDOW: &str = "window_bytes";

/// Bytes of the description of a page; 10,000 objects take some MB.
const MAX_PAGE: u64 = 64 << 20;

/// Loads the page of `job`.
pub(super) async fn load(job: &Job, testbed: &Testbed, probe: &Probe) -> Result<Outcome, RunError> {
    let Workload::Page {
        page,
        seed,
        readable,
        loads,
        pause,
        start,
        windows,
    } = &job.settings.workload
    else {
        return Err(failed("the workload is not a page"));
    };
    let runtime = Arc::clone(&testbed.host(Topology::CLIENT)?.runtime);
    let due = runtime.now() + *start;
    let site = serve_page(job, testbed, probe, page, *seed, *readable).await?;
    let mut loader = Loader::open(job, testbed, &site).await?;
    let Site { page, server, .. } = site;
    let until_start = due.saturating_since(runtime.now());
    if !until_start.is_zero() {
        sleep(&*runtime, until_start).await;
    }
    let measures_windows = job.watch || windows.is_some();
    let samples = match job.settings.http.version.is_over_tcp() && measures_windows {
        true => Some(sample_windows(testbed)?),
        false => None,
    };
    let mut each = BTreeMap::new();
    let (mut last, mut earlier) = (None, PageReport::default());
    for number in 1..=*loads {
        if number > 1 {
            sleep(&*runtime, *pause).await;
            probe.reset();
        }
        let load = loader.load(&page).await?;
        if let Some(path) = &job.har {
            let path = archive_of(path, number, *loads);
            write_archive(&path, job, loader.seen(&page), &load)?;
        }
        check(&load.report)?;
        let open = |pipe: &&PipeReport| pipe.state != PipeState::Closed;
        let open = load.report.pipes.iter().filter(open).count();
        if *loads > 1 {
            each.insert(format!("page_load_s {number:03}"), load.report.page_load_s);
            each.insert(format!("pipes_open {number:03}"), open as f64);
        }
        if let Some(load) = last.replace(load) {
            earlier = load.report;
        }
    }
    let Some(Loaded {
        started,
        report: loaded,
        load_event_s,
        ..
    }) = last
    else {
        return Err(failed("the page is not loaded: workload.loads is 0"));
    };
    let measured = Measured {
        start: started,
        completion_s: loaded.page_load_s,
        bytes: page.objects.iter().map(|object| object.size).sum(),
        handshakes: 1,
    };
    let mut outcome = measured.outcome(probe, testbed.ideal.as_ref(), job.watch);
    outcome.metrics.extend(each);
    let mut metric = |name: &str, value: f64| {
        outcome.metrics.insert(name.to_owned(), value);
    };
    metric("page_load_s", loaded.page_load_s);
    if let Some(render) = loaded.first_render_s {
        metric("first_render_s", render);
    }
    if let Some(load_event) = load_event_s {
        metric("load_event_s", load_event);
    }
    metric("connections", loaded.connections.len() as f64);
    let carried = loaded.connections.iter().map(|one| one.bytes_received);
    let of_all: u64 = carried.clone().sum();
    if let Some(most) = carried.max().filter(|_| of_all > 0) {
        metric("largest_connection_ratio", most as f64 / of_all as f64);
    }
    if !loaded.pipes.is_empty() {
        let count = |state| {
            loaded
                .pipes
                .iter()
                .filter(|pipe| pipe.state == state)
                .count() as f64
        };
        metric("pipes", loaded.pipes.len() as f64);
        metric("pipes_spare", count(PipeState::Spare));
        if job.settings.http.gateway {
            // Connections of the report are those to the gateway.
            for pipe in &loaded.pipes {
                metric(&format!("pipe_{}_bytes", pipe.pipe), pipe.bytes as f64);
            }
        } else {
            metric("handshakes", opened_after(&loaded, &earlier) as f64);
        }
    }
    if let Some(estimate) = peer_loss_after(&loaded, &earlier) {
        metric("peer_loss_estimate", estimate);
    }
    let firsts = loaded.objects.iter().filter_map(|o| o.first_byte_s);
    metric("first_byte_s", firsts.fold(f64::INFINITY, f64::min));
    let subflows = loaded.connections.iter().filter_map(|c| c.mptcp_subflows);
    if let Some(subflows) = subflows.max() {
        metric("mptcp_subflows", f64::from(subflows));
    }
    for (name, value) in network_metrics(job, testbed)? {
        metric(&name, value);
    }
    let of_windows = match &samples {
        Some(samples) => samples.series().map_err(cannot_list)?,
        None if measures_windows => of_quic(&watched(probe, started)),
        None => Vec::new(),
    };
    if let Some(most) = windows {
        let end_s = most.as_secs_f64().min(loaded.page_load_s);
        if let Some(mean) = mean(&sum(&of_windows), end_s) {
            metric("mean_window_bytes", mean);
        }
    }
    if let Some(watched) = &mut outcome.series {
        watched.objects = objects_of(&page, &loaded);
        if samples.is_some() {
            add_windows(watched, of_windows);
        }
    }
    server.shut_down();
    Ok(outcome)
}

/// A page on its server.
pub(super) struct Site {
    /// The page.
    pub(super) page: Page,
    /// The names of its hosts.
    pub(super) names: BTreeSet<String>,
    /// The server of all of them.
    pub(super) server: Served,
    /// The SHA-256 of its public key, in base64.
    pin: Option<String>,
}

/// Starts the server of a page, by its name or its file, with content in which a browser finds objects if it is to be
/// readable.
pub(super) async fn serve_page(
    job: &Job,
    testbed: &Testbed,
    probe: &Probe,
    page: &str,
    seed: u64,
    readable: bool,
) -> Result<Site, RunError> {
    let http = &job.settings.http;
    let mut page = find(page, seed)?;
    let mut contents = BTreeMap::new();
    if readable {
        let written = workload::page::readable(page, scheme(http.version));
        let written = written.map_err(|error| RunError::Unsupported(error.to_string()))?;
        (page, contents) = (written.page, written.contents);
    }
    let hosts: BTreeSet<_> = page.objects.iter().map(|object| &object.host).collect();
    let mut objects = BTreeMap::new();
    for host in &hosts {
        objects.extend(page.generated(host));
    }
    for (path, content) in contents {
        if let Some(object) = objects.get_mut(&path) {
            object.content = Some(content);
        }
    }
    let names: BTreeSet<_> = hosts.iter().map(|host| bare(host)).collect();
    let identity = identity(job, names.iter().cloned())?;
    let pin = identity.pin();
    let server = serve(job, testbed, probe, objects, identity).await?;
    Ok(Site {
        page,
        names,
        server,
        pin,
    })
}

/// The options with which the client of `job` loads pages.
pub(super) fn load_options(job: &Job) -> LoadOptions {
    let http = &job.settings.http;
    LoadOptions {
        connections: http.connections,
        assignment: assignment(http),
        split_critical: http.split.and_then(NonZeroU64::new),
        name_resolution: http.name_resolution,
        ..LoadOptions::default()
    }
}

/// Samples the windows of the server's TCP connections.
fn sample_windows(testbed: &Testbed) -> Result<WindowSamples, RunError> {
    let server = testbed.server_address()?;
    let ports = [server.port(), announced(server).port()];
    let runtime = &testbed.host(Topology::CLIENT)?.runtime;
    let kernel = kernel(testbed, Topology::SERVER)?;
    WindowSamples::start(&**kernel, runtime, &ports).map_err(cannot_list)
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn cannot_list(error: std::io::Error) -> RunError {
    RunError::Unsupported(format!(
        "this kernel does not list its connections: {error}"
    ))
}

/// The windows of QUIC connections.
fn of_quic(watched: &Watched) -> Vec<Vec<(f64, f64)>> {
    let windows = watched.series.iter();
    let windows = windows.filter(|(name, _)| name.starts_with(WINDOW));
    windows.map(|(_, points)| points.clone()).collect()
}

/// Adds the windows of TCP connections, and their sum if there are several.
fn add_windows(watched: &mut Watched, windows: Vec<Vec<(f64, f64)>>) {
    if windows.len() > 1 {
        watched
            .series
            .insert(format!("{WINDOW} sum"), sum(&windows));
    }
    let several = windows.len() > 1;
    for (number, points) in windows.into_iter().enumerate() {
        let name = match several {
            true => format!("{WINDOW} {number}"),
            false => WINDOW.to_owned(),
        };
        watched.series.insert(name, points);
    }
}

/// A connection as it was at the end of an earlier load.
fn before(connection: &ConnectionReport, earlier: &PageReport) -> Option<ConnectionReport> {
    let mut earlier = earlier.connections.iter();
    earlier.find(|one| one.id == connection.id).cloned()
}

/// The number of connections opened after `earlier`.
fn opened_after(loaded: &PageReport, earlier: &PageReport) -> usize {
    let opened = loaded.connections.iter();
    opened.filter(|one| before(one, earlier).is_none()).count()
}

/// The mean over connections of the share of the server's packets that were lost after `earlier`.
fn peer_loss_after(loaded: &PageReport, earlier: &PageReport) -> Option<f64> {
    let share = |connection: &ConnectionReport| {
        let before = before(connection, earlier);
        let before = before.as_ref();
        let sent_before = before.and_then(|one| one.peer_packets_sent).unwrap_or(0);
        let missing_before = before.and_then(|one| one.peer_packets_missing).unwrap_or(0);
        let sent = connection.peer_packets_sent?.saturating_sub(sent_before);
        // One that was missing at the end of a load may have arrived after it.
        let missing = connection.peer_packets_missing?;
        let missing = missing.saturating_sub(missing_before);
        (sent > 0).then(|| missing as f64 / sent as f64)
    };
    let shares: Vec<_> = loaded.connections.iter().filter_map(share).collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// The path of the archive of load `number` of `loads`: beside `path` under its number if there are several.
fn archive_of(path: &Path, number: u32, loads: u32) -> PathBuf {
    match loads {
        1 => path.to_owned(),
        _ => path.with_extension(format!("{number:03}.har")),
    }
}

/// Writes an archive of the load.
fn write_archive(path: &Path, job: &Job, page: &Page, loaded: &Loaded) -> Result<(), RunError> {
    let cannot = |error: std::io::Error| {
        failed(format_args!(
            "cannot write the archive {}: {error}",
            path.display()
        ))
    };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(cannot)?;
    }
    let title = format!("{} {} {}", job.experiment, job.variant, job.repeat);
    let mut har = Har::of_page(page, &loaded.report, loaded.date, &title);
    if let Some(browser) = &loaded.browser {
        har = har.by_browser(browser);
    }
    let text = serde_json::to_vec_pretty(&har).map_err(failed)?;
    std::fs::write(path, text).map_err(cannot)
}

/// A page by its name, or by the file that describes it.
fn find(name: &str, seed: u64) -> Result<Page, RunError> {
    let mut page = if name.ends_with(".json") {
        let cannot = |error: &dyn std::fmt::Display| {
            RunError::Unsupported(format!("cannot read the page {name}: {error}"))
        };
        let text = input::read_text(name.as_ref(), MAX_PAGE).map_err(|error| cannot(&error))?;
        serde_json::from_str(&text).map_err(|error| cannot(&error))?
    } else {
        workload::page::page(name, seed).ok_or_else(|| {
            let known: Vec<_> = workload::page::names().collect();
            let known = known.join(", ");
            RunError::Unsupported(format!("there is no page {name:?}; known: {known}"))
        })?
    };
    for object in &mut page.objects {
        object.host = format!("{}:{PORT}", bare(&object.host));
    }
    Ok(page)
}

/// A host's name without its port.
fn bare(host: &str) -> String {
    let name = host.split(':').next().unwrap_or_default();
    name.to_owned()
}

/// Fails unless every object arrived.
pub(super) fn check(loaded: &PageReport) -> Result<(), RunError> {
    for object in &loaded.objects {
        if let Some(error) = &object.error {
            return Err(RunError::Failed(format!("{}: {error}", object.id)));
        }
    }
    Ok(())
}

/// The objects in the order in which they were discovered.
fn objects_of(page: &Page, loaded: &PageReport) -> Vec<WatchedObject> {
    let paths = page.objects.iter().map(|object| &object.path);
    let mut objects: Vec<_> = loaded
        .objects
        .iter()
        .zip(paths)
        .filter_map(|(object, path)| {
            let discovered_s = object.discovered_s?;
            Some(WatchedObject {
                name: path.clone(),
                discovered_s,
                requested_s: object.start_s.unwrap_or(discovered_s),
                connected_s: object.connected_s,
                first_byte_s: object.first_byte_s,
                finished_s: object.end_s,
            })
        })
        .collect();
    objects.sort_by(|a, b| a.discovered_s.total_cmp(&b.discovered_s));
    objects
}
