//! `marline tunnel down`.

use std::time::Duration;

use clap::Args;
use marline_tunnel::dns::Dns;
use marline_tunnel::restore::{Found, RestoreError};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use super::CLIENT_DEVICE;
use crate::failure::{Failure, print_message};
use crate::server::device_name;

/// The time for a client to end.
const END: Duration = Duration::from_secs(10);

/// The interval at which it is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// End a tunnel, and put the routes back, also after a crash
#[derive(Clone, Debug, Args)]
pub(crate) struct Arguments {
    /// The name of the network device
    ///
    /// By default marline0, of a server marline-tunnel.
    #[arg(long, value_name = "NAME", value_parser = device_name)]
    device: Option<String>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let failed = |error: RestoreError| Failure::Failed(error.to_string());
    let put_back =
        |device: &str| Dns::put_back(device).map_err(|error| Failure::Failed(error.to_string()));
    let device = arguments.device.unwrap_or(CLIENT_DEVICE.to_owned());
    let find = || Found::of(&device).map_err(failed);
    let Some(found) = find()? else {
        // Routes do not outlast a restart of the machine, and the file of resolvers does.
        let message = match put_back(&device)? {
            true => "the resolvers of a tunnel that had crashed are put back".to_owned(),
            false => format!("there is no tunnel of {device}, and nothing to put back"),
        };
        print_message(&message);
        return Ok(());
    };
    let Some(process) = found.process() else {
        found.remove().map_err(failed)?;
        put_back(&device)?;
        print_message("the routes of a tunnel that had crashed are put back");
        return Ok(());
    };
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        kill_process(pid, Signal::TERM).map_err(|error| {
            Failure::Failed(format!(
                "cannot end the process {process}: {error}; run as root"
            ))
        })?;
    }
    let deadline = Instant::now() + END;
    while Instant::now() < deadline {
        match find()? {
            None => {
                print_message(&format!("the tunnel of {device} is down"));
                return Ok(());
            }
            Some(found) if found.process().is_none() => {
                found.remove().map_err(failed)?;
                return put_back(&device).map(drop);
            }
            Some(_) => sleep(LOOK).await,
        }
    }
    Err(Failure::Failed(format!(
        "the process {process} does not end; end it with `kill -9 {process}`, and run `marline tunnel down` again"
    )))
}
