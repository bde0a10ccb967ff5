//! One large file over several connections: each fetches a range of it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use http::header::{IF_RANGE, RANGE};
use http::{HeaderValue, Response, StatusCode, Uri};

use super::lane::Lane;
use super::progress::Progress;
use super::range::{ContentRange, range};
use super::save::{Pieces, Sink, Validator};
use super::{Client, ClientError, Download};
use crate::tasks::TaskSet;

/// Where pieces come from, and who watches.
pub(super) struct Source {
    pub(super) client: Arc<Client>,
    pub(super) lanes: Vec<Arc<Lane>>,
    pub(super) progress: Arc<Progress>,
}

/// Stores the first piece of a file and fetches the others; the sink then has the whole.
pub(super) async fn receive(
    source: &Arc<Source>,
    uri: &Uri,
    first: Response<Download>,
    sink: &mut Sink,
) -> Result<(), ClientError> {
    let (parts, download) = first.into_parts();
    let wrong = |what: &str| ClientError::WrongRange(what.to_owned());
    let got = ContentRange::of(&parts.headers).filter(|got| got.first == 0);
    let got = got.ok_or_else(|| wrong("the first piece is not the file's beginning"))?;
    let size = got.size.ok_or_else(|| wrong("the size is not given"))?;
    let validator = Validator::of(&parts.headers).0;
    let validator = validator.ok_or_else(|| wrong("nothing tells whether pieces fit together"))?;
    let file = sink
        .begin_pieces()?
        .ok_or_else(|| wrong("pieces go to where any order will do"))?;
    let file = Arc::new(file);
    source.progress.expected.fetch_add(size, Relaxed);

    let mut pieces = TaskSet::new(source.client.world());
    {
        let (source, file) = (Arc::clone(source), Arc::clone(&file));
        pieces.spawn(async move { store(&source, download, got, &file).await });
    }
    let rest = shares(got.last + 1, size, source.lanes.len() as u64);
    for (lane, share) in rest.into_iter().enumerate() {
        let (source, file) = (Arc::clone(source), Arc::clone(&file));
        let (uri, validator) = (uri.clone(), validator.clone());
        pieces.spawn(async move { fetch(&source, lane, &uri, share, &validator, &file).await });
    }
    // Dropping the set stops the others when one fails.
    while let Some(piece) = pieces.join_next().await {
        piece.map_err(|error| wrong(&error.to_string()))??;
    }
    sink.end_pieces(size)?;
    match sink.len() == size {
        true => Ok(()),
        false => Err(wrong("the pieces do not add up")),
    }
}

/// Equal ranges of what is left, at most one for each lane.
fn shares(first: u64, size: u64, lanes: u64) -> Vec<ContentRange> {
    let share = size.saturating_sub(first).div_ceil(lanes.max(1)).max(1);
    let mut shares = Vec::new();
    let mut first = first;
    while first < size {
        let last = (first + share).min(size) - 1;
        shares.push(ContentRange {
            first,
            last,
            size: Some(size),
        });
        first = last + 1;
    }
    shares
}

async fn fetch(
    source: &Source,
    lane: usize,
    uri: &Uri,
    share: ContentRange,
    validator: &HeaderValue,
    file: &Pieces,
) -> Result<(), ClientError> {
    let mut headers = source.client.config().headers.clone();
    headers.insert(RANGE, range(share.first, Some(share.last)));
    headers.insert(IF_RANGE, validator.clone());
    let (_, response) = source.lanes[lane]
        .get(&source.client, uri, &headers)
        .await?;
    let (parts, download) = response.into_parts();
    let got = ContentRange::of(&parts.headers);
    if parts.status != StatusCode::PARTIAL_CONTENT || got != Some(share) {
        let message = format!(
            "{} {got:?}, not {share:?}: the file has changed",
            parts.status
        );
        return Err(ClientError::WrongRange(message));
    }
    store(source, download, share, file).await
}

async fn store(
    source: &Source,
    mut download: Download,
    share: ContentRange,
    file: &Pieces,
) -> Result<(), ClientError> {
    let mut offset = share.first;
    while let Some(chunk) = download.chunk().await? {
        let len = chunk.len() as u64;
        if len > share.last + 1 - offset {
            return Err(ClientError::WrongRange("a piece is too long".to_owned()));
        }
        file.write(offset, &chunk)?;
        offset += len;
        source.progress.received.fetch_add(len, Relaxed);
    }
    match offset == share.last + 1 {
        true => Ok(()),
        false => Err(ClientError::WrongRange("a piece is too short".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_the_rest_once() {
        for (first, size, lanes) in [(0, 10, 3), (5, 6, 4), (1, 1000, 7), (9, 9, 2), (0, 2, 5)] {
            let shares = shares(first, size, lanes);
            assert!(shares.len() as u64 <= lanes);
            let mut next = first;
            for share in shares {
                assert_eq!(share.first, next);
                assert!(share.last >= share.first);
                next = share.last + 1;
            }
            assert_eq!(next, size);
        }
    }
}
