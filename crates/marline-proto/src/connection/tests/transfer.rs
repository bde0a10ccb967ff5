//! Transfers without losses.

use super::*;

#[test]
fn a_transfer_over_a_network_without_faults_loses_nothing() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(5 << 20));
    let stats = pair.server(ends.server).stats();
    assert_eq!(stats.packets_lost(), 0);
    assert_eq!(stats.paths[0].mtu, 1472);
}

#[test]
fn transfers_with_small_flow_control_windows_complete() {
    let narrow = TransportConfig {
        stream_receive_window: Some(20_000),
        max_stream_receive_window: 20_000,
        receive_window: Some(50_000),
        max_receive_window: 50_000,
        send_buffer: 60_000,
        ..TransportConfig::default()
    };
    let mut pair = both(narrow);
    let ends = pair.establish();
    let mut transfers: Vec<Transfer> = [200_000, 300_000, 500_000]
        .into_iter()
        .flat_map(|len| {
            [
                Transfer::down(&mut pair, ends, &pattern(len)),
                Transfer::up(&mut pair, ends, &pattern(len)),
            ]
        })
        .collect();
    let done = pair.drive_until(TIMEOUT, |pair| {
        transfers.retain_mut(|transfer| !transfer.advance(pair));
        transfers.is_empty()
    });
    assert!(done, "{} of 6 transfers stalled", transfers.len());
    let frames = pair.server(ends.server).stats().frames_received;
    assert!(frames.max_data > 10 && frames.max_stream_data > 10);
}

#[test]
fn a_transfer_uses_70_percent_of_a_bottleneck() {
    let mut pair = Pair::new();
    pair.network.set(Conditions {
        rate: Some(1_250_000),
        queue: 50_000,
        delay: Duration::from_millis(25),
        ..Conditions::default()
    });
    let ends = pair.establish();
    let took = download(&mut pair, ends, &pattern(5_000_000));
    assert!(
        took < Duration::from_millis(5_500),
        "4 s at full rate, took {took:?}"
    );
}

/// Records the packets in flight.
struct Recorder(Arc<std::sync::Mutex<Vec<u64>>>);

impl Observer for Recorder {
    fn on_event(&mut self, _now: Instant, event: &observe::Event<'_>) {
        if let observe::Event::MetricsUpdated(metrics) = event {
            self.0.lock().unwrap().push(metrics.packets_in_flight);
        }
    }
}

#[test]
fn metrics_have_the_number_of_packets_in_flight() {
    let recorded = Arc::<std::sync::Mutex<Vec<u64>>>::default();
    let sink = Arc::clone(&recorded);
    let mut pair = Pair::with(PairConfig {
        adjust_server: Box::new(move |server| {
            let make = move |_: &ConnectionInfo| {
                Some(Box::new(Recorder(Arc::clone(&sink))) as Box<dyn Observer>)
            };
            server.observer = Some(Arc::new(make));
        }),
        ..PairConfig::default()
    });
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(300_000));
    pair.drive(Duration::from_secs(1));
    let recorded = recorded.lock().unwrap();
    assert!(recorded.iter().any(|&packets| packets > 10));
    assert_eq!(recorded.last(), Some(&0), "all packets are acknowledged");
}
