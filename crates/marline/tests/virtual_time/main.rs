//! Endpoints in virtual time: nothing but the runtime touches the world, so runs repeat exactly.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod manager;
mod paths;
mod resumed;
#[cfg(feature = "tracing")]
mod trace;
mod world;

use std::sync::Arc;
use std::time::Duration;

use marline::{
    ClientConfig, Endpoint, EndpointConfig, Instant, Runtime, ServerConfig, TransportConfig, tls,
};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;
use world::World;

const LEN: usize = 3_000_000;
const DELAY: Duration = Duration::from_millis(20);

/// Ed25519: its signatures are all of one length, so that handshakes are too.
fn configs() -> (ServerConfig, ClientConfig) {
    let transport = Arc::new(TransportConfig {
        grease: false,
        ..TransportConfig::default()
    });
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let mut params = CertificateParams::new(vec!["localhost".into()]).unwrap();
    params.serial_number = Some(SerialNumber::from(1));
    let certificate = params.self_signed(&key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let mut server = tls::server_config(vec![certificate.into()], key, &[b"test"]).unwrap();
    let mut client = tls::client_config(roots, &[b"test"]).unwrap();
    server.transport = Arc::clone(&transport);
    client.transport = transport;
    (server, client)
}

fn endpoint(world: &World, host: u8, server: Option<ServerConfig>) -> Endpoint {
    let socket = world.bind(([10, 0, 0, host], 4433).into()).unwrap();
    let config = EndpointConfig::from_seed([host; 32]);
    Endpoint::new(config, server, socket, Arc::new(world.clone())).unwrap()
}

/// Sends `LEN` bytes; says when they had all arrived and when both ends had forgotten the connection.
fn transfer() -> (Instant, Instant) {
    let world = World::new(DELAY);
    let (server_config, client_config) = configs();
    let server = endpoint(&world, 1, Some(server_config));
    let client = endpoint(&world, 2, None);
    client.set_default_client_config(client_config);
    let addr = server.local_addr();
    let accepting = server.clone();
    world.spawn(Box::pin(async move {
        let connection = accepting.accept().await.unwrap().await.unwrap();
        let mut send = connection.open_uni().await.unwrap();
        send.write_chunk(vec![5; LEN].into()).await.unwrap();
        send.finish().unwrap();
        // The client may close before it acknowledges the end.
        send.stopped().await.ok();
        connection.closed().await;
    }));
    let clock = world.clone();
    world.run(async move {
        let connection = client.connect(addr, "localhost").unwrap().await.unwrap();
        let mut recv = connection.accept_uni().await.unwrap();
        assert_eq!(recv.read_to_end(LEN).await.unwrap().len(), LEN);
        let arrived = clock.now();
        connection.close(0, b"");
        client.wait_idle().await;
        server.wait_idle().await;
        (arrived, clock.now())
    })
}

#[test]
fn runs_repeat_to_the_nanosecond() {
    let first = transfer();
    assert!(first.0 - Instant::EPOCH > 6 * DELAY, "faster than light");
    assert!(first.0 - Instant::EPOCH < Duration::from_secs(2));
    assert_eq!(transfer(), first);
}
