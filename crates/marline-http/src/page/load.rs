//! Loads a page, object by object.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use http::{HeaderMap, Response};
use marline::Instant;
use tokio::sync::mpsc;

use super::check::{PageError, Plan, Planned};
use super::findings::{Beginning, Findings, Found};
use super::hosts::{Hosts, OccupiedConnections, ReadyObject};
use super::model::Page;
use super::options::LoadOptions;
use super::report::{PageObjectReport, PageReport};
use crate::client::{
    Answer, Assigned, Client, ClientError, Download, Object, Outcome, PlannedRequest,
    PooledConnection, Progress, Ranges, Split,
};

use crate::tasks::TaskSet;

/// Loads `page`, and updates `progress` while it does. Failures of objects are in the report; objects that only a failed one
/// refers to are never discovered.
///
/// Dropping the future cancels the requests in progress.
///
/// # Errors
/// The page is inconsistent.
pub async fn load(
    client: &Arc<Client>,
    page: &Page,
    options: LoadOptions,
    progress: &Arc<Progress>,
) -> Result<PageReport, PageError> {
    let plan = Plan::new(page, client.config().version)?;
    let (reached, mut arriving) = mpsc::unbounded_channel();
    let reports = page.objects.iter().map(|object| PageObjectReport {
        id: object.id.clone(),
        ..PageObjectReport::default()
    });
    let mut loading = Loading {
        client,
        page,
        options,
        start: client.runtime().now(),
        report: PageReport {
            objects: reports.collect(),
            ..PageReport::default()
        },
        hosts: Hosts::new(&plan.objects, client, &options),
        tasks: TaskSet::new(client.runtime()),
        progress: Arc::clone(progress),
        reached,
        plan,
    };
    loading.discover(loading.plan.document);
    loop {
        tokio::select! {
            biased;
            // Never closed: `loading` has a sender.
            Some(found) = arriving.recv() => loading.found(found),
            step = loading.tasks.join_next() => match step {
                Some(Ok(step)) => loading.step(step),
                // The task of an object failed: its report is left as it is.
                Some(Err(_)) => {}
                None => break,
            },
        }
    }
    let mut report = loading.report;
    let mut opened = loading.hosts.connections();
    for pool in loading.hosts.pools() {
        let carried = pool.end_session();
        opened.extend(carried.connections);
        report.pipes.extend(carried.pipes);
    }
    report.connections = opened.iter().map(|one| one.report()).collect();
    report.connections.sort_by_key(|connection| connection.id);
    report.conclude(&page.objects);
    Ok(report)
}

struct Loading<'a> {
    client: &'a Arc<Client>,
    page: &'a Page,
    plan: Plan,
    options: LoadOptions,
    start: Instant,
    report: PageReport,
    hosts: Hosts,
    tasks: TaskSet<Step>,
    progress: Arc<Progress>,
    /// Receives the objects that are discovered while others arrive.
    reached: mpsc::UnboundedSender<Found>,
}

/// The result of a task.
enum Step {
    /// The name of a host is resolved, which began with an object.
    Resolved { host: usize, object: usize },
    /// An object was discovered, and the content before it was parsed.
    Discovered(usize),
    /// A request has ended.
    Ended(usize, OccupiedConnections, Box<PageObjectReport>),
    /// An object was parsed or run.
    Done(usize),
}

impl Loading<'_> {
    fn now_s(&self) -> f64 {
        self.client.runtime().seconds_since(self.start)
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Discovered(object) => self.discover(object),
            Step::Resolved { host, object } => {
                self.report.objects[object].resolved_s = Some(self.now_s());
                self.hosts.resolved(host);
                self.send_requests(host);
            }
            Step::Ended(object, pooled_connections, report) => {
                self.ended(object, pooled_connections, *report);
            }
            Step::Done(object) => self.done(object),
        }
    }

    /// The share of the parent that refers to an object has arrived: it is parsed first.
    fn found(&mut self, found: Found) {
        let Found { share, object } = found;
        let parent = self.plan.objects[object].parent;
        let parse = parent.map_or(Duration::ZERO, |parent| self.page.objects[parent].parse);
        self.after(parse.mul_f64(share), Step::Discovered(object));
    }

    /// Takes `step` after `wait`.
    fn after(&mut self, wait: Duration, step: Step) {
        if wait.is_zero() {
            return self.step(step);
        }
        let runtime = self.client.runtime().clone();
        self.tasks.spawn(async move {
            runtime.sleep(wait).await;
            step
        });
    }

    fn discover(&mut self, object: usize) {
        self.report.objects[object].discovered_s = Some(self.now_s());
        let host = self
            .hosts
            .enqueue(object, self.plan.objects[object].urgency);
        if self.hosts.begin_resolving(host) {
            let wait = self.options.name_resolution;
            return self.after(wait, Step::Resolved { host, object });
        }
        self.send_requests(host);
    }

    fn send_requests(&mut self, host: usize) {
        while let Some(ready) = self.hosts.next_ready(host) {
            let ReadyObject {
                object,
                occupied,
                pipe,
                pooled_connections,
                requests,
            } = ready;
            let mut report = self.report.objects[object].clone();
            report.start_s = Some(self.now_s());
            let planned = &self.plan.objects[object];
            let request = Request {
                client: Arc::clone(self.client),
                start: self.start,
                uri: planned.uri.clone(),
                headers: self.headers(planned),
                size: planned.size,
                findings: Findings::new(planned.early.clone(), self.reached.clone()),
                progress: Arc::clone(&self.progress),
                pooled_connections,
                pipe,
            };
            self.tasks.spawn(async move {
                request.run(requests, &mut report).await;
                Step::Ended(object, occupied, Box::new(report))
            });
        }
    }

    fn headers(&self, planned: &Planned) -> HeaderMap {
        let mut headers = self.client.config().headers.clone();
        if self.options.priorities {
            headers.extend(planned.headers.clone());
        }
        headers
    }

    fn ended(
        &mut self,
        object: usize,
        pooled_connections: OccupiedConnections,
        report: PageObjectReport,
    ) {
        let failed = report.error.is_some();
        self.report.objects[object] = report;
        let host = self.hosts.ended(pooled_connections);
        self.send_requests(host);
        if !failed {
            let parse = self.page.objects[object].parse;
            self.after(parse, Step::Done(object));
        }
    }

    fn done(&mut self, object: usize) {
        self.report.objects[object].done_s = Some(self.now_s());
        for child in std::mem::take(&mut self.plan.objects[object].late) {
            self.discover(child);
        }
    }
}

/// The requests for one object.
struct Request {
    client: Arc<Client>,
    start: Instant,
    uri: http::Uri,
    headers: HeaderMap,
    size: u64,
    findings: Findings,
    progress: Arc<Progress>,
    /// The pooled connections to its host.
    pooled_connections: Vec<Arc<PooledConnection>>,
    /// The pipe that carries it, if there are pipes.
    pipe: Option<Assigned>,
}

impl Request {
    async fn run(self, requests: Vec<PlannedRequest>, report: &mut PageObjectReport) {
        if let Err(error) = self.receive(requests, report).await {
            report.fail(&error);
        }
        report.end_s = Some(self.now_s());
        self.progress.finished.fetch_add(1, Relaxed);
    }

    fn now_s(&self) -> f64 {
        self.client.runtime().seconds_since(self.start)
    }

    fn seconds_at(&self, moment: Instant) -> f64 {
        moment.saturating_since(self.start).as_secs_f64()
    }

    async fn receive(
        &self,
        requests: Vec<PlannedRequest>,
        report: &mut PageObjectReport,
    ) -> Result<(), ClientError> {
        let pooled = requests.first().map_or(0, |request| request.connection);
        if requests.iter().all(|request| request.range.is_none()) {
            return self.receive_whole(pooled, report).await;
        }
        let split = Split::new(Object {
            client: Arc::clone(&self.client),
            pooled_connections: self.pooled_connections.clone(),
            uri: self.uri.clone(),
            headers: self.headers.clone(),
            size: self.size,
            ranges: Ranges::Equal,
            store: Box::new(Beginning::new(
                self.findings.clone(),
                self.size,
                Arc::clone(&self.progress),
            )),
        });
        self.progress.expected.fetch_add(self.size, Relaxed);
        let outcome = split.run(requests, None).await;
        report.bytes = split.stored();
        if matches!(outcome, Ok(Outcome::Other(_) | Outcome::Whole)) {
            // The next request counts it again.
            self.progress.expected.fetch_sub(self.size, Relaxed);
            self.progress.received.fetch_sub(report.bytes, Relaxed);
        }
        if let Some(first) = split.first() {
            report.status = Some(first.status.as_u16());
            report.connected_s = Some(self.seconds_at(first.connected));
            report.first_byte_s = Some(self.seconds_at(first.at));
            report.connection = Some(first.connection);
        }
        match outcome? {
            Outcome::Complete => {
                self.findings.complete();
                Ok(())
            }
            Outcome::Other(answer) => {
                report.connected_s = Some(self.seconds_at(answer.connected));
                report.connection = Some(answer.connection.id);
                self.read(answer.response, report).await
            }
            Outcome::Whole => self.receive_whole(pooled, report).await,
        }
    }

    async fn receive_whole(
        &self,
        pooled: usize,
        report: &mut PageObjectReport,
    ) -> Result<(), ClientError> {
        let answer = self.pooled_connections[pooled].get(&self.client, &self.uri, &self.headers);
        let Answer {
            connection,
            connected,
            response,
            ..
        } = answer.await?;
        report.connected_s.get_or_insert(self.seconds_at(connected));
        report.first_byte_s.get_or_insert(self.now_s());
        report.connection = Some(connection.id);
        self.read(response, report).await
    }

    /// Receives all of the object in one response.
    async fn read(
        &self,
        response: Response<Download>,
        report: &mut PageObjectReport,
    ) -> Result<(), ClientError> {
        report.bytes = 0;
        report.status = Some(response.status().as_u16());
        if !response.status().is_success() {
            report.error = Some(format!("the server responded with {}", response.status()));
            return Ok(());
        }
        let mut download = response.into_body();
        let size = download.expected().unwrap_or(self.size);
        self.progress.expected.fetch_add(size, Relaxed);
        if let (Some(pipe), Some(expected)) = (&self.pipe, download.expected()) {
            pipe.on_size(expected);
        }
        loop {
            self.findings.grown(report.bytes, size);
            let Some(chunk) = download.chunk().await? else {
                break;
            };
            report.bytes += chunk.len() as u64;
            self.progress
                .received
                .fetch_add(chunk.len() as u64, Relaxed);
            if let Some(pipe) = &self.pipe {
                pipe.on_received(chunk.len() as u64);
            }
        }
        self.findings.complete();
        Ok(())
    }
}
