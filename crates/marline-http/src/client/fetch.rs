//! Fetches many objects over several connections.

mod exchange;
mod object;
mod turns;

use std::collections::{HashMap, VecDeque};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, Uri};
use marline::Instant;

use self::turns::{Turn, Turns};
use super::assignment::{Alternation, Assignment};
use super::origins::Origins;
use super::pool::{Assigned, Pool};
use super::pooled::PooledConnection;
use super::progress::Progress;
use super::retry::Retry;
use super::split::Ranges;
use super::{
    Client, ClientError, LowSpeed, Message, ObjectReport, Origin, OriginConnections, ParsedUrl,
    Report, parse_url,
};
use crate::tasks::TaskSet;

/// One object to fetch.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its URL.
    pub url: String,
    /// The destination of its content.
    pub destination: Destination,
    /// Its size in bytes, if it is known in advance: ranges are then requested on all connections at once. A
    /// wrong size costs time only.
    pub size: Option<u64>,
    /// The message that is sent; by default GET without content.
    pub message: Message,
}

impl Target {
    /// The object at `url`, by GET.
    pub fn new(url: impl Into<String>, destination: Destination) -> Self {
        Self {
            url: url.into(),
            destination,
            size: None,
            message: Message::default(),
        }
    }
}

/// A destination for an object's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Discarded, after it was counted and hashed.
    Nowhere,
    /// Discarded and counted, but not hashed, so that ranges can arrive in any order.
    Counted,
    /// Standard output, in the order of the targets: each is requested when the one before has arrived or failed. When
    /// standard output cannot be written to, the rest is not fetched.
    StandardOutput,
    /// A file, which appears under its name when it is complete.
    File(PathBuf),
    /// A file in a directory, under the name that the server gives (RFC 6266), if it gives one; a file of that name is not
    /// replaced. Names lead to no other directory, and do not begin with a dot.
    Named {
        /// The directory.
        directory: PathBuf,
        /// The name if the server gives none.
        name: String,
    },
}

/// The options of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchOptions {
    /// Most connections to each origin.
    pub connections: usize,
    /// The choice of the connection for the next object.
    pub assignment: Assignment,
    /// Keep the incomplete part of a file, and continue there in the next fetch.
    pub resume: bool,
    /// Fetch objects larger than this many bytes in ranges over all connections, if the destination accepts pieces out
    /// of order: a file, or [`Destination::Counted`]. If the [size](Target::size) is not known, the first request is
    /// for this many bytes, and its response contains the size.
    pub split: Option<NonZeroU64>,
    /// The distribution of ranges over the connections.
    pub ranges: Ranges,
    /// The longest time for all objects together: those that are not complete by then fail.
    pub time_limit: Option<Duration>,
    /// The largest size of an object, in bytes. A larger one is not fetched, or not further if its size is not announced.
    pub max_size: Option<u64>,
    /// Whether the content of a response without a status of 2xx is written to the destination, too, unless a file is resumed.
    pub keep_errors: bool,
    /// Whether the headers of responses are written before the content.
    pub heads: bool,
    /// Whether a file gets the time of `Last-Modified`.
    pub remote_time: bool,
    /// Bytes a second that each object is sent or received with, at most.
    pub rate: Option<NonZeroU64>,
    /// A transfer slower than this fails.
    pub low_speed: Option<LowSpeed>,
    /// Objects that are fetched at the same time from each origin, at most.
    pub at_once: Option<NonZeroUsize>,
    /// Failed attempts that are repeated.
    pub retry: Retry,
    /// Whether objects are fetched one after another, and none after one that fails: the report is without those. A status is
    /// a failure unless [its content is written](Self::keep_errors).
    pub fail_early: bool,
    /// Whether the connections stay open for the next fetch or [page](crate::page::load) of the client from the same origins, of which
    /// there may be 1024. The counters in the next report are those of the connections since they were opened.
    pub keep_connections: bool,
}

impl Default for FetchOptions {
    /// One connection, without resumption of incomplete files, for any time.
    fn default() -> Self {
        Self {
            connections: 1,
            assignment: Assignment::default(),
            resume: false,
            split: None,
            ranges: Ranges::default(),
            time_limit: None,
            max_size: None,
            keep_errors: false,
            heads: false,
            remote_time: false,
            rate: None,
            low_speed: None,
            at_once: None,
            retry: Retry::default(),
            fail_early: false,
            keep_connections: false,
        }
    }
}

struct Job {
    index: usize,
    target: Target,
    /// The first request for it. Its message has the fields of the configuration, too.
    first: First,
    /// Whether another attempt follows if this one fails.
    may_retry: bool,
    /// Whether a stream has some of its content, which cannot be taken back.
    has_streamed: AtomicBool,
    /// The pipe that carries it, if there are pipes.
    pipe: Option<Assigned>,
    /// When it is fetched, if its content has to follow that of others.
    turn: Option<Turn>,
}

/// The first request for an object.
struct First {
    origin: Origin,
    uri: Uri,
    message: Message,
}

type Jobs = VecDeque<Job>;

/// State that is shared by the workers of one origin.
struct Queue {
    /// One queue for all pooled connections, or one for each.
    jobs: Vec<Mutex<Jobs>>,
    client: Arc<Client>,
    pooled_connections: Vec<Arc<PooledConnection>>,
    /// The pool that assigns objects to pooled connections, instead of one worker per pooled connection.
    pool: Option<Arc<Pool>>,
    options: FetchOptions,
    progress: Arc<Progress>,
    start: Instant,
    /// Connections to servers that redirects name.
    elsewhere: Arc<Origins>,
    /// Whether no further object is fetched.
    has_failed: Arc<AtomicBool>,
}

impl Client {
    /// Fetches all `targets`. Failures are in the report, and do not affect other objects.
    ///
    /// Dropping the future cancels the requests in progress. Partial files are removed unless they are to be
    /// resumed.
    pub async fn fetch(
        self: &Arc<Self>,
        targets: Vec<Target>,
        options: FetchOptions,
        progress: &Arc<Progress>,
    ) -> Report {
        let start = self.runtime().now();
        let version = self.config().version;
        let mut objects: Vec<_> = targets
            .iter()
            .map(|target| ObjectReport {
                url: target.url.clone(),
                http_version: version.label(),
                error: Some("it was not fetched".to_owned()),
                ..ObjectReport::default()
            })
            .collect();

        let turns = Turns::default();
        let mut places = HashMap::new();
        let mut origins: Vec<OriginJobs> = Vec::new();
        for (index, target) in targets.into_iter().enumerate() {
            let url = self.upgraded(target.url.clone());
            let allowed = self.config().schemes.check(&url);
            match allowed.and_then(|()| parse_url(&url, version)) {
                Ok(ParsedUrl { origin, uri }) => {
                    let mut message = target.message.clone();
                    message.headers = overlaid(&self.config().headers, message.headers);
                    let place = *places.entry(origin.clone()).or_insert_with(|| {
                        origins.push(OriginJobs {
                            origin: origin.clone(),
                            jobs: VecDeque::new(),
                        });
                        origins.len() - 1
                    });
                    let is_ordered =
                        options.fail_early || target.destination == Destination::StandardOutput;
                    origins[place].jobs.push_back(Job {
                        index,
                        target,
                        first: First {
                            origin,
                            uri,
                            message,
                        },
                        may_retry: false,
                        has_streamed: AtomicBool::new(false),
                        pipe: None,
                        turn: is_ordered.then(|| turns.next()),
                    });
                }
                Err(error) => {
                    objects[index].fail(error);
                    if options.fail_early {
                        break;
                    }
                }
            }
        }

        let elsewhere = Arc::<Origins>::default();
        let has_failed = Arc::<AtomicBool>::default();
        let mut used: Vec<OriginConnections> = Vec::new();
        let mut pools = Vec::new();
        let mut workers = TaskSet::new(self.runtime());
        for OriginJobs { origin, jobs } in origins {
            let pool = self.pool(&origin);
            let connections = match (&pool, options.split) {
                // Each worker gets a pipe for each object.
                (Some(_), _) => 1,
                (None, Some(_)) => options.connections.max(1),
                (None, None) => options.connections.clamp(1, jobs.len()),
            };
            // Of objects whose ranges take all connections, too.
            let places = match options.assignment {
                Assignment::First => 1,
                _ => connections,
            };
            let at_once = origin.version(version).requests_at_once();
            let at_once = at_once.min(jobs.len().div_ceil(places));
            let most = options.at_once.map_or(usize::MAX, NonZeroUsize::get);
            let (places, at_once) = (places.min(most), at_once.min(most.div_ceil(places)));
            let queue = Arc::new(Queue {
                jobs: match options.assignment {
                    Assignment::Free | Assignment::First => vec![Mutex::new(jobs)],
                    Assignment::Alternate => alternate(jobs, connections),
                },
                client: Arc::clone(self),
                pooled_connections: match &pool {
                    Some(pool) => pool.pooled_connections().to_vec(),
                    None => self.pooled_connections(&origin, connections),
                },
                pool,
                options,
                progress: Arc::clone(progress),
                start,
                elsewhere: Arc::clone(&elsewhere),
                has_failed: Arc::clone(&has_failed),
            });
            for place in 0..places {
                for _ in 0..at_once {
                    workers.spawn(work(Arc::clone(&queue), place));
                }
            }
            match &queue.pool {
                Some(pool) => pools.push(Arc::clone(pool)),
                None => used.push(OriginConnections {
                    origin,
                    pooled_connections: queue.pooled_connections.clone(),
                }),
            }
        }
        while let Some(done) = workers.join_next().await {
            for fetched in done.unwrap_or_default() {
                objects[fetched.index] = fetched.object;
            }
        }
        if options.fail_early {
            objects.retain(|object| object.failure.is_some() || object.status.is_some());
        }

        let mut opened: Vec<_> = used
            .iter()
            .flat_map(|used| &used.pooled_connections)
            .flat_map(|pooled| pooled.connections())
            .collect();
        opened.extend(elsewhere.connections());
        let mut pipes = Vec::new();
        for pool in pools {
            let carried = pool.end_session();
            opened.extend(carried.connections);
            pipes.extend(carried.pipes);
        }
        let coordinated = self.config().bundle
            && opened
                .iter()
                .all(|connection| connection.peer_coordinates_bundles());
        let mut connections: Vec<_> = opened.iter().map(|one| one.report()).collect();
        connections.sort_by_key(|connection| connection.id);
        let multipath = connections.iter().all(|connection| connection.multipath);
        let page_load_s = objects.iter().map(|o| o.end_s).fold(0.0, f64::max);
        if options.keep_connections {
            self.keep(used);
        }
        Report {
            objects,
            bundle: coordinated && !connections.is_empty(),
            multipath: multipath && !connections.is_empty(),
            connections,
            pipes,
            page_load_s,
        }
    }
}

/// The fields of `common`, and those of `own` instead of the ones with the same names.
fn overlaid(common: &HeaderMap, own: HeaderMap) -> HeaderMap {
    let mut headers = common.clone();
    headers.extend(own);
    headers
}

/// The jobs of one origin.
struct OriginJobs {
    origin: Origin,
    jobs: Jobs,
}

/// A queue for each of `pooled_connections` connections.
fn alternate(jobs: Jobs, pooled_connections: usize) -> Vec<Mutex<Jobs>> {
    let pooled_connections = NonZeroUsize::new(pooled_connections).unwrap_or(NonZeroUsize::MIN);
    let mut alternation = Alternation::new(pooled_connections);
    let mut queues: Vec<_> = (0..pooled_connections.get()).map(|_| Jobs::new()).collect();
    for job in jobs {
        queues[alternation.assign().index].push_back(job);
    }
    queues.into_iter().map(Mutex::new).collect()
}

/// The report of an object, and its index among the targets.
struct Fetched {
    index: usize,
    object: ObjectReport,
}

/// Fetches objects from the queue over a pooled connection until none is left.
async fn work(queue: Arc<Queue>, pooled: usize) -> Vec<Fetched> {
    let mut done = Vec::new();
    loop {
        let Some(mut job) = queue.next_job(pooled) else {
            return done;
        };
        if queue.options.fail_early
            && let Some(turn) = &mut job.turn
        {
            // That others cannot be written is an error of this one, too.
            let _ = turn.wait().await;
            if queue.has_failed.load(Relaxed) {
                continue;
            }
        }
        let mut object = ObjectReport {
            url: job.target.url.clone(),
            http_version: queue.client.config().version.label(),
            start_s: queue.elapsed_s(),
            ..ObjectReport::default()
        };
        let fetched = queue.fetch_in_time(pooled, &mut job, &mut object).await;
        let is_refused = !queue.options.keep_errors && !object.is_complete();
        if fetched.is_err() || is_refused {
            queue.has_failed.store(true, Relaxed);
        }
        if let Some(turn) = job.turn.take() {
            turn.end(fetched.as_ref().err());
        }
        if let Err(error) = fetched {
            object.fail(error);
        }
        object.end_s = queue.elapsed_s();
        queue.progress.finished.fetch_add(1, Relaxed);
        done.push(Fetched {
            index: job.index,
            object,
        });
    }
}

impl Queue {
    fn next_job(&self, pooled: usize) -> Option<Job> {
        let jobs = &self.jobs[pooled % self.jobs.len()];
        jobs.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }

    /// Fetches the object of `job` over a pipe if there are pipes, or else over `pooled`, unless the time limit ends before.
    async fn fetch_in_time(
        self: &Arc<Self>,
        pooled: usize,
        job: &mut Job,
        object: &mut ObjectReport,
    ) -> Result<(), ClientError> {
        let fetched = async {
            if let Some(turn) = &mut job.turn {
                turn.wait().await?;
            }
            let pooled = match &self.pool {
                Some(pool) => {
                    let kind = self.client.kind_of(job.first.uri.path());
                    let assigned = pool.place(&self.client, kind).await?;
                    job.pipe.insert(assigned).pipe()
                }
                None => pooled,
            };
            self.fetch_until_done(pooled, job, object).await
        };
        let Some(limit) = self.options.time_limit else {
            return fetched.await;
        };
        let runtime = self.client.runtime();
        let elapsed = runtime.now().saturating_since(self.start);
        runtime
            .timeout(limit.saturating_sub(elapsed), fetched)
            .await
            .unwrap_or(Err(ClientError::TimeLimit { limit }))
    }

    fn elapsed_s(&self) -> f64 {
        self.client.runtime().seconds_since(self.start)
    }
}
