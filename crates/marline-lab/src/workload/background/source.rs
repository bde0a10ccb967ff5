//! Datagrams without congestion control.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use marline::proto::FourTuple;
use marline::runtime::RecvMeta;
use marline::{Instant, Transmit};
use marline_link::Seed;
use rand::Rng;
use rand_pcg::Pcg64Mcg;

use super::{HostAddress, Received, sleep_until};

/// Bytes of the IPv4 and UDP headers.
const HEADER: u32 = 28;

/// Sends datagrams of one size without end, without congestion control.
#[derive(Clone, Debug)]
pub struct UdpSource {
    /// Bits of IP packets per second; with [`Pattern::OnOff`], while it is on.
    pub rate: u64,
    /// Bytes of each IP packet: 28 of headers, and at most 1,472 of payload.
    pub size: u32,
    /// The pattern of departures.
    pub pattern: Pattern,
    /// The delay of its start after the call.
    pub start: Duration,
    /// The seed of the pattern.
    pub seed: Seed,
}

/// The pattern of departures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// With equal gaps.
    Constant,
    /// With exponentially distributed gaps.
    Poisson,
    /// With equal gaps during on periods, and none during off periods; the lengths of both are exponentially
    /// distributed.
    OnOff {
        /// Mean length of an on period.
        on: Duration,
        /// Mean length of an off period.
        off: Duration,
    },
}

impl UdpSource {
    /// Sends from `from` to `to`, for as long as the runtime runs tasks.
    ///
    /// # Errors
    /// The address is in use, or does not belong to the runtime; the rate is 0, or the size is out of range.
    pub fn start(&self, from: &HostAddress, to: SocketAddr) -> io::Result<()> {
        if self.rate == 0 || !(HEADER..=1500).contains(&self.size) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let HostAddress { runtime, address } = from;
        let socket = runtime.bind(*address)?;
        let local = socket.local_addr()?;
        let mut payload = vec![0; (self.size - HEADER) as usize];
        let mut departures = Departures::new(self, runtime.now());
        let clock = Arc::clone(runtime);
        runtime.spawn(Box::pin(async move {
            let transmit = Transmit {
                tuple: FourTuple { local, remote: to },
                ecn: None,
                size: payload.len(),
                segment_size: None,
            };
            for number in 0_u64.. {
                sleep_until(&*clock, departures.next()).await;
                let digits = number.to_be_bytes();
                let length = payload.len().min(digits.len());
                payload[..length].copy_from_slice(&digits[digits.len() - length..]);
                // Datagrams that the socket refuses are dropped.
                socket.try_send(&transmit, &payload).ok();
            }
        }));
        Ok(())
    }
}

/// The times at which packets leave.
struct Departures {
    pattern: Pattern,
    rng: Pcg64Mcg,
    /// The gap between two packets at the rate, in nanoseconds.
    gap: f64,
    /// Nanoseconds from `beginning` to the last packet.
    last: f64,
    beginning: Instant,
    /// The end of the on period of an on-off source.
    on_until: f64,
}

impl Departures {
    fn new(source: &UdpSource, now: Instant) -> Self {
        let mut departures = Self {
            pattern: source.pattern,
            rng: source.seed.of("departures").rng(),
            gap: f64::from(source.size) * 8e9 / source.rate as f64,
            last: 0.0,
            beginning: now + source.start,
            on_until: 0.0,
        };
        if let Pattern::OnOff { on, .. } = source.pattern {
            departures.on_until = departures.period(on);
        }
        departures
    }

    fn next(&mut self) -> Instant {
        self.last += match self.pattern {
            Pattern::Poisson => self.exponential(self.gap),
            Pattern::Constant | Pattern::OnOff { .. } => self.gap,
        };
        if let Pattern::OnOff { on, off } = self.pattern {
            while self.last > self.on_until {
                let back = self.on_until + self.period(off);
                self.last = self.last.max(back);
                self.on_until = back + self.period(on);
            }
        }
        self.beginning + Duration::from_nanos(self.last as u64)
    }

    /// The length of a period; at least a nanosecond, so that time advances.
    fn period(&mut self, mean: Duration) -> f64 {
        self.exponential(mean.as_nanos() as f64).max(1.0)
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        // Above 0 and up to 1, in steps that an f64 holds exactly.
        let uniform = ((self.rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -libm::log(uniform) * mean
    }
}

/// Receives and discards datagrams.
#[derive(Debug)]
pub struct Sink;

impl Sink {
    /// Receives at `at`, for as long as its runtime runs tasks.
    ///
    /// # Errors
    /// The address is in use, or does not belong to the runtime.
    pub fn start(at: &HostAddress) -> io::Result<Received> {
        let HostAddress { runtime, address } = at;
        let socket = runtime.bind(*address)?;
        let received = Received::default();
        let counted = received.clone();
        runtime.spawn(Box::pin(async move {
            let mut buffer = vec![0; 1 << 16];
            loop {
                let mut meta = [RecvMeta::default()];
                let filled = std::future::poll_fn(|cx| {
                    socket.poll_recv(cx, &mut [IoSliceMut::new(&mut buffer)], &mut meta)
                });
                match filled.await {
                    Ok(_) => counted.add(meta[0].len),
                    Err(_) => return,
                }
            }
        }));
        Ok(received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn departures(pattern: Pattern, count: usize) -> Vec<u64> {
        let source = UdpSource {
            rate: 8_000_000,
            size: 1000,
            pattern,
            start: Duration::from_millis(5),
            seed: Seed::new(1),
        };
        let mut departures = Departures::new(&source, Instant::EPOCH);
        let all = std::iter::repeat_with(|| departures.next().as_nanos());
        all.take(count).collect()
    }

    #[test]
    fn constant_sources_do_not_drift() {
        let all = departures(Pattern::Constant, 1_000_000);
        assert_eq!(all[0], 6_000_000);
        assert_eq!(all[999_999], 5_000_000 + 1_000_000 * 1_000_000);
    }

    #[test]
    fn poisson_sources_keep_the_rate_and_vary() {
        let all = departures(Pattern::Poisson, 20_000);
        assert!(all.is_sorted());
        let mean = (all[19_999] - 5_000_000) / 20_000;
        assert!((970_000..1_030_000).contains(&mean), "{mean}");
        let short = all.windows(2).filter(|pair| pair[1] - pair[0] < 693_147);
        assert!((9_700..10_300).contains(&short.count()));
    }

    #[test]
    fn on_off_sources_are_on_for_their_share() {
        let pattern = Pattern::OnOff {
            on: Duration::from_millis(100),
            off: Duration::from_millis(300),
        };
        let all = departures(pattern, 50_000);
        assert!(all.is_sorted());
        let share = 50_000.0 * 1e6 / all[49_999] as f64;
        assert!((0.22..0.28).contains(&share), "{share}");
    }
}
