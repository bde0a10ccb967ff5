//! Messages of DNS (RFC 1035): the question, and the addresses of the answer.

use std::collections::HashSet;
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

/// Addresses in an answer. One with more is not passed on, as packets to some of them would go beside the tunnel.
const MAX_ADDRESSES: usize = 64;

/// Names that the name of a question stands for.
const MAX_NAMES: usize = 32;

/// Records of an answer.
const MAX_RECORDS: usize = 512;

/// Parts of a name that are elsewhere in the message: as many as it has labels.
const MAX_JUMPS: usize = 127;

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
        let mut jumps = 0;
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
                    if jumps == 0 {
                        self.at = part.at;
                    }
                    jumps += 1;
                    let to = usize::from(length & 0x3f) << 8 | usize::from(low);
                    // Otherwise it might never end.
                    if to >= first || jumps > MAX_JUMPS {
                        return None;
                    }
                    first = to;
                    part.at = to;
                }
                _ => return None,
            }
        }
        if jumps == 0 {
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
        let mut opened = open(message).filter(|opened| opened.questions == 1)?;
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

/// A record that may be about the name of the question.
struct Found<'a> {
    owner: Name,
    kind: u16,
    lifetime: u32,
    /// Where its content begins in the message.
    reader: Reader<'a>,
    content: &'a [u8],
}

/// The addresses of the name that an answer is about, by names that it stands for (CNAME); `None` if the message is malformed, or
/// has more than is usual.
pub(crate) fn addresses(message: &[u8]) -> Option<Addresses> {
    let Opened {
        mut reader,
        questions,
        answers,
        ..
    } = open(message)?;
    if questions != 1 || usize::from(answers) > MAX_RECORDS {
        return None;
    }
    let mut names = HashSet::from([reader.name()?]);
    reader.take(4)?;
    let mut records = Vec::new();
    for _ in 0..answers {
        let owner = reader.name()?;
        let (kind, class) = (reader.short()?, reader.short()?);
        let (lifetime, length) = (reader.long()?, reader.short()?);
        let begin = reader;
        let content = reader.take(length.into())?;
        if class == INTERNET {
            records.push(Found {
                owner,
                kind,
                lifetime,
                reader: begin,
                content,
            });
        }
    }
    // Aliases may be in any order.
    loop {
        let known = names.len();
        for alias in records.iter().filter(|record| record.kind == CNAME) {
            if names.contains(&alias.owner) {
                let mut reader = alias.reader;
                names.insert(reader.name()?);
            }
        }
        if names.len() > MAX_NAMES {
            return None;
        }
        if names.len() == known {
            break;
        }
    }
    let (mut all, mut lifetime) = (Vec::new(), u32::MAX);
    for record in &records {
        if !names.contains(&record.owner) {
            continue;
        }
        lifetime = lifetime.min(record.lifetime);
        match record.kind {
            A | AAAA => all.push(address(record.content)?),
            SVCB | HTTPS => hints(record, &mut all)?,
            _ => {}
        }
        if all.len() > MAX_ADDRESSES {
            return None;
        }
    }
    Some(Addresses {
        all,
        lifetime: Duration::from_secs(lifetime.into()),
    })
}

fn address(content: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(content).map(Ipv4Addr::from);
    let v6 = <[u8; 16]>::try_from(content).map(Ipv6Addr::from);
    let address = v4.map(IpAddr::V4).or(v6.map(IpAddr::V6)).ok()?;
    // Programs reach such a one by IPv4.
    Some(address.to_canonical())
}

/// The addresses that a record of a service has with it (RFC 9460, section 2.2).
fn hints(record: &Found<'_>, all: &mut Vec<IpAddr>) -> Option<()> {
    let mut reader = record.reader;
    let end = reader.at + record.content.len();
    reader.short()?;
    reader.name()?;
    while reader.at < end {
        let (key, length) = (reader.short()?, reader.short()?);
        let value = reader.take(length.into())?;
        let each = match key {
            HINT_V4 => 4,
            HINT_V6 => 16,
            _ => continue,
        };
        for hint in value.chunks(each).take(MAX_ADDRESSES + 1) {
            all.push(address(hint)?);
        }
    }
    (reader.at == end).then_some(())
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
    fn answers_of_which_some_addresses_would_be_missed_are_refused() {
        let at_question: &[u8] = &[0xc0, 12];
        let record = |owner, kind, content| Record {
            owner,
            kind,
            content,
        };
        let target = written("b.example.net");
        let before_its_alias = answer(
            "a.example.org",
            &[
                record(&target, A, &[192, 0, 2, 1]),
                record(at_question, CNAME, &target),
            ],
        );
        assert_eq!(addresses(&before_its_alias).unwrap().all.len(), 1);
        let mapped = "::ffff:192.0.2.1".parse::<Ipv6Addr>().unwrap().octets();
        let mapped = answer("a", &[record(at_question, AAAA, &mapped)]);
        let expected: IpAddr = Ipv4Addr::new(192, 0, 2, 1).into();
        assert_eq!(addresses(&mapped).unwrap().all, [expected]);
        // The name of the target is that of the question.
        let hint = [&[0, 1, 0xc0, 12, 0, 4, 0, 4][..], &[192, 0, 2, 7]].concat();
        let service = answer("a", &[record(at_question, HTTPS, &hint)]);
        assert_eq!(addresses(&service).unwrap().all.len(), 1);

        let many: Vec<_> = (0..65)
            .map(|_| record(at_question, A, &[192, 0, 2, 1]))
            .collect();
        assert_eq!(addresses(&answer("a", &many)), None);
        let names: Vec<_> = (0..40).map(|at| written(&format!("n{at}"))).collect();
        let chain: Vec<_> = names
            .iter()
            .map(|name| record(at_question, CNAME, name))
            .collect();
        assert_eq!(addresses(&answer("a", &chain)), None);
        let mut none = answer("a", &[]);
        none[5] = 0;
        assert!(!is_answer(&none, &query("a")));
        let mut two = query("a");
        two[5] = 2;
        assert_eq!((asked(&two), addresses(&two)), (None, None));
        // Each name is a pointer to the one before.
        let mut jumps = vec![0; HEADER];
        jumps.push(0);
        for at in (HEADER..).step_by(2).take(200) {
            let before = if at == HEADER { at } else { at - 1 };
            jumps.extend([0xc0 | (before >> 8) as u8, before as u8]);
        }
        let mut reader = Reader {
            message: &jumps,
            at: jumps.len() - 2,
        };
        assert_eq!(reader.name(), None);
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
