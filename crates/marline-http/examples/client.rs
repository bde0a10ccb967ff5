//! Requests over one connection, and fetches of whole objects: `cargo run -p marline-http --example client --
//! https://localhost:4433/hello/you certificate.pem`, or `--insecure` in place of the file.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use marline_http::client::{
    Client, ClientConfig, Destination, FetchOptions, HttpVersion, Message, ParsedUrl, Target,
    Trust, parse_url,
};

/// Requests `url`, and reads the response piece by piece.
async fn request(client: &Client, url: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let ParsedUrl { origin, uri } = parse_url(url, HttpVersion::Http3)?;
    // Any number of requests share the connection.
    let connection = client.connect(&origin).await?;
    let response = connection.get(&origin, &uri, &HeaderMap::new()).await?;
    println!("{} over {}", response.status(), connection.version().name());
    let mut body = response.into_body();
    let mut content = Vec::new();
    while let Some(chunk) = body.chunk().await? {
        content.extend_from_slice(&chunk);
    }
    Ok(content)
}

/// Fetches `urls` into files, which appear when they are complete; returns whether all are.
async fn fetch(client: &Arc<Client>, urls: &[&str], into: PathBuf) -> bool {
    let targets = urls.iter().enumerate().map(|(number, url)| Target {
        url: (*url).to_owned(),
        destination: Destination::File(into.join(format!("marline-{number}"))),
        size: None,
        message: Message::default(),
    });
    let options = FetchOptions {
        connections: 2,
        time_limit: Some(Duration::from_secs(60)),
        ..FetchOptions::default()
    };
    // Progress can be read while it runs; failures are in the report.
    let progress = Arc::default();
    let report = client.fetch(targets.collect(), options, &progress).await;
    for object in &report.objects {
        println!("{}: {} bytes, {:?}", object.url, object.bytes, object.error);
    }
    report.is_complete()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("which URL?")?;
    let client = Arc::new(Client::new(ClientConfig {
        // HTTP/2 where HTTP/3 does not connect.
        fallback: true,
        trust: match arguments.next().as_deref() {
            None => Trust::System,
            Some("--insecure") => Trust::Insecure,
            Some(pem) => Trust::File(pem.into()),
        },
        ..ClientConfig::default()
    })?);
    let content = request(&client, &url).await?;
    println!("{}", String::from_utf8_lossy(&content));
    let is_complete = fetch(&client, &[&url], std::env::temp_dir()).await;
    if let Some(client) = Arc::into_inner(client) {
        client.close().await;
    }
    is_complete.then_some(()).ok_or("incomplete".into())
}
