//! Checks logs against the CDDL of qlog: that of the drafts (`ietf/`), and our additions
//! (`docs/reference/qlog.cddl`).
//!
//! The crate `cddl` (0.10) is not suitable: it rejects `~LogFile`, parses the key `time` as a type of its prelude, and
//! matches any text with an unanchored `.regexp`.

mod cddl;
mod check;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value;

use cddl::{Rules, Type};
use check::Fault;

const MAIN: &str = include_str!("ietf/main-schema-14.cddl");
const OURS: &str = include_str!("../../../../docs/reference/qlog.cddl");

/// The published draft, which logs name as their schema, and its current editors' version.
static VERSIONS: LazyLock<[Version; 2]> = LazyLock::new(|| {
    [
        Version::new(include_str!("ietf/quic-events-13.cddl")),
        Version::new(include_str!("ietf/quic-events-after-13.cddl")),
    ]
});

/// The faults of a log in JSON-SEQ, each with its record; none if all of it is valid.
pub(crate) fn faults(log: &[u8]) -> Vec<String> {
    let records: Vec<Value> = log
        .split(|&byte| byte == 0x1e)
        .skip(1)
        .map(|record| serde_json::from_slice(record).expect("a record is JSON"))
        .collect();
    let [header, events @ ..] = &records[..] else {
        return vec!["the log is empty".to_owned()];
    };
    let mut faults = BTreeSet::new();
    for version in VERSIONS.iter() {
        let fault = version.header(header);
        faults.extend(fault.map(|fault| format!("{fault} in {header}")));
        for event in events {
            let fault = version.event(header, event);
            faults.extend(fault.map(|fault| format!("{fault} in {event}")));
        }
    }
    faults.into_iter().collect()
}

/// A version of the QUIC events, with the main schema.
struct Version {
    /// Rules without our additions.
    ietf: Rules,
    /// Rules with our additions.
    all: Rules,
    /// The rules for the data of events, by their names without marks and capitals: `QUICPacketSent` is the
    /// rule for `quic:packet_sent`.
    data_rules: BTreeMap<String, String>,
}

impl Version {
    fn new(quic: &str) -> Self {
        let rules = |files: &[&str]| {
            let mut rules = Rules::default();
            for file in files {
                rules.read(file).expect("the schema can be read");
            }
            rules
        };
        let all = rules(&[MAIN, quic, OURS]);
        let data_rules = all
            .names()
            .filter(|name| is_one_of(&all, "$ProtocolEventData", name))
            .map(|name| (name.to_lowercase(), name.to_owned()))
            .collect();
        Self {
            ietf: rules(&[MAIN, quic]),
            all,
            data_rules,
        }
    }

    fn header(&self, header: &Value) -> Option<String> {
        let fault = self.ietf.check("QlogFileSeq", header).err();
        fault.map(|fault| fault.to_string())
    }

    fn event(&self, header: &Value, event: &Value) -> Option<String> {
        let name = event["name"].as_str().unwrap_or_default();
        let key = name.replace([':', '_'], "");
        let Some(rule) = self.data_rules.get(&key) else {
            return Some(format!("no schema has the event {name:?}"));
        };
        self.event_faults(rule, event)
            .err()
            .map(|fault| fault.to_string())
            .or_else(|| undeclared(header, name))
    }

    fn event_faults(&self, rule: &str, event: &Value) -> Result<(), Fault> {
        self.all.check(rule, &event["data"])?;
        if self.ietf.get(rule).is_some() {
            // The data must also be valid for readers that do not know our schema, except for
            // frames of extensions.
            let mut data = event["data"].clone();
            if let Some(Value::Array(frames)) = data.get_mut("frames") {
                frames.retain(|frame| self.all.check("ExtensionFrame", frame).is_err());
            }
            self.ietf.check(rule, &data)?;
        }
        // The data is checked above: here, any data is valid.
        let mut event = event.clone();
        event["data"] = Value::Object(serde_json::Map::new());
        self.ietf.check("Event", &event)?;
        self.all.check("MarlineEvent", &event)
    }
}

/// A fault if no schema of the header has the namespace of the event.
fn undeclared(header: &Value, name: &str) -> Option<String> {
    let (namespace, _) = name.split_once(':')?;
    let schemas = header["trace"]["event_schemas"].as_array()?;
    let is_declared = schemas.iter().filter_map(Value::as_str).any(|schema| {
        let last = schema.rsplit(['/', ':']).next().unwrap_or_default();
        last.split(['#', '-']).next() == Some(namespace)
    });
    (!is_declared).then(|| format!("the header has no schema of {namespace}"))
}

/// Whether the rule `choice` contains the rule `name`.
fn is_one_of(rules: &Rules, choice: &str, name: &str) -> bool {
    fn contains(rules: &Rules, of: &Type, name: &str) -> bool {
        match of {
            Type::Name(rule) => rule == name || is_one_of(rules, rule, name),
            Type::Choice(choices) => choices.iter().any(|of| contains(rules, of, name)),
            _ => false,
        }
    }
    rules
        .get(choice)
        .is_some_and(|of| contains(rules, of, name))
}
