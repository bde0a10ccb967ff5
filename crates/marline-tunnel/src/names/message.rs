//! Messages of DNS (RFC 1035): the question, and the addresses of the answer.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::time::Duration;

/// Bytes of a header.
const HEADER: usize = 12;

/// Bytes of a name, with the lengths of its labels.
const MAX_NAME: usize = 255;

/// Bytes of a label.
const MAX_LABEL: usize = 63;

/// Addresses that are taken from an answer.
const MAX_ADDRESSES: usize = 64;

/// Names that the name of a question stands for.
const MAX_NAMES: usize = 32;

/// Types of records (RFC 1035; RFC 3596; RFC 9460).
const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const SVCB: u16 = 64;
const HTTPS: u16 = 65;

/// The class of the Internet.
const INTERNET: u16 = 1;

/// Parameters of SVCB and HTTPS (RFC 9460, section 7.3).
const HINT_V4: u16 = 4;
const HINT_V6: u16 = 6;

/// A name, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Name(Vec<Box<[u8]>>);

/// Text that is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name of a domain; write one as example.org")]
pub struct InvalidName(String);

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let is_letter = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
        let label = |label: &str| {
            let is_label = (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(is_letter);
            is_label.then(|| label.to_ascii_lowercase().into_bytes().into())
        };
        let labels = text.strip_suffix('.').unwrap_or(text).split('.');
        let labels: Option<Vec<Box<[u8]>>> = labels.map(label).collect();
        match labels {
            Some(labels) if text.len() < MAX_NAME => Ok(Self(labels)),
            _ => Err(InvalidName(text.to_owned())),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.0.iter().map(|label| String::from_utf8_lossy(label));
        f.write_str(&labels.collect::<Vec<_>>().join("."))
    }
}

impl Name {
    /// Whether it is `domain`, or a name below it.
    pub(crate) fn is_within(&self, domain: &Self) -> bool {
        self.0.ends_with(&domain.0)
    }
}

/// The bytes of a message that are not read yet.
#[derive(Clone, Copy)]
struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.message.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn short(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes(bytes.try_into().ok()?))
    }

    fn long(&mut self) -> Option<u32> {
        let bytes = self.take(4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }

    /// A name, parts of which may be elsewhere in the message, before it.
    fn name(&mut self) -> Option<Name> {
        let mut labels = Vec::new();
        let mut bytes = 1;
        let mut part = *self;
        let mut first = self.at;
        let mut has_jumped = false;
        loop {
            let length = *part.take(1)?.first()?;
            match length {
                0 => break,
                1..=63 => {
                    bytes += usize::from(length) + 1;
                    if bytes > MAX_NAME {
                        return None;
                    }
                    let label = part.take(length.into())?;
                    labels.push(label.to_ascii_lowercase().into());
                }
                0xc0.. => {
                    let low = *part.take(1)?.first()?;
                    if !has_jumped {
                        self.at = part.at;
                        has_jumped = true;
                    }
                    let to = usize::from(length & 0x3f) << 8 | usize::from(low);
                    // Otherwise it might never end.
                    if to >= first {
                        return None;
                    }
                    first = to;
                    part.at = to;
                }
                _ => return None,
            }
        }
        if !has_jumped {
            self.at = part.at;
        }
        Some(Name(labels))
    }
}

/// The counts of a header, and what follows it.
struct Opened<'a> {
    reader: Reader<'a>,
    id: u16,
    is_response: bool,
    questions: u16,
    answers: u16,
}

fn open(message: &[u8]) -> Option<Opened<'_>> {
    let mut reader = Reader { message, at: 0 };
    let id = reader.short()?;
    let flags = reader.short()?;
    let (questions, answers) = (reader.short()?, reader.short()?);
    reader.at = HEADER;
    (message.len() >= HEADER).then_some(Opened {
        reader,
        id,
        is_response: flags & 0x8000 != 0,
        questions,
        answers,
    })
}

/// The name that a query asks for; `None` if it is no query with one question.
pub(crate) fn asked(query: &[u8]) -> Option<Name> {
    let mut opened = open(query)?;
    match (opened.is_response, opened.questions) {
        (false, 1) => opened.reader.name(),
        _ => None,
    }
}

/// Whether `message` answers `query`: it has its number and its question.
pub(crate) fn is_answer(message: &[u8], query: &[u8]) -> bool {
    let question = |message| {
        let mut opened = open(message)?;
        let name = opened.reader.name()?;
        let rest = [opened.reader.short()?, opened.reader.short()?];
        Some((opened.id, opened.is_response, name, rest))
    };
    match (question(message), question(query)) {
        (Some((id, true, name, rest)), Some(asked)) => asked == (id, false, name, rest),
        _ => false,
    }
}

/// The addresses in an answer, and the time for which they are valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) all: Vec<IpAddr>,
    pub(crate) lifetime: Duration,
}

/// The addresses of the name that an answer is about, by names that it stands for (CNAME); `None` if the message is malformed.
pub(crate) fn addresses(message: &[u8]) -> Option<Addresses> {
    let Opened {
        mut reader,
        questions,
        answers,
        ..
    } = open(message)?;
    let mut names = Vec::new();
    for _ in 0..questions {
        names.push(reader.name()?);
        reader.take(4)?;
    }
    let (mut all, mut lifetime) = (Vec::new(), u32::MAX);
    for _ in 0..answers {
        let owner = reader.name()?;
        let (kind, class) = (reader.short()?, reader.short()?);
        let (ttl, length) = (reader.long()?, reader.short()?);
        let mut data = reader;
        let content = reader.take(length.into())?;
        if class != INTERNET || !names.contains(&owner) || all.len() >= MAX_ADDRESSES {
            continue;
        }
        lifetime = lifetime.min(ttl);
        match kind {
            CNAME if names.len() < MAX_NAMES => names.push(data.name()?),
            A | AAAA => all.extend(address(content)),
            SVCB | HTTPS => hints(content, &mut all),
            _ => {}
        }
    }
    all.truncate(MAX_ADDRESSES);
    Some(Addresses {
        all,
        lifetime: Duration::from_secs(lifetime.into()),
    })
}

fn address(content: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(content).map(Ipv4Addr::from);
    let v6 = <[u8; 16]>::try_from(content).map(Ipv6Addr::from);
    v4.map(IpAddr::V4).or(v6.map(IpAddr::V6)).ok()
}

/// The addresses that a record of a service has with it.
fn hints(content: &[u8], all: &mut Vec<IpAddr>) {
    let mut reader = Reader {
        message: content,
        at: 0,
    };
    let mut read = || {
        reader.short()?;
        reader.name()?;
        loop {
            let (key, length) = (reader.short()?, reader.short()?);
            let value = reader.take(length.into())?;
            let each = match key {
                HINT_V4 => 4,
                HINT_V6 => 16,
                _ => continue,
            };
            all.extend(value.chunks(each).filter_map(address).take(MAX_ADDRESSES));
        }
    };
    // It ends with the content.
    let _: Option<()> = read();
}

/// The answer to a query that cannot be answered now (SERVFAIL).
pub(crate) fn failure(query: &[u8]) -> Option<Vec<u8>> {
    let mut opened = open(query)?;
    opened.reader.name()?;
    opened.reader.take(4)?;
    let mut answer = query.get(..opened.reader.at)?.to_vec();
    answer[2] = 0x80 | (answer[2] & 0x79);
    answer[3] = 0x80 | 2;
    // One question, nothing else.
    answer[4..HEADER].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
    Some(answer)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(name: &str) -> Vec<u8> {
        let labels = name.split('.');
        let labels = labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
        labels.chain([0]).collect()
    }

    /// A query for the addresses of a name.
    pub(crate) fn query(name: &str) -> Vec<u8> {
        let header = [7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        [&header[..], &written(name), &[0, 1, 0, 1]].concat()
    }

    /// A record, whose owner is elsewhere in the message or written out.
    struct Record<'a> {
        owner: &'a [u8],
        kind: u16,
        content: &'a [u8],
    }

    fn answer(name: &str, records: &[Record<'_>]) -> Vec<u8> {
        let mut message = query(name);
        message[2] = 0x81;
        message[7] = records.len() as u8;
        for record in records {
            message.extend(record.owner);
            message.extend(record.kind.to_be_bytes());
            message.extend([0, 1, 0, 0, 0, 60]);
            message.extend((record.content.len() as u16).to_be_bytes());
            message.extend(record.content);
        }
        message
    }

    #[test]
    fn names_are_within_domains() {
        let domain: Name = "Example.org.".parse().unwrap();
        for (name, expected) in [
            ("example.org", true),
            ("www.EXAMPLE.org", true),
            ("badexample.org", false),
            ("org", false),
            ("example.org.net", false),
        ] {
            assert_eq!(
                asked(&query(name)).unwrap().is_within(&domain),
                expected,
                "{name}"
            );
        }
        for text in ["", ".", "a..b", "a b", &"x".repeat(64), "ä.org"] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_are_those_of_the_name_and_what_it_stands_for() {
        let target = written("b.example.net");
        let hint = [&[0, 1, 0, 0, 4, 0, 4][..], &[192, 0, 2, 7]].concat();
        let at_question: &[u8] = &[0xc0, 12];
        let record = |owner, kind, content| Record {
            owner,
            kind,
            content,
        };
        let message = answer(
            "a.example.org",
            &[
                record(at_question, CNAME, &target),
                record(&target, A, &[192, 0, 2, 1]),
                record(&written("c.example.net"), A, &[192, 0, 2, 2]),
                record(&target, AAAA, &Ipv6Addr::LOCALHOST.octets()),
                record(at_question, HTTPS, &hint),
            ],
        );
        let found = addresses(&message).unwrap();
        let texts: Vec<_> = found.all.iter().map(IpAddr::to_string).collect();
        assert_eq!(texts, ["192.0.2.1", "::1", "192.0.2.7"]);
        assert_eq!(found.lifetime, Duration::from_secs(60));
        assert!(is_answer(&message, &query("A.example.org")));
        assert!(!is_answer(&message, &query("b.example.org")));
        assert!(!is_answer(&query("a.example.org"), &query("a.example.org")));
    }

    #[test]
    fn a_name_that_refers_to_itself_ends() {
        let mut message = query("a");
        message[12..14].copy_from_slice(&[0xc0, 12]);
        assert_eq!(asked(&message), None);
    }

    #[test]
    fn a_failure_has_the_question() {
        let query = query("a.example.org");
        let failure = failure(&query).unwrap();
        assert!(is_answer(&failure, &query));
        assert_eq!(failure[3] & 15, 2);
    }

    proptest! {
        #[test]
        fn no_message_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600), flip in any::<[u8; 12]>()) {
            let mut all = answer("a.example.org", &[]);
            all.extend(&bytes);
            all[..12].copy_from_slice(&flip);
            for message in [&bytes, &all] {
                let _ = (asked(message), addresses(message), failure(message));
                let _ = is_answer(message, &query("a"));
                if let Some(found) = addresses(message) {
                    prop_assert!(found.all.len() <= MAX_ADDRESSES);
                }
            }
        }
    }
}
