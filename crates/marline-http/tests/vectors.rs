//! Runs the shared test vectors on the assignment of the requests of fetches and page loads to
//! connections.

#[path = "../../../vectors/runner.rs"]
mod runner;

#[path = "vectors/pipes.rs"]
mod pipes;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::process::ExitCode;

use marline_http::client::{Alternation, Planner, SplitPolicy};
use serde_json::{Value, json};

fn main() -> ExitCode {
    runner::main(env!("CARGO_PKG_NAME"), answer)
}

fn answer(op: &str, input: &Value) -> Option<Value> {
    match op {
        "mquic_requests" => mquic_requests(input),
        "h2_parallel" => h2_parallel(input),
        "rr_pipes" | "cba_na" | "cba_srtt" | "cba_pipe_max" | "cba_burst" | "cba_alpha"
        | "cba_pick" | "od_decision" => pipes::answer(op, input),
        _ => None,
    }
}

fn h2_parallel(input: &Value) -> Option<Value> {
    let sessions = usize::try_from(input["connections"].as_u64()?).ok()?;
    let sessions = NonZeroUsize::new(sessions)?;
    let mut hosts: HashMap<String, Alternation> = HashMap::new();
    let mut assignments = Vec::new();
    for request in input["requests"].as_array()? {
        let (host, port) = (request["host"].as_str()?, request["port"].as_u64()?);
        let key = format!("{host}:{port}");
        let alternation = hosts.entry(key.clone());
        let assigned = alternation
            .or_insert_with(|| Alternation::new(sessions))
            .assign();
        assignments.push(json!({
            "key": key,
            "connection": assigned.index,
            "new": assigned.is_new,
        }));
    }
    Some(json!({ "assignments": assignments }))
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
