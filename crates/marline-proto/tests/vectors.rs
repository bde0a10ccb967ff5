//! Runs the shared test vectors with the policies of the stack.

#[path = "../../../vectors/runner.rs"]
mod runner;

mod history;
mod mquic;
mod multipath;

use std::process::ExitCode;
use std::time::Duration;

use marline_proto::ack::{AckDecision, AckPolicy, Decimation, EveryN, ReceivedView};
use marline_proto::congestion::slow_start::{HybridConfig, Round};
use marline_proto::recovery::LossDetector;
use marline_proto::recovery::loss::{Fixed, PacketView, Thresholds, Verdict};
use marline_proto::samples::RttView;
use marline_proto::{Instant, QuicLbFormat};
use serde_json::{Value, json};

fn main() -> ExitCode {
    runner::main(env!("CARGO_PKG_NAME"), answer)
}

fn answer(op: &str, input: &Value) -> Option<Value> {
    match op {
        "hystart_exit" => hystart_exit(input),
        "time_loss" => time_loss(input),
        "ack_now" => ack_now(input),
        "history_iw" => history::answer(input),
        "quic_lb_server" => quic_lb_server(input),
        _ => mquic::answer(op, input).or_else(|| multipath::answer(op, input)),
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

/// The server that a balancer reads from a connection ID.
fn quic_lb_server(input: &Value) -> Option<Value> {
    let len = |key: &str| usize::try_from(input[key].as_u64()?).ok();
    let key = match &input["key"] {
        Value::Null => None,
        key => Some(bytes(key)?.try_into().ok()?),
    };
    let config = input["config"].as_u64()?.try_into().ok()?;
    let format = QuicLbFormat::new(config, len("server_id_len")?, len("nonce_len")?, key).ok()?;
    let server_id = format.server_id(&bytes(&input["id"])?);
    Some(json!({ "server_id": server_id.map(|id| format!("{id:?}")) }))
}

fn bytes(hex: &Value) -> Option<Vec<u8>> {
    let digits = hex.as_str()?.as_bytes().chunks(2);
    let bytes = digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok());
    bytes.collect()
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
        adjusted: millis(&input["latest_ms"])?,
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
