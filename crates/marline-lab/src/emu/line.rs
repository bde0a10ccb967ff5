//! A client's host and a server's host, joined by a chain of media.

use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use marline_link::Medium;
use marline_sim::fabric::pcap::Capture;
use marline_sim::fabric::{EcmpHash, Fabric, Node, Plan, PlanError};

use super::{EmuError, Emulation, IpPacket, MahimahiLog, Report, Spool, Spooler};

/// The files that a [`Line`] records.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// A capture in pcapng.
    pub capture: Option<PathBuf>,
    /// Logs in Mahimahi's format: the path, to which `.up` (packets from the near end) and `.down` are
    /// appended.
    pub log: Option<PathBuf>,
}

/// A file that is written while the network runs.
#[derive(Debug)]
struct RecordedFile {
    path: PathBuf,
    spooler: Spooler,
}

/// The network of a [`Line`] before it runs.
struct Chain {
    fabric: Fabric<IpPacket>,
    near: Node,
    far: Node,
}

/// A near end, a chain of media, and a far end.
#[derive(Debug)]
pub struct Line {
    emulation: Emulation,
    near: Node,
    far: Node,
    files: Vec<RecordedFile>,
}

impl Line {
    /// The name of the near end in reports.
    pub const NEAR: &'static str = "near";
    /// The name of the far end in reports.
    pub const FAR: &'static str = "far";
    /// The address of the near end.
    pub const NEAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
    /// The address of the far end.
    pub const FAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

    /// Joins the ends by `media`; station 0 of each is on the side of the near end.
    ///
    /// # Errors
    /// A privilege or a tool is missing, or a file cannot be created.
    pub fn start(
        media: Vec<Box<dyn Medium<IpPacket>>>,
        recording: &Recording,
    ) -> Result<Self, EmuError> {
        let Chain {
            mut fabric,
            near,
            far,
        } = join(media)
            .map_err(|error| EmuError::system("building the link")(io::Error::other(error)))?;
        let mut files = Vec::new();
        if let Some(path) = &recording.capture {
            let spooler = capture(&mut fabric, path);
            files.push(RecordedFile {
                path: path.clone(),
                spooler: spooler.map_err(EmuError::system("creating the capture"))?,
            });
        }
        if let Some(path) = &recording.log {
            for (suffix, from) in [(".up", near), (".down", far)] {
                let mut name = path.as_os_str().to_owned();
                name.push(suffix);
                let path = PathBuf::from(name);
                let spooler = log(&mut fabric, &path, from);
                let spooler = spooler.map_err(EmuError::system("creating the log"))?;
                files.push(RecordedFile { path, spooler });
            }
        }
        let emulation = Emulation::start(fabric, EcmpHash::Mixed)?;
        Ok(Self {
            emulation,
            near,
            far,
            files,
        })
    }

    /// The running network.
    pub const fn emulation(&self) -> &Emulation {
        &self.emulation
    }

    /// The host at the near end.
    pub const fn near(&self) -> Node {
        self.near
    }

    /// The host at the far end.
    pub const fn far(&self) -> Node {
        self.far
    }

    /// Stops the network, kills the programs at both ends, and finishes the files.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn stop(self) -> Result<Report, EmuError> {
        let report = self.emulation.stop();
        for RecordedFile { path, spooler } in self.files {
            spooler.finish().map_err(|error| {
                let error = io::Error::new(error.kind(), format!("{}: {error}", path.display()));
                EmuError::system("writing")(error)
            })?;
        }
        Ok(report)
    }
}

fn join(media: Vec<Box<dyn Medium<IpPacket>>>) -> Result<Chain, PlanError> {
    let mut plan = Plan::new();
    let (near, far) = (plan.host(Line::NEAR), plan.host(Line::FAR));
    let last = media.len().saturating_sub(1);
    let mut from = near;
    for (index, medium) in media.into_iter().enumerate() {
        let to = if index == last {
            far
        } else {
            plan.router(format!("router{index}"))
        };
        let medium = plan.join(format!("link{index}"), medium, &[from, to])?;
        if from == near {
            plan.set_address(medium, near, Line::NEAR_ADDRESS.into())?;
        }
        if to == far {
            plan.set_address(medium, far, Line::FAR_ADDRESS.into())?;
        }
        from = to;
    }
    Ok(Chain {
        fabric: plan.build()?,
        near,
        far,
    })
}

/// Captures all packets to a file. Returns the spooler to wait for.
pub(super) fn capture(fabric: &mut Fabric<IpPacket>, path: &Path) -> io::Result<Spooler> {
    let (spool, spooler) = Spool::create(path)?;
    let mut capture = Capture::new(spool, fabric)?;
    fabric.tap(Box::new(move |passage| {
        // An error is returned by `Spooler::finish`.
        let _ = capture.passage(passage, &[passage.packet.body.bytes()]);
    }));
    Ok(spooler)
}

fn log(fabric: &mut Fabric<IpPacket>, path: &Path, from: Node) -> io::Result<Spooler> {
    let (spool, spooler) = Spool::create(path)?;
    let mut log = MahimahiLog::new(spool, fabric, from)?;
    fabric.tap(Box::new(move |passage| {
        // An error is returned by `Spooler::finish`.
        let _ = log.passage(passage);
    }));
    Ok(spooler)
}
