//! Fields that the QUIC schema lacks. The main schema allows any fields beside `data`, where readers that know
//! only the schema still find valid data. `docs/reference/qlog.cddl` declares these fields.

use marline_wire::PathId;

use super::{State, names};
use crate::observe::Event;
use crate::observe::events::*;
use crate::observe::json::Json;

pub(super) fn write(record: &mut Json<'_>, event: &Event<'_>, state: &State) {
    match event {
        Event::ParametersSet(event) => {
            let parameters = event.parameters;
            record.opt_u64("min_ack_delay", parameters.min_ack_delay);
            let paths = parameters.initial_max_path_id.map(Into::into);
            record.opt_u64("initial_max_path_id", paths);
        }
        Event::PacketSent(event) => {
            path_id(record, event.kind, Some(event.path), state);
            datagram(record, event.datagram, event.ecn);
        }
        Event::PacketReceived(event) => {
            path_id(record, event.kind, Some(event.path), state);
            datagram(record, event.datagram, event.ecn);
        }
        Event::PacketDropped(event) => path_id(record, event.kind, event.path, state),
        Event::PacketLost(event) => {
            path_id(record, event.kind, Some(event.path), state);
            record.object("raw", |raw| raw.len("length", event.size));
        }
        Event::RecoveryParametersSet(event) => {
            record.str("congestion_controller", event.controller);
        }
        Event::MetricsUpdated(now) => {
            // The default is omitted.
            let last = state.last_metrics(now.path);
            if last.map_or(0, |last| last.bytes_queued) != now.bytes_queued {
                record.u64("bytes_queued", now.bytes_queued);
            }
        }
        _ => {}
    }
}

/// Only 1-RTT packets of multipath connections have a path ID, which their connection ID implies.
fn path_id(record: &mut Json<'_>, kind: PacketKind, path: Option<PathId>, state: &State) {
    if kind == PacketKind::OneRtt && state.is_multipath() {
        record.opt_u64("path_id", path.map(u64::from));
    }
}

fn datagram(record: &mut Json<'_>, id: u32, ecn: Ecn) {
    record.u64("datagram_id", id.into());
    if ecn != Ecn::NotEct {
        record.str("ecn", names::ecn(ecn));
    }
}
