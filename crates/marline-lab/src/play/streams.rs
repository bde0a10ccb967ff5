//! Streams that share a connection, without HTTP: the client asks for each on a stream of its own, and
//! the server answers there.

mod timings;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use marline::{
    Bytes, Connection, Endpoint, Instant, Priority, RecvStream, Runtime, SendStream, StreamId,
};
use tokio::sync::mpsc;

use self::timings::{Life, add_metrics, watched};
use super::ends::{CHUNK, Ends, drain_telling, fill, write};
use super::measures::Measured;
use super::memory::Memory;
use super::paths::{self, Pauses};
use super::{Probe, SETTLE, Stage, failed, sleep};
use crate::scenario::{Direction, Job, Outcome, RunError, StreamDef, Topology, Workload};
use marline_sim::identity::Identity;

/// Fetches the streams of `job`.
pub(super) async fn fetch(job: &Job, stage: &Stage, probe: &Probe) -> Result<Outcome, RunError> {
    let Workload::Streams { streams, warm } = &job.settings.workload else {
        return Err(failed("these are no streams"));
    };
    let here = Arc::clone(&stage.host(Topology::CLIENT)?.runtime);
    let server = Ends::server(job, stage, Some(probe.observers(job.watch)))?;
    let memory = Memory::default();
    let client = Ends::client(job, stage, Some(memory.observers()), None)?;
    let accepting = server.endpoint.clone();
    let mut answering = Answering {
        runtime: Arc::clone(&server.runtime),
        streams: streams.clone(),
        established: BTreeMap::new(),
    };
    server.runtime.spawn(Box::pin(async move {
        // What goes wrong here is noticed by the client.
        let _ = answering.all(&accepting).await;
    }));

    let mut start = here.now();
    let connecting = client
        .endpoint
        .connect(stage.server_address()?, Identity::NAME);
    let connection = connecting.map_err(failed)?.await.map_err(failed)?;
    if *warm {
        paths::open_all(job, stage, &*here, &connection).await?;
        sleep(&*here, SETTLE).await;
        probe.reset();
        start = here.now();
    } else {
        paths::open_meanwhile(job, stage, &here, &connection);
    }
    memory.begin(start);
    let asking = Asking::new(&connection, &here, streams);
    let pauses = asking.pauses.clone();
    let lives = asking.all().await?;
    let end = here.now();
    let completion_s = end.saturating_since(start).as_secs_f64();
    let measured = Measured {
        start,
        completion_s,
        bytes: streams.iter().map(|stream| stream.size).sum(),
        handshakes: u32::from(!warm),
    };
    let mut outcome = measured.outcome(probe, stage.ideal.as_ref(), job.watch);
    add_metrics(streams, &lives, &mut outcome.metrics);
    paths::add_metrics(stage, &connection, Direction::Down, &mut outcome.metrics);
    let seen = (&pauses, &memory);
    paths::add_receiver(stage, seen, (end, completion_s), &mut outcome.metrics);
    if let Some(series) = &mut outcome.series {
        series.objects = watched(streams, &lives, start);
    }
    connection.close(0, b"");
    Ok(outcome)
}

/// The client's part.
struct Asking<'a> {
    connection: &'a Connection,
    runtime: &'a Arc<dyn Runtime>,
    streams: &'a [StreamDef],
    /// Places in `streams`, by when they are to be asked for.
    due: BTreeSet<(Instant, usize)>,
    /// By place.
    lives: Vec<Life>,
    pauses: Pauses,
}

/// Which stream came to its end, by its place, and when.
type Ended = (usize, Instant, Result<(), RunError>);

impl<'a> Asking<'a> {
    fn new(
        connection: &'a Connection,
        runtime: &'a Arc<dyn Runtime>,
        streams: &'a [StreamDef],
    ) -> Self {
        let now = runtime.now();
        let first = streams.iter().enumerate();
        let first = first.filter(|(_, stream)| stream.after.is_none());
        Self {
            connection,
            runtime,
            streams,
            due: first
                .map(|(place, stream)| (now + stream.start, place))
                .collect(),
            lives: vec![Life::new(now); streams.len()],
            pauses: Pauses::since(now),
        }
    }

    /// Asks for every stream at its time, and waits until all have ended.
    async fn all(mut self) -> Result<Vec<Life>, RunError> {
        let (tell, mut told) = mpsc::unbounded_channel();
        let mut left = self.streams.len();
        while left > 0 {
            let wait = match self.due.first().copied() {
                Some((at, place)) if at <= self.runtime.now() => {
                    self.due.pop_first();
                    self.ask(place, tell.clone()).await?;
                    continue;
                }
                Some((at, _)) => Some(at.saturating_since(self.runtime.now())),
                None => None,
            };
            let ended = match wait {
                None => told.recv().await,
                Some(wait) => tokio::select! {
                    biased;
                    ended = told.recv() => ended,
                    () = sleep(&**self.runtime, wait) => continue,
                },
            };
            let (place, at, end) = ended.ok_or_else(|| failed("abandoned"))?;
            end?;
            self.end(place, at);
            left -= 1;
        }
        Ok(self.lives)
    }

    async fn ask(
        &mut self,
        place: usize,
        tell: mpsc::UnboundedSender<Ended>,
    ) -> Result<(), RunError> {
        let (mut request, answer) = self.connection.open_bi().await.map_err(failed)?;
        let wanted = Bytes::copy_from_slice(&(place as u64).to_be_bytes());
        request.write_chunk(wanted).await.map_err(failed)?;
        request.finish().map_err(failed)?;
        self.lives[place].asked = self.runtime.now();
        let clock = Arc::clone(self.runtime);
        let pauses = self.pauses.clone();
        self.runtime.spawn(Box::pin(async move {
            let end = drain_telling(answer, || pauses.end(clock.now())).await;
            // Nobody listens any more when another stream failed.
            let _ = tell.send((place, clock.now(), end));
        }));
        Ok(())
    }

    /// The stream at `place` has ended: those that come after it are due.
    fn end(&mut self, place: usize, at: Instant) {
        self.lives[place].ended = at;
        let id = Some(self.streams[place].id);
        for (next, stream) in self.streams.iter().enumerate() {
            if stream.after == id {
                self.due.insert((at + stream.start, next));
            }
        }
    }
}

/// The server's part.
struct Answering {
    runtime: Arc<dyn Runtime>,
    streams: Vec<StreamDef>,
    /// The streams that were asked for, by the IDs they have in the scenario.
    established: BTreeMap<u64, StreamId>,
}

impl Answering {
    async fn all(&mut self, endpoint: &Endpoint) -> Result<(), RunError> {
        let connecting = endpoint.accept().await.ok_or_else(|| failed("closed"))?;
        let connection = connecting.await.map_err(failed)?;
        loop {
            let (answer, request) = connection.accept_bi().await.map_err(failed)?;
            self.one(answer, request).await?;
        }
    }

    /// Answers one request. Its first bytes are there before the next is looked at, so that streams are
    /// established in the order in which they were asked for.
    async fn one(
        &mut self,
        mut answer: SendStream,
        mut request: RecvStream,
    ) -> Result<(), RunError> {
        let wanted = request.read_to_end(8).await.map_err(failed)?;
        let place = wanted[..].try_into().map(u64::from_be_bytes);
        let place = place.ok().and_then(|place| usize::try_from(place).ok());
        let stream = place.and_then(|place| self.streams.get(place));
        let stream = stream.ok_or_else(|| failed("there is no such stream"))?;
        let parent = stream.parent.and_then(|id| self.established.get(&id));
        answer.set_priority(Priority {
            urgency: stream.urgency,
            incremental: stream.incremental,
            ..Priority::weighted(parent.copied(), stream.weight)
        });
        self.established.insert(stream.id, answer.id());
        let size = stream.size;
        let first = size.min(CHUNK as u64);
        fill(&mut answer, first).await?;
        self.runtime.spawn(Box::pin(async move {
            let _ = write(answer, size - first).await;
        }));
        Ok(())
    }
}
