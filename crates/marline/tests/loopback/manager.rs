//! Managed paths between addresses of this host.

use std::net::{Ipv4Addr, SocketAddr};

use marline::{
    ConnectionEvent, Endpoint, ManagedConnectError, PathManager, PathPolicy, PathStatus, Profile,
};

use crate::setup::{Identity, NAME, echo, pattern, within_limit};

fn manager(rules: &[&str]) -> PathManager {
    PathManager::new(PathPolicy {
        rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
        ..PathPolicy::default()
    })
}

#[tokio::test]
async fn a_managed_connection_uses_two_addresses() {
    let transport = Profile::Multipath.config();
    let identity = Identity::new();
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let server = Endpoint::server(identity.server(transport.clone()), any).unwrap();
    let there = SocketAddr::from((Ipv4Addr::LOCALHOST, server.local_addr().port()));
    let client = Endpoint::client(any).unwrap();
    let config = identity.client(transport);

    let manager = manager(&["127.0.0.2", "127.0.0.3,backup"]);
    let connecting = manager.connect(&client, &config, there, NAME);
    let accepting = async { server.accept().await.unwrap().await.unwrap() };
    let (ours, theirs) = within_limit(async { tokio::join!(connecting, accepting) }).await;
    let ours = ours.unwrap();
    assert_eq!(ours.local_address().ip(), Ipv4Addr::new(127, 0, 0, 2));
    tokio::spawn(echo(theirs.clone()));
    let mut events = theirs.events();
    loop {
        if let ConnectionEvent::PathStatus { id, status } =
            within_limit(events.next()).await.unwrap()
        {
            assert_eq!((id.0, status), (1, PathStatus::Backup));
            break;
        }
    }
    let (mut send, mut recv) = within_limit(ours.open_bi()).await.unwrap();
    let data = pattern(1_000_000);
    let writing = async {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
    };
    let reading = recv.read_to_end(usize::MAX);
    let (answer, ()) = within_limit(async { tokio::join!(reading, writing) }).await;
    assert_eq!(answer.unwrap(), data);
    let remotes = theirs.paths().into_iter().map(|path| path.remote.ip());
    let expected = [2, 3].map(|last| Ipv4Addr::new(127, 0, 0, last));
    assert!(remotes.eq(expected));
}

#[tokio::test]
async fn an_address_of_another_host_is_not_used() {
    let client = Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).unwrap();
    let config = Identity::new().client(Profile::Multipath.config());
    let there = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    let manager = manager(&["192.0.2.77", "no-such-interface", "::1"]);
    let error = within_limit(manager.connect(&client, &config, there, NAME)).await;
    assert!(
        matches!(error, Err(ManagedConnectError::NoAddress(_))),
        "{error:?}"
    );
    let elsewhere = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let manager = self::manager(&["127.0.0.2", "127.0.0.3"]);
    let error = within_limit(manager.connect(&elsewhere, &config, there, NAME)).await;
    assert!(
        matches!(error, Err(ManagedConnectError::Connect(_))),
        "{error:?}"
    );
}
