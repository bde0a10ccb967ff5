//! The operations of the shared vectors on the engine of a bundle.

use marline_proto::coordination::bundle::{
    BundleConfig, DecisionAction, EnginePhase, Fluctuation, LossBasedConfig, LossBasedEngine,
    equalize_rates, next_growth, split_initial_window,
};
use serde_json::{Value, json};

/// The answer to an operation and its input; `None` if they are invalid.
pub(crate) fn answer(op: &str, input: &Value) -> Option<Value> {
    match op {
        "mquic_split_iw" => split_iw(input),
        "mquic_gamma" => gamma(input),
        "mquic_engine" => bundle_engine(input),
        "mquic_bbr_sync" => bbr_sync(input),
        _ => None,
    }
}

fn split_iw(input: &Value) -> Option<Value> {
    let windows = split_initial_window(input["iw_packets"].as_u64()?, input["n"].as_u64()?);
    Some(json!({ "windows": windows.collect::<Vec<_>>() }))
}

/// Number of events after which a bundle still in slow start is assumed to stay there.
const MANY: u64 = 10_000;

fn gamma(input: &Value) -> Option<Value> {
    let members = usize::try_from(input["n"].as_u64()?).ok()?;
    let number = |key: &str| input[key].as_f64();
    let (backoff, growth) = (number("beta")?, number("affected_growth")?);
    let mut engine = LossBasedEngine::new(LossBasedConfig {
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
        members,
        backoff,
        slow_start_growth: number("gamma0")?,
    };
    let exit = (1..=MANY).find(|_| {
        let action = engine.on_fluctuation(&fluctuation, &mut vec![100.0; members]);
        action == DecisionAction::Exited
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
    let mut engine = LossBasedEngine::new(LossBasedConfig {
        affected_growth: or("growth", default.affected_growth),
        imbalance: or("ca_threshold", default.imbalance),
        floor: or("min_cwnd", default.floor),
        ..default
    });
    let published = BundleConfig::published();
    let (backoff, slow_start_growth) = (published.backoff?, published.slow_start_growth?);
    let members = usize::try_from(input["n"].as_u64()?).ok()?;
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
                        members,
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
                EnginePhase::SlowStart => "ss",
                EnginePhase::CongestionAvoidance => "ca",
            },
            "action": match action {
                DecisionAction::Synchronized | DecisionAction::Equalized => "sync",
                DecisionAction::Exited => "exit_ss",
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
