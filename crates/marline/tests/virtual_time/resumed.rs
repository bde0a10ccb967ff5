//! A client comes back while its connection is alive.

use std::sync::{Arc, Mutex};

use marline::congestion::{ConnectionKind, InitialWindow, PathSample, Rfc9002Window, SampleEvent};
use marline::{Runtime, TransportConfig};

use crate::world::World;
use crate::{DELAY, configs, endpoint};

/// Who told what they have seen, and why.
#[derive(Debug, Default)]
struct Heard(Mutex<Vec<(u64, SampleEvent)>>);

impl InitialWindow for Heard {
    fn window(&self, kind: &ConnectionKind<'_>) -> u64 {
        Rfc9002Window.window(kind)
    }

    fn observe(&self, _kind: &ConnectionKind<'_>, seen: &PathSample) {
        let mut heard = self.0.lock().unwrap();
        heard.push((seen.initial_window, seen.event));
    }
}

#[test]
fn its_connection_tells_what_it_has_seen() {
    let heard = Arc::new(Heard::default());
    let world = World::new(DELAY);
    let (mut server_config, client_config) = configs();
    server_config.transport = Arc::new(TransportConfig {
        initial_window: heard.clone(),
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
    let came = Arc::clone(&heard);
    world.run(async move {
        let first = client.connect(addr, "localhost").unwrap().await.unwrap();
        // Ticket and token come before this stream.
        first.accept_uni().await.unwrap();
        let second = client.connect(addr, "localhost").unwrap().await.unwrap();
        assert!(second.is_resumed());
        second.accept_uni().await.unwrap();
        assert_eq!(*came.0.lock().unwrap(), [(12_000, SampleEvent::Resumed)]);
    });
}
