//! The operation of the shared vectors on initial windows learned from earlier connections.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use marline_proto::Instant;
use marline_proto::congestion::{ConnectionKind, InitialWindow};
use marline_proto::coordination::history::{
    Average, HistoryConfig, HistoryWindow, MemoryStore, PathHistory, PathSample, PathScope,
    SampleEvent, StoreLimits, ZeroRtt,
};
use serde_json::{Value, json};

/// Default window, in bytes.
#[derive(Debug)]
struct Default(u64);

impl InitialWindow for Default {
    fn window(&self, _kind: &ConnectionKind<'_>) -> u64 {
        self.0
    }
}

/// The answer to an input; `None` if the input is invalid.
pub(crate) fn answer(input: &Value) -> Option<Value> {
    let config = &input["config"];
    let store = MemoryStore::new(StoreLimits {
        lifetime: Duration::MAX,
        ..StoreLimits::default()
    });
    let default = Default(config["default"].as_u64()?);
    let history = HistoryWindow::new(settings(config)?, Arc::new(store), Arc::new(default));
    let mut peers = Vec::new();
    let results = input["events"].as_array()?.iter().map(|event| {
        let peer = address(&mut peers, event["peer"].as_str()?);
        happen(&history, event, peer)
    });
    let results = results.collect::<Option<Vec<_>>>()?;
    Some(json!({ "results": results }))
}

fn settings(config: &Value) -> Option<HistoryConfig> {
    Some(HistoryConfig {
        average: match config["average"].as_str()? {
            "mean" => Average::Mean,
            "window" => Average::Window(config["window"].as_u64()?.try_into().ok()?),
            "ewma" => Average::Ewma {
                weight: config["weight"].as_f64().unwrap_or(0.125),
            },
            _ => return None,
        },
        scope: match config["scope"].as_str()? {
            "peer" => PathScope::Address,
            "global" => PathScope::Global,
            _ => return None,
        },
        zero_rtt: match config["zero_rtt"].as_str()? {
            "carry" => ZeroRtt::Carry,
            "history" => ZeroRtt::History,
            "default" => ZeroRtt::Default,
            _ => return None,
        },
        cap: config["cap"].as_u64(),
        ..HistoryConfig::published()
    })
}

/// A different address for each name.
fn address<'a>(peers: &mut Vec<&'a str>, name: &'a str) -> SocketAddr {
    let known = peers.iter().position(|peer| *peer == name);
    let n = known.unwrap_or(peers.len());
    if known.is_none() {
        peers.push(name);
    }
    SocketAddr::from((Ipv4Addr::from_bits(0x0a00_0000 + n as u32), 443))
}

fn happen(history: &HistoryWindow, event: &Value, peer: SocketAddr) -> Option<Value> {
    let (resumed, reported) = match event["type"].as_str()? {
        "full_handshake" => (false, None),
        "zero_rtt" => (true, Some(SampleEvent::Resumed)),
        "close" => (false, Some(SampleEvent::Closed)),
        _ => return None,
    };
    let kind = ConnectionKind {
        now: Instant::EPOCH,
        peer,
        server_name: None,
        resumed,
        max_datagram_size: 1350,
    };
    let Some(reported) = reported else {
        return Some(json!({ "initial_cwnd": history.initial_window(&kind) }));
    };
    if !event["cwnd"].is_null() {
        history.observe(
            &kind,
            &PathSample {
                event: reported,
                window: event["cwnd"].as_u64()?,
                initial_window: 0,
                rtt: Duration::from_millis(50),
                delivered: u64::MAX,
                app_limited: false,
                lost_at_first: false,
                model: None,
            },
        );
    }
    let average = history.average(&kind);
    Some(match reported {
        SampleEvent::Closed => json!({ "average": average }),
        SampleEvent::Resumed => json!({
            "average": average,
            "initial_cwnd": history.initial_window(&kind),
        }),
    })
}
