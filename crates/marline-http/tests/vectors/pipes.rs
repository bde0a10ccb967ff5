//! Vectors of MultiPipe.

use marline::settings::Named;
use marline_http::pipes::cba::{
    BurstMode, Combine, Conditions, Creation, CreationDecision, HighRule, Mapping, MarginUnit,
    MaximumRule, Mean, NetworkAwareness, ObjectProgress, Pick, PipeCounts, PipeLoad, Request, Srtt,
    available_burst, creation, margin, maximum, pick,
};
use marline_http::pipes::{RoundRobin, RrConfig};
use serde_json::{Value, json};

pub(crate) fn answer(op: &str, input: &Value) -> Option<Value> {
    match op {
        "rr_pipes" => rr_pipes(input),
        "cba_na" => cba_na(input),
        "cba_srtt" => cba_srtt(input),
        "cba_pipe_max" => cba_pipe_max(input),
        "cba_burst" => cba_burst(input),
        "cba_alpha" => cba_alpha(input),
        "cba_pick" => cba_pick(input),
        "od_decision" => od_decision(input),
        _ => None,
    }
}

/// The value of `T` with the name in `value`.
fn named<T: Named>(value: &Value) -> Option<T> {
    let name = value.as_str()?;
    let word = T::WORDS.iter().find(|word| word.name == name)?;
    Some(word.value)
}

fn size(value: &Value) -> Option<usize> {
    value.as_u64()?.try_into().ok()
}

fn numbers(value: &Value) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(Value::as_f64).collect()
}

fn rr_pipes(input: &Value) -> Option<Value> {
    let config = RrConfig {
        pipes: size(&input["p_max"])?,
    };
    let mut rr = RoundRobin::resume(config, input["id_curr"].as_u64()?);
    let assignments: Vec<_> = (0..input["count"].as_u64()?)
        .map(|_| {
            let assigned = rr.assign();
            json!({"object": assigned.object, "pipe": assigned.pipe, "new": assigned.is_new})
        })
        .collect();
    Some(json!({ "assignments": assignments }))
}

fn cba_na(input: &Value) -> Option<Value> {
    let mut radio = NetworkAwareness::new(named::<Mean>(&input["mode"])?);
    let samples = numbers(&input["sinr_db"])?.into_iter();
    let na: Vec<_> = samples.map(|sinr| radio.on_sample(sinr)).collect();
    Some(json!({ "na": na }))
}

fn cba_srtt(input: &Value) -> Option<Value> {
    let mut srtt = Srtt::new(input["gamma"].as_f64()?);
    let samples = numbers(&input["rtt_ms"])?.into_iter();
    let srtt: Vec<_> = samples.map(|rtt| srtt.on_sample(rtt)).collect();
    Some(json!({ "srtt": srtt }))
}

fn cba_pipe_max(input: &Value) -> Option<Value> {
    let rule = MaximumRule {
        combine: named::<Combine>(&input["combine"])?,
        mapping: named::<Mapping>(&input["mapping"])?,
    };
    let conditions = Conditions {
        na_db: input["na_db"].as_f64(),
        srtt_ms: input["srtt_ms"].as_f64(),
        loss: input["loss"].as_f64(),
    };
    let maximum = maximum(rule, conditions);
    Some(json!({
        "na": maximum.na,
        "ca": maximum.ca,
        "score": maximum.score,
        "pipe_max": maximum.pipes,
    }))
}

fn cba_burst(input: &Value) -> Option<Value> {
    let progress = |object: &Value| {
        Some(ObjectProgress {
            size: object["size"].as_u64()?,
            received: object["received"].as_u64()?,
            done: object["done"].as_bool()?,
        })
    };
    let objects: Option<Vec<_>> = input["objects"].as_array()?.iter().map(progress).collect();
    let mode = named::<BurstMode>(&input["mode"])?;
    let available = available_burst(input["buffer_bytes"].as_u64()?, mode, &objects?);
    Some(json!({ "available": available }))
}

fn cba_alpha(input: &Value) -> Option<Value> {
    let margin = margin(PipeLoad {
        available: input["available"].as_i64()?,
        arrival_pps: input["lambda_pps"].as_f64()?,
        service_pps: input["mu_pps"].as_f64()?,
        packet_bytes: input["packet_bytes"].as_f64()?,
        beta: input["beta"].as_f64()?,
        unit: named::<MarginUnit>(&input["unit"])?,
    });
    Some(json!({
        "rho": margin.utilization,
        "wait_s": margin.wait_s,
        "lq_packets": margin.queue_packets,
        "alpha": margin.alpha,
        "usable": margin.is_usable(),
    }))
}

fn cba_pick(input: &Value) -> Option<Value> {
    let alphas: Vec<_> = input["alphas"]
        .as_array()?
        .iter()
        .map(Value::as_f64)
        .collect();
    let request = Request {
        priority: input["priority"].as_u64()?.try_into().ok()?,
        bytes: input["object_bytes"].as_u64(),
        foreground: input["foreground"].as_bool()?,
    };
    let rule = named::<HighRule>(&input["high_rule"])?;
    Some(
        match pick(&alphas, size(&input["pipe_max"])?, request, rule) {
            Pick::Use(pipe) => json!({"action": "use", "pipe": pipe}),
            Pick::Create => json!({"action": "create", "pipe": alphas.len()}),
        },
    )
}

fn od_decision(input: &Value) -> Option<Value> {
    let counts = PipeCounts {
        created: size(&input["created"])?,
        spare: size(&input["backups"])?,
        most: size(&input["pipe_max"])?,
    };
    let need = input["need_new"].as_bool()?;
    let CreationDecision {
        establish,
        promote,
        precreate,
    } = creation(named::<Creation>(&input["mode"])?, counts, need);
    Some(json!({
        "establish": u8::from(establish),
        "promote": u8::from(promote),
        "precreate": u8::from(precreate),
        "wait_rtts": u8::from(establish),
    }))
}
