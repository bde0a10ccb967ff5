//! From a description to the link.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::{Buffer, Burst, LawName, LinkSpec, LteSpec, PhyName, Problem, QueueKind, Radio, Share};
use super::{SpecError, Way, WifiSpec};
use crate::ends::Ends;
use crate::jitter::{Jitter, JitterConfig, Law};
use crate::loss::{Bernoulli, Every, GilbertElliott, Listed, Loss, LossModel, Timed};
use crate::lte::{Direction, Lte};
use crate::process::OrnsteinUhlenbeck;
use crate::queue::{DropTail, Limit, Queue};
use crate::trace::{Trace, TraceLink};
use crate::wifi::{Contender, Phy, Scan, Topology, Width, WifiConfig, WifiMedium};
use crate::{
    Chain, Corrupt, Delay, Duplex, Duplicate, Gate, Link, Medium, Mtu, Outages, Rate, Seed,
    Suspensions, Time,
};

#[cfg(test)]
mod tests;

/// Bytes that may wait where nothing else is said and the round trip is short: ten full packets.
const SMALLEST_DEFAULT_BUFFER: u64 = 15_000;

/// How often a rate that varies changes.
const RATE_SAMPLING: Duration = Duration::from_millis(10);

/// Reads a file that a description names.
type Reader<'a> = &'a dyn Fn(&str) -> io::Result<String>;

impl LinkSpec {
    /// The link: media one behind the other, from the client to the server, of two stations each,
    /// station 0 being the one at the client's side. Equal seeds, equal links. Files are read from the
    /// file system.
    ///
    /// # Errors
    ///
    /// The key that does not fit, or whose file cannot be used.
    pub fn build<B: Clone + Send + 'static>(
        &self,
        seed: Seed,
    ) -> Result<Vec<Box<dyn Medium<B>>>, SpecError> {
        self.build_with(seed, &|file| std::fs::read_to_string(file))
    }

    /// As [`build`](Self::build), with the texts of files from elsewhere.
    ///
    /// # Errors
    ///
    /// The key that does not fit, or whose file cannot be used.
    pub fn build_with<B: Clone + Send + 'static>(
        &self,
        seed: Seed,
        read: Reader<'_>,
    ) -> Result<Vec<Box<dyn Medium<B>>>, SpecError> {
        self.check()?;
        for way in [&self.up, &self.down] {
            way.check_built()?;
        }
        let mut media = Vec::<Box<dyn Medium<B>>>::new();
        match &self.radio {
            Radio::None => {}
            Radio::Lte(lte) => media.push(lte.build(seed.of("lte"))),
            Radio::Wifi(wifi) => media.push(wifi.build(seed.of("wifi"))?),
        }
        let plain = Way::default();
        if media.is_empty() || self.up != plain || self.down != plain {
            let rtt = self.up.delay + self.down.delay;
            media.push(Box::new(Duplex::new(
                self.up.build(rtt, seed.of("up"), read)?,
                self.down.build(rtt, seed.of("down"), read)?,
            )));
        }
        Ok(media)
    }
}

/// No such model yet.
fn missing(key: &str) -> SpecError {
    let reason = "there is no such model yet".to_owned();
    Problem::Model { reason }.at(key)
}

impl Way {
    /// Whether all models that it names are there.
    fn check_built(&self) -> Result<(), SpecError> {
        if !matches!(self.queue, QueueKind::DropTail | QueueKind::DropHead) {
            return Err(missing("queue"));
        }
        Ok(())
    }

    /// The stages of one direction, each with draws of its own.
    fn build<B: Clone + Send + 'static>(
        &self,
        rtt: Duration,
        seed: Seed,
        read: Reader<'_>,
    ) -> Result<Box<dyn Link<B>>, SpecError> {
        let mut stages = Vec::<Box<dyn Link<B>>>::new();
        if let Some(bytes) = self.mtu {
            stages.push(Box::new(Gate::new(Mtu { bytes })));
        }
        stages.extend(self.server(rtt, seed, read)?);
        if let Some(schedule) = self.suspend {
            stages.push(Box::new(Suspensions::new(schedule, seed.of("suspend"))));
        }
        if !self.outage.is_empty() {
            let moments = self.outage.iter();
            let windows = moments.map(|window| (Time::ZERO + window.from, Time::ZERO + window.to));
            stages.push(Box::new(Gate::new(Outages::new(windows.collect()))));
        }
        let losses = self.losses(seed).into_iter();
        stages.extend(losses.map(|model| Box::new(Gate::new(Loss(model))) as Box<_>));
        if !self.corrupt.is_none() {
            let corrupt = Corrupt::new(self.corrupt.as_f64(), seed.of("corrupt"));
            stages.push(Box::new(Gate::new(corrupt)));
        }
        if !self.duplicate.is_none() {
            let duplicate = Duplicate::new(self.duplicate.as_f64(), seed.of("duplicate"));
            stages.push(Box::new(duplicate));
        }
        if !self.jitter.is_zero() {
            stages.push(Box::new(Jitter::new(self.jitter(read)?, seed.of("jitter"))));
        } else if !self.delay.is_zero() || stages.is_empty() {
            stages.push(Box::new(Delay::new(self.delay)));
        }
        Ok(match stages.len() {
            1 => stages.remove(0),
            _ => Box::new(Chain::new(stages)),
        })
    }

    /// The queue and what empties it.
    fn server<B: Send + 'static>(
        &self,
        rtt: Duration,
        seed: Seed,
        read: Reader<'_>,
    ) -> Result<Option<Box<dyn Link<B>>>, SpecError> {
        if let Some(file) = &self.trace {
            let trace = load(file, read, Trace::parse).map_err(|problem| problem.at("trace"))?;
            let queue = self.queue(self.limit(trace.mean_bits_per_second(), rtt));
            let link = TraceLink::new(trace, queue);
            return Ok(Some(Box::new(if self.once { link.once() } else { link })));
        }
        let Some(rate) = self.rate else {
            return Ok(None);
        };
        let queue = self.queue(self.limit(rate, rtt));
        Ok(Some(Box::new(if self.rate_std == 0 {
            Rate::new(rate, queue)
        } else {
            let (mean, std) = (rate as f64, self.rate_std as f64);
            let (tau, seed) = (self.rate_tau, seed.of("rate"));
            let process = OrnsteinUhlenbeck::new(mean, std, tau, RATE_SAMPLING, seed);
            Rate::varying(Box::new(process), queue)
        })))
    }

    fn queue<B: Send + 'static>(&self, limit: Limit) -> Box<dyn Queue<B>> {
        match self.queue {
            QueueKind::DropHead => Box::new(DropTail::drop_head(limit)),
            _ => Box::new(DropTail::new(limit)),
        }
    }

    /// What may wait at a mean rate of `rate` bits per second.
    fn limit(&self, rate: u64, rtt: Duration) -> Limit {
        let sent_in = |nanos: f64| (rate as f64 * nanos / 8e9) as u64;
        let rtt = rtt.as_nanos() as f64;
        match self.buffer {
            Some(Buffer::Bytes(bytes)) => Limit::Bytes(bytes),
            Some(Buffer::Packets(packets)) => {
                Limit::Packets(usize::try_from(packets).unwrap_or(usize::MAX))
            }
            Some(Buffer::Time(time)) => Limit::time(time, rate),
            Some(Buffer::Bdp(products)) => Limit::Bytes(sent_in(products * rtt)),
            None => Limit::Bytes(sent_in(rtt).max(SMALLEST_DEFAULT_BUFFER)),
        }
    }

    fn losses(&self, seed: Seed) -> Vec<Box<dyn LossModel>> {
        let mut models = Vec::<Box<dyn LossModel>>::new();
        let (share, draws) = (self.loss.as_f64(), seed.of("loss"));
        match self.loss_burst {
            _ if self.loss.is_none() => {}
            None => models.push(Box::new(Bernoulli::new(share, draws))),
            Some(Burst::Packets(packets)) => {
                models.push(Box::new(GilbertElliott::of_bursts(share, packets, draws)));
            }
            Some(Burst::Time(time)) => models.push(Box::new(Timed::of_bursts(share, time, draws))),
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
        let law = match &self.jitter_law {
            LawName::Normal => Law::Normal,
            LawName::Uniform => Law::Uniform,
            LawName::Pareto => Law::Pareto,
            LawName::ParetoNormal => Law::ParetoNormal,
            LawName::Exponential => Law::Exponential,
            LawName::PicoquicWifi => Law::PicoquicWifi,
            LawName::Table(file) => Law::Table(Arc::new(
                load(file, read, |text| text.parse())
                    .map_err(|problem| problem.at("jitter-law"))?,
            )),
        };
        Ok(JitterConfig {
            correlation: self.jitter_corr,
            batch: self.jitter_batch,
            reorder: self.reorder,
            ..JitterConfig::new(self.delay, self.jitter, law)
        })
    }
}

impl LteSpec {
    fn build<B: Send + 'static>(&self, seed: Seed) -> Box<dyn Medium<B>> {
        let way =
            |direction| Box::new(Lte::new(&self.config(direction), direction, seed)) as Box<_>;
        Box::new(Duplex::new(
            way(Direction::Uplink),
            way(Direction::Downlink),
        ))
    }
}

impl WifiSpec {
    fn build<B: Send + 'static>(&self, seed: Seed) -> Result<Box<dyn Medium<B>>, SpecError> {
        let config = self.config();
        let ends = [config.stations.len() - 1, 0];
        let medium = WifiMedium::new(&config, seed).map_err(|error| {
            let reason = error.to_string();
            Problem::Model { reason }.at("model")
        })?;
        Ok(Box::new(Ends::new(medium, ends)))
    }

    /// What the medium is made of: the client is the last of the stations, station 0 is at the wire.
    pub fn config(&self) -> WifiConfig {
        let phy = match self.phy {
            PhyName::Ht20 => Phy::ht(Width::Ht20, self.mcs, self.short_guard),
            PhyName::Ht40 => Phy::ht(Width::Ht40, self.mcs, self.short_guard),
            PhyName::Vht80 => Phy {
                width: Width::Vht80,
                mcs: self.mcs,
                streams: 2,
                short_guard_interval: self.short_guard,
            },
        };
        let mut config = WifiConfig::new(phy, self.hops as usize);
        if self.phy == PhyName::Vht80 {
            config.max_ampdu_bytes = 1_048_575;
        }
        let client = config.stations.len() - 1;
        for (index, station) in config.stations.iter_mut().enumerate() {
            station.aggregation = self.aggregation;
            station.queue_bytes = self.queue;
            // The nodes of a mesh are alike; an access point joins what it likes.
            if index == client || self.hops > 1 {
                station.ack_aggregation = self
                    .acks
                    .map(|acks| u32::try_from(acks).unwrap_or(u32::MAX));
            }
        }
        if self.hops > 1 {
            config.topology = Topology::Chain;
        }
        config.base_delay = self.delay;
        config.errors.mpdu = self.error.as_f64();
        if !self.reorder {
            config.reorder = None;
        }
        if self.busy != Share::NONE {
            config.contenders.push(Contender::OnOff {
                busy: self.busy_time,
                duty: self.busy.as_f64(),
            });
        }
        config.scans.extend(self.scan.map(|scan| Scan {
            station: client,
            first: scan.every,
            every: scan.every,
            length: scan.length,
        }));
        config
    }
}

/// Reads a file and makes something of it.
fn load<T, E: std::fmt::Display>(
    file: &str,
    read: Reader<'_>,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, Problem> {
    let problem = |reason: String| Problem::File {
        name: file.to_owned(),
        reason,
    };
    let text = read(file).map_err(|error| problem(error.to_string()))?;
    parse(&text).map_err(|error| problem(error.to_string()))
}
