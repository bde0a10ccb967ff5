//! `marline top`.

mod exposition;
mod find;
mod source;
mod terminal;
mod view;

use std::time::Duration;

use clap::Args;

use self::find::Target;
use self::source::Summary;
use crate::failure::Failure;

/// Show what a server does: connections, paths, rates, losses, sites and applications
///
/// Reads the metrics address of a running `marline serve`, `marline proxy` or `marline gateway`, which `--metrics` sets. The same
/// is at http://ADDR:PORT/ for browsers. q or Ctrl-C ends it.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    marline top\n  \
    marline top 127.0.0.1:9090\n  \
    marline top --once --json | jq '.connections[0]'")]
pub(crate) struct Arguments {
    /// The metrics address, or the ID of the process [default: the only server of this machine]
    ///
    /// :PORT is that of this machine; a number alone is the ID of a process.
    #[arg(value_name = "ADDR:PORT|PID")]
    target: Option<Target>,

    /// Print it once
    #[arg(long)]
    once: bool,

    /// Print a JSON object instead, and another for each refresh unless there is --once
    #[arg(long)]
    json: bool,

    /// The time between two refreshes
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = interval)]
    interval: Duration,
}

fn interval(text: &str) -> Result<Duration, String> {
    let time = marline::settings::units::read_time(text)?;
    match time >= Duration::from_millis(500) {
        true => Ok(time),
        false => Err("it must be 500ms or more".to_owned()),
    }
}

/// The time over which `--once` measures rates.
const ONCE: Duration = Duration::from_secs(1);

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let source = find::source(arguments.target.as_ref()).await?;
    let interval = match arguments.once {
        true => ONCE,
        false => arguments.interval,
    };
    let mut before = source.read().await?;
    if !arguments.once && !arguments.json {
        return terminal::run(&source, before, interval).await;
    }
    loop {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            ended = tokio::signal::ctrl_c() => return ended.map_err(Failure::Output),
        }
        let now = source.read().await?;
        let summary = Summary::of(&before, &now);
        match arguments.json {
            true => {
                let text = serde_json::to_string(&summary);
                let text = text.map_err(|error| Failure::Failed(error.to_string()))?;
                outln!("{text}");
            }
            false => view::lines(&summary)
                .iter()
                .for_each(|line| outln!("{line}")),
        }
        if arguments.once {
            return Ok(());
        }
        before = now;
    }
}

#[cfg(test)]
mod tests;
