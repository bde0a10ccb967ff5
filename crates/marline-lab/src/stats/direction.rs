//! Whether larger or smaller values of a metric are better.

/// Prefixes and suffixes of metrics of which larger values are better: rates, shares, fairness. Of all others
/// (times, losses, bytes), smaller values are better.
const BEGINNINGS: [&str; 2] = ["jain_index", "utilization"];
const ENDS: [&str; 3] = ["bps", "share", "_share_of_fair"];

/// Whether larger values of `metric` are better.
pub fn is_better_larger(metric: &str) -> bool {
    BEGINNINGS.iter().any(|begin| metric.starts_with(begin))
        || ENDS.iter().any(|end| metric.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_throughput_is_better_and_more_time_is_not() {
        for metric in [
            "background_goodput_mbps",
            "jain_index_connections",
            "background_share_of_fair",
            "utilization_ratio",
        ] {
            assert!(is_better_larger(metric), "{metric}");
        }
        for metric in ["completion_s", "loss_ratio", "largest_window_bytes"] {
            assert!(!is_better_larger(metric), "{metric}");
        }
    }
}
