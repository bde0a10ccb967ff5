//! Runs the shared test vectors through the functions that routers of the laboratory call.

#[path = "../../../vectors/runner.rs"]
mod runner;

use std::process::ExitCode;

use marline_link::{EcmpHash, FiveTuple};
use serde_json::{Value, json};

fn main() -> ExitCode {
    runner::main(env!("CARGO_PKG_NAME"), answer)
}

fn answer(op: &str, input: &Value) -> Option<Value> {
    match op {
        "ecmp_path" => ecmp_path(input),
        _ => None,
    }
}

fn ecmp_path(input: &Value) -> Option<Value> {
    let number = |key: &str| input[key].as_u64();
    let flow = FiveTuple {
        source: input["sa"].as_str()?.parse().ok()?,
        destination: input["da"].as_str()?.parse().ok()?,
        source_port: number("sp")?.try_into().ok()?,
        destination_port: number("dp")?.try_into().ok()?,
        protocol: number("pt")?.try_into().ok()?,
    };
    let paths = number("paths")?.try_into().ok()?;
    Some(json!({ "path": EcmpHash::Xor.path(&flow, paths) }))
}
