//! Runs the shared test vectors through the policies that the stack calls.
//!
//! `MARLINE_VECTORS` names the directory; without it, the project's own copy is used. An operation
//! that `vectors/owners.json` does not list is an error, and so is a listed one of this crate that
//! nothing here runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use marline_proto::Instant;
use marline_proto::ack::{AckDecision, AckPolicy, Decimation, EveryN, ReceivedView};
use marline_proto::congestion::slow_start::{HybridConfig, Round};
use marline_proto::recovery::LossDetector;
use marline_proto::recovery::loss::{Fixed, PacketView, Thresholds, Verdict};
use marline_proto::samples::RttView;
use serde_json::{Value, json};

type Error = Box<dyn std::error::Error>;

/// This crate's name in the list of owners.
const CRATE: &str = env!("CARGO_PKG_NAME");

fn main() -> ExitCode {
    match run() {
        Ok(tally) => {
            let later = tally.later.values().sum::<usize>();
            let names: Vec<_> = tally.later.keys().map(String::as_str).collect();
            println!("{CRATE}: {later} left to later work ({})", names.join(", "));
            println!("vectors: {} passed, {} failed", tally.passed, tally.failed);
            ExitCode::from(u8::from(tally.failed > 0))
        }
        Err(error) => {
            println!("{CRATE}: {error}");
            println!("vectors: 0 passed, 1 failed");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    /// Cases that no code runs yet, by what brings it.
    later: BTreeMap<String, usize>,
}

fn run() -> Result<Tally, Error> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let owners = read(&own.join("owners.json"))?;
    let directory = std::env::var_os("MARLINE_VECTORS")
        .filter(|dir| !dir.is_empty())
        .map_or(own, PathBuf::from);
    let mut files = std::fs::read_dir(&directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<BTreeSet<_>, Error>>()?;
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
            && path.file_name().is_none_or(|name| name != "owners.json")
    });

    let mut tally = Tally::default();
    for file in files {
        let set = read(&file)?;
        let tolerance = set["relative_tolerance"].as_f64().unwrap_or(1e-9);
        for case in set["cases"].as_array().into_iter().flatten() {
            check(case, &owners, tolerance, &mut tally);
        }
    }
    Ok(tally)
}

fn read(path: &Path) -> Result<Value, Error> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?)
}

/// Runs one case, if this crate owns it.
fn check(case: &Value, owners: &Value, tolerance: f64, tally: &mut Tally) {
    let op = case["op"].as_str().unwrap_or_default();
    let owner = &owners[op];
    if let Some(later) = owner["later"].as_str() {
        *tally.later.entry(later.to_owned()).or_default() += 1;
        return;
    }
    let failure = match owner["crate"].as_str() {
        Some(CRATE) => match answer(op, &case["input"]) {
            Some(actual) if agrees(&actual, &case["expected"], tolerance) => None,
            Some(actual) => Some(format!("expected {}, is {actual}", case["expected"])),
            None => Some("input not understood".to_owned()),
        },
        Some(_) => return,
        None => Some(format!("nobody owns `{op}`")),
    };
    match failure {
        None => tally.passed += 1,
        Some(failure) => {
            tally.failed += 1;
            println!("{}: {failure}", case["id"].as_str().unwrap_or("?"));
        }
    }
}

/// Whether two values are the same, numbers up to `tolerance` of the larger.
fn agrees(a: &Value, b: &Value, tolerance: f64) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= tolerance * a.abs().max(b.abs()),
            _ => a == b,
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agrees(a, b, tolerance))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| agrees(a, b, tolerance)))
        }
        _ => a == b,
    }
}

fn answer(op: &str, input: &Value) -> Option<Value> {
    match op {
        "hystart_exit" => hystart_exit(input),
        "time_loss" => time_loss(input),
        "ack_now" => ack_now(input),
        _ => None,
    }
}

fn hystart_exit(input: &Value) -> Option<Value> {
    let config = HybridConfig {
        factor: input["factor"].as_f64()?,
        min_rise: millis(&input["min_ms"]).unwrap_or_default(),
        max_rise: millis(&input["max_ms"]),
        min_samples: input["min_samples"].as_u64()?.try_into().ok()?,
        low_window: input["low_window"].as_u64()?,
    };
    let round = Round {
        session_min: millis(&input["session_min_ms"])?,
        round_min: millis(&input["round_min_ms"])?,
        samples: input["samples"].as_u64()?.try_into().ok()?,
        window_packets: input["cwnd_packets"].as_u64()?,
    };
    Some(json!({
        "threshold_ms": config.threshold(&round).map(to_millis),
        "exit": config.exits(&round),
    }))
}

fn time_loss(input: &Value) -> Option<Value> {
    let detector = Fixed::new(
        "vector",
        Thresholds {
            packets: None,
            patience: input["factor"].as_f64()?,
            granularity: Duration::ZERO,
        },
    );
    let smoothed = millis(&input["srtt_ms"])?;
    let rtt = RttView {
        latest: millis(&input["latest_ms"])?,
        smoothed,
        min: smoothed,
        variance: Duration::ZERO,
    };
    let packet = PacketView {
        packets_after: u64::from(input["later_acked"].as_bool()?),
        sent_at: Instant::EPOCH + millis(&input["sent_ms"])?,
    };
    let deadline = packet.sent_at + detector.time_threshold(&rtt);
    let verdict = detector.is_lost(&packet, &rtt, Instant::EPOCH + millis(&input["now_ms"])?);
    Some(json!({
        "deadline_ms": to_millis(deadline - Instant::EPOCH),
        "lost": matches!(verdict, Verdict::Lost(_)),
    }))
}

fn ack_now(input: &Value) -> Option<Value> {
    let mut policy: Box<dyn AckPolicy> = match input["mode"].as_str()? {
        "tcp" => Box::new(EveryN::default()),
        "decimation" => Box::new(Decimation {
            start_after: input["start_after"].as_u64()?,
            rtt_fraction: input["rtt_fraction"].as_f64()?,
            ..Decimation::PLAIN
        }),
        _ => return None,
    };
    let number = input["total_received"].as_u64()?;
    let decision = policy.on_packet(&ReceivedView {
        now: Instant::EPOCH + millis(&input["oldest_wait_ms"])?,
        number,
        largest: number,
        largest_acked: None,
        smallest_missing: None,
        unacked: input["unacked"].as_u64()?,
        oldest_unacked_at: Instant::EPOCH,
        total_received: number,
        out_of_order: false,
        ce: false,
        min_rtt: millis(&input["min_rtt_ms"])?,
    });
    Some(json!({ "ack": decision == AckDecision::Now }))
}

fn millis(value: &Value) -> Option<Duration> {
    value
        .as_f64()
        .map(|millis| Duration::from_nanos((millis * 1e6).round() as u64))
}

fn to_millis(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}
