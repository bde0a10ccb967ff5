//! The client's tasks.

use anyhow::{Context as _, ensure};
use bench_kit::{ClientArgs, Meter, PAUSE, Report, Task, control, socket};
use quiche::Connection;

use crate::config;
use crate::endpoint::{Endpoint, Key};

pub(crate) fn run(args: &ClientArgs) -> anyhow::Result<()> {
    match args.task {
        Task::Bulk => download(&mut endpoint(args)?, args, |count, _| count < 1)?.print(),
        Task::Requests => {
            let more = |_, seconds| seconds < args.seconds;
            download(&mut endpoint(args)?, args, more)?.print();
        }
        Task::Handshakes => handshakes(&mut endpoint(args)?, args)?.print(),
        Task::Idle => idle(&mut endpoint(args)?, args)?,
        Task::Fetch => fetch(args)?.print(),
    }
    Ok(())
}

fn endpoint(args: &ClientArgs) -> anyhow::Result<Endpoint> {
    let address = socket::client_address(args.server);
    Endpoint::bind(address, config::config()?, false)
}

/// Downloads with a new client each time, and counts the handshakes.
fn fetch(args: &ClientArgs) -> anyhow::Result<Report> {
    let meter = Meter::start();
    let mut each = Vec::new();
    for _ in 0..args.count {
        let mut endpoint = endpoint(args)?;
        let clock = Meter::start();
        download(&mut endpoint, args, |count, _| count < 1)?;
        each.push(clock.seconds());
        std::thread::sleep(PAUSE);
    }
    Ok(Report {
        each,
        ..meter.report(args.count, args.count * args.bytes)
    })
}

/// Opens a connection; returns when the handshake is complete.
fn connect(endpoint: &mut Endpoint, args: &ClientArgs) -> anyhow::Result<Key> {
    let key = endpoint.connect(args.server)?;
    while !endpoint.get(key).context("refused")?.is_established() {
        endpoint.turn(|_, _| Ok(()))?;
    }
    Ok(key)
}

/// Downloads in progress on one connection.
struct Downloads {
    bytes: u64,
    next_stream: u64,
    open: usize,
    done: u64,
    received: u64,
    buffer: Vec<u8>,
}

impl Downloads {
    /// Requests the next download.
    fn start(&mut self, connection: &mut Connection) -> anyhow::Result<()> {
        let request = self.bytes.to_be_bytes();
        let written = connection.stream_send(self.next_stream, &request, true)?;
        ensure!(written == request.len(), "no room for a request");
        self.next_stream += 4;
        self.open += 1;
        Ok(())
    }

    /// Reads everything that has arrived. Returns the number of downloads completed.
    fn read(&mut self, connection: &mut Connection) -> anyhow::Result<usize> {
        let mut ended = 0;
        for stream in connection.readable() {
            loop {
                match connection.stream_recv(stream, &mut self.buffer) {
                    Ok((length, fin)) => {
                        self.received += length as u64;
                        if fin {
                            ended += 1;
                            break;
                        }
                    }
                    Err(quiche::Error::Done) => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        self.done += ended as u64;
        self.open -= ended;
        Ok(ended)
    }
}

/// Downloads on one connection, `args.concurrency` concurrently, while `more` holds for the number completed and the seconds passed.
fn download(
    endpoint: &mut Endpoint,
    args: &ClientArgs,
    more: impl Fn(u64, f64) -> bool,
) -> anyhow::Result<Report> {
    let key = connect(endpoint, args)?;
    let mut downloads = Downloads {
        bytes: args.bytes,
        next_stream: 0,
        open: 0,
        done: 0,
        received: 0,
        buffer: vec![0; 1 << 16],
    };
    let meter = Meter::start();
    let connection = endpoint.get(key).context("closed")?;
    for _ in 0..args.concurrency {
        downloads.start(connection)?;
    }
    endpoint.flush(key)?;
    while downloads.open > 0 {
        endpoint.turn(|_, connection| {
            for _ in 0..downloads.read(connection)? {
                if more(downloads.done, meter.seconds()) {
                    downloads.start(connection)?;
                }
            }
            Ok(())
        })?;
        endpoint.get(key).context("closed by the server")?;
    }
    let report = meter.report(downloads.done, downloads.received);
    ensure!(
        downloads.received == downloads.done * args.bytes,
        "bytes are missing"
    );
    close(endpoint, key)?;
    Ok(report)
}

fn handshakes(endpoint: &mut Endpoint, args: &ClientArgs) -> anyhow::Result<Report> {
    let meter = Meter::start();
    let mut count = 0;
    while meter.seconds() < args.seconds {
        let key = connect(endpoint, args)?;
        close(endpoint, key)?;
        count += 1;
    }
    Ok(meter.report(count, 0))
}

fn idle(endpoint: &mut Endpoint, args: &ClientArgs) -> anyhow::Result<()> {
    let meter = Meter::start();
    for _ in 0..args.connections {
        connect(endpoint, args)?;
    }
    meter.report(args.connections as u64, 0).print();
    let end = std::thread::spawn(control::wait_for_end);
    while !end.is_finished() {
        endpoint.turn(|_, _| Ok(()))?;
    }
    Ok(())
}

fn close(endpoint: &mut Endpoint, key: Key) -> anyhow::Result<()> {
    if let Some(connection) = endpoint.get(key) {
        // Refused only if it is closed already.
        let _ = connection.close(true, 0, b"");
    }
    endpoint.flush(key)
}
