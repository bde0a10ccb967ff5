//! Streams that share a connection, without HTTP: the client sends each request on a bidirectional stream, on
//! which the server answers.

mod timings;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use marline::{
    Bytes, Connection, Endpoint, Instant, Priority, RecvStream, Runtime, SendStream, StreamId,
};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use tokio::sync::mpsc;

use self::timings::{StreamTiming, add_metrics, watched};
use super::ends::{CHUNK, Ends, ZEROS, drain_with, write};
use super::measures::Measured;
use super::memory::Memory;
use super::paths::{self, Pauses, Reception};
use super::{Probe, SETTLE, Testbed, failed, sleep};
use crate::scenario::{Direction, Job, Outcome, RunError, StreamDef, Topology, Workload};
use marline_sim::identity::Identity;

/// Fetches the streams of `job`.
pub(super) async fn fetch(
    job: &Job,
    testbed: &Testbed,
    probe: &Probe,
) -> Result<Outcome, RunError> {
    let Workload::Streams {
        streams,
        shuffled,
        warm,
    } = &job.settings.workload
    else {
        return Err(failed("the workload is not streams"));
    };
    let mut streams = streams.clone();
    if *shuffled {
        streams.shuffle(&mut Pcg64Mcg::seed_from_u64(job.seed));
    }
    let streams = &streams;
    let here = Arc::clone(&testbed.host(Topology::CLIENT)?.runtime);
    let server = Ends::server(job, testbed, Some(probe.observers(job.watch)))?;
    let memory = Memory::default();
    let client = Ends::client(job, testbed, Some(memory.observers()), None)?;
    let accepting = server.endpoint.clone();
    let mut server_task = StreamServer {
        runtime: Arc::clone(&server.runtime),
        streams: streams.to_vec(),
        established: BTreeMap::new(),
    };
    server.runtime.spawn(Box::pin(async move {
        // The client reports errors.
        let _ = server_task.all(&accepting).await;
    }));

    let mut start = here.now();
    let connecting = client
        .endpoint
        .connect(testbed.server_address()?, Identity::NAME);
    let connection = connecting.map_err(failed)?.await.map_err(failed)?;
    if *warm {
        paths::open_all(job, testbed, &*here, &connection).await?;
        sleep(&*here, SETTLE).await;
        probe.reset();
        start = here.now();
    } else {
        paths::open_meanwhile(job, testbed, &here, &connection);
    }
    memory.begin(start);
    let stream_client = StreamClient::new(&connection, &here, streams);
    let pauses = stream_client.pauses.clone();
    let timings = stream_client.all().await?;
    let end = here.now();
    let completion_s = end.saturating_since(start).as_secs_f64();
    let measured = Measured {
        start,
        completion_s,
        bytes: streams.iter().map(|stream| stream.size).sum(),
        handshakes: u32::from(!warm),
    };
    let mut outcome = measured.outcome(probe, testbed.ideal.as_ref(), job.watch);
    add_metrics(streams, &timings, start, &mut outcome.metrics);
    paths::add_metrics(testbed, &connection, Direction::Down, &mut outcome.metrics);
    let reception = Reception {
        pauses: &pauses,
        memory: &memory,
        end,
        seconds: completion_s,
    };
    paths::add_receiver(testbed, &reception, &mut outcome.metrics);
    if let Some(series) = &mut outcome.series {
        series.objects = watched(streams, &timings, start);
    }
    connection.close(0, b"");
    Ok(outcome)
}

/// The client's part.
struct StreamClient<'a> {
    connection: &'a Connection,
    runtime: &'a Arc<dyn Runtime>,
    streams: &'a [StreamDef],
    /// Indices into `streams`, by the time of the request.
    due: BTreeSet<(Instant, usize)>,
    /// By index.
    timings: Vec<StreamTiming>,
    pauses: Pauses,
}

/// The end of a stream.
struct Ended {
    /// Its index.
    index: usize,
    /// When its last data arrived, if it had any.
    last_byte: Option<Instant>,
    at: Instant,
    result: Result<(), RunError>,
}

impl<'a> StreamClient<'a> {
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
                .map(|(index, stream)| (now + stream.start, index))
                .collect(),
            timings: vec![StreamTiming::new(now); streams.len()],
            pauses: Pauses::since(now),
        }
    }

    /// Requests every stream at its time, and waits until all have ended.
    async fn all(mut self) -> Result<Vec<StreamTiming>, RunError> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let mut left = self.streams.len();
        while left > 0 {
            let wait = match self.due.first().copied() {
                Some((at, index)) if at <= self.runtime.now() => {
                    self.due.pop_first();
                    self.request(index, sender.clone()).await?;
                    continue;
                }
                Some((at, _)) => Some(at.saturating_since(self.runtime.now())),
                None => None,
            };
            let ended = match wait {
                None => receiver.recv().await,
                Some(wait) => tokio::select! {
                    biased;
                    ended = receiver.recv() => ended,
                    () = sleep(&**self.runtime, wait) => continue,
                },
            };
            let ended = ended.ok_or_else(|| failed("abandoned"))?;
            let Ended { index, at, .. } = ended;
            ended.result?;
            self.timings[index].last_byte = ended.last_byte.unwrap_or(at);
            self.end(index, at);
            left -= 1;
        }
        Ok(self.timings)
    }

    async fn request(
        &mut self,
        index: usize,
        sender: mpsc::UnboundedSender<Ended>,
    ) -> Result<(), RunError> {
        let (mut request, answer) = self.connection.open_bi().await.map_err(failed)?;
        let wanted = Bytes::copy_from_slice(&(index as u64).to_be_bytes());
        request.write_chunk(wanted).await.map_err(failed)?;
        request.finish().map_err(failed)?;
        self.timings[index].requested = self.runtime.now();
        let clock = Arc::clone(self.runtime);
        let pauses = self.pauses.clone();
        self.runtime.spawn(Box::pin(async move {
            let mut last_byte = None;
            let on_data = || {
                let now = clock.now();
                last_byte = Some(now);
                pauses.end(now);
            };
            let result = drain_with(answer, on_data).await;
            let ended = Ended {
                index,
                last_byte,
                at: clock.now(),
                result,
            };
            // Fails if another stream has failed.
            let _ = sender.send(ended);
        }));
        Ok(())
    }

    /// The stream at `index` has ended: those that come after it are due.
    fn end(&mut self, index: usize, at: Instant) {
        self.timings[index].ended = at;
        let id = Some(self.streams[index].id);
        for (next, stream) in self.streams.iter().enumerate() {
            if stream.after == id {
                self.due.insert((at + stream.start, next));
            }
        }
    }
}

/// The server's part.
struct StreamServer {
    runtime: Arc<dyn Runtime>,
    streams: Vec<StreamDef>,
    /// The requested streams, by their IDs in the scenario.
    established: BTreeMap<u64, StreamId>,
}

impl StreamServer {
    async fn all(&mut self, endpoint: &Endpoint) -> Result<(), RunError> {
        let connecting = endpoint.accept().await.ok_or_else(|| failed("closed"))?;
        let connection = connecting.await.map_err(failed)?;
        loop {
            let (answer, request) = connection.accept_bi().await.map_err(failed)?;
            self.one(answer, request).await?;
        }
    }

    /// Answers one request. Its first bytes are written before the next request is read, so that streams are
    /// established in the order of their requests.
    async fn one(
        &mut self,
        mut answer: SendStream,
        mut request: RecvStream,
    ) -> Result<(), RunError> {
        let wanted = request.read_to_end(8).await.map_err(failed)?;
        let index = wanted[..].try_into().map(u64::from_be_bytes);
        let index = index.ok().and_then(|index| usize::try_from(index).ok());
        let stream = index.and_then(|index| self.streams.get(index));
        let stream = stream.ok_or_else(|| failed("there is no such stream"))?;
        let parent = stream.parent.and_then(|id| self.established.get(&id));
        answer.set_priority(Priority {
            urgency: stream.urgency,
            incremental: stream.incremental,
            ..Priority::weighted(parent.copied(), stream.weight)
        });
        self.established.insert(stream.id, answer.id());
        let size = stream.size;
        // As much as the client's credit for the stream allows: the next request does not wait for more of it.
        let first = usize::try_from(size).unwrap_or(CHUNK).min(CHUNK);
        let first = answer.write(&ZEROS[..first]).await.map_err(failed)? as u64;
        self.runtime.spawn(Box::pin(async move {
            let _ = write(answer, size - first).await;
        }));
        Ok(())
    }
}
