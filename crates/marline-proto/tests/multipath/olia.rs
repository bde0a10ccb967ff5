//! Coupled windows.

use marline_proto::congestion::{OliaCoupling, OliaMetric, OliaPath};
use serde_json::{Value, json};

use super::{by_id, seconds};

/// The paths with a round-trip sample, by their names.
fn paths(input: &Value) -> Option<(Vec<u64>, Vec<OliaPath>)> {
    let rated = input["paths"].as_array()?.iter();
    let rated = rated.filter(|path| !path["rtt_s"].is_null());
    let paths = rated.map(|path| {
        let view = OliaPath {
            window: path["w"].as_f64()?,
            rtt: seconds(&path["rtt_s"])?,
            between_losses: path["l1"].as_u64()?,
            since_loss: path["l2"].as_u64()?,
        };
        Some((path["id"].as_u64()?, view))
    });
    paths.collect()
}

fn metric(input: &Value) -> Option<OliaMetric> {
    match input["metric"].as_str()? {
        "l_over_rtt2" => Some(OliaMetric::PerSquaredRtt),
        "l2_over_rtt" => Some(OliaMetric::SquaredPerRtt),
        _ => None,
    }
}

pub(super) fn alpha(input: &Value) -> Option<Value> {
    let (ids, paths) = paths(input)?;
    let coupling = OliaCoupling::of(&paths, metric(input)?);
    let those = |wanted: &dyn Fn(&OliaPath) -> bool| {
        let named = ids.iter().zip(&paths);
        let named = named.filter(|(_, path)| wanted(path));
        named.map(|(id, _)| *id).collect::<Vec<_>>()
    };
    Some(json!({
        "max_w": those(&|path| coupling.is_largest(path)),
        "best": those(&|path| coupling.is_best(path)),
        "alpha": by_id(ids.iter().zip(&paths).map(|(id, path)| (id, json!(coupling.alpha(path))))),
    }))
}

pub(super) fn increase(input: &Value) -> Option<Value> {
    let (ids, paths) = paths(input)?;
    let coupling = OliaCoupling::of(&paths, metric(input)?);
    let increase = ids.iter().zip(&paths);
    let increase = increase.map(|(id, path)| (id, json!(coupling.increase(path))));
    Some(json!({ "increase": by_id(increase) }))
}
