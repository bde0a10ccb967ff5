//! A client resumes its session while the earlier connection is open.

use std::sync::{Arc, Mutex};

use marline::congestion::ConnectionKind;
use marline::coordination::history::{PathHistory, PathSample, SampleEvent};
use marline::{Runtime, TransportConfig};

use crate::world::World;
use crate::{DELAY, configs, endpoint};

/// The samples that connections report.
#[derive(Debug, Default)]
struct Samples(Mutex<Vec<PathSample>>);

impl PathHistory for Samples {
    fn observe(&self, _kind: &ConnectionKind<'_>, seen: &PathSample) {
        self.0.lock().unwrap().push(*seen);
    }
}

#[test]
fn the_earlier_connection_reports_its_path_when_the_session_is_resumed() {
    let samples = Arc::new(Samples::default());
    let world = World::new(DELAY);
    let (mut server_config, client_config) = configs();
    server_config.transport = Arc::new(TransportConfig {
        history: Some(samples.clone()),
        ..TransportConfig::default()
    });
    let server = endpoint(&world, 1, Some(server_config));
    let client = endpoint(&world, 2, None);
    client.set_default_client_config(client_config);
    let addr = server.local_addr();
    let clock = world.clone();
    world.spawn(Box::pin(async move {
        while let Some(connecting) = server.accept().await {
            clock.spawn(Box::pin(async move {
                let connection = connecting.await.unwrap();
                let mut send = connection.open_uni().await.unwrap();
                send.finish().unwrap();
                connection.closed().await;
            }));
        }
    }));
    let reported = Arc::clone(&samples);
    world.run(async move {
        let first = client.connect(addr, "localhost").unwrap().await.unwrap();
        // Ticket and token come before this stream.
        first.accept_uni().await.unwrap();
        let second = client.connect(addr, "localhost").unwrap().await.unwrap();
        assert!(second.is_resumed());
        second.accept_uni().await.unwrap();
        let samples = reported.0.lock().unwrap();
        assert_eq!(samples.len(), 1);
        assert_eq!(samples[0].event, SampleEvent::Resumed);
        assert_eq!(samples[0].initial_window, 12_000);
    });
}
