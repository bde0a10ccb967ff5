//! Reads `stress`.

use super::{Item, Problem, Reader, unknown};
use crate::scenario::{Stress, Topology};

/// Largest number of threads: more are considered a mistake.
const MAX_THREADS: u64 = 64;

pub(super) fn read_stress(
    reader: &mut Reader<'_>,
    topology: &Topology,
) -> Result<Vec<Stress>, Problem> {
    let Some(node) = reader.get("stress") else {
        return Ok(Vec::new());
    };
    let Item::Table(table) = &node.item else {
        return Err(node.problem("stress is a table; write stress.client = 4"));
    };
    if table.0.len() > 1 {
        return Err(node.problem(
            "only one host can be stressed: it takes the last processor; leave the others out",
        ));
    }
    let one = |(host, threads): &(String, super::Node)| {
        if !topology.hosts.contains(host) {
            let hosts = topology.hosts.iter().map(String::as_str);
            return Err(threads.problem(unknown("host", host, hosts)));
        }
        Ok(Stress {
            host: host.clone(),
            threads: threads.within(0..=MAX_THREADS)? as usize,
        })
    };
    table.0.iter().map(one).collect()
}
