//! Metrics of fairness.

use std::collections::BTreeMap;

use crate::stats::jain_index;

/// Goodputs in Mbit/s of connections and flows that ran at the same time.
pub(super) struct Shares {
    /// Of each connection that the run is about.
    pub(super) connections: Vec<f64>,
    /// Of each background flow.
    pub(super) flows: Vec<f64>,
    /// The goodput that the links would allow, if that is known.
    pub(super) capacity: Option<f64>,
    /// Whether all of them share that capacity, and it is the same all the time.
    pub(super) is_shared: bool,
}

impl Shares {
    /// The metrics. The connections together count as one, except in metrics whose name contains `connection`.
    pub(super) fn metrics(&self) -> BTreeMap<String, f64> {
        let mut metrics = BTreeMap::new();
        let mut metric = |name: &str, value: f64| {
            metrics.insert(name.to_owned(), value);
        };
        let own: Option<f64> =
            (!self.connections.is_empty()).then(|| self.connections.iter().sum());
        let beside: f64 = self.flows.iter().sum();
        if let Some(own) = own {
            metric("goodput_mbps", own);
            let smallest = smallest(&self.connections);
            metric("smallest_connection_goodput_mbps", smallest);
            if own + beside > 0.0 {
                metric("share", own / (own + beside));
                metric("background_share", beside / (own + beside));
            }
        }
        let together = [own.as_slice(), &self.flows].concat();
        if let Some(index) = jain_index(&together) {
            metric("jain_index", index);
        }
        if let Some(index) = jain_index(&[&self.connections[..], &self.flows].concat()) {
            metric("jain_index_connections", index);
        }
        if let Some(capacity) = self.capacity.filter(|_| self.is_shared) {
            let used = (own.unwrap_or_default() + beside) / capacity;
            // Large datagrams have less header than the capacity assumes.
            metric("utilization_ratio", used.min(1.0));
        }
        if !self.flows.is_empty() {
            let flows = self.flows.len() as f64;
            metric("background_goodput_mbps", beside / flows);
            metric("smallest_background_goodput_mbps", smallest(&self.flows));
            if let Some(capacity) = self.capacity {
                let fair = capacity / together.len() as f64;
                metric("background_share_of_fair", beside / flows / fair);
            }
        }
        metrics
    }
}

fn smallest(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_count_as_one_share_unless_named_otherwise() {
        let shares = Shares {
            connections: vec![6.0, 6.0, 6.0],
            flows: vec![6.0],
            capacity: Some(24.0),
            is_shared: true,
        };
        let metrics = shares.metrics();
        assert_eq!(metrics["goodput_mbps"], 18.0);
        assert_eq!(metrics["share"], 0.75);
        assert_eq!(metrics["background_share"], 0.25);
        assert_eq!(metrics["jain_index_connections"], 1.0);
        assert!((metrics["jain_index"] - 24.0 * 24.0 / (2.0 * 360.0)).abs() < 1e-12);
        assert_eq!(metrics["background_goodput_mbps"], 6.0);
        assert_eq!(metrics["background_share_of_fair"], 0.5);
        assert_eq!(metrics["utilization_ratio"], 1.0);
    }

    #[test]
    fn utilization_is_at_most_one_and_absent_without_a_shared_capacity() {
        let shares = |is_shared| Shares {
            connections: vec![6.1],
            flows: vec![6.0],
            capacity: Some(12.0),
            is_shared,
        };
        assert_eq!(shares(true).metrics()["utilization_ratio"], 1.0);
        let metrics = shares(false).metrics();
        assert!(!metrics.contains_key("utilization_ratio"), "{metrics:?}");
        assert!(metrics.contains_key("background_share_of_fair"));
    }

    #[test]
    fn without_flows_share_and_jain_index_are_one() {
        let shares = Shares {
            connections: vec![4.0, 6.0],
            flows: Vec::new(),
            capacity: None,
            is_shared: true,
        };
        let metrics = shares.metrics();
        assert_eq!((metrics["share"], metrics["jain_index"]), (1.0, 1.0));
        assert_eq!(metrics["smallest_connection_goodput_mbps"], 4.0);
        assert!(!metrics.contains_key("background_goodput_mbps"));
    }

    #[test]
    fn flows_alone_are_measured_without_connections() {
        let shares = Shares {
            connections: Vec::new(),
            flows: vec![9.0, 3.0],
            capacity: Some(12.0),
            is_shared: true,
        };
        let metrics = shares.metrics();
        assert_eq!(metrics["background_share_of_fair"], 1.0);
        assert_eq!(metrics["background_goodput_mbps"], 6.0);
        assert_eq!(metrics["jain_index"], 0.8);
        assert!(!metrics.contains_key("goodput_mbps"), "{metrics:?}");
    }

    #[test]
    fn a_flow_without_throughput_lowers_the_jain_index() {
        let shares = Shares {
            connections: vec![8.0],
            flows: vec![0.0],
            capacity: Some(10.0),
            is_shared: true,
        };
        let metrics = shares.metrics();
        assert_eq!((metrics["share"], metrics["jain_index"]), (1.0, 0.5));
        assert_eq!(metrics["background_share_of_fair"], 0.0);
    }
}
