//! Several devices that load the same page over the same links, one after another.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use marline::{Instant, Runtime};
use marline_http::client::Progress;
use marline_http::page::PageReport;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::http::client;
use super::measures::{capacity_mbps, count, has_shared_capacity, watched};
use super::page::{Site, check, load_options, serve_page};
use super::rates::{Counted, RateSeries, rates_mbps};
use super::{Probe, Testbed, failed};
use crate::scenario::{Job, Outcome, RunError, Topology, Workload};
use crate::stats::jain_index;

/// The length of the spans whose fairness is averaged: as long as the devices of the MultiPipe study are apart.
const SHORT_TERM: Duration = Duration::from_secs(5);

/// A device that has loaded the page, or failed to.
struct Loaded {
    device: usize,
    report: Result<PageReport, RunError>,
}

/// The bytes that each device had received at some time.
struct Received {
    at: Instant,
    bytes: Vec<u64>,
}

/// Loads the page of `job` with each device.
pub(super) async fn load(job: &Job, testbed: &Testbed, probe: &Probe) -> Result<Outcome, RunError> {
    let Workload::Devices {
        page,
        seed,
        count: devices,
        apart,
    } = &job.settings.workload
    else {
        return Err(failed("the workload is not devices"));
    };
    let (devices, apart) = (*devices, *apart);
    let Site {
        page,
        names,
        server,
        ..
    } = serve_page(job, testbed, probe, page, *seed, false).await?;
    let page = Arc::new(page);
    let runtime = Arc::clone(&testbed.host(Topology::CLIENT)?.runtime);
    let progress: Vec<_> = (0..devices).map(|_| Arc::<Progress>::default()).collect();
    let counted = (1..).zip(&progress).map(|(number, progress)| {
        let progress = Arc::clone(progress);
        let received = move || progress.received.load(Relaxed);
        Counted::new(format!("device {number}"), received)
    });
    let start = runtime.now();
    let mut race = Race {
        series: RateSeries::new(start, counted.collect()),
        runtime: Arc::clone(&runtime),
        end: start + job.settings.time_limit,
    };

    let (loaded, mut ends) = mpsc::unbounded_channel();
    let mut begins = Vec::new();
    for (device, progress) in progress.into_iter().enumerate() {
        let begin = start + apart.saturating_mul(device as u32);
        race.series.sample_until(&*runtime, begin).await;
        if let Ok(Loaded { device, report }) = ends.try_recv() {
            report?;
            return Err(failed(format_args!(
                "device {} was done before the last began; load a larger page, or let them begin sooner",
                device + 1
            )));
        }
        begins.push(race.received());
        let client = Arc::new(client(job, testbed, names.clone())?);
        let (page, options, loaded) = (Arc::clone(&page), load_options(job), loaded.clone());
        runtime.spawn(Box::pin(async move {
            let report = marline_http::page::load(&client, &page, options, &progress).await;
            let report = report.map_err(failed);
            // Fails if the run is over.
            let _ = loaded.send(Loaded { device, report });
        }));
    }

    let mut short_term = Vec::new();
    let first = loop {
        let before = race.received();
        let until = before.at + SHORT_TERM;
        match race.next_until(until, &mut ends).await? {
            Some(first) => break first,
            None => short_term.extend(jain_index(&race.rates_since(&before))),
        }
    };
    begins.push(race.received());
    let mut all = vec![first];
    while all.len() < devices {
        let until = race.end;
        let next = race.next_until(until, &mut ends).await?;
        all.extend(next);
    }
    all.sort_by_key(|loaded| loaded.device);

    let mut outcome = Outcome::default();
    count(&probe.seen(), &mut outcome);
    let mut metric = |name: String, value: f64| {
        outcome.metrics.insert(name, value);
    };
    let mut times = Vec::new();
    let mut connections = 0.0;
    for Loaded { device, report } in all {
        let report = report?;
        check(&report)?;
        let number = device + 1;
        metric(format!("device_{number}_page_load_s"), report.page_load_s);
        let opened = report.connections.len() as f64;
        metric(format!("device_{number}_connections"), opened);
        connections += opened;
        times.push(report.page_load_s);
    }
    metric("connections".to_owned(), connections);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    metric("page_load_mean_s".to_owned(), mean);
    metric(
        "page_load_max_s".to_owned(),
        times.into_iter().fold(0.0, f64::max),
    );
    for (active, phase) in (1..).zip(begins.windows(2)) {
        let [before, after] = phase else { continue };
        let seconds = after.at.saturating_since(before.at).as_secs_f64();
        if seconds <= 0.0 {
            continue;
        }
        let mut rates = rates_mbps(&before.bytes, &after.bytes, seconds);
        rates.truncate(active);
        for (number, rate) in (1..).zip(&rates) {
            metric(format!("device_{number}_of_{active}_goodput_mbps"), *rate);
        }
        if active < devices {
            continue;
        }
        metric("together_s".to_owned(), seconds);
        if let Some(index) = jain_index(&rates) {
            metric("jain_index".to_owned(), index);
        }
        let capacity = capacity_mbps(testbed).filter(|_| has_shared_capacity(&job.settings));
        if let Some(capacity) = capacity {
            let used = rates.iter().sum::<f64>() / capacity;
            metric("utilization_ratio".to_owned(), used.min(1.0));
        }
    }
    if !short_term.is_empty() {
        let mean = short_term.iter().sum::<f64>() / short_term.len() as f64;
        metric("jain_index_5s".to_owned(), mean);
    }
    if job.watch {
        let mut watched = watched(probe, start);
        race.series.add_to(&mut watched.series);
        outcome.series = Some(watched);
    }
    server.shut_down();
    Ok(outcome)
}

/// Devices that are loading.
struct Race {
    series: RateSeries,
    runtime: Arc<dyn Runtime>,
    /// When all have to be done.
    end: Instant,
}

impl Race {
    fn received(&self) -> Received {
        Received {
            at: self.runtime.now(),
            bytes: self.series.bytes(),
        }
    }

    /// The rate of each device in Mbit/s since then.
    fn rates_since(&self, before: &Received) -> Vec<f64> {
        let now = self.received();
        let seconds = now.at.saturating_since(before.at).as_secs_f64();
        rates_mbps(&before.bytes, &now.bytes, seconds)
    }

    /// The next device that is done; `None` if there is none until then.
    async fn next_until(
        &mut self,
        until: Instant,
        ends: &mut UnboundedReceiver<Loaded>,
    ) -> Result<Option<Loaded>, RunError> {
        let runtime = Arc::clone(&self.runtime);
        tokio::select! {
            biased;
            end = ends.recv() => Ok(end),
            () = self.series.sample_until(&*runtime, until.min(self.end)) => {
                match runtime.now() < self.end {
                    true => Ok(None),
                    false => Err(failed("not all devices were done within time_limit")),
                }
            }
        }
    }
}
