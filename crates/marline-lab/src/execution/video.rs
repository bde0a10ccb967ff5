//! Adaptive video over HTTP: a player that fetches segments and chooses the bit rate of each.

mod choice;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use marline::Instant;
use marline_http::client::{Client, Destination, FetchOptions, Message, Target};
use marline_http::server::GeneratedObject;

use self::choice::choose;
use super::http::{NAME, client, fetch_options, identity, scheme, serve};
use super::measures::Measured;
use super::{Probe, Testbed, failed, sleep};
use crate::scenario::{Job, Outcome, RunError, Topology, VideoDef, Workload};

/// Segments whose throughput counts.
const RECENT: usize = 5;

/// Plays the video of `job`.
pub(super) async fn play(job: &Job, testbed: &Testbed, probe: &Probe) -> Result<Outcome, RunError> {
    let Workload::Video { video } = &job.settings.workload else {
        return Err(failed("the workload is not a video"));
    };
    let rungs = video.ladder.iter().zip(0..);
    let site = rungs.map(|(&rate, rung)| (path(rung), segment(video.segment_bytes(rate))));
    let site: BTreeMap<_, _> = site.collect();
    let identity = identity(job, [NAME.to_owned()])?;
    let server = serve(job, testbed, probe, site, identity).await?;
    let client = Arc::new(client(job, testbed, [NAME.to_owned()])?);
    let runtime = Arc::clone(&testbed.host(Topology::CLIENT)?.runtime);
    let base = format!(
        "{}://{NAME}:{}",
        scheme(job.settings.http.version),
        testbed.server_address()?.port()
    );
    let start = runtime.now();
    let mut player = Player::new(video, start);
    while player.segments.len() < video.segments {
        sleep(&*runtime, player.wait(runtime.now())).await;
        let rung = player.choose(runtime.now());
        let begun = runtime.now();
        fetch(job, &client, format!("{base}{}", path(rung))).await?;
        player.fetched(rung, begun, runtime.now());
    }
    let measured = Measured {
        start,
        completion_s: runtime.now().saturating_since(start).as_secs_f64(),
        bytes: player.bytes(),
        handshakes: 1,
    };
    let mut outcome = measured.outcome(probe, None, job.watch);
    outcome.metrics.extend(player.metrics());
    if let Some(series) = &mut outcome.series {
        series.series.extend(player.series());
    }
    server.shut_down();
    Ok(outcome)
}

fn path(rung: usize) -> String {
    format!("/{rung}")
}

fn segment(size: u64) -> GeneratedObject {
    GeneratedObject {
        size,
        content_type: http::HeaderValue::from_static("video/mp4"),
        think: Duration::ZERO,
        content: None,
    }
}

async fn fetch(job: &Job, client: &Arc<Client>, url: String) -> Result<(), RunError> {
    let target = Target {
        url,
        destination: Destination::Counted,
        size: None,
        message: Message::default(),
    };
    let options = FetchOptions {
        keep_connections: true,
        ..fetch_options(job)
    };
    let report = client.fetch(vec![target], options, &Arc::default()).await;
    let failure = report.objects.iter().find_map(|object| {
        let error = object.error.as_ref()?;
        Some(failed(format_args!("{}: {error}", object.url)))
    });
    failure.map_or(Ok(()), Err)
}

/// The state of the player. Playback begins when the first segment has arrived, stalls when the buffer is empty, and goes on
/// with the next segment.
struct Player<'a> {
    video: &'a VideoDef,
    start: Instant,
    /// Content in the buffer at `at`.
    level: Duration,
    at: Instant,
    startup: Duration,
    stalls: u32,
    stalled: Duration,
    /// The chosen rungs.
    segments: Vec<usize>,
    /// Throughput of the last segments, in bits per second.
    recent: VecDeque<f64>,
    /// The buffer in seconds, over time.
    levels: Vec<(f64, f64)>,
}

impl<'a> Player<'a> {
    fn new(video: &'a VideoDef, start: Instant) -> Self {
        Self {
            video,
            start,
            level: Duration::ZERO,
            at: start,
            startup: Duration::ZERO,
            stalls: 0,
            stalled: Duration::ZERO,
            segments: Vec::new(),
            recent: VecDeque::new(),
            levels: Vec::new(),
        }
    }

    /// Content in the buffer at `now`, which is not before the last segment.
    fn level(&self, now: Instant) -> Duration {
        self.level.saturating_sub(now.saturating_since(self.at))
    }

    /// How long the buffer has no room for a segment.
    fn wait(&self, now: Instant) -> Duration {
        let room = self.video.buffer.saturating_sub(self.video.segment);
        self.level(now).saturating_sub(room)
    }

    fn choose(&self, now: Instant) -> usize {
        let last = self.segments.last().copied();
        choose(self.video, self.level(now), last, &self.recent)
    }

    /// The segment at `rung` was requested at `begun` and is complete at `now`.
    fn fetched(&mut self, rung: usize, begun: Instant, now: Instant) {
        let seconds = now.saturating_since(begun).as_secs_f64().max(1e-9);
        let bytes = self.video.segment_bytes(self.video.ladder[rung]);
        self.recent.push_back(bytes as f64 * 8.0 / seconds);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        let passed = now.saturating_since(self.at);
        if self.segments.is_empty() {
            self.startup = passed;
        } else if passed > self.level {
            self.stalls += 1;
            self.stalled += passed - self.level;
        }
        self.level = self.level(now) + self.video.segment;
        self.at = now;
        self.segments.push(rung);
        let at = now.saturating_since(self.start).as_secs_f64();
        self.levels.push((at, self.level.as_secs_f64()));
    }

    fn bytes(&self) -> u64 {
        let rates = self.segments.iter().map(|rung| self.video.ladder[*rung]);
        rates.map(|rate| self.video.segment_bytes(rate)).sum()
    }

    fn megabits(&self, rung: usize) -> f64 {
        self.video.ladder[rung] as f64 * 1e-6
    }

    fn metrics(&self) -> [(String, f64); 6] {
        let count = self.segments.len().max(1) as f64;
        let rates: f64 = self.segments.iter().map(|rung| self.megabits(*rung)).sum();
        let changes = self.segments.windows(2).map(|pair| {
            let [from, to] = [pair[0], pair[1]].map(|rung| self.megabits(rung));
            (to - from).abs()
        });
        let changes: f64 = changes.sum();
        let switches = self.segments.windows(2).filter(|pair| pair[0] != pair[1]);
        let stalled = self.stalled.as_secs_f64();
        let best = self.video.ladder.len().saturating_sub(1);
        // Yin et al., SIGCOMM 2015: quality as the bit rate, less changes, less stalls at the best bit rate.
        let quality = rates - changes - self.megabits(best) * stalled;
        [
            ("video_bitrate_mbps", rates / count),
            ("video_startup_s", self.startup.as_secs_f64()),
            ("video_stalls", f64::from(self.stalls)),
            ("video_stalled_s", stalled),
            ("video_switches", switches.count() as f64),
            ("video_quality_mbps", quality / count),
        ]
        .map(|(name, value)| (name.to_owned(), value))
    }

    fn series(&self) -> [(String, Vec<(f64, f64)>); 2] {
        let rates = self.levels.iter().zip(&self.segments);
        let rates = rates.map(|((at, _), rung)| (*at, self.megabits(*rung)));
        [
            ("video_buffer_s".to_owned(), self.levels.clone()),
            ("video_bitrate_mbps".to_owned(), rates.collect()),
        ]
    }
}

#[cfg(test)]
mod tests;
