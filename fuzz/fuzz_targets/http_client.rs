//! A server that sends arbitrary responses, over HTTP/1.1, HTTP/2 or HTTP/3, to a client that fetches a file: whole, in ranges,
//! resumed; in virtual time. A file appears only when it is complete, as the report says, and afterwards an honest server of the
//! same name delivers its file, whatever the client has kept: a part of the file, sessions, address tokens.
#![no_main]

mod http2;
mod http3_server;
mod http_server;
mod web;

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use http::Version;
use libfuzzer_sys::fuzz_target;
use marline::Sha256;
use marline_http::client::{
    Client, ClientConfig, Destination, FetchOptions, HttpVersion, Message, ObjectReport, Target,
    Trust, testing,
};
use marline_http::transport::QuicOptions;
use tempfile::TempDir;
use tokio::time::timeout;

use self::http_server::{NAME, Replies};

/// Where the file is saved.
static DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));

fuzz_target!(|input: &[u8]| {
    let Some((&choice, script)) = input.split_first() else {
        return;
    };
    let replies = Replies::new(script);
    let options = FetchOptions {
        connections: 1 + usize::from(choice >> 4 & 1),
        resume: choice & 4 != 0,
        split: NonZeroU64::new(u64::from(choice >> 3 & 1) * 100),
        ..FetchOptions::default()
    };
    let version = [
        HttpVersion::Http11Cleartext,
        HttpVersion::Http2,
        HttpVersion::Http3,
        HttpVersion::Http3,
    ][usize::from(choice & 3)];
    let config = ClientConfig {
        version,
        trust: Trust::Insecure,
        quic: QuicOptions {
            zero_rtt: true,
            ..QuicOptions::default()
        },
        // The port is that of the URL; over TCP the address is not used.
        resolve: [(NAME.to_owned(), ([127, 0, 0, 1], 0).into())].into(),
        fallback: false,
        ..ClientConfig::default()
    };
    if version == HttpVersion::Http3 {
        http3_server::run(replies, config, async move |client, server| {
            fetch_twice(&client, options, server.become_honest()).await;
        });
    } else {
        web::runtime().block_on(async {
            let server = replies.clone();
            let dial = move || match version {
                HttpVersion::Http2 => server.dial(Version::HTTP_2),
                _ => server.dial(Version::HTTP_11),
            };
            let client = Arc::new(testing::client(config, dial).expect("a client"));
            let fetched = fetch_twice(&client, options, async { replies.become_honest() });
            timeout(web::END, fetched).await.expect("it ends");
        });
    }
});

/// Fetches a file from the hostile server, and then from an honest one, by which `become_honest` replaces it.
async fn fetch_twice(
    client: &Arc<Client>,
    options: FetchOptions,
    become_honest: impl Future<Output = ()>,
) {
    let target = DIRECTORY.path().join("file");
    let files = [
        target.clone(),
        beside(".file.part"),
        beside(".file.part.tag"),
    ];
    for file in &files {
        // The file exists if an earlier input left it.
        let _ = std::fs::remove_file(file);
    }
    let object = fetch(client, &target, options).await;
    check(&object, &target);
    assert!(options.resume || !files[1].exists(), "a part is left");

    become_honest.await;
    let object = fetch(client, &target, options).await;
    assert_eq!(object.error, None, "an honest server");
    let saved = std::fs::read(&target).expect("a file");
    assert_eq!(saved, b"hello");
}

fn beside(name: &str) -> PathBuf {
    DIRECTORY.path().join(name)
}

async fn fetch(client: &Arc<Client>, file: &Path, options: FetchOptions) -> ObjectReport {
    let target = Target {
        url: match client.config().version {
            HttpVersion::Http11Cleartext => format!("http://{NAME}/file"),
            _ => format!("https://{NAME}/file"),
        },
        destination: Destination::File(file.to_owned()),
        size: None,
        message: Message::default(),
    };
    let report = client.fetch(vec![target], options, &Arc::default()).await;
    report.objects.into_iter().next().expect("one object")
}

/// The file exists if the report says so, and matches it.
fn check(object: &ObjectReport, file: &Path) {
    let saved = std::fs::read(file).ok();
    assert_eq!(saved.is_some(), object.error.is_none(), "{object:?}");
    let Some(saved) = saved else { return };
    assert_eq!(saved.len() as u64, object.bytes);
    let mut hash = Sha256::new();
    hash.update(&saved);
    let digest = hash.finish();
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(object.sha256.as_deref(), Some(&*digest));
}
