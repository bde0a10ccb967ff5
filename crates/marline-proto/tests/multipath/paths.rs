//! Path schedulers.

use std::time::Duration;

use marline_proto::scheduling::path::{
    Ecf, EcfConfig, EcfVariant, Hbes, HbesConfig, Lrf, PathScheduler, PathStatus, PathView, Plan,
    QueueModel, Rr, SaEcf, SaEcfConfig, StreamView, Turns, Work, expected_wait, reorder_buffer_lrf,
    reorder_buffer_rr,
};
use marline_proto::scheduling::stream::Sharing;
use marline_proto::{PathId, StreamId};
use serde_json::{Value, json};

use super::{by_id, seconds};

fn paths(input: &Value) -> Option<Vec<PathView>> {
    let paths = input["paths"].as_array()?.iter().map(|path| {
        Some(PathView {
            id: path_id(&path["id"])?,
            status: PathStatus::Available,
            smoothed_rtt: seconds(&path["rtt_s"]),
            rttvar: seconds(&path["rttvar_s"]).unwrap_or_default(),
            window: path["cwnd_bytes"].as_u64()?,
            in_flight: path["inflight_bytes"].as_u64()?,
            queued: path["queue_bytes"].as_u64().unwrap_or(0),
            mtu: 1450,
            rate: None,
        })
    });
    let mut paths: Vec<_> = paths.collect::<Option<_>>()?;
    paths.sort_by_key(|path| path.id);
    Some(paths)
}

fn path_id(value: &Value) -> Option<PathId> {
    value.as_u64()?.try_into().ok()
}

fn streams(input: &Value) -> Option<Vec<StreamView>> {
    let streams = input["streams"].as_array()?.iter().map(|stream| {
        Some(StreamView {
            id: StreamId::from(stream["id"].as_u64()?),
            remaining: stream["bytes_left"].as_u64()?,
            weight: stream["weight"].as_u64()?.try_into().ok()?,
            previous: None,
        })
    });
    streams.collect()
}

/// The plan for one stream of `remaining` bytes that was on path `previous`.
fn plan(
    scheduler: &mut dyn PathScheduler,
    paths: &[PathView],
    remaining: u64,
    previous: Option<PathId>,
) -> Plan {
    let stream = StreamView {
        id: StreamId::from(5),
        remaining,
        weight: 1,
        previous,
    };
    let work = Work {
        streams: &[stream],
        unsent: remaining,
        sharing: Sharing::Weighted,
    };
    scheduler.plan(paths, &work)
}

fn path(plan: Plan) -> Option<u32> {
    plan.path().map(|path| path.0)
}

pub(super) fn lrf_pick(input: &Value) -> Option<Value> {
    Some(json!({ "path": path(plan(&mut Lrf, &paths(input)?, 1, None)) }))
}

pub(super) fn rr_path(input: &Value) -> Option<Value> {
    let mut scheduler = Rr::after(path_id(&input["last_path"]));
    Some(json!({ "path": path(plan(&mut scheduler, &paths(input)?, 1, None)) }))
}

fn ecf(input: &Value) -> Option<EcfConfig> {
    Some(EcfConfig {
        beta: input["beta"].as_f64()?,
        variant: match input["variant"].as_str()? {
            "linux" => EcfVariant::Linux,
            "paper" => EcfVariant::Paper,
            _ => return None,
        },
    })
}

pub(super) fn ecf_pick(input: &Value) -> Option<Value> {
    let mut scheduler = Ecf::resume(ecf(input)?, input["waiting"] == 1);
    let plan = plan(
        &mut scheduler,
        &paths(input)?,
        input["k_bytes"].as_u64()?,
        None,
    );
    Some(json!({
        "path": path(plan),
        "waiting": u8::from(scheduler.is_waiting()),
    }))
}

pub(super) fn saecf_bytes(input: &Value) -> Option<Value> {
    let streams = streams(input)?;
    let turns = Turns::new(&streams, input["unit_bytes"].as_u64()?);
    let cap = input["cap"].as_bool()?;
    let bytes = streams
        .iter()
        .map(|stream| turns.bytes_until_complete(stream, cap));
    Some(json!({ "k": bytes.collect::<Vec<_>>() }))
}

pub(super) fn saecf_pick(input: &Value) -> Option<Value> {
    let streams = streams(input)?;
    let waiting = input["streams"].as_array()?.iter();
    let waiting = waiting.filter(|stream| stream["waiting"] == 1);
    let waiting = waiting.filter_map(|stream| stream["id"].as_u64().map(StreamId::from));
    let config = SaEcfConfig {
        ecf: ecf(input)?,
        cap: input["cap"].as_bool()?,
        unit: Some(input["unit_bytes"].as_u64()?),
    };
    let mut scheduler = SaEcf::resume(config, waiting);
    let work = Work {
        streams: &streams,
        unsent: streams.iter().map(|stream| stream.remaining).sum(),
        sharing: Sharing::Weighted,
    };
    let plan = scheduler.plan(&paths(input)?, &work);
    Some(json!({
        "path": path(plan),
        "stream": plan.stream().map(u64::from),
        "waiting": by_id(streams.iter().map(|stream| {
            (u64::from(stream.id), json!(u8::from(scheduler.is_waiting(stream.id))))
        })),
    }))
}

fn hbes(input: &Value) -> Option<Hbes> {
    Some(Hbes::new(HbesConfig {
        queue_model: match input["queue_model"].as_str() {
            None | Some("paper") => QueueModel::Paper,
            Some("free_window") => QueueModel::FreeWindow,
            Some(_) => return None,
        },
        packet: Some(input["packet_bytes"].as_u64()?),
    }))
}

pub(super) fn saps_pick(input: &Value) -> Option<Value> {
    let (mut scheduler, paths) = (hbes(input)?, paths(input)?);
    let plan = plan(&mut scheduler, &paths, 1, path_id(&input["last_path"]));
    let arrivals = paths.iter().filter(|_| plan != Plan::Wait);
    let arrivals = arrivals.filter_map(|path| Some((path.id.0, json!(scheduler.arrival(path)?))));
    Some(json!({ "path": path(plan), "arrival_s": by_id(arrivals) }))
}

pub(super) fn saps_sequence(input: &Value) -> Option<Value> {
    let (mut scheduler, mut paths) = (hbes(input)?, paths(input)?);
    let bytes = input["packet_bytes"].as_u64()?;
    let mut previous = path_id(&input["last_path"]);
    let mut sequence = Vec::new();
    for _ in 0..input["packets"].as_u64()? {
        let plan = plan(&mut scheduler, &paths, bytes, previous);
        sequence.push(path(plan));
        let Some(chosen) = plan.path() else {
            break;
        };
        paths.iter_mut().find(|path| path.id == chosen)?.take(bytes);
        previous = Some(chosen);
    }
    let of = |bytes: fn(&PathView) -> u64| {
        by_id(paths.iter().map(|path| (path.id.0, json!(bytes(path)))))
    };
    Some(json!({
        "sequence": sequence,
        "queue_bytes": of(|path| path.queued),
        "inflight_bytes": of(|path| path.in_flight),
    }))
}

pub(super) fn analysis(input: &Value) -> Option<Value> {
    let number = |key: &str| input[key].as_f64();
    let millis = |key: &str| number(key).map(|millis| Duration::from_secs_f64(millis / 1e3));
    let (window, fast, slow) = (number("cwnd1")?, millis("rtt1_ms")?, millis("rtt2_ms")?);
    Some(json!({
        "rr": reorder_buffer_rr(window, fast, slow),
        "lrf": reorder_buffer_lrf(window, fast, slow),
        "expected_wait": expected_wait(number("m")?, number("n")?),
    }))
}
