//! Objects over HTTP.

use std::sync::Arc;
use std::time::Duration;

use marline_http::client::{Destination, FetchOptions, Message, Report, Target};
use marline_http::server::GeneratedObject;

use super::http::{NAME, client, fetch_options, identity, scheme, serve};
use super::measures::Measured;
use super::{Probe, SETTLE, Testbed, failed, sleep};
use crate::scenario::{Job, Order, Outcome, RunError, Topology, Workload};

/// Fetches the objects of `job`.
pub(super) async fn fetch(
    job: &Job,
    testbed: &Testbed,
    probe: &Probe,
) -> Result<Outcome, RunError> {
    let Workload::Objects {
        objects,
        order,
        warm,
    } = &job.settings.workload
    else {
        return Err(failed("the workload is not objects"));
    };
    let sizes = objects.iter().zip(0..);
    let site = sizes.map(|(&size, number)| (path(number), generated_object(size)));
    let address = testbed.server_address()?;
    let server = serve(
        job,
        testbed,
        probe,
        site.collect(),
        identity(job, [NAME.to_owned()])?,
    )
    .await?;

    let host = testbed.host(Topology::CLIENT)?;
    let client = Arc::new(client(job, testbed, [NAME.to_owned()])?);
    let connections = job.settings.http.connections;
    let scheme = scheme(job.settings.http.version);
    let url = |number: usize| format!("{scheme}://{NAME}:{}{}", address.port(), path(number));
    if *warm {
        client.open(&url(0), connections).await.map_err(failed)?;
        sleep(&*host.runtime, SETTLE).await;
        probe.reset();
    }
    let options = FetchOptions {
        keep_connections: *order == Order::InSequence,
        ..fetch_options(job)
    };
    let target = |number: usize| Target {
        url: url(number),
        destination: Destination::Counted,
        size: objects.get(number).copied(),
        message: Message::default(),
    };
    let start = host.runtime.now();
    let mut completion_s = 0.0;
    match order {
        Order::AtOnce => {
            let targets = (0..objects.len()).map(target).collect();
            let report = client.fetch(targets, options, &Arc::default()).await;
            check(&report)?;
            completion_s += report.page_load_s;
        }
        Order::InSequence => {
            for number in 0..objects.len() {
                let targets = vec![target(number)];
                let report = client.fetch(targets, options, &Arc::default()).await;
                check(&report)?;
                completion_s += report.page_load_s;
            }
        }
    }
    let measured = Measured {
        start,
        completion_s,
        bytes: objects.iter().sum(),
        handshakes: u32::from(!warm),
    };
    let outcome = measured.outcome(probe, testbed.ideal.as_ref(), job.watch);
    server.shut_down();
    Ok(outcome)
}

fn path(number: usize) -> String {
    format!("/{number}")
}

fn generated_object(size: u64) -> GeneratedObject {
    GeneratedObject {
        size,
        content_type: http::HeaderValue::from_static("application/octet-stream"),
        think: Duration::ZERO,
        content: None,
    }
}

fn check(report: &Report) -> Result<(), RunError> {
    for object in &report.objects {
        if let Some(error) = &object.error {
            return Err(RunError::Failed(format!("{}: {error}", object.url)));
        }
    }
    Ok(())
}
