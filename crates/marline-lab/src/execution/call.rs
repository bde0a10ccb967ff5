//! Real-time calls: frames at a rate, each of which has to arrive in time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marline::{Bytes, Connection, Endpoint, Instant, Runtime};
use marline_sim::identity::Identity;

use super::ends::{Ends, ZEROS};
use super::measures::{count, watched};
use super::{Probe, Testbed, failed, sleep};
use crate::scenario::{CallDef, Carrier, Direction, Job, Outcome, RunError, Topology, Workload};

/// Bytes of a frame's number before each part of it.
const NUMBER: usize = 8;

/// The time for which frames are still awaited after the last one was sent, beyond the deadline.
const GRACE: Duration = Duration::from_secs(2);

/// Runs the call of `job`.
pub(super) async fn call(job: &Job, testbed: &Testbed, probe: &Probe) -> Result<Outcome, RunError> {
    let Workload::Call { call } = &job.settings.workload else {
        return Err(failed("the workload is not a call"));
    };
    let here = Arc::clone(&testbed.host(Topology::CLIENT)?.runtime);
    let sending = probe.observers(job.watch);
    let [at_server, at_client] = match call.direction {
        Direction::Down => [Some(sending), None],
        Direction::Up => [None, Some(sending)],
    };
    let server = Ends::server(job, testbed, at_server)?;
    let client = Ends::client(job, testbed, at_client, None)?;
    let frames = Frames::default();
    let (accepting, there) = (server.endpoint.clone(), Arc::clone(&server.runtime));
    let (theirs, remote) = (frames.clone(), call.clone());
    server.runtime.spawn(Box::pin(async move {
        // The client reports errors.
        let _ = answer(&accepting, &there, &remote, &theirs).await;
    }));
    let connecting = client
        .endpoint
        .connect(testbed.server_address()?, Identity::NAME);
    let connection = connecting.map_err(failed)?.await.map_err(failed)?;
    let start = here.now();
    match call.direction {
        Direction::Up => send(&connection, &here, call, &frames).await?,
        Direction::Down => {
            let (receiving, own) = (connection.clone(), frames.clone());
            let (carrier, clock) = (call.over, Arc::clone(&here));
            here.spawn(Box::pin(async move {
                let _ = receive(&receiving, &clock, carrier, &own).await;
            }));
            // Tells the server that the client listens.
            let mut request = connection.open_uni().await.map_err(failed)?;
            request.finish().map_err(failed)?;
            sleep(&*here, call.length).await;
        }
    }
    sleep(&*here, call.deadline + GRACE).await;
    let mut outcome = Outcome {
        metrics: frames.metrics(call),
        ..Outcome::default()
    };
    count(&probe.seen(), &mut outcome);
    if job.watch {
        let mut watched = watched(probe, start);
        watched
            .series
            .insert("call_delay_ms".to_owned(), frames.delays_ms(start));
        outcome.series = Some(watched);
    }
    connection.close(0, b"");
    Ok(outcome)
}

/// The server's part.
async fn answer(
    endpoint: &Endpoint,
    runtime: &Arc<dyn Runtime>,
    call: &CallDef,
    frames: &Frames,
) -> Result<(), RunError> {
    let connecting = endpoint.accept().await.ok_or_else(|| failed("closed"))?;
    let connection = connecting.await.map_err(failed)?;
    match call.direction {
        Direction::Up => receive(&connection, runtime, call.over, frames).await,
        Direction::Down => {
            connection.accept_uni().await.map_err(failed)?;
            send(&connection, runtime, call, frames).await
        }
    }
}

/// Sends the frames of a call at their times.
async fn send(
    connection: &Connection,
    runtime: &Arc<dyn Runtime>,
    call: &CallDef,
    frames: &Frames,
) -> Result<(), RunError> {
    let start = runtime.now();
    for number in 0..call.frames() {
        let due = start + call.interval() * u32::try_from(number).unwrap_or(u32::MAX);
        sleep(&**runtime, due.saturating_since(runtime.now())).await;
        frames.sent(number, runtime.now(), call.frame_bytes());
        match call.over {
            Carrier::Streams => {
                let mut stream = connection.open_uni().await.map_err(failed)?;
                let bytes = call.frame_bytes();
                runtime.spawn(Box::pin(async move {
                    let header = Bytes::copy_from_slice(&number.to_be_bytes());
                    if stream.write_chunk(header).await.is_ok()
                        && super::ends::fill(&mut stream, bytes).await.is_ok()
                    {
                        let _ = stream.finish();
                    }
                }));
            }
            Carrier::Datagrams => {
                let most = connection.max_datagram_len();
                let most = most.and_then(|len| len.checked_sub(NUMBER));
                let most = most.filter(|len| *len > 0).ok_or_else(|| {
                    failed("the peer accepts no datagrams; set datagram_receive_buffer")
                })?;
                let mut left = usize::try_from(call.frame_bytes()).unwrap_or(usize::MAX);
                while left > 0 {
                    let len = left.min(most).min(ZEROS.len());
                    let mut part = Vec::with_capacity(NUMBER + len);
                    part.extend_from_slice(&number.to_be_bytes());
                    part.extend_from_slice(&ZEROS[..len]);
                    // A part for which the buffer has no room is lost.
                    let _ = connection.send_datagram(part.into());
                    left -= len;
                }
            }
        }
    }
    Ok(())
}

/// Counts what arrives of frames, until the connection ends.
async fn receive(
    connection: &Connection,
    runtime: &Arc<dyn Runtime>,
    carrier: Carrier,
    frames: &Frames,
) -> Result<(), RunError> {
    loop {
        match carrier {
            Carrier::Datagrams => {
                let part = connection.recv_datagram().await.map_err(failed)?;
                if let Some((number, rest)) = part.split_first_chunk() {
                    frames.received(u64::from_be_bytes(*number), rest.len(), runtime.now());
                }
            }
            Carrier::Streams => {
                let mut stream = connection.accept_uni().await.map_err(failed)?;
                let (own, clock) = (frames.clone(), Arc::clone(runtime));
                runtime.spawn(Box::pin(async move {
                    let Ok(frame) = stream.read_to_end(MAX_FRAME).await else {
                        return;
                    };
                    if let Some((number, rest)) = frame.split_first_chunk() {
                        own.received(u64::from_be_bytes(*number), rest.len(), clock.now());
                    }
                }));
            }
        }
    }
}

/// The most bytes of a frame that are read.
const MAX_FRAME: usize = 64 << 20;

/// The frames of a call, known to both ends.
#[derive(Clone, Debug, Default)]
struct Frames(Arc<Mutex<BTreeMap<u64, Frame>>>);

#[derive(Clone, Copy, Debug)]
struct Frame {
    sent: Instant,
    /// Bytes that have not arrived.
    left: u64,
    complete: Option<Instant>,
}

impl Frame {
    fn delay(&self) -> Option<Duration> {
        Some(self.complete?.saturating_since(self.sent))
    }
}

impl Frames {
    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Frame>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sent(&self, number: u64, sent: Instant, bytes: u64) {
        let frame = Frame {
            sent,
            left: bytes,
            complete: None,
        };
        self.all().insert(number, frame);
    }

    fn received(&self, number: u64, bytes: usize, now: Instant) {
        if let Some(frame) = self.all().get_mut(&number) {
            frame.left = frame.left.saturating_sub(bytes as u64);
            if frame.left == 0 {
                frame.complete.get_or_insert(now);
            }
        }
    }

    fn delays_ms(&self, start: Instant) -> Vec<(f64, f64)> {
        let all = self.all();
        let known = all.values().filter_map(|frame| {
            let at = frame.sent.saturating_since(start).as_secs_f64();
            Some((at, frame.delay()?.as_secs_f64() * 1e3))
        });
        known.collect()
    }

    fn metrics(&self, call: &CallDef) -> BTreeMap<String, f64> {
        let all = self.all();
        let count = all.len().max(1) as f64;
        let in_time = |frame: &&Frame| frame.delay().is_some_and(|delay| delay <= call.deadline);
        let lost = all
            .values()
            .filter(|frame| frame.complete.is_none())
            .count();
        let late = all.values().filter(|frame| !in_time(frame)).count();
        let (mut freeze, mut longest) = (0_u32, 0);
        for frame in all.values() {
            freeze = if in_time(&frame) { 0 } else { freeze + 1 };
            longest = longest.max(freeze);
        }
        let mut metrics = BTreeMap::new();
        let mut metric = |name: &str, value: f64| metrics.insert(name.to_owned(), value);
        metric("call_frames", all.len() as f64);
        metric("call_late_ratio", late as f64 / count);
        metric("call_lost_ratio", lost as f64 / count);
        metric(
            "call_longest_freeze_ms",
            f64::from(longest) * call.interval().as_secs_f64() * 1e3,
        );
        let mut delays: Vec<_> = all.values().filter_map(Frame::delay).collect();
        delays.sort_unstable();
        for (name, part) in [("call_delay_median_ms", 0.5), ("call_delay_p95_ms", 0.95)] {
            let index = (part * delays.len().saturating_sub(1) as f64).round() as usize;
            if let Some(delay) = delays.get(index) {
                metric(name, delay.as_secs_f64() * 1e3);
            }
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_and_lost_frames_are_counted() {
        let frames = Frames::default();
        let at = |millis| Instant::EPOCH + Duration::from_millis(millis);
        let call = CallDef {
            rate: 800_000,
            frames_per_second: 10,
            length: Duration::from_secs(1),
            deadline: Duration::from_millis(150),
            over: Carrier::Datagrams,
            direction: Direction::Up,
        };
        assert_eq!((call.frames(), call.frame_bytes()), (10, 10_000));
        for number in 0..10 {
            frames.sent(number, at(100 * number), 10_000);
            // In two parts, of which number 7 loses one, and 3 and 4 are late.
            let delay = if (3..5).contains(&number) { 200 } else { 50 };
            frames.received(number, 6000, at(100 * number + 20));
            if number != 7 {
                frames.received(number, 4000, at(100 * number + delay));
            }
        }
        let metrics = frames.metrics(&call);
        assert_eq!(metrics["call_late_ratio"], 0.3);
        assert_eq!(metrics["call_lost_ratio"], 0.1);
        assert_eq!(metrics["call_longest_freeze_ms"], 200.0);
        assert_eq!(metrics["call_delay_median_ms"], 50.0);
        assert_eq!(metrics["call_delay_p95_ms"], 200.0);
    }
}
