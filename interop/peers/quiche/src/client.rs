//! The client of every case.

use std::time::Duration;

use peer_kit::{ClientArgs, Failure, Outcome};

use crate::session::Session;

/// The time to wait after the first connection for the server's session ticket.
const TICKET_WAIT: Duration = Duration::from_millis(300);

pub(crate) fn run(args: &ClientArgs) -> Outcome {
    let paths = args.all_paths()?;
    let (first, rest) = paths.split_at(1);
    match args.case.as_str() {
        "chacha20" => {
            return Err(Failure::Unsupported(
                "BoringSSL offers no choice of TLS 1.3 cipher suites",
            ));
        }
        "keyupdate" => {
            return Err(Failure::Unsupported(
                "quiche has no call that initiates a key update",
            ));
        }
        "handshakeloss" | "handshakecorruption" => {
            for path in &paths {
                let mut session = Session::open(args, None)?;
                session.fetch(std::slice::from_ref(path))?;
                session.close()?;
            }
        }
        "resumption" | "zerortt" => {
            let mut session = Session::open(args, None)?;
            session.fetch(first)?;
            session.linger(TICKET_WAIT)?;
            let ticket = session.ticket();
            session.close()?;
            let Some(ticket) = ticket else {
                return Err(error("the server gave no session ticket"));
            };
            let mut session = Session::open(args, Some(&ticket))?;
            session.fetch(rest)?;
            if !session.was_resumed() {
                return Err(error("the second connection was not resumed"));
            }
            if args.case == "zerortt" && !session.early_data_accepted() {
                return Err(error("0-RTT was not accepted"));
            }
            session.close()?;
        }
        "connectionmigration" => {
            let mut session = Session::open(args, None)?;
            session.fetch(first)?;
            session.migrate()?;
            session.fetch(rest)?;
            session.close()?;
        }
        _ => {
            let mut session = Session::open(args, None)?;
            session.fetch(&paths)?;
            session.close()?;
        }
    }
    Ok(())
}

fn error(text: &'static str) -> Failure {
    Failure::Error(anyhow::Error::msg(text))
}
