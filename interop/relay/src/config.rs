//! The configuration of the relay.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};

/// The direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// Settings of a relay. Without any it only forwards.
#[derive(Clone, Debug, Args)]
pub struct Config {
    /// The address that clients send to.
    #[arg(long)]
    pub listen: SocketAddr,
    /// The address of the server.
    #[arg(long)]
    pub to: SocketAddr,
    /// One-way delay, milliseconds.
    #[arg(long, default_value_t = 0)]
    pub delay_ms: u64,
    /// Bottleneck of each direction, Mbit/s; without it there is none.
    #[arg(long)]
    pub rate_mbps: Option<f64>,
    /// Queue limit at the bottleneck, in datagrams.
    #[arg(long, default_value_t = 25)]
    pub queue: usize,
    /// Datagrams dropped in each direction, percent.
    #[arg(long, default_value_t = 0.0)]
    pub loss: f64,
    /// Maximum consecutive losses; 0 for no limit.
    #[arg(long, default_value_t = 0)]
    pub burst: u32,
    /// Datagrams corrupted by one byte in each direction, percent.
    #[arg(long, default_value_t = 0.0)]
    pub corrupt: f64,
    /// Datagrams to drop by number from 1, server to client, such as `2-7` or `1,3`.
    #[arg(long, alias = "drop-list", default_value_t)]
    pub drop_to_client: Drops,
    /// Datagrams to drop by number from 1, client to server.
    #[arg(long, default_value_t)]
    pub drop_to_server: Drops,
    /// Seconds on and off in turn, such as `5/2`: while off, all datagrams are dropped.
    #[arg(long)]
    pub blackhole: Option<Blackhole>,
    /// The property that a rebinding changes: the client's port, or its address.
    #[arg(long)]
    pub rebind: Option<Rebind>,
    /// Seconds from the first datagram to the first rebinding.
    #[arg(long, default_value_t = 1.0)]
    pub rebind_first_s: f64,
    /// Seconds between rebindings.
    #[arg(long, default_value_t = 5.0)]
    pub rebind_every_s: f64,
    /// Seed of all randomness.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

impl Config {
    /// A relay from `listen` to `to` that only forwards.
    #[must_use]
    pub fn new(listen: SocketAddr, to: SocketAddr) -> Self {
        Self {
            listen,
            to,
            delay_ms: 0,
            rate_mbps: None,
            queue: 25,
            loss: 0.0,
            burst: 0,
            corrupt: 0.0,
            drop_to_client: Drops::default(),
            drop_to_server: Drops::default(),
            blackhole: None,
            rebind: None,
            rebind_first_s: 1.0,
            rebind_every_s: 5.0,
            seed: 0,
        }
    }
}

/// The property that a rebinding changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rebind {
    /// The client's port.
    Port,
    /// The client's address: another of 127.0.0.0/8.
    Addr,
}

/// Numbers of datagrams, from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drops(Vec<RangeInclusive<u64>>);

impl Drops {
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.0.iter().any(|range| range.contains(&number))
    }
}

impl From<RangeInclusive<u64>> for Drops {
    fn from(range: RangeInclusive<u64>) -> Self {
        Self(vec![range])
    }
}

impl FromStr for Drops {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let range = first.parse::<u64>()?..=last.parse::<u64>()?;
            ensure!(*range.start() >= 1, "datagrams count from 1");
            ensure!(!range.is_empty(), "{part} is empty");
            Ok(range)
        };
        let parts = text.split(',').filter(|part| !part.is_empty());
        Ok(Self(parts.map(range).collect::<Result<_, _>>()?))
    }
}

impl std::fmt::Display for Drops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}-{}", range.start(), range.end())?;
        }
        Ok(())
    }
}

/// Alternating periods in which datagrams pass and are dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blackhole {
    /// Length of the periods in which datagrams pass.
    pub on: Duration,
    /// Length of the periods in which datagrams are dropped.
    pub off: Duration,
}

impl Blackhole {
    /// Whether datagrams are dropped `elapsed` after the first datagram.
    pub(crate) fn swallows(&self, elapsed: Duration) -> bool {
        let cycle = (self.on + self.off).as_nanos();
        cycle > 0 && elapsed.as_nanos() % cycle >= self.on.as_nanos()
    }
}

impl FromStr for Blackhole {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (on, off) = text.split_once('/').context("expected ON_S/OFF_S")?;
        Ok(Self {
            on: Duration::try_from_secs_f64(on.parse()?)?,
            off: Duration::try_from_secs_f64(off.parse()?)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_lists_match_datagram_numbers() {
        let drops: Drops = "2-3,7".parse().unwrap();
        let dropped: Vec<u64> = (1..9).filter(|&n| drops.contains(n)).collect();
        assert_eq!(dropped, [2, 3, 7]);
        assert!("0".parse::<Drops>().is_err());
        assert!("5-4".parse::<Drops>().is_err());
        assert_eq!("".parse::<Drops>().unwrap(), Drops::default());
    }

    #[test]
    fn blackhole_alternates_between_on_and_off() {
        let hole: Blackhole = "5/2".parse().unwrap();
        let at = |s| hole.swallows(Duration::from_secs_f64(s));
        assert_eq!(
            [at(0.0), at(4.9), at(5.0), at(6.9), at(7.0)],
            [false, false, true, true, false]
        );
    }
}
