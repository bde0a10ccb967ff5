//! All applications of a proxy, and the choice among them.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::balance::{
    Balance, Candidate, Key, WeightedTurns, least_requests, random_two, rendezvous,
};
use super::config::ProxyConfig;
use super::tls::{Secured, UpstreamTlsError};
use super::upstream::{Slot, Upstream};
use super::upstream_metrics::UpstreamMetrics;
use super::url::UpstreamProtocol;

/// All applications of a proxy.
pub(super) struct Upstreams {
    all: Vec<Arc<Upstream>>,
    balance: Balance,
    turns: Mutex<WeightedTurns>,
    /// Choices so far.
    choices: AtomicUsize,
    /// Draws numbers that clients cannot guess, from the number of the choice.
    random: RandomState,
}

impl Upstreams {
    /// The applications of `config`, which `metrics` shows from now on.
    ///
    /// # Errors
    /// The settings of TLS cannot be used.
    pub(super) fn new(
        config: &ProxyConfig,
        metrics: &UpstreamMetrics,
    ) -> Result<Self, UpstreamTlsError> {
        let upstreams = &config.upstreams;
        let has = |protocol| {
            let mut upstreams = upstreams.iter();
            upstreams.any(|upstream| upstream.url.protocol() == protocol)
        };
        let mut secured = Secured::default();
        if has(UpstreamProtocol::Https) {
            secured.tcp = Some(config.tls.connectors()?);
        }
        if has(UpstreamProtocol::H3) {
            secured.http3 = Some(Arc::new(config.tls.http3(config)?));
        }
        let mut all = Vec::with_capacity(upstreams.len());
        for upstream in upstreams {
            let counters = metrics.counters(&upstream.url.to_string());
            let upstream = Upstream::new(upstream.clone(), config, &secured, counters)?;
            all.push(Arc::new(upstream));
        }
        metrics.show(&all);
        Ok(Self {
            balance: config.balance.clone(),
            turns: Mutex::new(WeightedTurns::new(all.len())),
            all,
            choices: AtomicUsize::new(0),
            random: RandomState::new(),
        })
    }

    pub(super) fn all(&self) -> &[Arc<Upstream>] {
        &self.all
    }

    /// Whether there is one that was not `tried`, so that a request can go there.
    pub(super) fn has_another(&self, tried: &[Arc<Upstream>]) -> bool {
        self.all.iter().any(|one| !is_tried(tried, one))
    }

    /// The application for a request with `key`, of those that work and were not `tried`; else one that does not work, else one
    /// that was tried. `None` if there is none at all.
    pub(super) fn next(&self, tried: &[Arc<Upstream>], key: Option<Key>) -> Option<&Arc<Upstream>> {
        if let [only] = &self.all[..] {
            return Some(only);
        }
        let is_new = |one: &Upstream| !is_tried(tried, one);
        let chosen = self
            .choose(key, |one| is_new(one) && one.is_healthy())
            .or_else(|| self.choose(key, is_new))
            .or_else(|| self.choose(key, |_| true))?;
        self.all.get(chosen)
    }

    /// The one of those that are `allowed` that the policy chooses.
    fn choose(&self, key: Option<Key>, allowed: impl Fn(&Upstream) -> bool) -> Option<usize> {
        let all = self.all.iter().enumerate();
        let candidates: Vec<Candidate> = all
            .filter(|(_, one)| allowed(one))
            .map(|(index, one)| one.candidate(index))
            .collect();
        let choice = self.choices.fetch_add(1, Relaxed);
        match (&self.balance, key) {
            (Balance::RandomTwo, _) => {
                let random = [0, 1].map(|number| self.random.hash_one([choice, number]));
                random_two(&candidates, random)
            }
            (Balance::LeastRequests, _) => least_requests(&candidates, choice),
            (Balance::Hash(_), Some(key)) => rendezvous(&candidates, key),
            (Balance::RoundRobin | Balance::Hash(_), _) => {
                let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
                turns.next(&candidates)
            }
        }
    }

    /// One that works, was not `tried`, and has a free place for `client`.
    pub(super) fn free(
        &self,
        tried: &[Arc<Upstream>],
        client: Option<IpAddr>,
    ) -> Option<(&Arc<Upstream>, Slot)> {
        let mut all = self.all.iter();
        all.find_map(|one| {
            let is_usable = !is_tried(tried, one) && one.is_healthy();
            let slot = is_usable.then(|| one.free_slot(client));
            Some((one, slot??))
        })
    }
}

fn is_tried(tried: &[Arc<Upstream>], upstream: &Upstream) -> bool {
    tried
        .iter()
        .any(|other| std::ptr::eq(Arc::as_ptr(other), upstream))
}
