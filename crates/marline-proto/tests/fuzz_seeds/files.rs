//! Seeds of files written by people and programs: qlog, configuration, experiments.

use std::fs;
use std::path::PathBuf;

use super::{MAX_LEN, Seeds};

/// Every layout of qlog.
pub(super) fn qlogs(seeds: &mut Seeds) {
    let header = r#"{"file_schema":"urn:ietf:params:qlog:file:sequential","title":"T","trace":{"common_fields":{"group_id":"ab","tuple":"7","time_format":"relative_to_epoch"},"vantage_point":{"type":"client"}}}"#;
    let events = [
        r#"{"time":1.5,"name":"quic:packet_sent","data":{"header":{"packet_number":3},"raw":{"length":1200}}}"#,
        r#"{"time":2,"tuple":"1","name":"quic:recovery_metrics_updated","data":{"smoothed_rtt":20.5,"congestion_window":12000,"bytes_in_flight":2400}}"#,
        r#"{"time":3,"name":"quic:packet_lost","data":{"trigger":"time_threshold"}}"#,
        r#"{"time":4,"name":"quic:congestion_state_updated","data":{"old":"slow_start","new":"recovery"}}"#,
    ];
    let sequence: String = [header]
        .into_iter()
        .chain(events)
        .map(|record| format!("\u{1e}{record}\n"))
        .collect();
    let lines = format!("{header}\n{}\n", events.join("\n"));
    let document = format!(
        r#"{{"qlog_version":"0.3","traces":[{{"common_fields":{{"time_format":"delta"}},"events":[{}]}}]}}"#,
        events.join(",")
    );
    let columns = r#"{"traces":[{"configuration":{"time_units":"us"},"event_fields":["relative_time","category","event_type","data"],"events":[[10,"transport","packet_sent",{}],["20","recovery","metrics_updated",{"cwnd":1}]]}]}"#;
    for (name, text) in [
        ("sequence", sequence),
        ("lines", lines),
        ("document", document),
        ("columns", columns.to_owned()),
    ] {
        seeds.insert(("qlog", name.to_owned()), text.into_bytes());
    }
}

/// Configuration files of `marline serve`.
pub(super) fn server_configs(seeds: &mut Seeds) {
    for (name, text) in [
        (
            "site",
            "dir = 'www'\nlisten = '[::1]:443'\ncert = 'a.pem'\nkey = 'b.pem'\naccess-log = '-'\nfollow_links = true\nprofile = 'rfc'\n",
        ),
        (
            "transport",
            "cc = 'bbr'\ninitial_window = 'fixed(packets=10)'\nslow_start_exit = \"hybrid(factor=0.5)\"\nmax_idle_timeout = '20s'\n[multipath]\nscheduler = 'ecf(beta=0.5)'\n",
        ),
        (
            "limits",
            "[http]\nmax_connections = 5\nheader_timeout = '3s'\n[endpoint]\nconnection_id_len = 12\n",
        ),
        (
            "history",
            "[history]\npolicy = 'careful'\ntokens = true\nfile = 'paths.redb'\nlifetime = '1h'\ncap = '1MB'\n",
        ),
        (
            "mistakes",
            "dir = 5\nlisten = 'here'\ncc = 'bbr'\ncc = 'cubic'\n",
        ),
    ] {
        seeds.insert(("server_config", name.to_owned()), text.into());
    }
}

/// The shortest experiments of the repository.
pub(super) fn scenarios(seeds: &mut Seeds) {
    let experiments = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    for name in [
        "bundle/plain-choices",
        "demo/page",
        "lab/agreement",
        "multipath/handover",
    ] {
        let text = fs::read(experiments.join(name).with_extension("toml"));
        let text = text.expect("the experiment is there");
        assert!(text.len() <= MAX_LEN, "{name} is too long");
        // The name contains that of the target's file.
        seeds.insert(("scenario", name.replace('/', "-")), text);
    }
}
