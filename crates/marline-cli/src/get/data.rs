//! The content of requests by curl's flags: `-d` and its relatives, `-F`, `-T`.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use marline::Runtime;
use marline_http::client::{Form, FormField, Upload, UploadPart};

use crate::failure::{Failure, print_message};
use crate::get::REQUESTS;
use crate::get::curl::READ_ERROR;
use crate::get::file::{MAX_CONTENT, read_input};

/// Flags with content. They keep their order, in which the content is sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataFlags(Vec<Data>);

#[derive(Clone, Debug)]
struct Data {
    kind: Kind,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ascii,
    Raw,
    Binary,
    Encoded,
    Json,
    Form,
    FormText,
    File,
}

/// A flag: its kind, its names and its help.
struct Flag {
    kind: Kind,
    short: Option<char>,
    long: &'static str,
    value: &'static str,
    help: &'static str,
    is_daily: bool,
}

const FLAGS: [Flag; 8] = [
    Flag {
        kind: Kind::Ascii,
        short: Some('d'),
        long: "data",
        value: "DATA",
        help: "Send DATA by POST, as a form is sent; @FILE is the content of FILE without ends of lines, @- standard input. Several are joined with &",
        is_daily: true,
    },
    Flag {
        kind: Kind::Raw,
        short: None,
        long: "data-raw",
        value: "DATA",
        help: "As --data, but @ has no meaning",
        is_daily: false,
    },
    Flag {
        kind: Kind::Binary,
        short: None,
        long: "data-binary",
        value: "DATA",
        help: "As --data, but the content of @FILE is sent as it is",
        is_daily: false,
    },
    Flag {
        kind: Kind::Encoded,
        short: None,
        long: "data-urlencode",
        value: "DATA",
        help: "As --data, percent-encoded: CONTENT, =CONTENT, NAME=CONTENT, @FILE or NAME@FILE",
        is_daily: false,
    },
    Flag {
        kind: Kind::Json,
        short: None,
        long: "data-json",
        value: "DATA",
        help: "Send DATA, or @FILE, as JSON by POST. `--json DATA` is the same if DATA is valid JSON or begins with @",
        is_daily: false,
    },
    Flag {
        kind: Kind::Form,
        short: Some('F'),
        long: "form",
        value: "NAME=CONTENT",
        help: "Send a form with files by POST: NAME=TEXT, NAME=@FILE for a file, NAME=<FILE for its content as text; `;type=` and `;filename=` after it set its media type and file name",
        is_daily: true,
    },
    Flag {
        kind: Kind::FormText,
        short: None,
        long: "form-string",
        value: "NAME=TEXT",
        help: "As --form, but @, < and ; have no meaning",
        is_daily: false,
    },
    Flag {
        kind: Kind::File,
        short: Some('T'),
        long: "upload-file",
        value: "FILE",
        help: "Send FILE, or with - standard input, by PUT; to a URL that ends with / under its name",
        is_daily: true,
    },
];

impl FromArgMatches for DataFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut found = Vec::new();
        for flag in &FLAGS {
            let values = matches.get_many::<String>(flag.long);
            let indices = matches.indices_of(flag.long);
            let both = values
                .into_iter()
                .flatten()
                .zip(indices.into_iter().flatten());
            found.extend(both.map(|(text, index)| {
                let data = Data {
                    kind: flag.kind,
                    text: text.clone(),
                };
                (index, data)
            }));
        }
        found.sort_by_key(|(index, _)| *index);
        Ok(Self(found.into_iter().map(|(_, data)| data).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for DataFlags {
    fn augment_args(command: Command) -> Command {
        FLAGS.iter().fold(command, |command, flag| {
            let argument = Arg::new(flag.long)
                .long(flag.long)
                .value_name(flag.value)
                .help(flag.help)
                .help_heading(REQUESTS)
                .allow_hyphen_values(true)
                .hide_short_help(!flag.is_daily)
                .action(ArgAction::Append);
            command.arg(match flag.short {
                Some(short) => argument.short(short),
                None => argument,
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The content of requests, as the flags describe it.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub(super) upload: Upload,
    /// The media type, unless a header field names another.
    pub(super) media_type: Option<http::HeaderValue>,
    /// Whether responses in JSON are asked for.
    pub(super) is_json: bool,
    /// The query for `-G`.
    pub(super) query: Option<String>,
    /// The file of `-T`.
    pub(super) file: Option<PathBuf>,
}

impl DataFlags {
    /// Whether there is content that is sent by POST unless a method is given.
    pub(crate) fn posts(&self) -> bool {
        self.0.iter().any(|data| data.kind != Kind::File)
    }

    /// The content that is sent, or with `as_query` the query that is added to URLs.
    ///
    /// # Errors
    /// A file cannot be read, or flags contradict each other.
    pub(super) fn content(&self, as_query: bool) -> Result<Content, Failure> {
        let is = |kinds: &[Kind]| self.0.iter().any(|data| kinds.contains(&data.kind));
        let (form, file) = (is(&[Kind::Form, Kind::FormText]), is(&[Kind::File]));
        let plain = is(&[Kind::Ascii, Kind::Raw, Kind::Binary, Kind::Encoded]);
        let json = is(&[Kind::Json]);
        if [form, file, plain || json]
            .iter()
            .filter(|kind| **kind)
            .count()
            > 1
        {
            let message =
                "--data, --form and --upload-file each are the whole content; give one of them";
            return Err(Failure::Usage(message.to_owned()));
        }
        if form {
            return self.form();
        }
        if let Some(data) = self.0.last().filter(|_| file) {
            let path = PathBuf::from(&data.text);
            let part = match data.text.as_str() {
                "-" | "." => UploadPart::Input,
                _ => UploadPart::File(path.clone()),
            };
            return Ok(Content {
                upload: Upload::new(vec![part]),
                file: Some(path),
                ..Content::default()
            });
        }
        if !plain && !json {
            return Ok(Content::default());
        }
        let mut joined = Vec::new();
        for (number, data) in self.0.iter().enumerate() {
            if number > 0 && data.kind != Kind::Json {
                joined.push(b'&');
            }
            joined.extend(data.bytes()?);
        }
        if as_query {
            return Ok(Content {
                query: Some(String::from_utf8_lossy(&joined).into_owned()),
                ..Content::default()
            });
        }
        let media_type = match json {
            true => "application/json",
            false => "application/x-www-form-urlencoded",
        };
        Ok(Content {
            upload: Upload::new(vec![UploadPart::Bytes(joined.into())]),
            media_type: Some(http::HeaderValue::from_static(media_type)),
            is_json: json,
            ..Content::default()
        })
    }

    fn form(&self) -> Result<Content, Failure> {
        let seed = marline::TokioRuntime::current().and_then(|runtime| runtime.seed());
        let seed = seed.map_err(|error| Failure::Failed(format!("no random numbers: {error}")))?;
        let mut random = [0; 16];
        random.copy_from_slice(&seed[..16]);
        let mut form = Form::new(random);
        for data in &self.0 {
            data.add_to(&mut form)?;
        }
        let media_type = Some(form.media_type());
        Ok(Content {
            upload: form.upload(),
            media_type,
            ..Content::default()
        })
    }
}

impl Data {
    /// The bytes that are sent.
    fn bytes(&self) -> Result<Vec<u8>, Failure> {
        let file = self.text.strip_prefix('@');
        match (self.kind, file) {
            (Kind::Ascii, Some(file)) => {
                let mut bytes = read(file)?;
                bytes.retain(|byte| !b"\r\n\0".contains(byte));
                Ok(bytes)
            }
            (Kind::Binary | Kind::Json, Some(file)) => read(file),
            (Kind::Encoded, _) => encoded(&self.text),
            _ => Ok(self.text.clone().into_bytes()),
        }
    }

    fn add_to(&self, form: &mut Form) -> Result<(), Failure> {
        let wrong = || Failure::Usage("--form: write it as NAME=CONTENT".to_owned());
        let (name, content) = self.text.split_once('=').ok_or_else(wrong)?;
        let mut field = FormField {
            name: name.to_owned(),
            ..FormField::default()
        };
        if self.kind == Kind::FormText {
            form.add(&field, UploadPart::Bytes(content.to_owned().into()));
            return Ok(());
        }
        let (content, settings) = match content.split_once(';') {
            Some((content, settings)) if is_setting(settings) => (content, settings),
            _ => (content, ""),
        };
        for setting in settings
            .split(';')
            .map(str::trim)
            .filter(|one| !one.is_empty())
        {
            match setting.split_once('=') {
                Some(("type", kind)) => field.media_type = Some(kind.to_owned()),
                Some(("filename", name)) => {
                    field.file_name = Some(name.trim_matches('"').to_owned());
                }
                _ => {
                    return Err(Failure::Usage(format!(
                        "--form: `{setting}` is neither type=TYPE nor filename=NAME"
                    )));
                }
            }
        }
        match (content.strip_prefix('@'), content.strip_prefix('<')) {
            (Some("-"), _) => {
                field.file_name.get_or_insert_with(|| "-".to_owned());
                form.add(&field, UploadPart::Input);
            }
            (Some(path), _) => form.add_file(field, PathBuf::from(path)),
            (_, Some(path)) => form.add(&field, UploadPart::Bytes(read(path)?.into())),
            _ => form.add(&field, UploadPart::Bytes(content.to_owned().into())),
        }
        Ok(())
    }
}

/// Whether what follows a semicolon is about the field, and not a part of its text.
fn is_setting(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("type=") || text.starts_with("filename=")
}

/// The content of `file`; `-` is standard input.
fn read(file: &str) -> Result<Vec<u8>, Failure> {
    let read = read_input(Path::new(file), MAX_CONTENT);
    read.map_err(|error| {
        print_message(&format!("cannot read {file}: {error}"));
        Failure::Status(READ_ERROR)
    })
}

/// The content of `--data-urlencode`.
pub(super) fn encoded(text: &str) -> Result<Vec<u8>, Failure> {
    let (name, content) = match text.find(['=', '@']) {
        Some(at) if text.as_bytes()[at] == b'@' => (&text[..at], read(&text[at + 1..])?),
        Some(at) => (&text[..at], text.as_bytes()[at + 1..].to_vec()),
        None => ("", text.as_bytes().to_vec()),
    };
    let mut encoded = String::from(name);
    if !name.is_empty() {
        encoded.push('=');
    }
    for byte in content {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(byte.into());
            }
            b' ' => encoded.push('+'),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(encoded.into_bytes())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        data: DataFlags,
    }

    fn query(flags: &[&str]) -> String {
        let line = Line::parse_from(["get"].iter().chain(flags));
        line.data.content(true).unwrap().query.unwrap()
    }

    #[test]
    fn data_is_joined_in_the_order_of_its_flags() {
        let flags = [
            "--data-urlencode",
            "a=b c&",
            "-d",
            "x=1",
            "--data-raw",
            "@y",
        ];
        assert_eq!(query(&flags), "a=b+c%26&x=1&@y");
        assert_eq!(
            query(&["--data-urlencode", "=é", "--data-urlencode", "plain"]),
            "%C3%A9&plain"
        );
    }

    #[test]
    fn files_lose_their_ends_of_lines_unless_they_are_binary() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        std::fs::write(&path, "a\r\nb\n").unwrap();
        let file = format!("@{}", path.display());
        assert_eq!(query(&["-d", &file]), "ab");
        assert_eq!(query(&["--data-binary", &file]), "a\r\nb\n");
        assert_eq!(
            query(&["--data-urlencode", &format!("n{file}")]),
            "n=a%0D%0Ab%0A"
        );
    }
}
