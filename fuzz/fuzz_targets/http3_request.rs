//! Arbitrary bytes on a client's control, QPACK and request streams, split and terminated arbitrarily, for
//! the HTTP/3 server in virtual time. Checks for panics, bounded memory, and termination.
#![no_main]

mod http3_client;
mod http3_peer;
mod web;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use marline_http::server::testing;
use tokio::sync::watch;
use tokio::time::timeout;

use self::http3_client::{CONTROL, play};
use self::http3_peer::Peer;

fuzz_target!(|input: &[u8]| {
    let Some((&first, script)) = input.split_first() else {
        return;
    };
    web::runtime().block_on(async {
        let peer = Peer::default();
        if first & 1 == 0 {
            peer.send(2, Bytes::from_static(CONTROL));
        }
        let (stop, stopping) = watch::channel(false);
        let server = testing::serve(peer.clone(), web::site(), stopping);
        let client = async {
            play(&peer, &stop, script).await;
            peer.close();
        };
        let both = async { tokio::join!(server, client) };
        timeout(web::END, both).await.expect("the server ends");
    });
});
