//! The files of a directory over HTTP/3, whose checksums are compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use http::HeaderValue;
use marline::{Bytes, Sha256};
use marline_http::client::{Destination, Message, ObjectReport, Target};
use marline_http::server::GeneratedObject;

use super::http::{NAME, client, fetch_options, identity, scheme, serve};
use super::measures::Measured;
use super::{Probe, SETTLE, Testbed, failed, sleep};
use crate::run::is_results;
use crate::scenario::{Job, Outcome, RunError, Topology, WatchedObject, Workload};

/// Limits on the number and the total size of files.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: u64 = 1 << 30;

/// Fetches the files of `job`.
pub(super) async fn fetch(
    job: &Job,
    testbed: &Testbed,
    probe: &Probe,
) -> Result<Outcome, RunError> {
    let Workload::Files { directory, warm } = &job.settings.workload else {
        return Err(failed("the workload is not files"));
    };
    let files = files_below(Path::new(directory))?;
    let scheme = scheme(job.settings.http.version);
    let port = testbed.server_address()?.port();
    let targets = files.iter().map(|(path, content)| Target {
        url: format!("{scheme}://{NAME}:{port}{path}"),
        destination: Destination::Nowhere,
        size: Some(content.len() as u64),
        message: Message::default(),
    });
    let targets: Vec<_> = targets.collect();
    let objects = files.iter().map(|(path, content)| {
        let kind = HeaderValue::from_static("application/octet-stream");
        (path.clone(), GeneratedObject::of(content.clone(), kind))
    });
    let server = serve(
        job,
        testbed,
        probe,
        objects.collect(),
        identity(job, [NAME.to_owned()])?,
    )
    .await?;
    let client = Arc::new(client(job, testbed, [NAME.to_owned()])?);
    let connections = job.settings.http.connections;
    let runtime = &testbed.host(Topology::CLIENT)?.runtime;
    if let (true, Some(first)) = (*warm, targets.first()) {
        client.open(&first.url, connections).await.map_err(failed)?;
        sleep(&**runtime, SETTLE).await;
        probe.reset();
    }
    let options = fetch_options(job);
    let start = runtime.now();
    let report = client.fetch(targets, options, &Arc::default()).await;
    for ((path, content), fetched) in files.iter().zip(&report.objects) {
        check(path, content, fetched)?;
    }
    let measured = Measured {
        start,
        completion_s: report.page_load_s,
        bytes: files.values().map(|content| content.len() as u64).sum(),
        handshakes: u32::from(!warm),
    };
    let mut outcome = measured.outcome(probe, testbed.ideal.as_ref(), job.watch);
    let count = u32::try_from(files.len()).unwrap_or(u32::MAX);
    outcome.metrics.insert("files".to_owned(), count.into());
    if let Some(watched) = &mut outcome.series {
        let objects = files.keys().zip(&report.objects);
        watched.objects = objects
            .map(|(path, object)| WatchedObject {
                name: path.clone(),
                discovered_s: 0.0,
                requested_s: object.start_s,
                connected_s: object.connected_s,
                first_byte_s: object.first_byte_s,
                finished_s: Some(object.end_s),
            })
            .collect();
    }
    server.shut_down();
    Ok(outcome)
}

/// Checks that `fetched` matches the content that was served.
fn check(path: &str, content: &[u8], fetched: &ObjectReport) -> Result<(), RunError> {
    if let Some(error) = &fetched.error {
        return Err(failed(format_args!("{path}: {error}")));
    }
    let served: String = Sha256::of(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if fetched.sha256.as_ref() == Some(&served) {
        Ok(())
    } else {
        Err(failed(format_args!("{path} arrived altered")))
    }
}

/// Files by the path they are served at, without hidden ones and the results of experiments.
pub(crate) fn files_below(root: &Path) -> Result<BTreeMap<String, Bytes>, RunError> {
    let mut files = BTreeMap::new();
    let mut bytes = 0;
    let mut directories = vec![(root.to_owned(), String::from("/"))];
    while let Some((directory, prefix)) = directories.pop() {
        let cannot = |error: std::io::Error| {
            RunError::Unsupported(format!("cannot read {}: {error}", directory.display()))
        };
        for entry in fs::read_dir(&directory).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let kind = entry.file_type().map_err(cannot)?;
            if kind.is_dir() {
                // Results of runs like this one would change it.
                if is_results(&entry.path()) {
                    continue;
                }
                directories.push((entry.path(), format!("{prefix}{}/", escape(&name))));
            } else if kind.is_file() {
                bytes += entry.metadata().map_err(cannot)?.len();
                if files.len() >= MAX_FILES || bytes > MAX_BYTES {
                    return Err(RunError::Unsupported(format!(
                        "{} holds more than {MAX_FILES} files or {MAX_BYTES} bytes; name a smaller one",
                        root.display()
                    )));
                }
                let content = fs::read(entry.path()).map_err(cannot)?;
                files.insert(format!("{prefix}{}", escape(&name)), content.into());
            }
        }
    }
    if files.is_empty() {
        let root = root.display();
        return Err(RunError::Unsupported(format!(
            "{root} holds no files; name another directory"
        )));
    }
    Ok(files)
}

/// A name with percent-encoding (RFC 3986, section 2.1).
fn escape(name: &str) -> String {
    let mut escaped = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(byte.into());
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_experiments_are_not_among_the_files() {
        let root = tempfile::tempdir().unwrap();
        for directory in ["results", "site"] {
            fs::create_dir(root.path().join(directory)).unwrap();
        }
        for file in [
            "a.txt",
            "results/plan.json",
            "results/runs.jsonl",
            "results/report.html",
            "site/plan.json",
        ] {
            fs::write(root.path().join(file), file).unwrap();
        }
        let files = files_below(root.path()).unwrap();
        assert_eq!(
            files.keys().collect::<Vec<_>>(),
            ["/a.txt", "/site/plan.json"]
        );
    }
}
