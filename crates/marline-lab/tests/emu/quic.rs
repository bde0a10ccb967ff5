//! Endpoints of this process inside hosts.

use std::sync::Arc;
use std::time::Duration;

use marline::{ClientConfig, Endpoint, EndpointConfig, Runtime, ServerConfig, tls};
use rcgen::{CertificateParams, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;

use crate::link::Spec;
use crate::setup;

const LEN: usize = 2_000_000;

fn configs() -> (ServerConfig, ClientConfig) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["server".into()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    (
        tls::server_config(vec![certificate.into()], key, &[b"test"]).unwrap(),
        tls::client_config(roots, &[b"test"]).unwrap(),
    )
}

fn endpoint(runtime: Arc<dyn Runtime>, port: u16, server: Option<ServerConfig>) -> Endpoint {
    let socket = runtime.bind(([0, 0, 0, 0], port).into()).unwrap();
    let config = EndpointConfig::from_seed(runtime.seed().unwrap());
    Endpoint::new(config, server, socket, runtime).unwrap()
}

#[tokio::test]
async fn transfer_crosses_the_link() {
    let spec = Spec {
        bits_per_second: 20_000_000,
        buffer: Duration::from_millis(50),
        loss: 0.01,
        delay: Duration::from_millis(10),
    };
    let Some(pair) = setup::pair(spec) else {
        return;
    };
    let (server_config, client_config) = configs();
    let emulation = &pair.emulation;
    let server = endpoint(
        emulation.runtime(pair.server).unwrap(),
        4433,
        Some(server_config),
    );
    let client = endpoint(emulation.runtime(pair.client).unwrap(), 0, None);
    client.set_default_client_config(client_config);
    let serving = tokio::spawn(async move {
        let connection = server.accept().await.unwrap().await.unwrap();
        let mut send = connection.open_uni().await.unwrap();
        send.write_chunk(vec![5; LEN].into()).await.unwrap();
        send.finish().unwrap();
        connection.closed().await;
    });
    let to = (emulation.addresses(pair.server)[0], 4433).into();
    let connection = client.connect(to, "server").unwrap().await.unwrap();
    let bytes = connection
        .accept_uni()
        .await
        .unwrap()
        .read_to_end(LEN)
        .await
        .unwrap();
    assert_eq!(bytes.len(), LEN);
    assert!(connection.rtt() >= Duration::from_millis(20));
    connection.close(0, b"");
    serving.await.unwrap();
    let report = pair.emulation.stop();
    println!("{:#}", report.to_json());
    assert!(report.tally("server").unwrap().arrived_bytes > LEN as u64);
    assert!(report.tally("server").unwrap().lost() > 0);
}
