//! The decisions in the log of a bundle's member equal those of the engine for the same events, in the format of
//! the shared vectors.

mod log;
mod mquic;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use marline_proto::congestion::slow_start::{HybridSlowStart, NoExit};
use marline_proto::congestion::{Algorithm, FixedWindow};
use marline_proto::coordination::bundle::{BundleConfig, Membership, MembershipId};
use marline_proto::observe::qlog::{Header, VantagePoint};
use marline_proto::observe::{Observer, QlogWriter};
use marline_proto::testing::{Conditions, Ends, Pair, PairConfig};
use marline_proto::{
    ConnectionInfo, Dir, Instant, MtuConfig, StreamId, TransportConfig, WriteError,
};
use serde_json::{Value, json};

use self::log::Log;

const MEMBERS: u64 = 3;
const MTU: u64 = 1200;
/// Bytes that each member sends.
const LENGTH: usize = 600_000;
const TIMEOUT: Duration = Duration::from_secs(120);
const ID: [u8; 16] = [0x5a; 16];

fn observer(logs: &Mutex<Vec<Log>>, info: &ConnectionInfo) -> Box<dyn Observer> {
    let log = Log::default();
    logs.lock().expect("no thread panicked").push(log.clone());
    let header = Header {
        title: "replay",
        vantage_point: VantagePoint {
            name: "server",
            side: info.side,
        },
        original_destination_connection_id: info.original_destination,
        reference: Instant::EPOCH,
        wall_clock: None,
    };
    Box::new(QlogWriter::new(log, &header))
}

/// The server's logs, as text, of three members that each send over a link with losses.
fn logs(seed: u64, rises: bool) -> Vec<String> {
    let logs: Arc<Mutex<Vec<Log>>> = Arc::default();
    let made = Arc::clone(&logs);
    let mut transport = TransportConfig {
        // As in the vectors, each event counts.
        bundle: Some(Arc::new(BundleConfig::published_every_event())),
        controller: Arc::new(Algorithm::NewReno),
        initial_window: Arc::new(FixedWindow { packets: 32 }),
        backoff: Some(0.7),
        mtu: MtuConfig {
            discover: false,
            ..MtuConfig::default()
        },
        ..TransportConfig::default()
    };
    transport.slow_start_exit = match rises {
        true => Arc::new(|| Box::new(HybridSlowStart::default())),
        false => Arc::new(|| Box::new(NoExit)),
    };
    let mut pair = Pair::with(PairConfig {
        server: transport,
        adjust_server: Box::new(move |server| {
            server.observer = Some(Arc::new(move |info| Some(observer(&made, info))));
        }),
        seed,
        ..PairConfig::default()
    });
    let mut conditions = Conditions {
        rate: Some(2_500_000),
        queue: 200_000,
        delay: Duration::from_millis(20),
        ..Conditions::default()
    };
    pair.network.set(conditions);
    pair.client_config.bundle = Some(Membership {
        id: MembershipId(ID),
        connections: MEMBERS,
    });
    let ends: Vec<_> = (0..MEMBERS).map(|_| pair.establish()).collect();
    conditions.loss = if rises { 0.0005 } else { 0.004 };
    pair.network.set(conditions);
    transfer(&mut pair, &ends);
    drop(pair);
    let logs = logs.lock().expect("no thread panicked");
    let texts = logs
        .iter()
        .map(|log| String::from_utf8(log.content()).expect("qlog is text"));
    texts.collect()
}

/// The stream of one member, from the server to the client.
struct Sending {
    ends: Ends,
    id: StreamId,
    sent: usize,
    received: usize,
}

fn transfer(pair: &mut Pair, ends: &[Ends]) {
    let mut streams: Vec<_> = ends
        .iter()
        .map(|&ends| Sending {
            ends,
            id: pair.server(ends.server).open(Dir::Uni).expect("it may"),
            sent: 0,
            received: 0,
        })
        .collect();
    let done = pair.drive_until(TIMEOUT, |pair| {
        let now = pair.now;
        for Sending {
            ends,
            id,
            sent,
            received,
        } in &mut streams
        {
            while *sent < LENGTH {
                match pair.server(ends.server).write(*id, &[7; 5000]) {
                    Ok(len) => *sent += len,
                    Err(WriteError::Blocked) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            while let Ok(Some(bytes)) = pair.client(ends.client).read(|| now, *id, usize::MAX) {
                *received += bytes.len();
            }
        }
        streams.iter().all(|stream| stream.received >= LENGTH)
    });
    assert!(done, "the transfers took too long");
}

/// The decisions in a log after all members have joined.
fn decisions(log: &str) -> Vec<Value> {
    let records = log.split('\u{1e}').filter(|record| !record.is_empty());
    records
        .map(|record| serde_json::from_str::<Value>(record).expect("a record is JSON"))
        .filter(|record| record["name"] == "marline:bundle_updated")
        .map(|record| record["data"].clone())
        .filter(|data| data["action"] != "split")
        .collect()
}

/// The decisions as a case of `mquic_engine`: its input, and the expected output.
fn case(decisions: &[Value]) -> (Value, Value) {
    let (mut events, mut steps) = (Vec::new(), Vec::new());
    for data in decisions {
        let mut windows = data["before"].clone();
        let kind = match data["trigger"].as_str() {
            Some("round") => "round",
            Some("loss" | "slow_start_exit") => "nfe",
            other => panic!("an event of no vector: {other:?}"),
        };
        let affected = data["affected"].as_u64().unwrap_or(0) as usize;
        // After an increase of the round-trip time in slow start, the engine backs off.
        if data["trigger"] == "slow_start_exit" && data["action"] != "none" {
            let window = windows[affected].as_f64().expect("windows are numbers");
            windows[affected] = json!(window * 0.7);
        }
        events.push(json!({ "type": kind, "conn": affected, "cwnds": windows }));
        steps.push(json!({
            "phase": match data["phase"].as_str() {
                Some("slow_start") => "ss",
                _ => "ca",
            },
            "action": match data["action"].as_str() {
                Some("synchronized" | "equalized") => "sync",
                Some("exited") => "exit_ss",
                other => other.expect("actions have names"),
            },
            "cwnds": data["after"],
        }));
    }
    let last = decisions.last().expect("something was lost");
    let input = json!({
        "n": MEMBERS,
        "growth": 1.0,
        "min_cwnd": 2 * MTU,
        "backoff": "reported",
        "events": events,
    });
    let expected = json!({
        "steps": steps,
        "gamma": last["gamma"],
        "nfe_count": last["fluctuations"],
    });
    (input, expected)
}

fn assert_agree(answer: &Value, expected: &Value) {
    assert_eq!(answer["nfe_count"], expected["nfe_count"]);
    let number = |value: &Value| value.as_f64().expect("a number");
    assert!((number(&answer["gamma"]) - number(&expected["gamma"])).abs() < 1e-9);
    let steps = |value: &Value| value["steps"].as_array().expect("a list").clone();
    assert_eq!(steps(answer).len(), steps(expected).len());
    for (step, logged) in steps(answer).iter().zip(&steps(expected)) {
        assert_eq!(step["phase"], logged["phase"], "{step} {logged}");
        assert_eq!(step["action"], logged["action"], "{step} {logged}");
        let windows = |value: &Value| value["cwnds"].as_array().expect("a list").clone();
        assert_eq!(windows(step).len(), windows(logged).len());
        for (window, logged) in windows(step).iter().zip(&windows(logged)) {
            // Logs have whole bytes.
            let error = (number(window) - number(logged)).abs();
            assert!(error <= 1.0, "{window}, in the log {logged}");
        }
    }
}

fn without_own(mut decision: Value) -> Value {
    let data = decision.as_object_mut().expect("an event has data");
    data.remove("own");
    decision
}

#[test]
fn the_test_vector_engine_repeats_the_decisions_of_a_log() {
    let mut seen = BTreeSet::new();
    for seed in 1..=6 {
        let logs = logs(seed, seed % 2 == 0);
        assert_eq!(logs.len() as u64, MEMBERS);
        let first = decisions(&logs[0]);
        for (own, log) in logs.iter().enumerate() {
            assert!(!log.contains(&"5a".repeat(3)), "the identifier was logged");
            let logged = decisions(log);
            assert!(logged.iter().all(|decision| decision["own"] == own));
            let logged = logged.into_iter().map(without_own);
            let expected = first.iter().cloned().map(without_own);
            assert!(logged.eq(expected), "members differ, seed {seed}");
        }
        let (input, expected) = case(&first);
        let answer = mquic::answer("mquic_engine", &input).expect("it is a case");
        assert_agree(&answer, &expected);
        for decision in first {
            let word = |key: &str| decision[key].as_str().unwrap_or_default().to_owned();
            seen.insert((word("trigger"), word("action")));
        }
    }
    for (trigger, action) in [
        ("loss", "synchronized"),
        ("loss", "exited"),
        ("loss", "none"),
        ("slow_start_exit", "synchronized"),
        ("round", "equalized"),
    ] {
        let pair = (trigger.to_owned(), action.to_owned());
        assert!(seen.contains(&pair), "{pair:?} with no seed: {seen:?}");
    }
}
