//! Runs the test vectors of this crate's operations.

#[path = "../../../vectors/runner.rs"]
mod runner;

use std::net::SocketAddr;
use std::process::ExitCode;

use marline_link::ecmp::{self, EcmpHash};
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
    let end = |address: &str, port: &str| {
        let ip = input[address].as_str()?.parse().ok()?;
        Some(SocketAddr::new(ip, number(port)?.try_into().ok()?))
    };
    let protocol = number("pt")?.try_into().ok()?;
    let flow = EcmpHash::Xor.of(end("sa", "sp")?, end("da", "dp")?, protocol);
    let paths = number("paths")?.try_into().ok()?;
    Some(json!({ "path": ecmp::path(flow, paths) }))
}
