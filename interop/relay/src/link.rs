//! Delay and bottleneck of one direction.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::config::Config;

/// A link of fixed rate and delay with a tail-drop queue. Datagrams stay in order.
pub(crate) struct Link<T> {
    delay: Duration,
    /// Bits a second; without it there is no bottleneck.
    rate: Option<f64>,
    queue: usize,
    /// When the bottleneck has transmitted everything queued.
    idle_at: Option<Instant>,
    /// Datagrams by the time they leave the bottleneck and the time they arrive.
    under_way: VecDeque<(Instant, Instant, T)>,
}

impl<T> Link<T> {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            delay: Duration::from_millis(config.delay_ms),
            rate: config.rate_mbps.map(|rate| rate * 1e6),
            queue: config.queue,
            idle_at: None,
            under_way: VecDeque::new(),
        }
    }

    /// Enqueues a datagram of `bytes` bytes; `false` if the queue is full.
    pub(crate) fn push(&mut self, now: Instant, bytes: usize, datagram: T) -> bool {
        let mut leaves = now;
        if let Some(rate) = self.rate {
            let waiting = self.under_way.iter().rev();
            if waiting.take_while(|entry| entry.0 > now).count() > self.queue {
                return false;
            }
            let start = self.idle_at.map_or(now, |idle| idle.max(now));
            leaves = start + Duration::from_secs_f64(bytes as f64 * 8.0 / rate);
            self.idle_at = Some(leaves);
        }
        self.under_way
            .push_back((leaves, leaves + self.delay, datagram));
        true
    }

    /// The next datagram to have arrived by `now`.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<T> {
        if self.next_arrival()? > now {
            return None;
        }
        self.under_way.pop_front().map(|entry| entry.2)
    }

    /// When the next datagram arrives.
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        self.under_way.front().map(|entry| entry.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_take_transmission_time_and_delay_up_to_the_queue_limit() {
        let mut config = Config::new(([127, 0, 0, 1], 1).into(), ([127, 0, 0, 1], 2).into());
        config.rate_mbps = Some(8.0);
        config.delay_ms = 10;
        config.queue = 2;
        let mut link = Link::new(&config);
        let start = Instant::now();
        // 1 ms each: one is in transmission, two are queued.
        let taken: Vec<bool> = (0..4).map(|n| link.push(start, 1000, n)).collect();
        assert_eq!(taken, [true, true, true, false]);
        assert_eq!(link.pop(start + Duration::from_micros(10_900)), None);
        assert_eq!(link.pop(start + Duration::from_micros(11_000)), Some(0));
        assert_eq!(link.pop(start + Duration::from_micros(11_000)), None);
        assert_eq!(link.pop(start + Duration::from_micros(13_000)), Some(1));
        assert_eq!(link.pop(start + Duration::from_micros(13_000)), Some(2));
    }
}
