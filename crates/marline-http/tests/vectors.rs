//! Runs the shared test vectors on the planner of fetches and page loads.

#[path = "../../../vectors/runner.rs"]
mod runner;

use std::process::ExitCode;

use marline_http::client::{Planner, SplitPolicy};
use serde_json::{Value, json};

fn main() -> ExitCode {
    runner::main(env!("CARGO_PKG_NAME"), answer)
}

fn answer(op: &str, input: &Value) -> Option<Value> {
    match op {
        "mquic_requests" => mquic_requests(input),
        _ => None,
    }
}

fn mquic_requests(input: &Value) -> Option<Value> {
    let policy = match input["policy"].as_str()? {
        "page" => SplitPolicy::Page,
        "file" => SplitPolicy::File,
        _ => return None,
    };
    let connections = usize::try_from(input["n"].as_u64()?)
        .ok()?
        .try_into()
        .ok()?;
    let min_range = input["min_range"].as_u64()?.try_into().ok()?;
    let mut planner = Planner::new(policy, connections, min_range);
    let mut plan = Vec::new();
    for object in input["objects"].as_array()? {
        let (size, critical) = (object["size"].as_u64()?, object["critical"].as_bool()?);
        for request in planner.plan(size, critical) {
            plan.push(json!({
                "object": object["id"],
                "connection": request.connection,
                "range": request.range.map(|range| [range.start, range.end - 1]),
            }));
        }
    }
    Some(json!({ "plan": plan }))
}
