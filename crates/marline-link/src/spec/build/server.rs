//! Builds the queue and the transmitter of a direction.

use std::time::Duration;

use super::{Reader, load, random_part};
use crate::blockage::{Blockage, BlockageConfig};
use crate::process::{OrnsteinUhlenbeck, RateProcess, Steady};
use crate::queue::{
    Cake, CakeConfig, Codel, CodelConfig, DropTail, DualPi2, DualPi2Config, FqCodel, FqCodelConfig,
    Limit, Queue, Red, RedConfig, StepMarker,
};
use crate::shaper::{Peak, ShaperConfig};
use crate::spec::{Alternation, Buffer, DirectionSpec, QueueKind, SpecError};
use crate::trace::{Trace, TraceLink};
use crate::{Framing, Link, Rate, Seed};

/// Size in bytes of a full packet, for conversions between bytes and packets.
const FULL_PACKET: u64 = 1500;

/// Minimum default queue limit, in packets.
const SMALLEST_DEFAULT: u64 = 10;

/// Default queue limit with CoDel, in packets.
const CODEL_DEFAULT: usize = 1000;

/// Default queue limit with DualPI2 (RFC 9332, appendix A.1).
const DUALPI2_DEFAULT: Duration = Duration::from_millis(250);

/// Default burst of a policer, as time at its rate.
const POLICER_BURST: Duration = Duration::from_millis(100);

/// Default bucket of a shaper, as time at its rate.
const SHAPER_BURST: Duration = Duration::from_millis(10);

/// Default limit of a shaper's queue, as time at its rate.
const SHAPER_LATENCY: Duration = Duration::from_millis(50);

/// Sampling period of a varying rate.
const RATE_SAMPLING: Duration = Duration::from_millis(10);

impl DirectionSpec {
    /// Where a trace of this `period` begins. A random place follows from the `shared` seed alone: traces of both directions,
    /// and of rates and delays, were recorded together.
    pub(super) fn start_of(&self, period: Duration, shared: Seed) -> Duration {
        self.trace_start
            .unwrap_or_else(|| period.mul_f64(random_part(shared.of("trace-start"))))
    }

    /// The transmitter with its queue; `None` if the rate is unlimited.
    pub(super) fn server<B: Send + 'static>(
        &self,
        rtt: Duration,
        [seed, shared]: [Seed; 2],
        read: Reader<'_>,
    ) -> Result<Option<Box<dyn Link<B>>>, SpecError> {
        if let Some(file) = &self.trace {
            let trace = load("trace", file, read, Trace::parse)?;
            let queue = self.queue(trace.mean_bits_per_second(), rtt, seed);
            let start = self.start_of(trace.period(), shared);
            let link = TraceLink::new(trace, queue).starting_at(start);
            return Ok(Some(Box::new(if self.once { link.once() } else { link })));
        }
        let Some(rate) = self.rate else {
            return Ok(None);
        };
        let queue = self.queue(rate, rtt, seed);
        let framing = Framing {
            overhead: self.overhead,
            least: self.mpu,
            atm: self.atm,
        };
        let transmitter = Rate::varying(self.process(rate, [seed, shared]), queue);
        Ok(Some(Box::new(transmitter.with_framing(framing))))
    }

    /// The rate over time, for a mean of `rate` bits per second.
    fn process(&self, rate: u64, [seed, shared]: [Seed; 2]) -> Box<dyn RateProcess> {
        let mut process: Box<dyn RateProcess> = if self.rate_std == 0 {
            Box::new(Steady {
                bits_per_second: rate,
            })
        } else {
            let (mean, std) = (rate as f64, self.rate_std as f64);
            let (tau, seed) = (self.rate_tau, seed.of("rate"));
            Box::new(OrnsteinUhlenbeck::new(mean, std, tau, RATE_SAMPLING, seed))
        };
        if let Some(handovers) = self.handovers(shared) {
            process = Box::new(handovers.rate(process));
        }
        if let Some(Alternation { clear, blocked }) = self.blockage {
            let config = BlockageConfig {
                clear,
                blocked,
                rate: self.blockage_rate.as_f64(),
            };
            process = Box::new(Blockage::new(config, process, shared.of("blockage")));
        }
        process
    }

    /// The shaper, if there is one.
    pub(super) fn shaper_config(&self, rtt: Duration) -> Option<ShaperConfig> {
        let rate = self.shaper?;
        let burst = self.shaper_burst.unwrap_or_else(|| {
            bytes(Limit::time(SHAPER_BURST, rate)).max(SMALLEST_DEFAULT * FULL_PACKET)
        });
        let peak = self.shaper_peak.map(|rate| Peak {
            rate,
            burst: FULL_PACKET,
        });
        let buffer = self.shaper_buffer.unwrap_or(Buffer::Time(SHAPER_LATENCY));
        let limit = match buffer {
            Buffer::Time(latency) => {
                let within =
                    |rate, bucket: u64| bytes(Limit::time(latency, rate)).saturating_add(bucket);
                let peak = peak.map(|peak| within(peak.rate, peak.burst));
                within(rate, burst).min(peak.unwrap_or(u64::MAX))
            }
            other => bytes(limit(other, rate, rtt)),
        };
        Some(ShaperConfig {
            rate,
            burst,
            peak,
            limit,
        })
    }

    /// The queue for a mean rate of `rate` bits per second.
    fn queue<B: Send + 'static>(&self, rate: u64, rtt: Duration, seed: Seed) -> Box<dyn Queue<B>> {
        match self.mark.filter(|_| self.queue != QueueKind::DualPi2) {
            Some(threshold) => {
                Box::new(StepMarker::new(threshold, self.discipline(rate, rtt, seed)))
            }
            None => self.discipline(rate, rtt, seed),
        }
    }

    fn discipline<B: Send + 'static>(
        &self,
        rate: u64,
        rtt: Duration,
        seed: Seed,
    ) -> Box<dyn Queue<B>> {
        let given = self.buffer.map(|buffer| limit(buffer, rate, rtt));
        let product = Limit::time(rtt, rate);
        let default = Limit::Bytes(bytes(product).max(SMALLEST_DEFAULT * FULL_PACKET));
        let limit = given.unwrap_or(default);
        let codel = CodelConfig {
            ecn: self.ecn,
            ..CodelConfig::default()
        };
        match self.queue {
            QueueKind::DropTail => Box::new(DropTail::new(limit)),
            QueueKind::DropHead => Box::new(DropTail::drop_head(limit)),
            QueueKind::CoDel => {
                let limit = given.unwrap_or(Limit::Packets(CODEL_DEFAULT));
                Box::new(Codel::new(codel, limit))
            }
            QueueKind::FqCoDel => {
                let mut config = FqCodelConfig {
                    codel,
                    ..FqCodelConfig::default()
                };
                if let Some(limit) = given {
                    let packets = (bytes(limit) / FULL_PACKET).max(1);
                    config.packets = usize::try_from(packets).unwrap_or(usize::MAX);
                }
                Box::new(FqCodel::new(config))
            }
            QueueKind::Red => {
                let mut config = RedConfig::new(bytes(limit), rate);
                config.ecn = self.ecn;
                Box::new(Red::new(config, seed))
            }
            QueueKind::Cake => {
                let config = CakeConfig {
                    rate,
                    limit: given.map(bytes),
                    isolation: self.cake_isolation,
                    ack_filter: self.cake_ack_filter,
                };
                Box::new(Cake::new(config, seed))
            }
            QueueKind::DualPi2 => {
                let default = bytes(Limit::time(DUALPI2_DEFAULT, rate));
                let default = default.max(SMALLEST_DEFAULT * FULL_PACKET);
                let mut config = DualPi2Config::new(given.map_or(default, bytes));
                if let Some(threshold) = self.mark {
                    config.threshold = threshold;
                    config.range = Duration::ZERO;
                }
                Box::new(DualPi2::new(config))
            }
        }
    }
}

/// The limit of `buffer` at a mean rate of `rate` bits per second.
fn limit(buffer: Buffer, rate: u64, rtt: Duration) -> Limit {
    match buffer {
        Buffer::Bytes(bytes) => Limit::Bytes(bytes),
        Buffer::Packets(packets) => Limit::Packets(usize::try_from(packets).unwrap_or(usize::MAX)),
        Buffer::Time(time) => Limit::time(time, rate),
        Buffer::Bdp(products) => {
            let bytes = products * rate as f64 * rtt.as_nanos() as f64 / 8e9;
            Limit::Bytes(bytes as u64)
        }
    }
}

/// The default burst in bytes of a policer of `rate` bits per second.
pub(super) fn policer_burst(rate: u64) -> u64 {
    bytes(Limit::time(POLICER_BURST, rate)).max(SMALLEST_DEFAULT * FULL_PACKET)
}

/// A limit in bytes.
fn bytes(limit: Limit) -> u64 {
    match limit {
        Limit::Infinite => u64::MAX,
        Limit::Bytes(bytes) => bytes,
        Limit::Packets(packets) => (packets as u64).saturating_mul(FULL_PACKET),
    }
}
