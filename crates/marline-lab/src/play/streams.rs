//! Streams without HTTP.

use std::sync::Arc;
use std::time::Duration;

use marline::coordination::bundle::Membership;
use marline::{
    Bytes, ClientConfig, Connection, Endpoint, EndpointConfig, MakeObserver, Priority, RecvStream,
    Runtime, SendStream, ServerConfig,
};
use tokio::sync::mpsc;

use super::measures::Measured;
use super::{Probe, SETTLE, Stage, failed, sleep, transport};
use crate::identity::{Identity, identity};
use crate::scenario::{Direction, Job, Outcome, RunError, StreamDef, Topology, Workload};

/// The protocol's name in TLS.
const ALPN: &[&[u8]] = &[b"marline-lab"];
/// What is written at a time.
const CHUNK: usize = 64 << 10;

/// Sends the streams of `job`, or its one transfer.
pub(super) async fn transfer(job: &Job, stage: &Stage, probe: &Probe) -> Result<Outcome, RunError> {
    let (streams, direction, warm) = match &job.settings.workload {
        Workload::Transfer {
            bytes,
            direction,
            warm,
        } => {
            let only = StreamDef {
                id: 0,
                size: *bytes,
                parent: None,
                weight: 16,
                urgency: 3,
                start: Duration::ZERO,
            };
            (vec![only], *direction, *warm)
        }
        Workload::Streams { streams, warm } => (streams.clone(), Direction::Down, *warm),
        _ => return Err(failed("these are no streams")),
    };
    if streams.iter().any(|stream| stream.parent.is_some()) {
        return Err(RunError::Unsupported(
            "no scheduler here knows the parents of streams".to_owned(),
        ));
    }
    let bytes = streams.iter().map(|stream| stream.size).sum();
    let here = Arc::clone(&stage.host(Topology::CLIENT)?.runtime);
    let watching = |sender: Direction| (direction == sender).then(|| probe.observers(job.watch));

    let server = Ends::server(job, stage, watching(Direction::Down))?;
    let client = Ends::client(job, stage, watching(Direction::Up), None)?;
    let there = Arc::clone(&server.runtime);
    let streams = Arc::new(streams);
    let answering = Arc::clone(&streams);
    let accepting = server.endpoint.clone();
    there.clone().spawn(Box::pin(async move {
        // What goes wrong here is noticed by the client.
        let _ = answer(&accepting, &there, direction, &answering).await;
    }));

    let mut start = here.now();
    let connecting = client
        .endpoint
        .connect(stage.server_address()?, Identity::NAME);
    let connection = connecting.map_err(failed)?.await.map_err(failed)?;
    if warm {
        sleep(&*here, SETTLE).await;
        probe.reset();
        start = here.now();
    }
    match direction {
        Direction::Down => {
            let mut request = connection.open_uni().await.map_err(failed)?;
            request.finish().map_err(failed)?;
            receive_all(&connection, &here, streams.len()).await?;
        }
        Direction::Up => {
            send_all(&connection, &here, &streams).await?;
            let mut answer = connection.accept_uni().await.map_err(failed)?;
            answer.read_to_end(0).await.map_err(failed)?;
        }
    }
    let completion_s = here.now().saturating_since(start).as_secs_f64();
    let measured = Measured {
        start,
        completion_s,
        bytes,
        handshakes: u32::from(!warm),
    };
    let outcome = measured.outcome(probe, stage.ideal, job.watch);
    connection.close(0, b"");
    Ok(outcome)
}

/// The server's part.
async fn answer(
    endpoint: &Endpoint,
    runtime: &Arc<dyn Runtime>,
    direction: Direction,
    streams: &Arc<Vec<StreamDef>>,
) -> Result<(), RunError> {
    let connecting = endpoint.accept().await.ok_or_else(|| failed("closed"))?;
    let connection = connecting.await.map_err(failed)?;
    match direction {
        Direction::Down => {
            let request = connection.accept_uni().await.map_err(failed)?;
            drain(request).await?;
            send_all(&connection, runtime, streams).await?;
        }
        Direction::Up => {
            receive_all(&connection, runtime, streams.len()).await?;
            let mut done = connection.open_uni().await.map_err(failed)?;
            done.finish().map_err(failed)?;
        }
    }
    connection.closed().await;
    Ok(())
}

/// Opens the streams in their order, each with a task that writes it.
async fn send_all(
    connection: &Connection,
    runtime: &Arc<dyn Runtime>,
    streams: &[StreamDef],
) -> Result<(), RunError> {
    let start = runtime.now();
    for stream in streams {
        let wait = (start + stream.start).saturating_since(runtime.now());
        if !wait.is_zero() {
            sleep(&**runtime, wait).await;
        }
        let send = connection.open_uni().await.map_err(failed)?;
        send.set_priority(Priority {
            urgency: stream.urgency,
            ..Priority::default()
        });
        let size = stream.size;
        runtime.spawn(Box::pin(async move {
            // A connection that fails is noticed by its reader.
            let _ = write(send, size).await;
        }));
    }
    Ok(())
}

/// Reads `count` streams to their ends, all at a time.
async fn receive_all(
    connection: &Connection,
    runtime: &Arc<dyn Runtime>,
    count: usize,
) -> Result<(), RunError> {
    let (ended, mut ends) = mpsc::unbounded_channel();
    for _ in 0..count {
        let stream = connection.accept_uni().await.map_err(failed)?;
        let ended = ended.clone();
        runtime.spawn(Box::pin(async move {
            // Nobody listens any more when another stream failed.
            let _ = ended.send(drain(stream).await);
        }));
    }
    for _ in 0..count {
        ends.recv().await.ok_or_else(|| failed("abandoned"))??;
    }
    Ok(())
}

pub(super) async fn write(mut stream: SendStream, size: u64) -> Result<(), RunError> {
    static ZEROS: [u8; CHUNK] = [0; CHUNK];
    let mut left = size;
    while left > 0 {
        let len = CHUNK.min(usize::try_from(left).unwrap_or(CHUNK));
        let chunk = Bytes::from_static(&ZEROS[..len]);
        stream.write_chunk(chunk).await.map_err(failed)?;
        left -= len as u64;
    }
    stream.finish().map_err(failed)?;
    stream.stopped().await.map(drop).map_err(failed)
}

pub(super) async fn drain(mut stream: RecvStream) -> Result<(), RunError> {
    while stream.read_chunk(CHUNK).await.map_err(failed)?.is_some() {}
    Ok(())
}

/// An endpoint, and what it runs on.
pub(super) struct Ends {
    pub(super) endpoint: Endpoint,
    pub(super) runtime: Arc<dyn Runtime>,
}

impl Ends {
    pub(super) fn server(
        job: &Job,
        stage: &Stage,
        observer: Option<MakeObserver>,
    ) -> Result<Self, RunError> {
        let transport = transport(&job.settings.server);
        let config = identity().server_config(ALPN, &transport).map_err(failed)?;
        let config = ServerConfig { observer, ..config };
        let host = stage.host(Topology::SERVER)?;
        Self::new(&host.runtime, stage.server_address()?, Some(config))
    }

    pub(super) fn client(
        job: &Job,
        stage: &Stage,
        observer: Option<MakeObserver>,
        bundle: Option<Membership>,
    ) -> Result<Self, RunError> {
        let host = stage.host(Topology::CLIENT)?;
        let address = host.addresses.first().ok_or_else(|| failed("no address"))?;
        let ends = Self::new(&host.runtime, (*address, 0).into(), None)?;
        let transport = transport(&job.settings.client);
        let config = identity().client_config(ALPN, &transport).map_err(failed)?;
        let config = ClientConfig {
            observer,
            bundle,
            ..config
        };
        ends.endpoint.set_default_client_config(config);
        Ok(ends)
    }

    fn new(
        runtime: &Arc<dyn Runtime>,
        address: std::net::SocketAddr,
        server: Option<ServerConfig>,
    ) -> Result<Self, RunError> {
        let socket = runtime.bind(address).map_err(failed)?;
        let config = EndpointConfig::from_seed(runtime.seed().map_err(failed)?);
        let runtime = Arc::clone(runtime);
        let endpoint = Endpoint::new(config, server, socket, Arc::clone(&runtime));
        Ok(Self {
            endpoint: endpoint.map_err(failed)?,
            runtime,
        })
    }
}
