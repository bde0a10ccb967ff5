//! Metrics of the pipes of a gateway.

use std::fmt::{self, Write};
use std::sync::Arc;

use crate::client::Client;
use crate::pipes::PipeState;
use crate::server::{MetricsSource, metric_head};

/// The pipes of a client's pools, for [`ServerConfig::more_metrics`](crate::server::ServerConfig::more_metrics): how many are
/// open, and what each has carried.
#[derive(Debug)]
pub struct PipeMetrics(Arc<Client>);

impl PipeMetrics {
    /// The metrics of `client`.
    pub fn of(client: Arc<Client>) -> Self {
        Self(client)
    }
}

impl MetricsSource for PipeMetrics {
    fn write(&self, out: &mut String) -> fmt::Result {
        let pools: Vec<_> = self.0.pools().iter().map(|pool| pool.now()).collect();
        let name = "marline_pipes";
        let help = "Pipes that are open now, by state.";
        metric_head(out, name, "gauge", help)?;
        for pool in &pools {
            let origin = &pool.origin;
            for (state, label) in [(PipeState::Used, "used"), (PipeState::Spare, "spare")] {
                let pipes = pool.pipes.iter();
                let open = pipes.filter(|pipe| pipe.open == Some(state)).count();
                writeln!(
                    out,
                    "{name}{{origin=\"{origin}\",state=\"{label}\"}} {open}"
                )?;
            }
        }
        let name = "marline_pipe_objects_total";
        metric_head(
            out,
            name,
            "counter",
            "Requests that were assigned to each pipe.",
        )?;
        for pool in &pools {
            for one in &pool.pipes {
                let (origin, pipe, objects) = (&pool.origin, one.pipe, one.objects);
                writeln!(
                    out,
                    "{name}{{origin=\"{origin}\",pipe=\"{pipe}\"}} {objects}"
                )?;
            }
        }
        let name = "marline_pipe_received_bytes_total";
        let help = "Bytes of response content that each pipe has carried.";
        metric_head(out, name, "counter", help)?;
        for pool in &pools {
            for one in &pool.pipes {
                let (origin, pipe, bytes) = (&pool.origin, one.pipe, one.bytes);
                writeln!(out, "{name}{{origin=\"{origin}\",pipe=\"{pipe}\"}} {bytes}")?;
            }
        }
        Ok(())
    }
}
