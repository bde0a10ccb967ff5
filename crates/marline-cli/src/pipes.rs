//! Flags of pools of connections, shared by `get` and `gateway`.

use clap::Args;
use marline_http::limits::MAX_PIPES;
use marline_http::pipes::{POLICIES, PipePolicy, PipesConfig};

use crate::failure::Failure;
use crate::signal::SignalFlag;
use crate::transport::RESEARCH;
use crate::values::policy;

/// The pools of a client. They conflict with the verb's flags `bundle` and `connections`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PipeFlags {
    /// Use as many connections to a server as this policy says, and fetch each object on one of them; for any server with
    /// HTTP/3. rr: a fixed number, each in turn; cba: as many as radio, round-trip time and losses ask for. With parameters
    /// as in 'cba(creation=od)'; `marline reference policies` lists them
    #[arg(long, value_name = "NAME", value_parser = policy(&POLICIES),
          conflicts_with_all = ["bundle", "connections"], help_heading = RESEARCH, hide_short_help = true)]
    pipes: Option<String>,

    /// Open at most N connections to a server with --pipes [default: 5]
    #[arg(long, value_name = "N", requires = "pipes", value_parser = clap::value_parser!(u16).range(1..=MAX_PIPES as i64), help_heading = RESEARCH, hide_short_help = true)]
    max_pipes: Option<u16>,

    /// The quality of the radio for --pipes cba: a file with a line for each sample, its time in seconds from now and its SINR in
    /// dB; a named pipe, or - for standard input, of which a line counts from when it is read; or a radio of this machine: modem or
    /// modem:NUMBER, of ModemManager, and wifi or wifi:INTERFACE
    #[arg(long, value_name = "SOURCE", requires = "pipes", help_heading = RESEARCH, hide_short_help = true)]
    signal: Option<SignalFlag>,

    /// For --pipes cba, a kind for an extension, as php=document, or a priority from 1 to 4 for a kind, as document=4;
    /// repeatable. Kinds are video, audio, script, document, image and other
    #[arg(long, value_name = "EXTENSION=KIND", requires = "pipes", help_heading = RESEARCH, hide_short_help = true)]
    kind: Vec<String>,
}

impl PipeFlags {
    /// Whether pools are enabled.
    pub(crate) fn are_given(&self) -> bool {
        self.pipes.is_some()
    }

    /// The configuration of the pools, if they are enabled.
    pub(crate) fn config(&self) -> Result<Option<PipesConfig>, Failure> {
        let Some(text) = &self.pipes else {
            return Ok(None);
        };
        let policy = POLICIES.make(text).map_err(Failure::Usage)?;
        if matches!(policy, PipePolicy::RoundRobin(_)) {
            self.refuse_what_round_robin_ignores()?;
        }
        let mut config = PipesConfig::new(match self.max_pipes {
            Some(most) => policy.with_max_pipes(most.into()),
            None => policy,
        });
        for text in &self.kind {
            let kinds = config.kinds.with(text);
            config.kinds = kinds.map_err(|why| Failure::Usage(format!("--kind: {why}")))?;
        }
        if let Some(source) = &self.signal {
            config.signal = source.open()?;
        }
        Ok(Some(config))
    }

    fn refuse_what_round_robin_ignores(&self) -> Result<(), Failure> {
        let given = [
            ("--signal", self.signal.is_some()),
            ("--kind", !self.kind.is_empty()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(Failure::Usage(format!(
                "{flag}: rr does not use it; omit it, or use --pipes cba"
            ))),
            None => Ok(()),
        }
    }
}
