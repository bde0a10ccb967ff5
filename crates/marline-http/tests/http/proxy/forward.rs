//! The forward proxy: tunnels, requests with absolute targets, and refusals.

use std::net::SocketAddr;
use std::time::Duration;

use marline_http::proxy::{ForwardConfig, forward_proxy};
use marline_http::server::{Server, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::LIMIT;
use super::application::{Application, Then, field};
use super::tunnels::ask;

async fn forward(change: impl FnOnce(&mut ForwardConfig)) -> SocketAddr {
    let mut config = ForwardConfig::default();
    change(&mut config);
    let config = ServerConfig::cleartext(([127, 0, 0, 1], 0).into(), forward_proxy(config));
    let server = Server::bind(config).await.unwrap();
    let address = server.local_addr();
    tokio::spawn(server.run());
    address
}

/// An echo server.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    address
}

fn connect(target: &str) -> String {
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
}

#[tokio::test]
async fn connect_is_a_tunnel_to_hosts_that_are_allowed() {
    let server = echo().await;
    let proxy = forward(|config| config.allowed = vec![server.to_string().parse().unwrap()]).await;
    let (stream, header) = ask(proxy, &connect(&server.to_string())).await;
    assert!(header.starts_with("HTTP/1.1 200 "), "{header}");
    super::tunnels::talk(stream).await;
}

#[tokio::test]
async fn destinations_that_are_not_allowed_are_403() {
    let server = echo().await;
    let port = server.port();
    let open = forward(|_| {}).await;
    let narrow = forward(|config| config.allowed = vec!["example.org".parse().unwrap()]).await;
    for (proxy, target) in [
        // A port other than those of the web.
        (open, format!("example.org:{port}")),
        // Addresses that are not of the public Internet, also by name.
        (open, "127.0.0.1:443".to_owned()),
        (open, "localhost:443".to_owned()),
        (open, "[::1]:443".to_owned()),
        (open, "[::ffff:127.0.0.1]:443".to_owned()),
        (open, "169.254.169.254:80".to_owned()),
        (open, "10.0.0.1:80".to_owned()),
        // Hosts that are not on the list.
        (narrow, format!("127.0.0.1:{port}")),
        (narrow, "example.com:443".to_owned()),
    ] {
        let (_, header) = ask(proxy, &connect(&target)).await;
        assert!(header.starts_with("HTTP/1.1 403 "), "{target}: {header}");
        let error = "marline; error=http_request_denied";
        assert_eq!(field(&header, "proxy-status"), Some(error));
    }
}

#[tokio::test]
async fn requests_with_absolute_targets_are_passed_on() {
    let hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let application = Application::that_sends(hello, Then::Continue).await;
    let allowed = application.address.to_string().parse().unwrap();
    let proxy = forward(|config| config.allowed = vec![allowed]).await;
    let head = format!(
        "GET http://{}/a?b HTTP/1.1\r\nHost: other\r\nProxy-Connection: keep-alive\r\n\
         Proxy-Authorization: Basic eA==\r\nConnection: close\r\n\r\n",
        application.address
    );
    let (mut stream, header) = ask(proxy, &head).await;
    assert!(header.starts_with("HTTP/1.1 200 "), "{header}");
    let mut content = String::new();
    stream.read_to_string(&mut content).await.unwrap();
    assert_eq!(content, "hello");
    let seen = application.last_request();
    assert!(seen.starts_with("GET /a?b HTTP/1.1\r\n"), "{seen}");
    let host = application.address.to_string();
    assert_eq!(field(&seen, "host"), Some(&*host));
    for removed in ["proxy-connection", "proxy-authorization"] {
        assert_eq!(field(&seen, removed), None, "{seen}");
    }
}

#[tokio::test]
async fn requests_that_are_not_for_a_proxy_are_refused() {
    let proxy = forward(|_| {}).await;
    for head in [
        "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
        "GET https://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
        "GET ftp://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
    ] {
        let (_, header) = ask(proxy, head).await;
        assert!(header.starts_with("HTTP/1.1 501 "), "{head}: {header}");
    }
}

#[tokio::test]
async fn a_network_of_clients_has_a_limited_number_of_tunnels() {
    let server = echo().await;
    let target = server.to_string();
    let proxy = forward(|config| {
        config.allowed = vec![target.parse().unwrap()];
        config.max_tunnels = 2;
        config.connect_timeout = Duration::from_millis(300);
    })
    .await;
    let (stream, header) = ask(proxy, &connect(&target)).await;
    assert!(header.starts_with("HTTP/1.1 200 "), "{header}");
    let (_, refused) = ask(proxy, &connect(&target)).await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    super::tunnels::talk(stream).await;
    let again = async {
        loop {
            let (_, header) = ask(proxy, &connect(&target)).await;
            if header.starts_with("HTTP/1.1 200 ") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, again)
        .await
        .expect("the place is free again");
}

#[tokio::test]
async fn an_idle_tunnel_ends() {
    let server = echo().await;
    let target = server.to_string();
    let proxy = forward(|config| {
        config.allowed = vec![target.parse().unwrap()];
        config.idle_timeout = Duration::from_millis(200);
    })
    .await;
    let (mut stream, header) = ask(proxy, &connect(&target)).await;
    assert!(header.starts_with("HTTP/1.1 200 "), "{header}");
    let ended = tokio::time::timeout(LIMIT, stream.read(&mut [0; 1])).await;
    assert!(matches!(ended, Ok(Ok(0) | Err(_))), "{ended:?}");
}

/// A server that sends `hello`, and then resets the connection when it has read a byte.
async fn resets() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.write_all(b"hello").await.unwrap();
            let _ = stream.read_u8().await;
            socket2::SockRef::from(&stream)
                .set_linger(Some(std::time::Duration::ZERO))
                .unwrap();
        }
    });
    address
}

#[tokio::test]
async fn a_tunnel_that_the_server_resets_is_reset_for_the_client() {
    let target = resets().await.to_string();
    let proxy = forward(|config| config.allowed = vec![target.parse().unwrap()]).await;
    let (mut stream, header) = ask(proxy, &connect(&target)).await;
    assert!(header.starts_with("HTTP/1.1 200 "), "{header}");
    let mut content = [0; 5];
    stream.read_exact(&mut content).await.unwrap();
    stream.write_all(b"x").await.unwrap();
    let ended = tokio::time::timeout(LIMIT, stream.read(&mut content)).await;
    assert!(matches!(ended, Ok(Err(_))), "{ended:?}");
}

#[tokio::test]
async fn a_tunnel_that_the_client_resets_is_reset_for_the_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let proxy = forward(|config| config.allowed = vec![target.parse().unwrap()]).await;
    let (mut stream, header) = ask(proxy, &connect(&target)).await;
    assert!(header.starts_with("HTTP/1.1 200 "), "{header}");
    stream.write_all(b"half of").await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    let mut content = [0; 7];
    server.read_exact(&mut content).await.unwrap();
    socket2::SockRef::from(&stream)
        .set_linger(Some(std::time::Duration::ZERO))
        .unwrap();
    drop(stream);
    let ended = tokio::time::timeout(LIMIT, server.read(&mut content)).await;
    assert!(matches!(ended, Ok(Err(_))), "{ended:?}");
}

#[tokio::test]
async fn content_of_get_without_a_length_is_passed_on() {
    let application = Application::with(std::sync::Arc::new(|mut stream, _| {
        Box::pin(async move {
            let mut content = [0; 15];
            stream.read_exact(&mut content).await.ok()?;
            assert_eq!(&content, b"5\r\nhello\r\n0\r\n\r\n");
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).await.ok()?;
            None
        })
    }))
    .await;
    let allowed = application.address.to_string().parse().unwrap();
    let proxy = forward(|config| config.allowed = vec![allowed]).await;
    let head = format!(
        "GET http://{}/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\nhello\r\n0\r\n\r\n",
        application.address
    );
    let (_, header) = ask(proxy, &head).await;
    assert!(header.starts_with("HTTP/1.1 200 "), "{header}");
}
