//! Runs as a table with one row for each.

use std::collections::BTreeSet;

use super::{Plan, Record};
use crate::scenario::Value;

/// `runs.csv`: variant, parameters, repeat, seed, status, and every metric.
pub(super) fn csv(plan: &Plan, records: &[Record]) -> Vec<u8> {
    let keys = |maps: &mut dyn Iterator<Item = &String>| maps.cloned().collect::<BTreeSet<_>>();
    let parameters = keys(&mut plan.points.iter().flat_map(|point| point.keys()));
    let metrics = keys(&mut records.iter().flat_map(|record| record.metrics.keys()));
    let mut rows = Vec::with_capacity(records.len() + 1);
    let mut head = vec!["run".to_owned(), "variant".to_owned()];
    head.extend(parameters.iter().cloned());
    head.extend(["repeat", "seed", "status", "reason", "virtual_s", "packets"].map(str::to_owned));
    head.extend(metrics.iter().cloned());
    rows.push(head);
    for record in records {
        let (status, reason) = match (&record.failed, &record.invalid) {
            (Some(reason), _) if record.timed_out => ("timed out", reason.as_str()),
            (Some(reason), _) => ("failed", reason.as_str()),
            (None, Some(reason)) => ("invalid", reason.as_str()),
            (None, None) => ("ok", ""),
        };
        let mut row = vec![record.run.to_string(), record.variant.clone()];
        let point = plan.points.get(record.point);
        row.extend(
            parameters
                .iter()
                .map(|key| match point.and_then(|point| point.get(key)) {
                    Some(Value::String(text)) => text.clone(),
                    Some(value) => value.to_string(),
                    None => String::new(),
                }),
        );
        row.extend([
            record.repeat.to_string(),
            record.seed.to_string(),
            status.to_owned(),
            reason.to_owned(),
            record.virtual_s.to_string(),
            record.packets.to_string(),
        ]);
        row.extend(metrics.iter().map(|name| {
            let value = record.metrics.get(name);
            value.map(f64::to_string).unwrap_or_default()
        }));
        rows.push(row);
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        // Writing to memory does not fail, and all rows have the same length.
        let _ = writer.write_record(row);
    }
    writer.into_inner().unwrap_or_default()
}
