//! The names of events in version 0.3.

/// The former name of an event; names that are not of the current schemas of QUIC and HTTP/3 stay.
pub(super) fn of(name: &str) -> String {
    match name.split_once(':') {
        Some(("quic", kind)) => {
            let Former { category, kind } = of_quic(kind);
            format!("{category}:{kind}")
        }
        Some(("http3", kind)) => format!("http:{kind}"),
        _ => name.to_owned(),
    }
}

struct Former<'n> {
    category: &'static str,
    kind: &'n str,
}

fn of_quic(kind: &str) -> Former<'_> {
    let category = match kind {
        "server_listening"
        | "connection_started"
        | "connection_closed"
        | "connection_id_updated"
        | "spin_bit_updated"
        | "connection_state_updated"
        | "tuple_assigned"
        | "mtu_updated"
        | "migration_state_updated" => "connectivity",
        "key_updated" | "key_discarded" => "security",
        "recovery_parameters_set"
        | "recovery_metrics_updated"
        | "congestion_state_updated"
        | "timer_updated"
        | "packet_lost"
        | "marked_for_retransmit"
        | "ecn_state_updated" => "recovery",
        _ => "transport",
    };
    let kind = match kind {
        "tuple_assigned" => "path_assigned",
        "recovery_parameters_set" => "parameters_set",
        "recovery_metrics_updated" => "metrics_updated",
        "timer_updated" => "loss_timer_updated",
        "udp_datagrams_sent" => "datagrams_sent",
        "udp_datagrams_received" => "datagrams_received",
        "udp_datagram_dropped" => "datagram_dropped",
        "stream_data_moved" => "data_moved",
        kind => kind,
    };
    Former { category, kind }
}
