//! The choice of one of several applications for a request, by policies that see numbers only.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use http::header::HeaderMap;
use marline::settings::text_values;
use sha1::{Digest, Sha1};

use crate::request_key::RequestKey;

/// The policy by which a request gets one of the applications that work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// They take turns.
    #[default]
    RoundRobin,
    /// The one with fewer requests in flight, of two that are drawn.
    RandomTwo,
    /// The one with the fewest requests in flight.
    LeastRequests,
    /// The same one for the same key, as long as it works; applications take turns for requests without a key. An application
    /// that goes away moves only its own keys to others.
    Hash(RequestKey),
}

/// A text is not a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a policy; write {ALLOWED}")]
pub struct InvalidBalance(String);

/// The policies as text.
pub(super) const ALLOWED: &str = "round_robin, random_two, least_requests, \"hash client\", \"hash cookie NAME\" or \"hash header NAME\"";

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RoundRobin => f.write_str("round_robin"),
            Self::RandomTwo => f.write_str("random_two"),
            Self::LeastRequests => f.write_str("least_requests"),
            Self::Hash(RequestKey::Address) => f.write_str("hash client"),
            Self::Hash(RequestKey::Cookie(name)) => write!(f, "hash cookie {name}"),
            Self::Hash(RequestKey::Field(name)) => write!(f, "hash header {name}"),
        }
    }
}

impl FromStr for Balance {
    type Err = InvalidBalance;

    fn from_str(text: &str) -> Result<Self, InvalidBalance> {
        let words: Vec<_> = text.split_whitespace().collect();
        let read = match words[..] {
            ["round_robin"] => Some(Self::RoundRobin),
            ["random_two"] => Some(Self::RandomTwo),
            ["least_requests"] => Some(Self::LeastRequests),
            ["hash", "client"] => Some(Self::Hash(RequestKey::Address)),
            ["hash", "cookie", name] => RequestKey::cookie(name).map(Self::Hash),
            ["hash", "header", name] => RequestKey::field(name).map(Self::Hash),
            _ => None,
        };
        read.ok_or_else(|| InvalidBalance(text.to_owned()))
    }
}

text_values!(Balance);

impl Balance {
    /// The key of a request of `client`, if the policy uses keys and it has one.
    pub(super) fn key(&self, headers: &HeaderMap, client: Option<IpAddr>) -> Option<Key> {
        let Self::Hash(key) = self else {
            return None;
        };
        match key {
            RequestKey::Address => {
                client.map(|ip| Key::of(ip.to_canonical().to_string().as_bytes()))
            }
            other => other.value(headers).map(Key::of),
        }
    }
}

/// The hash of a key or of an application. It is the same in every process, so that several proxies agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(u64);

impl Key {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let hash = Sha1::digest(bytes);
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        Self(u64::from_be_bytes(first))
    }

    /// A number above 0 and below 1 that is independent for each pair of keys.
    fn draw(self, other: Self) -> f64 {
        let hash = Sha1::digest([self.0.to_be_bytes(), other.0.to_be_bytes()].concat());
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        unit(u64::from_be_bytes(first))
    }
}

/// `bits` as a number above 0 and below 1.
fn unit(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// An application as policies see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Its place among all applications.
    pub(super) index: usize,
    /// Its share of the requests, above 0.
    pub(super) weight: f64,
    pub(super) in_flight: u64,
    /// The hash of its URL.
    pub(super) id: Key,
}

impl Candidate {
    /// The load that it would have with one more request.
    fn load(&self) -> f64 {
        (self.in_flight + 1) as f64 / self.weight
    }
}

/// The turns of applications by their weights, evenly mixed: of weights 2 and 1, the first, the second, the first.
#[derive(Debug)]
pub(super) struct WeightedTurns {
    /// The claim of each application to the next turn.
    claims: Vec<f64>,
}

impl WeightedTurns {
    pub(super) fn new(applications: usize) -> Self {
        Self {
            claims: vec![0.0; applications],
        }
    }

    /// The one of `candidates` whose turn it is.
    pub(super) fn next(&mut self, candidates: &[Candidate]) -> Option<usize> {
        let mut total = 0.0;
        for candidate in candidates {
            total += candidate.weight;
            self.claims[candidate.index] += candidate.weight;
        }
        let indices = candidates.iter().map(|candidate| candidate.index);
        let chosen = indices.reduce(|best, next| match self.claims[next] > self.claims[best] {
            true => next,
            false => best,
        })?;
        self.claims[chosen] -= total;
        Some(chosen)
    }
}

/// Of two of `candidates`, drawn by `random` and their weights, the one with the lower load.
pub(super) fn random_two(candidates: &[Candidate], random: [u64; 2]) -> Option<usize> {
    let first = draw(candidates, unit(random[0]))?;
    let others: Vec<_> = candidates
        .iter()
        .filter(|candidate| candidate.index != first.index)
        .copied()
        .collect();
    let second = draw(&others, unit(random[1]));
    let better = second.filter(|second| second.load() < first.load());
    Some(better.unwrap_or(first).index)
}

/// One of `candidates` by their weights; `at` is its place among all.
fn draw(candidates: &[Candidate], at: f64) -> Option<Candidate> {
    let total: f64 = candidates.iter().map(|candidate| candidate.weight).sum();
    let mut left = at * total;
    let found = candidates.iter().find(|candidate| {
        left -= candidate.weight;
        left < 0.0
    });
    found.or(candidates.last()).copied()
}

/// The one of `candidates` with the lowest load; those with the same are chosen in turn.
pub(super) fn least_requests(candidates: &[Candidate], turn: usize) -> Option<usize> {
    let count = candidates.len();
    let in_turn = (0..count).map(|i| &candidates[(turn + i) % count]);
    let least = in_turn.min_by(|a, b| a.load().total_cmp(&b.load()))?;
    Some(least.index)
}

/// The one of `candidates` for `key`, by rendezvous hashing: each has a score for the key that depends on no other.
pub(super) fn rendezvous(candidates: &[Candidate], key: Key) -> Option<usize> {
    let score = |candidate: &Candidate| -key.draw(candidate.id).ln() / candidate.weight;
    let best = candidates
        .iter()
        .min_by(|a, b| score(a).total_cmp(&score(b)))?;
    Some(best.index)
}

/// The least part of its weight that an application has at the beginning of its slow start.
const LEAST_PART: f64 = 0.1;

/// The part of its weight that an application has `since` it works again, after a failure.
pub(super) fn slow_start_part(since: Duration, slow_start: Duration) -> f64 {
    if since >= slow_start {
        return 1.0;
    }
    since.div_duration_f64(slow_start).max(LEAST_PART)
}

#[cfg(test)]
mod tests;
