//! Several paths between addresses of this host.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use marline::scheduling::path::{PathStatus, Rr};
use marline::{
    Connection, ConnectionEvent, Endpoint, ErrorCode, MultipathConfig, OpenPathError, PathId,
    PathStats, TransportConfig,
};

use crate::migration::Watched;
use crate::setup::{Identity, NAME, echo, pattern, within_limit};

const SECOND: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Both ends of a multipath connection, of a client at `client` and a server at any address.
struct Connected {
    client: Connection,
    server: Connection,
    /// They would close the connection when dropped.
    endpoints: [Endpoint; 2],
}

async fn connect(client: &str) -> Connected {
    let transport = TransportConfig {
        multipath: Some(MultipathConfig {
            scheduler: Arc::new(|| Box::new(Rr::default())),
            ..MultipathConfig::default()
        }),
        ..TransportConfig::default()
    };
    let identity = Identity::new();
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let server = Endpoint::server(identity.server(transport.clone()), any).unwrap();
    let client = Endpoint::client(client.parse().unwrap()).unwrap();
    let there = SocketAddr::from((Ipv4Addr::LOCALHOST, server.local_addr().port()));
    let connecting = client.connect_with(identity.client(transport), there, NAME);
    let accepting = async { server.accept().await.unwrap().await.unwrap() };
    let (ours, theirs) = tokio::join!(connecting.unwrap(), accepting);
    Connected {
        client: ours.unwrap(),
        server: theirs,
        endpoints: [client, server],
    }
}

/// Stream data that a connection has sent on a path, in bytes.
fn stream_bytes(connection: &Connection, id: PathId) -> u64 {
    let paths = connection.paths();
    let path = paths.iter().find(|path| path.id == id);
    path.expect("the path is open").stream_bytes_sent
}

#[tokio::test]
async fn addresses_of_one_socket_can_be_paths() {
    for client in ["0.0.0.0:0", "[::]:0"] {
        let Connected {
            client: ours,
            server: theirs,
            endpoints: _endpoints,
        } = within_limit(connect(client)).await;
        tokio::spawn(echo(theirs.clone()));
        let mut events = theirs.events();
        let id = within_limit(ours.open_path(SECOND, None)).await.unwrap();
        assert_eq!(id, PathId(1));

        let data = pattern(2_000_000);
        // As a backup, each path leaves the data to the other one.
        for [backup, used] in [[PathId::INITIAL, id], [id, PathId::INITIAL]] {
            ours.set_path_status(backup, PathStatus::Backup);
            ours.set_path_status(used, PathStatus::Available);
            let before = stream_bytes(&ours, used);
            let (mut send, mut recv) = within_limit(ours.open_bi()).await.unwrap();
            let writing = async {
                send.write_all(&data).await.unwrap();
                send.finish().unwrap();
            };
            let reading = recv.read_to_end(usize::MAX);
            let (answer, ()) = within_limit(async { tokio::join!(reading, writing) }).await;
            assert_eq!(answer.unwrap(), data);
            let sent = stream_bytes(&ours, used) - before;
            assert!(sent > 1_000_000, "{client}: {sent} bytes on {used:?}");
        }
        assert_eq!(theirs.paths().len(), 2);
        // The server reports the addresses of the received packets.
        assert_eq!(theirs.paths()[1].remote.ip().to_canonical(), SECOND);

        let why = ErrorCode::APPLICATION_ABANDON_PATH;
        ours.abandon_path(id, why).unwrap();
        loop {
            if let ConnectionEvent::PathClosed { id: of, error } =
                within_limit(events.next()).await.unwrap()
            {
                assert_eq!((of, error), (id, why));
                break;
            }
        }
    }
}

#[tokio::test]
async fn all_paths_of_a_socket_move_to_the_next_with_other_connection_ids() {
    let Connected {
        client: ours,
        server: theirs,
        endpoints: [client, _server],
    } = within_limit(connect("0.0.0.0:0")).await;
    tokio::spawn(echo(theirs.clone()));
    within_limit(ours.open_path(SECOND, None)).await.unwrap();
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let data = pattern(200_000);
    let sockets = [Watched::bind(any), Watched::bind(any)];
    for socket in &sockets {
        client.rebind_to(socket.clone()).unwrap();
        let port = client.local_addr().port();
        let is_there = |path: &PathStats| path.remote.port() == port;
        within_limit(async {
            while !theirs.paths().iter().all(is_there) {
                let (mut send, mut recv) = ours.open_bi().await.unwrap();
                let writing = async {
                    send.write_all(&data).await.unwrap();
                    send.finish().unwrap();
                };
                let (answer, ()) = tokio::join!(recv.read_to_end(usize::MAX), writing);
                assert_eq!(answer.unwrap(), data);
            }
        })
        .await;
        assert_eq!(theirs.paths().len(), 2);
        assert_eq!(theirs.paths()[1].remote.ip(), SECOND);
    }
    let [before, after] = sockets.map(|socket| socket.ids());
    assert!(before.is_disjoint(&after));
}

#[tokio::test]
async fn a_path_may_share_the_addresses_of_another() {
    let ends = within_limit(connect("127.0.0.1:0")).await;
    let ours = &ends.client;
    let same = IpAddr::V4(Ipv4Addr::LOCALHOST);
    assert_eq!(
        within_limit(ours.open_path(same, None)).await.unwrap(),
        PathId(1)
    );
    let elsewhere = within_limit(ours.open_path(SECOND, None)).await;
    assert!(matches!(
        elsewhere,
        Err(OpenPathError::BoundElsewhere { .. })
    ));
}

#[tokio::test]
async fn addresses_of_other_hosts_are_refused() {
    let ends = within_limit(connect("0.0.0.0:0")).await;
    let ours = &ends.client;
    let documentation = Ipv4Addr::new(192, 0, 2, 77).into();
    let refused = within_limit(ours.open_path(documentation, None)).await;
    assert!(matches!(refused, Err(OpenPathError::NoSuchAddress { .. })));
}
