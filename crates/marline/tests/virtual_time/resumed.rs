//! A client resumes a session while its earlier connection is alive.

use std::sync::{Arc, Mutex};

use marline::TransportConfig;
use marline::congestion::ConnectionKind;
use marline::coordination::history::{PathHistory, PathSample, SampleEvent};
use marline_sim::identity::Identity;

use crate::setup::{client_config, run, server_config};

/// A sample that a connection reported.
#[derive(Debug, PartialEq, Eq)]
struct Reported {
    initial_window: u64,
    event: SampleEvent,
}

/// Records the samples of all connections.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<Reported>>);

impl PathHistory for Recorder {
    fn observe(&self, _kind: &ConnectionKind<'_>, seen: &PathSample) {
        self.0.lock().unwrap().push(Reported {
            initial_window: seen.initial_window,
            event: seen.event,
        });
    }
}

#[test]
fn the_earlier_connection_of_a_resumed_session_reports_a_sample() {
    let recorder = Arc::new(Recorder::default());
    run(async |network| {
        let server = network.server_endpoint(server_config(TransportConfig {
            history: Some(recorder.clone()),
            ..TransportConfig::default()
        }));
        let client = network.client_endpoint();
        client.set_default_client_config(client_config(TransportConfig::default()));
        let addr = server.local_addr();
        let host = network.server.clone();
        network.server.run(async move {
            while let Some(connecting) = server.accept().await {
                host.run(async move {
                    let connection = connecting.await.unwrap();
                    let mut send = connection.open_uni().await.unwrap();
                    send.finish().unwrap();
                    connection.closed().await;
                });
            }
        });
        let connect = async || {
            let connecting = client.connect(addr, Identity::NAME).unwrap();
            connecting.await.unwrap()
        };
        let first = connect().await;
        // Session ticket and address token precede this stream.
        first.accept_uni().await.unwrap();
        let second = connect().await;
        assert!(second.is_resumed());
        second.accept_uni().await.unwrap();
        let reported = Reported {
            initial_window: 12_000,
            event: SampleEvent::Resumed,
        };
        assert_eq!(*recorder.0.lock().unwrap(), [reported]);
    });
}
