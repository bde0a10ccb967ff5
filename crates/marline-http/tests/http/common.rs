//! A server in this process, and clients of each version of HTTP.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use marline_http::client::{
    Client, ClientConfig, ClientError, Connection, Destination, Download, HttpVersion, Message,
    Origin, Target, Trust, parse_url,
};
use marline_http::server::{
    Handle, Identity, Metrics, ServeError, Server, ServerConfig, Site, directory,
};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// Every version that a client supports.
pub(crate) const VERSIONS: [HttpVersion; 4] = [
    HttpVersion::Http11Cleartext,
    HttpVersion::Http11,
    HttpVersion::Http2,
    HttpVersion::Http3,
];

/// A running server.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) metrics_address: Option<SocketAddr>,
    pub(crate) handle: Handle,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) task: JoinHandle<Result<(), ServeError>>,
}

impl TestServer {
    pub(crate) async fn files(root: &Path) -> Self {
        Self::site(directory(root, false).unwrap()).await
    }

    pub(crate) async fn site(site: Site) -> Self {
        Self::with(site, |_| {}).await
    }

    pub(crate) async fn with(site: Site, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let identity = Identity::self_signed(vec!["localhost".to_owned()]).unwrap();
        let mut config = ServerConfig::new(([127, 0, 0, 1], 0).into(), identity, site);
        config.protocols.cleartext = true;
        change(&mut config);
        let server = Server::bind(config).await.unwrap();
        Self {
            address: server.local_addr(),
            addresses: server.local_addrs().to_vec(),
            metrics_address: server.metrics_addr(),
            handle: server.handle(),
            metrics: server.metrics(),
            task: tokio::spawn(server.run()),
        }
    }

    pub(crate) fn url(&self, version: HttpVersion, path: &str) -> String {
        let scheme = match version {
            HttpVersion::Http11Cleartext => "http",
            _ => "https",
        };
        format!("{scheme}://{}{path}", self.address)
    }

    pub(crate) async fn connect(&self, version: HttpVersion) -> TestConnection {
        let client = client(version);
        let origin = parse_url(&self.url(version, "/"), version).unwrap().origin;
        TestConnection {
            connection: client.connect(&origin).await.unwrap(),
            origin,
            base: self.url(version, ""),
            _client: client,
        }
    }
}

/// A client that trusts the test server.
pub(crate) fn client(version: HttpVersion) -> Arc<Client> {
    client_with(|config| config.version = version)
}

/// The same with other settings.
pub(crate) fn client_with(change: impl FnOnce(&mut ClientConfig)) -> Arc<Client> {
    let mut config = ClientConfig {
        trust: Trust::Insecure,
        fallback: false,
        ..ClientConfig::default()
    };
    change(&mut config);
    Arc::new(Client::new(config).unwrap())
}

/// One connection.
pub(crate) struct TestConnection {
    pub(crate) connection: Connection,
    origin: Origin,
    base: String,
    _client: Arc<Client>,
}

impl TestConnection {
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Response<Download> {
        self.try_send(method, path, headers).await.unwrap()
    }

    pub(crate) async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Response<Download>, ClientError> {
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = format!("{}{path}", self.base).parse().unwrap();
        *request.headers_mut() = header_map(headers);
        self.connection.send(&self.origin, request).await
    }

    pub(crate) async fn get(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (Response<()>, Vec<u8>) {
        let response = self.send(Method::GET, path, headers).await;
        let (parts, download) = response.into_parts();
        let content = read(download).await;
        (Response::from_parts(parts, ()), content)
    }
}

pub(crate) async fn read(mut download: Download) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some(chunk) = download.chunk().await.unwrap() {
        content.extend_from_slice(&chunk);
    }
    content
}

fn header_map(headers: &[(&str, &str)]) -> HeaderMap {
    headers
        .iter()
        .map(|(name, value)| {
            let name: HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        })
        .collect()
}

pub(crate) fn discarded(url: String) -> Target {
    Target {
        url,
        destination: Destination::Nowhere,
        size: None,
        message: Message::default(),
    }
}

/// Waits until `condition` holds. The bound is for what never comes, on a slow machine.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let met = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let met = tokio::time::timeout(Duration::from_secs(120), met).await;
    assert!(met.is_ok(), "{what}");
}

/// Waits until `value` is not zero and has not changed for a while, and returns it.
pub(crate) async fn settled(what: &str, mut value: impl FnMut() -> u64) -> u64 {
    let (mut last, mut same) = (0, 0);
    until(what, || {
        let now = value();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        now > 0 && same >= 20
    })
    .await;
    last
}

/// A directory with these files.
pub(crate) fn directory_of(files: &[(&str, &[u8])]) -> TempDir {
    let root = TempDir::new().unwrap();
    for (name, content) in files {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    root
}

/// Content that differs at every offset.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}
