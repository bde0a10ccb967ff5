//! The fields of events in version 0.3, as far as qvis shows them.

use serde_json::{Map, Value};

/// Gives `data` of the event `name` its former fields.
pub(super) fn convert(name: &str, data: &mut Map<String, Value>) {
    if !name.starts_with("quic:") {
        return;
    }
    rename(data, "initiator", "owner");
    if let Some(Value::Array(frames)) = data.get_mut("frames") {
        for frame in frames.iter_mut().filter_map(Value::as_object_mut) {
            convert_frame(frame);
        }
    }
}

/// Frames had their length, and one field for errors: a name or a number.
fn convert_frame(frame: &mut Map<String, Value>) {
    if let Some(raw) = frame.get("raw") {
        let length = raw.get("length").or_else(|| raw.get("payload_length"));
        if let Some(length) = length.cloned() {
            frame.entry("length").or_insert(length);
        }
    }
    if let Some(error) = frame.remove("error")
        && (error != "unknown" || !frame.contains_key("error_code"))
    {
        frame.insert("error_code".to_owned(), error);
    }
}

fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = fields.remove(from) {
        fields.insert(to.to_owned(), value);
    }
}
