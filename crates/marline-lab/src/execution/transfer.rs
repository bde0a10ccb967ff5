//! One stream, without HTTP.

use std::sync::Arc;

use marline::{Endpoint, both_observers};
use marline_sim::identity::Identity;

use super::ends::{Ends, drain, drain_with, write};
use super::measures::Measured;
use super::memory::Memory;
use super::paths::{self, Pauses, Reception};
use super::trace::Recorder;
use super::{Probe, SETTLE, Testbed, failed, sleep};
use crate::scenario::{Direction, Job, Outcome, RunError, Topology, Workload};

/// Sends the bytes of `job`.
pub(super) async fn transfer(
    job: &Job,
    testbed: &Testbed,
    probe: &Probe,
) -> Result<Outcome, RunError> {
    let Workload::Transfer {
        bytes,
        direction,
        warm,
        features,
    } = job.settings.workload
    else {
        return Err(failed("the workload is not a transfer"));
    };
    let here = Arc::clone(&testbed.host(Topology::CLIENT)?.runtime);
    let memory = Memory::default();
    let mut sending = probe.observers(job.watch);
    let mut receiving = memory.observers();
    let recorder = features.then(|| Recorder::new(testbed.queues.clone()));
    if let Some(recorder) = &recorder {
        sending = both_observers(sending, recorder.of_sender());
        receiving = both_observers(receiving, recorder.of_receiver());
    }
    let [at_server, at_client] = match direction {
        Direction::Down => [sending, receiving],
        Direction::Up => [receiving, sending],
    };
    let server = Ends::server(job, testbed, Some(at_server))?;
    let client = Ends::client(job, testbed, Some(at_client), None)?;
    let accepting = server.endpoint.clone();
    server.runtime.spawn(Box::pin(async move {
        // The client reports errors.
        let _ = answer(&accepting, direction, bytes).await;
    }));

    let mut start = here.now();
    let connecting = client
        .endpoint
        .connect(testbed.server_address()?, Identity::NAME);
    let connection = connecting.map_err(failed)?.await.map_err(failed)?;
    if warm {
        paths::open_all(job, testbed, &*here, &connection).await?;
        sleep(&*here, SETTLE).await;
        probe.reset();
        start = here.now();
    } else {
        paths::open_meanwhile(job, testbed, &here, &connection);
    }
    let pauses = Pauses::since(start);
    memory.begin(start);
    if let Some(recorder) = &recorder {
        recorder.begin(start);
    }
    match direction {
        Direction::Down => {
            let mut request = connection.open_uni().await.map_err(failed)?;
            request.finish().map_err(failed)?;
            let answer = connection.accept_uni().await.map_err(failed)?;
            drain_with(answer, || pauses.end(here.now())).await?;
        }
        Direction::Up => {
            let stream = connection.open_uni().await.map_err(failed)?;
            write(stream, bytes).await?;
            let mut answer = connection.accept_uni().await.map_err(failed)?;
            answer.read_to_end(0).await.map_err(failed)?;
        }
    }
    let end = here.now();
    let completion_s = end.saturating_since(start).as_secs_f64();
    let measured = Measured {
        start,
        completion_s,
        bytes,
        handshakes: u32::from(!warm),
    };
    let mut outcome = measured.outcome(probe, testbed.ideal.as_ref(), job.watch);
    if let Some(recorder) = &recorder {
        outcome.metrics.extend(recorder.metrics(end));
    }
    paths::add_metrics(testbed, &connection, direction, &mut outcome.metrics);
    if direction == Direction::Down {
        let reception = Reception {
            pauses: &pauses,
            memory: &memory,
            end,
            seconds: completion_s,
        };
        paths::add_receiver(testbed, &reception, &mut outcome.metrics);
    }
    connection.close(0, b"");
    Ok(outcome)
}

/// The server's part.
async fn answer(endpoint: &Endpoint, direction: Direction, bytes: u64) -> Result<(), RunError> {
    let connecting = endpoint.accept().await.ok_or_else(|| failed("closed"))?;
    let connection = connecting.await.map_err(failed)?;
    match direction {
        Direction::Down => {
            let request = connection.accept_uni().await.map_err(failed)?;
            drain(request).await?;
            let stream = connection.open_uni().await.map_err(failed)?;
            write(stream, bytes).await?;
        }
        Direction::Up => {
            drain(connection.accept_uni().await.map_err(failed)?).await?;
            let mut done = connection.open_uni().await.map_err(failed)?;
            done.finish().map_err(failed)?;
        }
    }
    connection.closed().await;
    Ok(())
}
