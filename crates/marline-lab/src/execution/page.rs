//! Web pages, loaded as browsers do.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::sync::Arc;

use marline_http::page::{LoadOptions, Page, PageReport};
use marline_http::pipes::{PipeReport, PipeState};
use marline_report::input;

use super::http::{client, serve};
use super::measures::Measured;
use super::{PORT, Probe, Testbed, failed, sleep};
use crate::scenario::{Job, Outcome, RunError, Topology, WatchedObject, Workload};
use crate::workload;

/// Bytes of the description of a page; 10,000 objects take some MB.
const MAX_PAGE: u64 = 64 << 20;

/// Loads the page of `job`.
pub(super) async fn load(job: &Job, testbed: &Testbed, probe: &Probe) -> Result<Outcome, RunError> {
    let Workload::Page {
        page,
        seed,
        loads,
        pause,
    } = &job.settings.workload
    else {
        return Err(failed("the workload is not a page"));
    };
    let page = find(page, *seed)?;
    let hosts: BTreeSet<_> = page.objects.iter().map(|object| &object.host).collect();
    let mut objects = BTreeMap::new();
    for host in &hosts {
        objects.extend(page.generated(host));
    }
    let server = serve(job, testbed, probe, objects).await?;
    let names = hosts.iter().map(|host| bare(host));
    let client = Arc::new(client(job, testbed, names)?);
    let options = LoadOptions {
        connections: job.settings.http.connections,
        split_critical: job.settings.http.split.and_then(NonZeroU64::new),
        ..LoadOptions::default()
    };
    let runtime = Arc::clone(&testbed.host(Topology::CLIENT)?.runtime);
    let mut each = BTreeMap::new();
    let (mut start, mut loaded) = (runtime.now(), PageReport::default());
    for number in 1..=*loads {
        if number > 1 {
            sleep(&*runtime, *pause).await;
        }
        start = runtime.now();
        let load = marline_http::page::load(&client, &page, options).await;
        loaded = load.map_err(failed)?;
        check(&loaded)?;
        let open = |pipe: &&PipeReport| pipe.state != PipeState::Closed;
        let open = loaded.pipes.iter().filter(open).count();
        if *loads > 1 {
            each.insert(format!("page_load_s {number:03}"), loaded.page_load_s);
            each.insert(format!("pipes_open {number:03}"), open as f64);
        }
    }
    let measured = Measured {
        start,
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
    metric("connections", loaded.connections.len() as f64);
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
        metric("handshakes", loaded.connections.len() as f64);
    }
    let seen = loaded
        .connections
        .iter()
        .filter_map(|one| one.peer_loss_estimate);
    let seen: Vec<_> = seen.collect();
    if !seen.is_empty() {
        metric(
            "peer_loss_estimate",
            seen.iter().sum::<f64>() / seen.len() as f64,
        );
    }
    if let Some(watched) = &mut outcome.series {
        watched.objects = objects_of(&page, &loaded);
    }
    server.shut_down();
    Ok(outcome)
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

fn check(loaded: &PageReport) -> Result<(), RunError> {
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
