//! Flags of pools of connections, shared by `get` and `gateway`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use marline::{Runtime, TokioRuntime};
use marline_http::limits::{MAX_PIPES, MAX_SIGNAL_BYTES};
use marline_http::pipes::{POLICIES, PipePolicy, PipesConfig, SignalTrace};
use marline_http::read_regular_file;

use crate::failure::Failure;
use crate::transport::PolicyParser;

/// The pools of a client. They conflict with the verb's flags `bundle` and `connections`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PipeFlags {
    /// Use as many connections to a server as this policy says, and fetch each object on one of them; for any server with
    /// HTTP/3. rr: a fixed number, each in turn; cba: as many as radio, round-trip time and losses ask for. With parameters
    /// as in 'cba(creation=od)'; `marline reference policies` lists them
    #[arg(long, value_name = "NAME", value_parser = PolicyParser::<PipePolicy>(&POLICIES),
          conflicts_with_all = ["bundle", "connections"])]
    pipes: Option<String>,

    /// Open at most N connections to a server with --pipes [default: 5]
    #[arg(long, value_name = "N", requires = "pipes", value_parser = clap::value_parser!(u16).range(1..=MAX_PIPES as i64))]
    max_pipes: Option<u16>,

    /// The quality of the radio for --pipes cba: a file with a line for each sample, its time in seconds from now and its SINR in
    /// dB
    #[arg(long, value_name = "FILE", requires = "pipes")]
    signal: Option<PathBuf>,

    /// For --pipes cba, a kind for an extension, as php=document, or a priority from 1 to 4 for a kind, as document=4;
    /// repeatable. Kinds are video, audio, script, document, image and other
    #[arg(long, value_name = "EXTENSION=KIND", requires = "pipes")]
    kind: Vec<String>,
}

impl PipeFlags {
    /// Whether there are to be pools.
    pub(crate) fn are_given(&self) -> bool {
        self.pipes.is_some()
    }

    /// The configuration of the pools, if there are to be some.
    pub(crate) fn config(&self) -> Result<Option<PipesConfig>, Failure> {
        let Some(text) = &self.pipes else {
            return Ok(None);
        };
        let policy = POLICIES.make(text).map_err(Failure::Usage)?;
        let mut config = PipesConfig::new(match self.max_pipes {
            Some(most) => policy.with_max_pipes(most.into()),
            None => policy,
        });
        for text in &self.kind {
            let kinds = config.kinds.with(text);
            config.kinds = kinds.map_err(|why| Failure::Usage(format!("--kind: {why}")))?;
        }
        if let Some(file) = &self.signal {
            let trace = read_signal(file);
            config.signal =
                Arc::new(trace.map_err(|why| {
                    Failure::Failed(format!("--signal {}: {why}", file.display()))
                })?);
        }
        Ok(Some(config))
    }
}

/// Reads a signal that begins now.
fn read_signal(file: &Path) -> Result<SignalTrace, String> {
    let text = read_regular_file(file, MAX_SIGNAL_BYTES).map_err(|error| error.to_string())?;
    let text = String::from_utf8(text).map_err(|_| "it is not text".to_owned())?;
    let runtime = TokioRuntime::current().map_err(|error| error.to_string())?;
    SignalTrace::parse(&text, runtime.now()).map_err(|error| error.to_string())
}
