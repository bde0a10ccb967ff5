//! `cc`, `initial_window` and the like: for both ends at the top, for one in `[client]`, `[server]`.

use marline::Profile;
use marline::scheduling::path::ReinjectionConfig;

use super::bundle::read_bundle;
use super::first_window::read_first_window;
use super::{Node, Problem, Reader};
use crate::scenario::endpoint::SMALLEST_DATAGRAM;
use crate::scenario::{
    AckKind, EndpointSettings, LossDetection, PathSchedulerKind, SlowStartExitKind,
    StreamSchedulerKind,
};

/// Client and server.
pub(super) fn read_endpoints(
    reader: &mut Reader<'_>,
) -> Result<(EndpointSettings, EndpointSettings), Problem> {
    let mut both = EndpointSettings::default();
    read_endpoint(reader, &mut both)?;
    let mut side = |key| {
        let mut settings = both.clone();
        if let Some(node) = reader.get(key) {
            let mut inner = Reader::of(node)?;
            read_endpoint(&mut inner, &mut settings)?;
            inner.finish()?;
        }
        Ok(settings)
    };
    Ok((side("client")?, side("server")?))
}

pub(super) fn read_endpoint(
    reader: &mut Reader<'_>,
    into: &mut EndpointSettings,
) -> Result<(), Problem> {
    if let Some(node) = reader.get("profile") {
        into.profile = node.named(
            "profile",
            &Profile::ALL.map(|profile| (profile.name(), profile)),
        )?;
    }
    let EndpointSettings {
        profile,
        cc,
        initial_window,
        slow_start_exit,
        ack,
        loss_detection,
        stream_scheduler,
        pacing,
        ecn,
        mtu,
        backoff,
        bundle,
        multipath,
    } = into;
    replace(cc, reader.optional("cc", Node::controller)?);
    if let Some(node) = reader.get("initial_window") {
        let start = initial_window.take().unwrap_or_default();
        *initial_window = Some(read_first_window(node, start)?);
    }
    let exit = |node: &Node| node.named("exit from slow start", &SlowStartExitKind::NAMES);
    replace(slow_start_exit, reader.optional("slow_start_exit", exit)?);
    replace(ack, reader.optional("ack", read_ack)?);
    let detection = |node: &Node| node.named("loss detection", &LossDetection::NAMES);
    replace(
        loss_detection,
        reader.optional("loss_detection", detection)?,
    );
    let scheduler = |node: &Node| node.named("scheduler of streams", &StreamSchedulerKind::NAMES);
    replace(
        stream_scheduler,
        reader.optional("stream_scheduler", scheduler)?,
    );
    let scheduler = |node: &Node| node.named("scheduler of paths", &PathSchedulerKind::NAMES);
    replace(
        &mut multipath.scheduler,
        reader.optional("path_scheduler", scheduler)?,
    );
    let on = reader.optional("multipath", Node::switch)?;
    replace(&mut multipath.on, on);
    replace(
        &mut multipath.reinjection,
        reader.optional("reinjection", read_budget)?,
    );
    let count = |node: &Node| Ok(node.within(1..=16)? as u32);
    replace(
        &mut multipath.same_tuple_paths,
        reader.optional("same_tuple_paths", count)?,
    );
    if let Some(node) = reader.get("bundle_paths") {
        let start = multipath.bundle_paths.take().unwrap_or_default();
        multipath.bundle_paths = Some(read_bundle(node, start)?);
    }
    replace(pacing, reader.optional("pacing", Node::switch)?);
    replace(ecn, reader.optional("ecn", Node::switch)?);
    let datagram = |node: &Node| {
        let bytes = node.within(u64::from(SMALLEST_DATAGRAM)..=9000)?;
        Ok(u16::try_from(bytes).unwrap_or(SMALLEST_DATAGRAM))
    };
    replace(mtu, reader.optional("mtu", datagram)?);
    replace(backoff, reader.optional("backoff", Node::part)?);
    if let Some(node) = reader.get("bundle") {
        let of_profile = || profile.config().bundle.map(|bundle| (*bundle).clone());
        let start = bundle.take().or_else(of_profile).unwrap_or_default();
        *bundle = Some(read_bundle(node, start)?);
    }
    Ok(())
}

fn replace<T>(slot: &mut Option<T>, new: Option<T>) {
    if new.is_some() {
        *slot = new;
    }
}

/// A switch, or how much is copied at most.
fn read_budget(node: &Node) -> Result<f64, Problem> {
    match node.switch() {
        Ok(true) => Ok(ReinjectionConfig::default().budget),
        Ok(false) => Ok(0.0),
        Err(_) => match node.number()? {
            budget if (0.0..=1.0).contains(&budget) => Ok(budget),
            _ => Err(node.problem("this must be true, false, or a part from 0 to 1, as 0.05")),
        },
    }
}

fn read_ack(node: &Node) -> Result<AckKind, Problem> {
    let words = node.words()?;
    if words == "decimation" {
        return Ok(AckKind::Decimation);
    }
    words
        .strip_prefix("every ")
        .and_then(|number| number.trim().parse().ok())
        .filter(|packets| (1..=1000).contains(packets))
        .map(AckKind::Every)
        .ok_or_else(|| {
            node.problem(format_args!(
                "unknown policy of acknowledgment \"{words}\"; write \"every N\", with N from 1 to \
                 1000, or \"decimation\""
            ))
        })
}
