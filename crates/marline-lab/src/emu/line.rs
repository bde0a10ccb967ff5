//! One program's host, a link, and the far end.

use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use marline_link::Medium;
use marline_sim::fabric::pcap::Capture;
use marline_sim::fabric::{EcmpHash, Fabric, Node, Plan, PlanError};

use super::{EmuError, Emulation, IpPacket, MahimahiLog, Report, Spool, Spooler};

/// What of a [`Line`] is written to files.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// A capture in pcapng.
    pub capture: Option<PathBuf>,
    /// Logs in Mahimahi's form: the path to which `.up` (from the near end) and `.down` are appended.
    pub log: Option<PathBuf>,
}

/// A near end, media in a row, and a far end.
#[derive(Debug)]
pub struct Line {
    emulation: Emulation,
    near: Node,
    far: Node,
    files: Vec<(PathBuf, Spooler)>,
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

    /// Joins the ends by `media`, each with its station 0 towards the near end.
    ///
    /// # Errors
    /// What this machine or user lacks, or a file that cannot be made.
    pub fn start(
        media: Vec<Box<dyn Medium<IpPacket>>>,
        recording: &Recording,
    ) -> Result<Self, EmuError> {
        let (mut fabric, near, far) =
            join(media).map_err(|error| EmuError::system("the link")(io::Error::other(error)))?;
        let mut files = Vec::new();
        if let Some(path) = &recording.capture {
            files.push(capture(&mut fabric, path).map_err(EmuError::system("the capture"))?);
        }
        if let Some(path) = &recording.log {
            for (suffix, from) in [(".up", near), (".down", far)] {
                let mut name = path.as_os_str().to_owned();
                name.push(suffix);
                let file = log(&mut fabric, Path::new(&name), from);
                files.push(file.map_err(EmuError::system("the log"))?);
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

    /// The network at work.
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

    /// Ends it: kills what still runs at the ends, and finishes the files.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn stop(self) -> Result<Report, EmuError> {
        let report = self.emulation.stop();
        for (path, file) in self.files {
            file.finish().map_err(|error| {
                let error = io::Error::new(error.kind(), format!("{}: {error}", path.display()));
                EmuError::system("writing")(error)
            })?;
        }
        Ok(report)
    }
}

fn join(
    media: Vec<Box<dyn Medium<IpPacket>>>,
) -> Result<(Fabric<IpPacket>, Node, Node), PlanError> {
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
    Ok((plan.build()?, near, far))
}

/// Has all that passes written to a file; the path comes back with what to wait for.
pub(super) fn capture(
    fabric: &mut Fabric<IpPacket>,
    path: &Path,
) -> io::Result<(PathBuf, Spooler)> {
    let (spool, spooler) = Spool::create(path)?;
    let mut capture = Capture::new(spool, fabric)?;
    fabric.tap(Box::new(move |passage| {
        // The spooler says why, when all is over.
        let _ = capture.passage(passage, &[passage.packet.body.bytes()]);
    }));
    Ok((path.to_owned(), spooler))
}

fn log(fabric: &mut Fabric<IpPacket>, path: &Path, from: Node) -> io::Result<(PathBuf, Spooler)> {
    let (spool, spooler) = Spool::create(path)?;
    let mut log = MahimahiLog::new(spool, fabric, from)?;
    fabric.tap(Box::new(move |passage| {
        // The spooler says why, when all is over.
        let _ = log.passage(passage);
    }));
    Ok((path.to_owned(), spooler))
}
