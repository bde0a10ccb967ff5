//! The links between routers that carry the server's connections.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use marline_sim::fabric::{Fabric, Routed, Verdict};

use crate::scenario::Topology;

/// Counts the bytes that the server's connections send over links between two routers. Connections are distinguished by
/// the hash of their flow, which also chooses among routes.
#[derive(Clone, Default)]
pub struct Routes(Arc<Mutex<BTreeMap<String, HashMap<u64, u64>>>>);

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes").finish_non_exhaustive()
    }
}

impl Routes {
    /// Counts in `fabric` from now on; `None` if no link joins two routers.
    pub fn count<B: Routed>(fabric: &mut Fabric<B>, topology: &Topology) -> Option<Self> {
        let is_router = |name: &String| topology.routers.contains(name);
        let links = topology.links.iter();
        let links = links.filter(|link| link.between.iter().all(is_router));
        let links: HashMap<_, _> = links
            .filter_map(|link| Some((fabric.find_medium(&link.name)?, link.name.clone())))
            .collect();
        let server = fabric.find(Topology::SERVER)?;
        if links.is_empty() {
            return None;
        }
        let routes = Self::default();
        let counted = Arc::clone(&routes.0);
        let mut counts = counted.lock().unwrap_or_else(PoisonError::into_inner);
        counts.extend(links.values().map(|name| (name.clone(), HashMap::new())));
        drop(counts);
        let sources: Vec<IpAddr> = fabric.addresses(server).to_vec();
        fabric.tap(Box::new(move |passage| {
            let packet = passage.packet;
            if passage.verdict != Verdict::Entered || !sources.contains(&packet.body.source()) {
                return;
            }
            let Some(name) = passage.medium.and_then(|medium| links.get(&medium)) else {
                return;
            };
            let mut counts = counted.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(flows) = counts.get_mut(name) {
                *flows.entry(packet.flow).or_default() += u64::from(packet.size);
            }
        }));
        Some(routes)
    }

    /// For each of the links, the connections and bytes of the server on it.
    pub(super) fn metrics(&self) -> Vec<(String, f64)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut metrics = Vec::new();
        for (name, flows) in counts.iter() {
            metrics.push((format!("connections_on_{name}"), flows.len() as f64));
            metrics.push((
                format!("bytes_on_{name}"),
                flows.values().sum::<u64>() as f64,
            ));
        }
        metrics
    }
}
