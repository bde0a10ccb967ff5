//! Converts JSON values to events: time formats, common fields, and differences of older versions.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Event, Source, number};

/// The role of a JSON value in a file.
pub(super) enum Record {
    /// Describes the events that follow.
    Header(Value),
    /// A complete file.
    Document(Value),
    /// An event.
    Event(Value),
}

impl Record {
    pub(super) fn of(value: Value) -> Self {
        let has = |key| value.get(key).is_some();
        if has("traces") {
            Self::Document(value)
        } else if has("name") || has("data") || value.is_array() {
            Self::Event(value)
        } else if has("trace") || has("file_schema") || has("qlog_version") || has("qlog_format") {
            Self::Header(value)
        } else {
            Self::Event(value)
        }
    }
}

/// All events of a document.
pub(super) fn events_of(mut document: Value) -> Vec<Result<Event, String>> {
    let title = text(&document, "title").to_owned();
    let mut events = Vec::new();
    let Some(Value::Array(traces)) = document.get_mut("traces").map(Value::take) else {
        return vec![Err("`traces` is not a list".to_owned())];
    };
    for (index, mut trace) in traces.into_iter().enumerate() {
        if let Some(error) = trace.get("error_description").and_then(Value::as_str) {
            events.push(Err(format!("trace {} holds an error: {error}", index + 1)));
            continue;
        }
        let Some(Value::Array(list)) = trace.get_mut("events").map(Value::take) else {
            events.push(Err(format!("trace {} has no list of events", index + 1)));
            continue;
        };
        let mut state = Trace::new(&trace, index, &title);
        events.extend(list.into_iter().map(|event| state.event(event)));
    }
    events
}

/// The largest distance from the reference time, in seconds: 30,000 years. Sums and differences of times stay exact to
/// fractions of a millisecond.
const MAX_TIME: f64 = 1e12;

/// The reference of times.
#[derive(Clone, Copy, Debug, Default)]
enum Clock {
    #[default]
    SinceReference,
    SincePrevious,
}

/// The common fields of a trace.
#[derive(Debug)]
pub(super) struct Trace {
    source: Arc<Source>,
    clock: Clock,
    /// Units of time in a second.
    units_per_second: f64,
    last_s: f64,
    tuple: String,
    group: String,
    /// Names of the columns, where events are lists (versions before 0.3).
    columns: Vec<String>,
}

impl Default for Trace {
    fn default() -> Self {
        Self::new(&Value::Null, 0, "")
    }
}

impl Trace {
    /// Reads a header.
    pub(super) fn of_header(header: &Value) -> Self {
        let null = Value::Null;
        Self::new(
            header.get("trace").unwrap_or(&null),
            0,
            text(header, "title"),
        )
    }

    fn new(trace: &Value, index: usize, title: &str) -> Self {
        let null = Value::Null;
        let common = trace.get("common_fields").unwrap_or(&null);
        let point = trace.get("vantage_point").unwrap_or(&null);
        let units = trace
            .get("configuration")
            .map_or("", |configuration| text(configuration, "time_units"));
        let group = ["group_id", "ODCID"]
            .iter()
            .find_map(|&key| common.get(key))
            .map_or_else(String::new, plain);
        let own_title = text(trace, "title");
        Self {
            source: Arc::new(Source {
                index,
                title: if own_title.is_empty() {
                    title.to_owned()
                } else {
                    own_title.to_owned()
                },
                name: text(point, "name").to_owned(),
                vantage_point: text(point, "type").to_owned(),
                reference: common
                    .get("reference_time")
                    .map_or("", |reference| text(reference, "wall_clock_time"))
                    .to_owned(),
            }),
            clock: clock(text(common, "time_format")),
            units_per_second: if units == "us" { 1e6 } else { 1e3 },
            last_s: 0.0,
            tuple: tuple(common).unwrap_or_default(),
            group,
            columns: trace
                .get("event_fields")
                .and_then(Value::as_array)
                .map(|fields| fields.iter().map(plain).collect())
                .unwrap_or_default(),
        }
    }

    /// Reads an event.
    pub(super) fn event(&mut self, event: Value) -> Result<Event, String> {
        let mut fields = match event {
            Value::Object(fields) => fields,
            Value::Array(values) if !self.columns.is_empty() => {
                self.columns.iter().cloned().zip(values).collect()
            }
            Value::Array(_) => return Err("a list without `event_fields`".to_owned()),
            _ => return Err("neither an object nor a list".to_owned()),
        };
        let name = name(&fields)?;
        let time_s = self.time(&fields)?;
        Ok(Event {
            time_s,
            tuple: ["tuple", "path"]
                .iter()
                .find_map(|&key| fields.get(key))
                .map_or_else(|| self.tuple.clone(), plain),
            group: fields
                .get("group_id")
                .map_or_else(|| self.group.clone(), plain),
            data: fields.remove("data").unwrap_or(Value::Null),
            name,
            source: Arc::clone(&self.source),
        })
    }

    fn time(&mut self, fields: &Map<String, Value>) -> Result<f64, String> {
        let (key, value) = ["time", "relative_time", "delta_time"]
            .iter()
            .find_map(|&key| Some((key, fields.get(key)?)))
            .ok_or("it has no `time`")?;
        let time = number(value).ok_or("its `time` is not a number")? / self.units_per_second;
        let clock = match (key, fields.get("time_format").and_then(Value::as_str)) {
            ("delta_time", _) => Clock::SincePrevious,
            (_, Some(format)) => clock(format),
            (_, None) => self.clock,
        };
        let time = match clock {
            Clock::SinceReference => time,
            Clock::SincePrevious => self.last_s + time,
        };
        if time.abs() > MAX_TIME {
            return Err("its `time` is too large".to_owned());
        }
        self.last_s = time;
        Ok(time)
    }
}

fn clock(format: &str) -> Clock {
    match format {
        "relative_to_previous_event" | "delta" => Clock::SincePrevious,
        _ => Clock::SinceReference,
    }
}

fn tuple(fields: &Value) -> Option<String> {
    ["tuple", "path"]
        .iter()
        .find_map(|&key| fields.get(key))
        .map(plain)
}

/// The name of an event, which older versions split into two fields.
fn name(fields: &Map<String, Value>) -> Result<String, String> {
    let field = |key| fields.get(key).and_then(Value::as_str);
    if let Some(name) = field("name") {
        return Ok(name.to_owned());
    }
    let kind = ["event", "event_type", "type"]
        .iter()
        .find_map(|&key| field(key))
        .ok_or("it has no `name`")?;
    Ok(match field("category") {
        Some(category) => format!("{category}:{kind}"),
        None => kind.to_owned(),
    })
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

/// A value as text; strings without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
