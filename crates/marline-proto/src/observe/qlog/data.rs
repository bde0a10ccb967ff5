//! The `data` field of each event.

use std::net::SocketAddr;

use marline_wire::ConnectionId;
use marline_wire::params::TransportParameters;

use super::{State, frames, names};
use crate::observe::Event;
use crate::observe::events::*;
use crate::observe::json::Json;

pub(super) fn write(data: &mut Json<'_>, event: &Event<'_>, state: &State) {
    match event {
        Event::ConnectionStarted(event) => {
            endpoint(data, "local", event.local, Some(&event.local_cid));
            endpoint(data, "remote", Some(event.remote), Some(&event.remote_cid));
        }
        Event::ConnectionStateUpdated(event) => {
            data.opt_str("old", event.old.map(names::connection_state));
            data.str("new", names::connection_state(event.new));
        }
        Event::ConnectionClosed(event) => connection_closed(data, event),
        Event::ConnectionIdUpdated(event) => {
            data.str("initiator", names::initiator(event.initiator));
            if let Some(id) = &event.old {
                data.hex("old", id);
            }
            if let Some(id) = &event.new {
                data.hex("new", id);
            }
        }
        Event::VersionInformation(event) => {
            versions(data, "server_versions", event.server);
            versions(data, "client_versions", event.client);
            if let Some(version) = event.chosen {
                data.hex("chosen_version", &version.to_be_bytes());
            }
        }
        Event::AlpnInformation(event) => {
            alpns(data, "server_alpns", event.server);
            alpns(data, "client_alpns", event.client);
            if let Some(chosen) = event.chosen {
                data.object("chosen_alpn", |json| alpn(json, chosen));
            }
        }
        Event::ParametersSet(event) => {
            data.str("initiator", names::initiator(event.initiator));
            data.opt_str("tls_cipher", event.tls_cipher);
            let ids = event.parameters;
            for (key, id) in [
                (
                    "original_destination_connection_id",
                    &ids.original_destination_connection_id,
                ),
                (
                    "initial_source_connection_id",
                    &ids.initial_source_connection_id,
                ),
                (
                    "retry_source_connection_id",
                    &ids.retry_source_connection_id,
                ),
            ] {
                if let Some(id) = id {
                    data.hex(key, id);
                }
            }
            data.u64("ack_delay_exponent", ids.ack_delay_exponent);
            data.u64("max_ack_delay", ids.max_ack_delay);
            remembered_parameters(data, event.parameters);
        }
        Event::ParametersRestored(parameters) => remembered_parameters(data, parameters),
        Event::PacketSent(event) => {
            header(
                data,
                &PacketHeader {
                    kind: event.kind,
                    number: event.number,
                },
            );
            packet_body(
                data,
                event.kind,
                event.payload,
                state.local_ack_delay_exponent,
            );
            raw(data, event.size);
            if event.is_mtu_probe {
                data.bool("is_mtu_probe_packet", true);
            }
            data.opt_str("trigger", event.trigger.map(names::send_trigger));
        }
        Event::PacketReceived(event) => {
            header(
                data,
                &PacketHeader {
                    kind: event.kind,
                    number: event.number,
                },
            );
            packet_body(
                data,
                event.kind,
                event.payload,
                state.remote_ack_delay_exponent,
            );
            raw(data, event.size);
        }
        Event::PacketDropped(event) => {
            header(
                data,
                &PacketHeader {
                    kind: event.kind,
                    number: None,
                },
            );
            raw(data, event.size);
            data.str("trigger", names::drop_trigger(event.trigger));
        }
        Event::PacketsAcked(event) => {
            data.str("packet_number_space", names::space(event.space));
            data.array("packet_numbers", |list| {
                for &number in event.numbers {
                    list.number(number);
                }
            });
        }
        Event::PacketLost(event) => {
            header(
                data,
                &PacketHeader {
                    kind: event.kind,
                    number: Some(event.number),
                },
            );
            if event.is_mtu_probe {
                data.bool("is_mtu_probe_packet", true);
            }
            data.str("trigger", names::loss_trigger(event.trigger));
        }
        Event::SpuriousLoss(event) => {
            header(
                data,
                &PacketHeader {
                    kind: event.kind,
                    number: Some(event.number),
                },
            );
            data.u64("reordering", event.reordering);
            data.ms("elapsed", event.elapsed);
        }
        Event::RecoveryParametersSet(event) => recovery_parameters(data, event),
        Event::InitialWindowChosen(event) => {
            data.u64("window", event.window);
            data.u64("default", event.default);
            data.bool("learnt", event.is_learnt());
        }
        Event::MetricsUpdated(event) => metrics(data, event, state.last_metrics(event.path)),
        Event::CongestionStateUpdated(event) => {
            data.opt_str("old", event.old);
            data.str("new", event.new);
            data.opt_str("trigger", event.trigger);
        }
        Event::TimerUpdated(event) => {
            data.str("timer_type", names::timer(event.timer));
            data.opt_str("packet_number_space", event.space.map(names::space));
            match event.change {
                TimerChange::Set(after) => {
                    data.str("event_type", "set");
                    data.ms("delta", after);
                }
                TimerChange::Expired => data.str("event_type", "expired"),
                TimerChange::Cancelled => data.str("event_type", "cancelled"),
            }
        }
        Event::KeyUpdated(event) => {
            data.str("key_type", names::key_type(event.sender, event.kind));
            data.opt_u64("key_phase", event.key_phase);
            data.str("trigger", names::key_trigger(event.trigger));
        }
        Event::KeyDiscarded(event) => {
            data.str("key_type", names::key_type(event.sender, event.kind));
            data.opt_u64("key_phase", event.key_phase);
            data.str("trigger", names::key_trigger(event.trigger));
        }
        Event::PathAssigned(event) => {
            names::path(data, "tuple_id", event.path);
            if event.remote.is_some() {
                endpoint(data, "tuple_remote", event.remote, None);
            }
            if event.local.is_some() {
                endpoint(data, "tuple_local", event.local, None);
            }
        }
        Event::MtuUpdated(event) => {
            data.u64("old", event.old.into());
            data.u64("new", event.new.into());
            data.bool("done", event.done);
        }
        Event::EcnStateUpdated(event) => {
            data.opt_str("old", event.old.map(names::ecn_state));
            data.str("new", names::ecn_state(event.new));
        }
        Event::MigrationStateUpdated(event) => {
            data.opt_str("old", event.old.map(names::migration_state));
            data.str("new", names::migration_state(event.new));
            names::path(data, "tuple_id", event.path);
        }
        Event::StreamStateUpdated(event) => {
            data.u64("stream_id", event.id.into());
            data.str("stream_type", names::stream_type(event.id.dir()));
            data.opt_str("old", event.old.map(names::stream_state));
            data.str("new", names::stream_state(event.new));
            data.str("stream_side", names::stream_half(event.half));
            data.opt_str("trigger", event.trigger.map(names::initiator));
        }
        Event::ReassemblyUpdated(event) => {
            data.u64("out_of_order_bytes", event.out_of_order_bytes);
        }
        Event::AckFrequencyUpdated(event) => {
            data.str("initiator", names::initiator(event.initiator));
            data.u64("ack_eliciting_threshold", event.ack_eliciting_threshold);
            data.ms("requested_max_ack_delay", event.requested_max_ack_delay);
            data.u64("reordering_threshold", event.reordering_threshold);
        }
        Event::CarefulResumePhaseUpdated(event) => {
            data.opt_str("old", event.old.map(names::careful_resume_phase));
            data.str("new", names::careful_resume_phase(event.new));
            data.object("state_data", |state| {
                state.u64("pipesize", event.pipe_size);
                state.u64("first_unvalidated_packet", event.first_unvalidated_packet);
                state.u64("last_unvalidated_packet", event.last_unvalidated_packet);
                state.opt_u64("congestion_window", event.congestion_window);
                state.opt_u64("ssthresh", event.ssthresh);
            });
            if let Some(restored) = event.restored {
                data.object("restored_data", |data| {
                    data.u64("saved_congestion_window", restored.congestion_window);
                    data.ms("saved_rtt", restored.rtt);
                });
            }
            data.opt_str("trigger", event.trigger.map(names::careful_resume_trigger));
        }
        Event::BundleUpdated(event) => {
            data.u64("bundle", event.bundle);
            data.opt_u64("path_id", event.path.map(u64::from));
            data.str("trigger", names::bundle_trigger(event.trigger));
            data.str("action", names::bundle_action(event.action));
            data.str("phase", names::bundle_phase(event.phase));
            data.opt_u64("affected", event.affected.map(|place| place as u64));
            data.len("own", event.own);
            data.f64("gamma", event.gamma);
            data.u64("fluctuations", event.fluctuations);
            data.u64s("before", event.before);
            data.u64s("after", event.after);
        }
    }
}

/// The logged fields of a packet header.
struct PacketHeader {
    kind: PacketKind,
    number: Option<u64>,
}

fn header(data: &mut Json<'_>, packet: &PacketHeader) {
    data.object("header", |header| {
        header.str("packet_type", names::packet_type(packet.kind));
        header.opt_u64("packet_number", packet.number);
    });
}

/// Writes the frames, if the kind of packet has any. Delays in ACK frames of the handshake ignore
/// the exponent (RFC 9000, section 18.2).
fn packet_body(data: &mut Json<'_>, kind: PacketKind, payload: &[u8], exponent: u64) {
    let exponent = match kind.space() {
        None => return,
        Some(PacketNumberSpace::ApplicationData) => exponent,
        Some(PacketNumberSpace::Initial | PacketNumberSpace::Handshake) => 3,
    };
    frames::write(data, payload, exponent);
}

fn raw(data: &mut Json<'_>, size: usize) {
    data.object("raw", |raw| raw.len("length", size));
}

fn endpoint(
    data: &mut Json<'_>,
    key: &str,
    address: Option<SocketAddr>,
    id: Option<&ConnectionId>,
) {
    data.object(key, |info| {
        if let Some(address) = address {
            let ip = address.ip().to_string();
            let (ip_key, port_key) = if address.is_ipv4() {
                ("ip_v4", "port_v4")
            } else {
                ("ip_v6", "port_v6")
            };
            info.str(ip_key, &ip);
            info.u64(port_key, address.port().into());
        }
        if let Some(id) = id {
            info.array("connection_ids", |list| list.hex_string(id));
        }
    });
}

fn connection_closed(data: &mut Json<'_>, event: &ConnectionClosed<'_>) {
    data.str("initiator", names::initiator(event.initiator));
    match event.error {
        ClosedWith::Nothing => {}
        ClosedWith::Transport(code) => frames::transport_error(data, "connection_error", code),
        ClosedWith::Application(code) => {
            data.str("application_error", "unknown");
            data.u64("error_code", code);
        }
    }
    data.str("reason", event.reason);
    data.str("trigger", names::close_trigger(event.trigger));
}

fn versions(data: &mut Json<'_>, key: &str, versions: &[u32]) {
    if !versions.is_empty() {
        data.array(key, |list| {
            for version in versions {
                list.hex_string(&version.to_be_bytes());
            }
        });
    }
}

fn alpns(data: &mut Json<'_>, key: &str, protocols: &[&[u8]]) {
    if !protocols.is_empty() {
        data.array(key, |list| {
            for protocol in protocols {
                list.item(|json| alpn(json, protocol));
            }
        });
    }
}

fn alpn(json: &mut Json<'_>, protocol: &[u8]) {
    match std::str::from_utf8(protocol) {
        Ok(text) => json.str("string_value", text),
        Err(_) => json.hex("byte_value", protocol),
    }
}

/// Writes the parameters that 0-RTT may remember (RFC 9000, section 7.4.1).
fn remembered_parameters(data: &mut Json<'_>, parameters: &TransportParameters) {
    let p = parameters;
    data.bool("disable_active_migration", p.disable_active_migration);
    data.u64("max_idle_timeout", p.max_idle_timeout);
    data.u64("max_udp_payload_size", p.max_udp_payload_size);
    data.u64("active_connection_id_limit", p.active_connection_id_limit);
    data.u64("initial_max_data", p.initial_max_data);
    data.u64(
        "initial_max_stream_data_bidi_local",
        p.initial_max_stream_data_bidi_local,
    );
    data.u64(
        "initial_max_stream_data_bidi_remote",
        p.initial_max_stream_data_bidi_remote,
    );
    data.u64("initial_max_stream_data_uni", p.initial_max_stream_data_uni);
    data.u64("initial_max_streams_bidi", p.initial_max_streams_bidi);
    data.u64("initial_max_streams_uni", p.initial_max_streams_uni);
    data.opt_u64("max_datagram_frame_size", p.max_datagram_frame_size);
    data.bool("grease_quic_bit", p.grease_quic_bit);
}

fn recovery_parameters(data: &mut Json<'_>, event: &RecoveryParametersSet) {
    let bounded = |value| u64::min(value, u16::MAX.into());
    data.opt_u64(
        "reordering_threshold",
        event.reordering_threshold.map(bounded),
    );
    data.f64("time_threshold", event.time_threshold);
    let granularity = event.timer_granularity.as_nanos().div_ceil(1_000_000);
    data.u64(
        "timer_granularity",
        bounded(u64::try_from(granularity).unwrap_or(u64::MAX)),
    );
    data.ms("initial_rtt", event.initial_rtt);
    data.u64("max_datagram_size", event.max_datagram_size);
    data.u64("initial_congestion_window", event.initial_congestion_window);
    data.u64("minimum_congestion_window", event.minimum_congestion_window);
}

/// Writes the metrics that changed since `last`.
fn metrics(data: &mut Json<'_>, now: &MetricsUpdated, last: Option<&MetricsUpdated>) {
    macro_rules! changed {
        ($($field:ident),*; $value:ident => $write:expr) => {
            $(if last.is_none_or(|last| last.$field != now.$field) {
                let $value = now.$field;
                $write(stringify!($field), $value);
            })*
        };
    }
    changed!(min_rtt, latest_rtt; v => |key, v| data.opt_ms(key, v));
    changed!(smoothed_rtt, rtt_variance; v => |key, v| data.ms(key, v));
    changed!(pto_count; v => |key, v: u32| data.u64(key, v.min(u16::MAX.into()).into()));
    changed!(congestion_window, bytes_in_flight, packets_in_flight; v => |key, v| data.u64(key, v));
    changed!(ssthresh; v => |key, v| data.opt_u64(key, v));
    // qlog uses bits, marline bytes.
    changed!(pacing_rate; v => |key, v: Option<u64>| {
        data.opt_u64(key, v.map(|rate| rate.saturating_mul(8)));
    });
}
