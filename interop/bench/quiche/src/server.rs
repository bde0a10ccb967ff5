//! The server.

use std::collections::HashMap;

use anyhow::Context as _;
use bench_kit::{CHUNK, REQUEST, ServerArgs, control};
use quiche::Connection;

use crate::config;
use crate::endpoint::{Endpoint, Key};

/// Bytes still to be sent, by connection and stream.
type Responses = HashMap<(Key, u64), u64>;

pub(crate) fn run(args: &ServerArgs) -> anyhow::Result<()> {
    let mut config = config::config()?;
    config.load_cert_chain_from_pem_file(args.cert.to_str().context("--cert")?)?;
    config.load_priv_key_from_pem_file(args.key.to_str().context("--key")?)?;
    let mut endpoint = Endpoint::bind(args.listen, config, true)?;
    control::serve(endpoint.local_addr());
    let chunk = vec![0x5a; CHUNK];
    let mut responses = Responses::new();
    loop {
        endpoint.turn(|key, connection| {
            answer(key, connection, &mut responses, &chunk);
            Ok(())
        })?;
    }
}

/// Reads the requests of a connection, and writes as much as flow control permits.
fn answer(key: Key, connection: &mut Connection, responses: &mut Responses, chunk: &[u8]) {
    for stream in connection.readable() {
        let mut request = [0; REQUEST];
        if let Ok((REQUEST, _)) = connection.stream_recv(stream, &mut request) {
            responses.insert((key, stream), u64::from_be_bytes(request));
            write(key, stream, connection, responses, chunk);
        }
    }
    for stream in connection.writable() {
        write(key, stream, connection, responses, chunk);
    }
}

fn write(
    key: Key,
    stream: u64,
    connection: &mut Connection,
    responses: &mut Responses,
    chunk: &[u8],
) {
    let Some(left) = responses.get_mut(&(key, stream)) else {
        return;
    };
    while *left > 0 {
        let length = usize::try_from(*left).map_or(CHUNK, |left| left.min(CHUNK));
        let last = length as u64 == *left;
        match connection.stream_send(stream, &chunk[..length], last) {
            Ok(0) | Err(quiche::Error::Done) => return,
            Ok(written) => *left -= written as u64,
            Err(_) => break,
        }
    }
    responses.remove(&(key, stream));
}
