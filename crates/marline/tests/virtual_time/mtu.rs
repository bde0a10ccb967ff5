//! Interfaces whose MTU is small, or becomes so: the socket refuses what exceeds it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use marline::proto::Transmit;
use marline::{Connection, Runtime, TransportConfig};
use marline_sim::identity::Identity;

use crate::setup::{Filtered, Network, WIFI, client_config, run, server_config};

/// EMSGSIZE of Linux.
const TOO_LARGE: i32 = 90;

/// The time that an upload takes.
async fn upload(network: &Network, ours: &Connection, theirs: &Connection) -> Duration {
    let begun = network.client.now();
    let sending = async {
        let mut send = ours.open_uni().await.unwrap();
        send.write_all(&[7; 200_000]).await.unwrap();
        send.finish().unwrap();
    };
    let receiving = async {
        let mut recv = theirs.accept_uni().await.unwrap();
        assert_eq!(recv.read_to_end(usize::MAX).await.unwrap().len(), 200_000);
    };
    tokio::join!(sending, receiving);
    network.client.now() - begun
}

fn mtu(connection: &Connection) -> usize {
    connection.stats().paths[0].mtu.into()
}

#[test]
fn what_the_interface_refuses_is_replaced_by_smaller_datagrams_at_once() {
    run(async |network| {
        let client = network.client_endpoint();
        client.set_default_client_config(client_config(TransportConfig::default()));
        let server = network.server_endpoint(server_config(TransportConfig::default()));
        let connecting = client.connect(server.local_addr(), Identity::NAME).unwrap();
        let accepting = async { server.accept().await.unwrap().await.unwrap() };
        let (ours, theirs) = tokio::join!(connecting, accepting);
        let (ours, theirs) = (ours.unwrap(), theirs);
        ours.confirmed().await.unwrap();
        // Bytes of UDP payload that fit, and sends that were refused.
        let limit = Arc::new(AtomicUsize::new(usize::MAX));
        let refused = Arc::<AtomicUsize>::default();
        let narrow = Arc::new(Filtered {
            socket: network.client.bind((WIFI, 5000).into()).unwrap(),
            send: {
                let (limit, refused) = (Arc::clone(&limit), Arc::clone(&refused));
                move |transmit: &Transmit, payload: &[u8]| {
                    let size = transmit.segment_size.unwrap_or(payload.len());
                    (size > limit.load(Ordering::Relaxed)).then(|| {
                        refused.fetch_add(1, Ordering::Relaxed);
                        Err(io::Error::from_raw_os_error(TOO_LARGE))
                    })
                }
            },
        });
        client.rebind_to(narrow).unwrap();
        upload(network, &ours, &theirs).await;
        let unlimited = upload(network, &ours, &theirs).await;
        assert!(mtu(&ours) > 1400);

        for fits in [1390, 1240] {
            limit.store(fits, Ordering::Relaxed);
            refused.store(0, Ordering::Relaxed);
            let took = upload(network, &ours, &theirs).await;
            assert!(took < 3 * unlimited, "{took:?}, {unlimited:?} before");
            assert!(
                refused.load(Ordering::Relaxed) < 30,
                "{refused:?} sends refused"
            );
            upload(network, &ours, &theirs).await;
            assert!((fits - 20..=fits).contains(&mtu(&ours)), "{}", mtu(&ours));
        }
    });
}
