//! Runs the test vectors of this crate's operations.

#[path = "../../../vectors/runner.rs"]
mod runner;

use std::process::ExitCode;

use marline_lab::features::{PacketEvent, PhaseSince, Trace, TransferPhase};
use marline_lab::stats::Dispersion;
use serde_json::{Map, Value, json};

fn main() -> ExitCode {
    runner::main(env!("CARGO_PKG_NAME"), answer)
}

fn answer(op: &str, input: &Value) -> Option<Value> {
    match op {
        "idi" => idi(input),
        "features" => features(input),
        _ => None,
    }
}

fn idi(input: &Value) -> Option<Value> {
    let index = Dispersion {
        window: input["n"].as_u64()?.try_into().ok()?,
        overlapping: input["overlapping"].as_bool()?,
        of_sample: input["ddof"].as_u64()? == 1,
    };
    Some(json!({ "j": index.of(&numbers(&input["intervals"])?) }))
}

fn features(input: &Value) -> Option<Value> {
    let trace = &input["trace"];
    let phases = trace["states"].as_array()?.iter().map(|state| {
        let name = match state["state"].as_str()? {
            "app_limited" => "application_limited",
            name => name,
        };
        Some(PhaseSince {
            phase: TransferPhase::of(name),
            at_us: state["t_us"].as_f64()?,
        })
    });
    let trace = Trace {
        sent: passages(&trace["sent"])?,
        received: passages(&trace["received"])?,
        acks: trace["acks"].as_u64()?,
        windows: numbers(&trace["cwnd"])?,
        phases: phases.collect::<Option<_>>()?,
        end_us: trace["end_us"].as_f64()?,
    };
    let features = trace.features(input["idi_n"].as_u64()?.try_into().ok()?);
    let named = features.iter();
    let named = named.map(|feature| (feature.name.to_owned(), json!(feature.value)));
    Some(Value::Object(named.collect::<Map<_, _>>()))
}

fn passages(packets: &Value) -> Option<Vec<PacketEvent>> {
    let packets = packets.as_array()?.iter().map(|packet| {
        Some(PacketEvent {
            number: packet["id"].as_u64()?,
            at_us: packet["t_us"].as_f64()?,
        })
    });
    packets.collect()
}

fn numbers(values: &Value) -> Option<Vec<f64>> {
    values.as_array()?.iter().map(Value::as_f64).collect()
}
