//! Runs the shared test vectors through the policies that the stack calls.

#[path = "../../../vectors/runner.rs"]
mod runner;

use std::process::ExitCode;
use std::time::Duration;

use marline_proto::Instant;
use marline_proto::ack::{AckDecision, AckPolicy, Decimation, EveryN, ReceivedView};
use marline_proto::congestion::slow_start::{HybridConfig, Round};
use marline_proto::coordination::bundle::{
    BundleConfig, Fluctuation, LossBased, LossBasedConfig, equalize_rates, next_growth,
    split_initial_window,
};
use marline_proto::observe::events::{BundleAction, BundlePhase};
use marline_proto::recovery::LossDetector;
use marline_proto::recovery::loss::{Fixed, PacketView, Thresholds, Verdict};
use marline_proto::samples::RttView;
use serde_json::{Value, json};

fn main() -> ExitCode {
    runner::main(env!("CARGO_PKG_NAME"), answer)
}

fn answer(op: &str, input: &Value) -> Option<Value> {
    match op {
        "hystart_exit" => hystart_exit(input),
        "time_loss" => time_loss(input),
        "ack_now" => ack_now(input),
        "mquic_split_iw" => split_iw(input),
        "mquic_gamma" => gamma(input),
        "mquic_engine" => bundle_engine(input),
        "mquic_bbr_sync" => bbr_sync(input),
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

fn split_iw(input: &Value) -> Option<Value> {
    let windows = split_initial_window(input["iw_packets"].as_u64()?, input["n"].as_u64()?);
    Some(json!({ "windows": windows.collect::<Vec<_>>() }))
}

/// Events after which a bundle that is still in slow start stays there.
const MANY: u64 = 10_000;

fn gamma(input: &Value) -> Option<Value> {
    let members = usize::try_from(input["n"].as_u64()?).ok()?;
    let number = |key: &str| input[key].as_f64();
    let (backoff, growth) = (number("beta")?, number("affected_growth")?);
    let mut engine = LossBased::new(LossBasedConfig {
        affected_growth: growth,
        avoidance_growth: number("delta")?,
        ..engine_config()
    });
    let mut previous = number("gamma0")?;
    let gammas: Vec<f64> = (0..input["count"].as_u64()?)
        .map(|_| {
            previous = next_growth(previous, members, backoff, growth);
            previous
        })
        .collect();
    let fluctuation = Fluctuation {
        affected: 0,
        backoff,
        slow_start_growth: number("gamma0")?,
    };
    let exit = (1..=MANY).find(|_| {
        let action = engine.on_fluctuation(&fluctuation, &mut vec![100.0; members]);
        action == BundleAction::Exited
    });
    Some(json!({ "gammas": gammas, "exit_nfe": exit }))
}

fn engine_config() -> LossBasedConfig {
    let published = BundleConfig::published();
    LossBasedConfig {
        affected_growth: published.affected_growth,
        avoidance_growth: published.avoidance_growth,
        imbalance: published.imbalance,
        floor: published.floor_packets as f64,
        sync_windows: true,
        sync_state: true,
    }
}

fn bundle_engine(input: &Value) -> Option<Value> {
    let default = engine_config();
    let or = |key: &str, default: f64| input[key].as_f64().unwrap_or(default);
    let mut engine = LossBased::new(LossBasedConfig {
        affected_growth: or("growth", default.affected_growth),
        imbalance: or("ca_threshold", default.imbalance),
        floor: or("min_cwnd", default.floor),
        ..default
    });
    let published = BundleConfig::published();
    let (backoff, slow_start_growth) = (published.backoff?, published.slow_start_growth?);
    let mut steps = Vec::new();
    for event in input["events"].as_array()? {
        let numbers = event["cwnds"].as_array()?.iter().map(Value::as_f64);
        let mut windows: Vec<f64> = numbers.collect::<Option<_>>()?;
        let action = match event["type"].as_str()? {
            "nfe" => {
                let affected = usize::try_from(event["conn"].as_u64()?).ok()?;
                if input["backoff"] == "apply" {
                    windows[affected] *= backoff;
                }
                engine.on_fluctuation(
                    &Fluctuation {
                        affected,
                        backoff,
                        slow_start_growth,
                    },
                    &mut windows,
                )
            }
            "round" => engine.on_round(&mut windows),
            _ => return None,
        };
        steps.push(json!({
            "phase": match engine.phase() {
                BundlePhase::SlowStart => "ss",
                BundlePhase::CongestionAvoidance => "ca",
            },
            "action": match action {
                BundleAction::Synchronized | BundleAction::Equalized => "sync",
                BundleAction::Exited => "exit_ss",
                _ => "none",
            },
            "cwnds": windows,
        }));
    }
    Some(json!({
        "steps": steps,
        "gamma": engine.gamma().unwrap_or(slow_start_growth),
        "nfe_count": engine.events(),
    }))
}

fn bbr_sync(input: &Value) -> Option<Value> {
    let rates = input["rates"].as_array()?;
    let mut rates: Vec<Option<f64>> = rates.iter().map(Value::as_f64).collect();
    let synced = equalize_rates(&mut rates, input["threshold"].as_f64()?);
    Some(json!({ "synced": synced, "rates": rates }))
}
