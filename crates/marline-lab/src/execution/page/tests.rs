use super::*;

fn loaded(connections: &[ConnectionReport]) -> PageReport {
    PageReport {
        connections: connections.to_vec(),
        ..PageReport::default()
    }
}

fn connection(id: u64, sent: u64, missing: u64) -> ConnectionReport {
    ConnectionReport {
        id,
        http_version: "3",
        quic_version: Some("v1"),
        resolve_s: 0.0,
        transport_s: 0.0,
        handshake_s: 0.1,
        bytes_received: 0,
        packets_lost_observed: None,
        peer_loss_estimate: None,
        peer_packets_sent: Some(sent),
        peer_packets_missing: Some(missing),
        multipath: false,
        mptcp_subflows: None,
        certificates: Default::default(),
        paths: Vec::new(),
    }
}

#[test]
fn losses_of_earlier_loads_are_not_those_of_the_last() {
    let first = loaded(&[connection(0, 1000, 100), connection(1, 1000, 0)]);
    assert_eq!(peer_loss_after(&first, &PageReport::default()), Some(0.05));
    // 0 lost one of 100 packets since then; 1 has sent none; 2 is new.
    let second = loaded(&[
        connection(0, 1100, 101),
        connection(1, 1000, 0),
        connection(2, 100, 3),
    ]);
    assert_eq!(peer_loss_after(&second, &first), Some(0.02));
    assert_eq!(opened_after(&second, &first), 1);
    assert_eq!(peer_loss_after(&PageReport::default(), &first), None);
}
