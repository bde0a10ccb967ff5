//! Acknowledgments of BQUIC, and of the default.

use marline::Profile;
use marline_sim::identity::Identity;

use crate::setup::{client_config, run, server_config};

const LEN: usize = 3_000_000;

/// ACK frames that a server receives for a download of three megabytes.
fn acknowledgments(server: Profile, client: Profile) -> u64 {
    run(async |network| {
        let listening = network.server_endpoint(server_config(server.config()));
        let endpoint = network.client_endpoint();
        endpoint.set_default_client_config(client_config(client.config()));
        let connecting = endpoint.connect(listening.local_addr(), Identity::NAME);
        let ours = connecting.unwrap().await.unwrap();
        let theirs = listening.accept().await.unwrap().await.unwrap();
        let mut send = theirs.open_uni().await.unwrap();
        let sending = async {
            send.write_chunk(vec![5; LEN].into()).await.unwrap();
            send.finish().unwrap();
        };
        let receiving = async {
            let mut recv = ours.accept_uni().await.unwrap();
            let mut len = 0;
            while let Some(chunk) = recv.read_chunk(usize::MAX).await.unwrap() {
                len += chunk.len();
            }
            assert_eq!(len, LEN);
        };
        tokio::join!(sending, receiving);
        theirs.stats().frames_received.ack
    })
}

#[test]
fn a_client_with_bquic_acknowledges_rarely() {
    let usual = acknowledgments(Profile::Rfc, Profile::Rfc);
    for server in [Profile::Rfc, Profile::BquicPublished] {
        let rare = acknowledgments(server, Profile::BquicPublished);
        assert!(rare * 3 < usual, "{rare} instead of {usual} to {server}");
    }
}

#[test]
fn by_default_a_large_window_is_acknowledged_half_as_often_as_with_usual_acknowledgments() {
    let usual = acknowledgments(Profile::Rfc, Profile::Rfc);
    let asked = acknowledgments(Profile::Default, Profile::Default);
    assert!(asked * 2 < usual, "{asked} instead of {usual}");
}
