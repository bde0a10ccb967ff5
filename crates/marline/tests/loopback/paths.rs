//! Several paths between addresses of this host.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use marline::scheduling::path::Rr;
use marline::{
    Connection, ConnectionEvent, Endpoint, ErrorCode, MultipathConfig, OpenPathError, PathId,
    TransportConfig,
};

use crate::setup::{Identity, NAME, echo, pattern, soon};

const SECOND: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Both ends of a connection that takes several paths, of a client at `client` and a server at any
/// address. Dropped, the endpoints would close it.
async fn connect(client: &str) -> (Connection, Connection, [Endpoint; 2]) {
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
    (ours.unwrap(), theirs, [client, server])
}

#[tokio::test]
async fn addresses_of_one_socket_are_paths() {
    for client in ["0.0.0.0:0", "[::]:0"] {
        let (ours, theirs, _ends) = soon(connect(client)).await;
        tokio::spawn(echo(theirs.clone()));
        let mut events = theirs.events();
        let id = soon(ours.open_path(SECOND, None)).await.unwrap();
        assert_eq!(id, PathId(1));

        let (mut send, mut recv) = soon(ours.open_bi()).await.unwrap();
        let data = pattern(2_000_000);
        let writing = async {
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
        };
        let reading = recv.read_to_end(usize::MAX);
        let (answer, ()) = soon(async { tokio::join!(reading, writing) }).await;
        assert_eq!(answer.unwrap(), data);
        for connection in [&ours, &theirs] {
            let paths = connection.paths();
            assert_eq!(paths.len(), 2);
            for path in paths {
                assert!(path.udp_sent.bytes > 100_000, "{client}: {path:?}");
                assert!(path.udp_received.bytes > 100_000, "{client}: {path:?}");
            }
        }
        // What the server sees is what the system sent.
        assert_eq!(theirs.paths()[1].remote.ip().to_canonical(), SECOND);

        let why = ErrorCode::APPLICATION_ABANDON_PATH;
        ours.abandon_path(id, why).unwrap();
        loop {
            if let ConnectionEvent::PathClosed { id: of, error } =
                soon(events.next()).await.unwrap()
            {
                assert_eq!((of, error), (id, why));
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_path_may_share_the_addresses_of_another() {
    let (ours, _theirs, _ends) = soon(connect("127.0.0.1:0")).await;
    let same = IpAddr::V4(Ipv4Addr::LOCALHOST);
    assert_eq!(soon(ours.open_path(same, None)).await.unwrap(), PathId(1));
    let elsewhere = soon(ours.open_path(SECOND, None)).await;
    assert!(matches!(
        elsewhere,
        Err(OpenPathError::BoundElsewhere { .. })
    ));
}

#[tokio::test]
async fn addresses_of_others_are_refused() {
    let (ours, _theirs, _ends) = soon(connect("0.0.0.0:0")).await;
    let documentation = Ipv4Addr::new(192, 0, 2, 77).into();
    let refused = soon(ours.open_path(documentation, None)).await;
    assert!(matches!(refused, Err(OpenPathError::NoSuchAddress { .. })));
}
