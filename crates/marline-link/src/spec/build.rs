//! Builds links from their specifications.

use std::fs::{self, File};
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use super::{
    Burst, DelayRange, DirectionSpec, DistributionName, LinkSpec, Radio, Share, SpecError,
};
use crate::ack_thinning::AckThinning;
use crate::delay_trace::{DelayTrace, TracedDelay};
use crate::handover::{HandoverConfig, HandoverDelay, Handovers};
use crate::jitter::{Distribution, Jitter, JitterConfig};
use crate::loss::{Bernoulli, Every, GilbertElliott, Listed, Loss, LossModel, Rows, Timed};
use crate::{
    Chain, Corrupt, Delay, Duplex, Duplicate, FilterLink, Link, MODELS, Medium, ModelLink, Mtu,
    Outages, Overtaking, Period, Policer, Seed, Shaper, Suspensions, Time,
};

mod radio;
mod server;
#[cfg(test)]
mod tests;

/// Reads a file named in a specification.
type Reader<'a> = &'a dyn Fn(&str) -> io::Result<String>;

/// Largest size of a file in bytes: hours of a trace.
const MAX_FILE: u64 = 64 << 20;

/// The text of a regular file. Others are refused: a pipe may block, and a device has no end.
fn read_file(path: &str) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    let mut file = File::open(path)?.take(MAX_FILE + 1);
    match file.read_to_string(&mut text)? as u64 > MAX_FILE {
        true => Err(io::Error::other(format!(
            "it has more than {} MiB",
            MAX_FILE >> 20
        ))),
        false => Ok(text),
    }
}

impl LinkSpec {
    /// Builds the link as media in series from the client to the server, of two stations each; station
    /// 0 is on the client's side. Equal seeds give equal links. Files are read from the file system.
    ///
    /// # Errors
    ///
    /// Names the key that is inconsistent, or whose file is unusable.
    pub fn build<B: Clone + Send + 'static>(
        &self,
        seed: Seed,
    ) -> Result<Vec<Box<dyn Medium<B>>>, SpecError> {
        self.build_with(seed, &read_file)
    }

    /// As [`build`](Self::build), with `read` to get the contents of files.
    ///
    /// # Errors
    ///
    /// Names the key that is inconsistent, or whose file is unusable.
    pub fn build_with<B: Clone + Send + 'static>(
        &self,
        seed: Seed,
        read: Reader<'_>,
    ) -> Result<Vec<Box<dyn Medium<B>>>, SpecError> {
        self.check()?;
        let mut media = Vec::<Box<dyn Medium<B>>>::new();
        match &self.radio {
            Radio::None => {}
            Radio::Lte(lte) => media.push(lte.build(seed.of("lte"))),
            Radio::Wifi(wifi) => media.extend(wifi.build(seed.of("wifi"))?),
        }
        if self.has_wire() {
            let rtt = self.up.delay + self.down.delay;
            media.push(Box::new(Duplex::new(
                self.up.build(rtt, [seed.of("up"), seed], read)?,
                self.down.build(rtt, [seed.of("down"), seed], read)?,
            )));
        }
        Ok(media)
    }

    /// Whether a wire is one of its media: without a radio, and with settings beside those of the radio.
    pub fn has_wire(&self) -> bool {
        let plain = DirectionSpec::default();
        matches!(self.radio, Radio::None) || self.up != plain || self.down != plain
    }
}

impl DirectionSpec {
    /// The stages of one direction, each with its own generator: from the first seed, or, for events of both
    /// directions, from the second.
    fn build<B: Clone + Send + 'static>(
        &self,
        rtt: Duration,
        [seed, shared]: [Seed; 2],
        read: Reader<'_>,
    ) -> Result<Box<dyn Link<B>>, SpecError> {
        let mut stages = Vec::<Box<dyn Link<B>>>::new();
        if let Some(bytes) = self.mtu {
            stages.push(Box::new(FilterLink::new(Mtu { bytes })));
        }
        if let Some(rate) = self.policer {
            let burst = self
                .policer_burst
                .unwrap_or_else(|| server::policer_burst(rate));
            stages.push(Box::new(FilterLink::new(Policer::new(rate, burst))));
        }
        if let Some(every) = self.ack_thin {
            stages.push(Box::new(AckThinning::new(every, self.ack_thin_time)));
        }
        if let Some(config) = self.shaper_config(rtt) {
            stages.push(Box::new(Shaper::new(config)));
        }
        stages.extend(self.server(rtt, [seed, shared], read)?);
        if let Some(model) = &self.custom {
            let make = MODELS.make(model);
            let make = make.map_err(|why| SpecError::new("custom", why))?;
            stages.push(Box::new(ModelLink::new(make(seed.of("custom")))));
        }
        if let Some(schedule) = self.suspend {
            stages.push(Box::new(Suspensions::new(schedule, seed.of("suspend"))));
        }
        if !self.outage.is_empty() {
            let windows = self.outage.iter();
            let periods = windows.map(|window| Period {
                from: Time::ZERO + window.from,
                to: Time::ZERO + window.to,
            });
            stages.push(Box::new(FilterLink::new(Outages::new(periods.collect()))));
        }
        let handovers = self.handovers(shared);
        if let Some(handovers) = handovers {
            stages.push(Box::new(FilterLink::new(handovers)));
        }
        let losses = self.losses(seed).into_iter();
        stages.extend(losses.map(|model| Box::new(FilterLink::new(Loss(model))) as Box<_>));
        if !self.corrupt.is_none() {
            let corrupt = Corrupt::new(self.corrupt.as_f64(), seed.of("corrupt"));
            stages.push(Box::new(FilterLink::new(corrupt)));
        }
        if !self.duplicate.is_none() {
            let duplicate = Duplicate::new(self.duplicate.as_f64(), seed.of("duplicate"));
            stages.push(Box::new(duplicate));
        }
        if let Some(file) = &self.delay_trace {
            let trace = load("delay-trace", file, read, DelayTrace::parse)?;
            let start = self.start_of(trace.period(), shared);
            let line = TracedDelay::new(trace, self.reorder).starting_at(start);
            stages.push(Box::new(if self.once { line.once() } else { line }));
        }
        if let Some(handovers) = handovers.filter(|_| self.handover_delay != DelayRange::default())
        {
            stages.push(Box::new(HandoverDelay::new(handovers)));
        }
        if self.varies() {
            stages.push(Box::new(Jitter::new(self.jitter(read)?, seed.of("jitter"))));
        } else if !self.overtake.is_none() {
            let (share, correlation) = (self.overtake.as_f64(), self.overtake_corr.as_f64());
            let draws = seed.of("overtake");
            let line = Overtaking::new(self.delay, share, correlation, draws);
            stages.push(Box::new(line));
        } else if !self.delay.is_zero() || stages.is_empty() {
            stages.push(Box::new(Delay::new(self.delay)));
        }
        Ok(match stages.len() {
            1 => stages.remove(0),
            _ => Box::new(Chain::new(stages)),
        })
    }

    fn handovers(&self, shared: Seed) -> Option<Handovers> {
        let (delay, rate) = (self.handover_delay, self.handover_rate);
        let config = HandoverConfig {
            every: self.handover?,
            delay: [delay.least, delay.most],
            rate: [rate.least, rate.most].map(Share::as_f64),
            gap: self.handover_gap,
        };
        Some(Handovers::new(config, shared.of("handover")))
    }

    fn losses(&self, seed: Seed) -> Vec<Box<dyn LossModel>> {
        let mut models = Vec::<Box<dyn LossModel>>::new();
        let (share, draws) = (self.loss.as_f64(), seed.of("loss"));
        match (self.loss_burst, self.loss_row) {
            _ if self.loss.is_none() => {}
            (None, None) => models.push(Box::new(Bernoulli::new(share, draws))),
            (None, Some(length)) => models.push(Box::new(Rows::new(share, length, draws))),
            (Some(Burst::Packets(packets)), _) => {
                models.push(Box::new(GilbertElliott::of_bursts(share, packets, draws)));
            }
            (Some(Burst::Time(time)), _) => {
                models.push(Box::new(Timed::of_bursts(share, time, draws)));
            }
        }
        if let Some(period) = self.loss_every {
            models.push(Box::new(Every::new(period)));
        }
        if !self.loss_at.is_empty() {
            models.push(Box::new(Listed::new(self.loss_at.clone())));
        }
        models
    }

    fn jitter(&self, read: Reader<'_>) -> Result<JitterConfig, SpecError> {
        let distribution = match &self.jitter_distribution {
            DistributionName::Normal => Distribution::Normal,
            DistributionName::Uniform => Distribution::Uniform,
            DistributionName::Pareto => Distribution::Pareto,
            DistributionName::ParetoNormal => Distribution::ParetoNormal,
            DistributionName::Exponential => Distribution::Exponential,
            DistributionName::PicoquicWifi => Distribution::PicoquicWifi,
            DistributionName::Table(file) => {
                Distribution::Table(Arc::new(load("jitter-law", file, read, |text| {
                    text.parse()
                })?))
            }
        };
        Ok(JitterConfig {
            correlation: self.jitter_corr,
            batch: self.jitter_batch,
            reorder: self.reorder,
            ..JitterConfig::new(self.delay, self.jitter, distribution)
        })
    }
}

/// A uniformly distributed number from 0 to below 1.
fn random_part(seed: Seed) -> f64 {
    (seed.value() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Reads and parses the file that `key` names.
fn load<T, E: std::fmt::Display>(
    key: &str,
    file: &str,
    read: Reader<'_>,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, SpecError> {
    let problem = |reason: String| SpecError::new(key, format_args!("{file}: {reason}"));
    let text = read(file).map_err(|error| problem(error.to_string()))?;
    parse(&text).map_err(|error| problem(error.to_string()))
}
