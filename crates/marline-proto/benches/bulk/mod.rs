//! A transfer between two endpoints in virtual time.

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use marline_proto::testing::{Ends, Pair};
use marline_proto::{Dir, WriteError};

/// A pair with an established connection.
pub(crate) struct Connected {
    pub(crate) pair: Pair,
    pub(crate) ends: Ends,
}

/// Transfers `data` on one stream from server to client.
pub(crate) fn download(connected: &mut Connected, data: &Bytes) {
    let Connected { pair, ends } = connected;
    let id = pair
        .server(ends.server)
        .open(Dir::Uni)
        .expect("the client allows streams");
    let (mut rest, mut finished) = (data.clone(), false);
    let mut received = 0;
    let done = pair.drive_until(Duration::from_secs(60), |pair| {
        let connection = pair.server(ends.server);
        while !rest.is_empty() {
            match connection.write_chunk(id, &mut rest) {
                Ok(_) => {}
                Err(WriteError::Blocked) => break,
                Err(error) => panic!("{error}"),
            }
        }
        if rest.is_empty() && !finished {
            finished = true;
            connection.finish(id).expect("the stream is open");
        }
        let now = pair.now;
        loop {
            match pair.client(ends.client).read(|| now, id, usize::MAX) {
                Ok(Some(bytes)) => received += black_box(&bytes).len(),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    });
    assert!(done && received == data.len());
}
