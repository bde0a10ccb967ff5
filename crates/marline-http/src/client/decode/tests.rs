use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::{BodyExt, Full, StreamBody};

use super::*;

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn response(codings: &[&str], content: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(content));
    for coding in codings {
        let value = HeaderValue::from_str(coding).unwrap();
        response.headers_mut().append(CONTENT_ENCODING, value);
    }
    response
}

/// The content after decoding.
async fn decode(codings: &[&str], content: Vec<u8>) -> Result<Vec<u8>, ClientError> {
    let response =
        response(codings, content).map(|content| content.map_err(|never| match never {}));
    let decoded = decoded(response)?;
    if decoded.headers().contains_key(CONTENT_ENCODING) {
        let collected = decoded.into_body().collect().await?;
        return Ok([b"raw:", &collected.to_bytes()[..]].concat());
    }
    Ok(decoded.into_body().collect().await?.to_bytes().to_vec())
}

#[tokio::test]
async fn names_of_codings_are_read_as_a_list_without_case() {
    let (once, twice) = (gzip(b"text"), gzip(&gzip(b"text")));
    let zlib = {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&once).unwrap();
        encoder.finish().unwrap()
    };
    for (codings, content) in [
        (&["gzip"][..], &once),
        (&["GZip"], &once),
        (&["x-gzip"], &once),
        (&["gzip, identity"], &once),
        (&["identity", "gzip,"], &once),
        (&["gzip, gzip"], &twice),
        (&["gzip", "gzip"], &twice),
        (&["gzip, deflate"], &zlib),
    ] {
        let found = decode(codings, content.clone()).await.unwrap();
        assert_eq!(found, b"text", "{codings:?}");
    }
    assert_eq!(
        decode(&["identity"], once.clone()).await.unwrap(),
        [b"raw:", &once[..]].concat()
    );
}

#[tokio::test]
async fn codings_that_are_unknown_or_too_many_are_errors() {
    for coding in ["foo", "compress", "gzip, foo", "gzip, gzip, gzip"] {
        let failed = decode(&[coding], gzip(b"text")).await;
        assert!(
            matches!(failed, Err(ClientError::Encoding { .. })),
            "{coding}"
        );
    }
}

#[tokio::test]
async fn all_members_of_gzip_are_decoded_and_nothing_may_follow() {
    let members = [gzip(b"one "), gzip(b"two")].concat();
    assert_eq!(
        decode(&["gzip"], members.clone()).await.unwrap(),
        b"one two"
    );
    for coded in [
        [&members[..], b"junk"].concat(),
        members[..members.len() - 1].to_vec(),
    ] {
        let failed = decode(&["gzip"], coded).await;
        assert!(
            matches!(failed, Err(ClientError::Encoding { .. })),
            "{failed:?}"
        );
    }
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(b"text").unwrap();
    let zlib = [&zlib.finish().unwrap()[..], b"junk"].concat();
    let failed = decode(&["deflate"], zlib).await;
    assert!(
        matches!(failed, Err(ClientError::Encoding { .. })),
        "{failed:?}"
    );
}

#[tokio::test]
async fn each_coding_may_expand_by_so_much() {
    let zeros = vec![0; usize::try_from(FREE_EXPANSION).unwrap() + (1 << 20)];
    let once = gzip(&zeros);
    for (coding, content) in [("gzip, gzip", gzip(&once)), ("gzip", once)] {
        let failed = decode(&[coding], content).await;
        assert!(
            matches!(failed, Err(ClientError::Expansion { .. })),
            "{coding}"
        );
    }
}

#[tokio::test]
async fn trailers_follow_the_decoded_content() {
    let trailers = HeaderMap::from_iter([(http::header::EXPIRES, HeaderValue::from_static("0"))]);
    let frames = [
        Ok(Frame::data(Bytes::from(gzip(b"text")))),
        Ok(Frame::trailers(trailers.clone())),
    ];
    let stream = StreamBody::new(futures_util::stream::iter(frames));
    let mut response = Response::new(stream);
    response
        .headers_mut()
        .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    let collected = decoded(response)
        .unwrap()
        .into_body()
        .collect()
        .await
        .unwrap();
    assert_eq!(collected.trailers(), Some(&trailers));
    assert_eq!(collected.to_bytes(), &b"text"[..]);
}
