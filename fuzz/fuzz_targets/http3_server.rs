//! The server of `http_server` over HTTP/3, on the simulator.

use std::sync::Arc;
use std::time::Duration;

use marline::{Connection, Endpoint, TransportConfig};
use marline_http::client::{Client, ClientConfig};
use marline_http::server::{Identity, Protocols, Server, ServerConfig};
use marline_sim::{Host, SimBuilder, identity};

use super::http_server::{BUFFER, NAME, Replies, Reply};
use super::web;

/// The server's port in the simulated network.
const PORT: u16 = 443;

/// Time after which the hostile server's datagrams have arrived.
const REST: Duration = Duration::from_secs(1);

/// The hostile server, and its host.
pub struct Hostile {
    replies: Replies,
    host: Host,
    endpoint: Endpoint,
}

/// Runs `test` with a client of this configuration, whose only server answers with `replies`.
pub fn run(
    replies: Replies,
    mut config: ClientConfig,
    test: impl AsyncFnOnce(Arc<Client>, Hostile),
) {
    let network = SimBuilder::new(1).link("access", ["client", "server"], "rate=20mbps,rtt=10ms");
    let mut sim = network.build().expect("a network");
    let [client, server] = ["client", "server"].map(|name| sim.host(name).expect("a host"));
    config.resolve.insert(NAME.to_owned(), server.at(PORT));
    config.runtime = Some(Arc::new(client));
    let client = Arc::new(Client::new(config).expect("a client"));
    let hostile = Hostile::listen(replies, &server);
    sim.run(test(client, hostile), web::END).expect("it ends");
}

impl Hostile {
    /// Listens on `host`.
    fn listen(replies: Replies, host: &Host) -> Self {
        let transport = Arc::new(TransportConfig::default());
        let config = identity::identity().server_config(&[b"h3"], &transport);
        let config = config.expect("the identity is valid");
        let endpoint = host
            .endpoint(host.at(PORT), Some(config))
            .expect("the port is free");
        let server = Self {
            replies,
            host: host.clone(),
            endpoint: endpoint.clone(),
        };
        let (replies, own) = (server.replies.clone(), host.clone());
        host.run(async move {
            while let Some(connecting) = endpoint.accept().await {
                let (replies, host) = (replies.clone(), own.clone());
                own.run(async move {
                    let Ok(connection) = connecting.await else {
                        return;
                    };
                    answer(&replies, &host, &connection).await;
                    connection.close(0x100, b"");
                });
            }
        });
        server
    }

    /// Replaces the server by an honest one, with other keys at the same address.
    pub async fn become_honest(self) {
        let Self {
            replies,
            host,
            endpoint,
        } = self;
        replies.become_honest();
        endpoint.close(0x100, b"");
        endpoint.wait_idle().await;
        drop(endpoint);
        host.sleep(REST).await;
        let identity = Identity::repeatable(vec![NAME.to_owned()]).expect("a name");
        let mut config = ServerConfig::new(([0, 0, 0, 0], PORT).into(), identity, web::site());
        config.protocols = Protocols {
            http1: false,
            http2: false,
            ..Protocols::default()
        };
        config.runtime = Some(Arc::new(host.clone()));
        let server = Server::bind(config).await.expect("the port is free again");
        host.run(async move {
            let _ = server.run().await;
        });
    }
}

/// Returns when the connection is to be closed.
async fn answer(replies: &Replies, host: &Host, connection: &Connection) {
    let Ok(mut control) = connection.open_uni().await else {
        return;
    };
    let _ = control.write_all(&[0x00, 0x04, 0x00]).await;
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        // A request without content.
        let _ = recv.read_to_end(BUFFER).await;
        loop {
            let bytes = match replies.next() {
                None | Some(Reply::Close) => return,
                Some(Reply::End) => {
                    let _ = send.finish();
                    break;
                }
                Some(Reply::Reset) => {
                    send.reset(0x10c);
                    break;
                }
                Some(Reply::Head(fields)) => http3::frame(1, &http3::section(&fields)),
                Some(Reply::Content(bytes)) => http3::frame(0, &bytes),
                Some(Reply::Raw(bytes)) => bytes,
                Some(Reply::Frame(kind, bytes)) => http3::frame(kind, &bytes),
                Some(Reply::Control(bytes)) => {
                    let Ok(mut other) = connection.open_uni().await else {
                        return;
                    };
                    let _ = other.write_all(&bytes).await;
                    continue;
                }
                Some(Reply::Wait(time)) => {
                    host.sleep(time).await;
                    continue;
                }
            };
            // The client may have stopped the stream.
            let _ = send.write_all(&bytes).await;
        }
    }
}

mod http3 {
    /// A frame of RFC 9114, section 7.1.
    pub(super) fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(payload.len()).expect("a step is short") | 0x4000;
        [&[kind], &length.to_be_bytes()[..], payload].concat()
    }

    /// Fields without compression (RFC 9204, section 4.5.6).
    pub(super) fn section(fields: &[(&'static str, String)]) -> Vec<u8> {
        let mut section = vec![0, 0];
        for (name, value) in fields {
            match name.len() {
                short @ 0..7 => section.push(0x20 | short as u8),
                long => section.extend([0x27, (long - 7) as u8]),
            }
            section.extend(name.as_bytes());
            section.push(value.len() as u8);
            section.extend(value.as_bytes());
        }
        section
    }
}
