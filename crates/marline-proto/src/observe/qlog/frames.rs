//! Frames in the format of qlog. The schema does not yet have multipath frames; they use the terms
//! of the multipath draft.

use marline_wire::frame::{Ack, NewConnectionId, PathStatusAvailable, PathStatusBackup};
use marline_wire::{ErrorCode, Frame, Frames};

use super::names;
use crate::observe::json::Json;

/// Writes the frames of `payload`; `ack_delay_exponent` scales the delays in its ACK frames. Bytes
/// that cannot be decoded end the list with an unknown frame.
pub(super) fn write(data: &mut Json<'_>, payload: &[u8], ack_delay_exponent: u64) {
    data.array("frames", |list| {
        for frame in Frames::new(payload) {
            list.item(|json| match frame {
                Ok(frame) => write_frame(json, &frame, ack_delay_exponent),
                Err(error) => {
                    json.str("frame_type", "unknown");
                    json.u64("frame_type_bytes", error.frame_type);
                }
            });
        }
    });
}

fn write_frame(json: &mut Json<'_>, frame: &Frame<'_>, ack_delay_exponent: u64) {
    json.str("frame_type", name(frame));
    match frame {
        Frame::Ping | Frame::HandshakeDone | Frame::ImmediateAck => {}
        Frame::Padding { len } => json.object("raw", |raw| raw.len("payload_length", *len)),
        Frame::Ack(frame) => write_ack(json, frame, ack_delay_exponent),
        Frame::ResetStream(frame) => {
            json.u64("stream_id", frame.id.into());
            application_error(json, frame.error_code);
            json.u64("final_size", frame.final_size);
        }
        Frame::StopSending(frame) => {
            json.u64("stream_id", frame.id.into());
            application_error(json, frame.error_code);
        }
        Frame::Crypto(frame) => {
            json.u64("offset", frame.offset);
            length(json, frame.data);
        }
        Frame::NewToken(frame) => json.object("token", |token| length(token, frame.token)),
        Frame::Stream(frame) => {
            json.u64("stream_id", frame.id.into());
            json.u64("offset", frame.offset);
            if frame.fin {
                json.bool("fin", true);
            }
            length(json, frame.data);
        }
        Frame::MaxData(frame) => json.u64("maximum", frame.maximum),
        Frame::MaxStreamData(frame) => {
            json.u64("stream_id", frame.id.into());
            json.u64("maximum", frame.maximum);
        }
        Frame::MaxStreams(frame) => {
            json.str("stream_type", names::stream_type(frame.dir));
            json.u64("maximum", frame.maximum);
        }
        Frame::DataBlocked(frame) => json.u64("limit", frame.limit),
        Frame::StreamDataBlocked(frame) => {
            json.u64("stream_id", frame.id.into());
            json.u64("limit", frame.limit);
        }
        Frame::StreamsBlocked(frame) => {
            json.str("stream_type", names::stream_type(frame.dir));
            json.u64("limit", frame.limit);
        }
        Frame::NewConnectionId(frame) => new_connection_id(json, frame),
        Frame::RetireConnectionId(frame) => json.u64("sequence_number", frame.sequence),
        Frame::PathChallenge(frame) => json.hex("data", &frame.data),
        Frame::PathResponse(frame) => json.hex("data", &frame.data),
        Frame::ConnectionClose(frame) => {
            json.str("error_space", "transport");
            transport_error(json, "error", frame.error_code);
            json.str("reason", &String::from_utf8_lossy(frame.reason));
            json.u64("trigger_frame_type", frame.frame_type);
        }
        Frame::ApplicationClose(frame) => {
            json.str("error_space", "application");
            application_error(json, frame.error_code);
            json.str("reason", &String::from_utf8_lossy(frame.reason));
        }
        Frame::Datagram(frame) => length(json, frame.data),
        Frame::AckFrequency(frame) => {
            json.u64("sequence_number", frame.sequence);
            json.u64("ack_eliciting_threshold", frame.ack_eliciting_threshold);
            json.u64("requested_max_ack_delay", frame.requested_max_ack_delay);
            json.u64("reordering_threshold", frame.reordering_threshold);
        }
        Frame::PathAck(frame) => {
            json.u64("path_id", frame.path_id.into());
            write_ack(json, &frame.ack, ack_delay_exponent);
        }
        Frame::PathAbandon(frame) => {
            json.u64("path_id", frame.path_id.into());
            error(json, "error", frame.error_code, frame.error_code.name());
        }
        Frame::PathStatusBackup(PathStatusBackup { path_id, sequence })
        | Frame::PathStatusAvailable(PathStatusAvailable { path_id, sequence }) => {
            json.u64("path_id", (*path_id).into());
            json.u64("path_status_sequence_number", *sequence);
        }
        Frame::PathNewConnectionId(frame) => {
            json.u64("path_id", frame.path_id.into());
            new_connection_id(json, &frame.issued);
        }
        Frame::PathRetireConnectionId(frame) => {
            json.u64("path_id", frame.path_id.into());
            json.u64("sequence_number", frame.sequence);
        }
        Frame::MaxPathId(frame) => json.u64("maximum_path_id", frame.maximum.into()),
        Frame::PathsBlocked(frame) => json.u64("maximum_path_id", frame.limit.into()),
        Frame::PathCidsBlocked(frame) => {
            json.u64("path_id", frame.path_id.into());
            json.u64("next_sequence_number", frame.next_sequence);
        }
    }
}

const fn name(frame: &Frame<'_>) -> &'static str {
    match frame {
        Frame::Padding { .. } => "padding",
        Frame::Ping => "ping",
        Frame::Ack(_) => "ack",
        Frame::ResetStream(_) => "reset_stream",
        Frame::StopSending(_) => "stop_sending",
        Frame::Crypto(_) => "crypto",
        Frame::NewToken(_) => "new_token",
        Frame::Stream(_) => "stream",
        Frame::MaxData(_) => "max_data",
        Frame::MaxStreamData(_) => "max_stream_data",
        Frame::MaxStreams(_) => "max_streams",
        Frame::DataBlocked(_) => "data_blocked",
        Frame::StreamDataBlocked(_) => "stream_data_blocked",
        Frame::StreamsBlocked(_) => "streams_blocked",
        Frame::NewConnectionId(_) => "new_connection_id",
        Frame::RetireConnectionId(_) => "retire_connection_id",
        Frame::PathChallenge(_) => "path_challenge",
        Frame::PathResponse(_) => "path_response",
        Frame::ConnectionClose(_) | Frame::ApplicationClose(_) => "connection_close",
        Frame::HandshakeDone => "handshake_done",
        Frame::Datagram(_) => "datagram",
        Frame::AckFrequency(_) => "ack_frequency",
        Frame::ImmediateAck => "immediate_ack",
        Frame::PathAck(_) => "path_ack",
        Frame::PathAbandon(_) => "path_abandon",
        Frame::PathStatusBackup(_) => "path_status_backup",
        Frame::PathStatusAvailable(_) => "path_status_available",
        Frame::PathNewConnectionId(_) => "path_new_connection_id",
        Frame::PathRetireConnectionId(_) => "path_retire_connection_id",
        Frame::MaxPathId(_) => "max_path_id",
        Frame::PathsBlocked(_) => "paths_blocked",
        Frame::PathCidsBlocked(_) => "path_cids_blocked",
    }
}

fn new_connection_id(json: &mut Json<'_>, frame: &NewConnectionId) {
    json.u64("sequence_number", frame.sequence);
    json.u64("retire_prior_to", frame.retire_prior_to);
    json.hex("connection_id", &frame.id);
}

fn write_ack(json: &mut Json<'_>, ack: &Ack<'_>, exponent: u64) {
    // The delay is in units of 2^exponent microseconds; the exponent is at most 20 (RFC 9000, section 18.2).
    let factor = 1_u64 << exponent.min(20);
    let delay = std::time::Duration::from_micros(ack.delay.saturating_mul(factor));
    json.ms("ack_delay", delay);
    json.array("acked_ranges", |ranges| {
        for range in ack.ranges() {
            ranges.list(|pair| {
                pair.number(*range.start());
                if range.start() != range.end() {
                    pair.number(*range.end());
                }
            });
        }
    });
    if let Some(ecn) = ack.ecn {
        json.u64("ect1", ecn.ect1);
        json.u64("ect0", ecn.ect0);
        json.u64("ce", ecn.ce);
    }
}

/// Writes only the length: the data belongs to the application.
fn length(json: &mut Json<'_>, data: &[u8]) {
    json.object("raw", |raw| raw.len("length", data.len()));
}

fn application_error(json: &mut Json<'_>, code: u64) {
    json.str("error", "unknown");
    json.u64("error_code", code);
}

/// Writes a transport error by its name in the schema, which has those of RFC 9000, or by number.
pub(super) fn transport_error(json: &mut Json<'_>, key: &str, code: ErrorCode) {
    let name = code
        .name()
        .filter(|_| code.0 <= ErrorCode::NO_VIABLE_PATH.0);
    error(json, key, code, name);
}

fn error(json: &mut Json<'_>, key: &str, code: ErrorCode, name: Option<&str>) {
    match (code.tls_alert(), name) {
        (Some(alert), _) => json.str(key, &format!("crypto_error_0x1{alert:02x}")),
        (None, Some(name)) => json.str(key, &name.to_ascii_lowercase()),
        (None, None) => {
            json.str(key, "unknown");
            json.u64("error_code", code.0);
        }
    }
}
