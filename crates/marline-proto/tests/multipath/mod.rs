//! The operations of the shared vectors on schedulers and coupled controllers.

mod olia;
mod paths;
mod streams;

use std::time::Duration;

use serde_json::{Map, Value};

/// The answer to an operation and its input; `None` if they are invalid.
pub(crate) fn answer(op: &str, input: &Value) -> Option<Value> {
    match op {
        "swrr_tokens" => streams::tokens(input),
        "swrr_order" => streams::order(input),
        "saps_pick" => paths::saps_pick(input),
        "saps_sequence" => paths::saps_sequence(input),
        "hbes_analysis" => paths::analysis(input),
        "lrf_pick" => paths::lrf_pick(input),
        "rr_path" => paths::rr_path(input),
        "ecf_pick" => paths::ecf_pick(input),
        "saecf_bytes" => paths::saecf_bytes(input),
        "saecf_pick" => paths::saecf_pick(input),
        "olia_alpha" => olia::alpha(input),
        "olia_increase" => olia::increase(input),
        _ => None,
    }
}

fn seconds(value: &Value) -> Option<Duration> {
    value
        .as_f64()
        .map(|seconds| Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// An object whose keys are identifiers.
fn by_id<I: ToString>(entries: impl IntoIterator<Item = (I, Value)>) -> Value {
    let entries = entries.into_iter();
    Value::Object(
        entries
            .map(|(id, value)| (id.to_string(), value))
            .collect::<Map<_, _>>(),
    )
}
