//! Published values, read from tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use marline_report::input;

use super::Value;
use super::cells::{cell, same};
use super::choose::Point;
use super::embedded::{self, TABLES};
use super::error::Problem;
use super::read::Lookup;

/// Largest size of a table of published values in bytes.
const MAX_TABLE: u64 = 16 << 20;

/// A table of published values: CSV with named columns, and `#` before comments.
#[derive(Debug)]
pub(super) struct PublishedTable {
    columns: Vec<String>,
    rows: Vec<Row>,
}

/// A row, and its line in the file.
#[derive(Debug)]
struct Row {
    line: u64,
    cells: Vec<String>,
}

impl PublishedTable {
    /// Reads the table `name` for a scenario in `directory`. It is searched next to the scenario, in `published/`
    /// there and in the directories above, and among the tables that the library contains.
    pub(super) fn find(name: &str, directory: Option<&Path>) -> Result<Self, String> {
        let beside = directory.map(|directory| directory.join(name));
        let above = directory.into_iter().flat_map(Path::ancestors);
        let above = above.map(|directory| directory.join(TABLES).join(name));
        let found: Option<PathBuf> = beside.into_iter().chain(above).find(|path| path.is_file());
        if let Some(path) = found {
            let text = input::read_text(&path, MAX_TABLE).map_err(csv::Error::from);
            return text
                .and_then(|text| Self::read(text.as_bytes()))
                .map_err(|error| format!("cannot read {}: {error}", path.display()));
        }
        match embedded::table(name) {
            Some(text) => Self::read(text.as_bytes()).map_err(|error| format!("{name}: {error}")),
            None => Err(format!(
                "there is no table \"{name}\" beside the scenario or in a directory `published`"
            )),
        }
    }

    fn read(text: impl std::io::Read) -> Result<Self, csv::Error> {
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .flexible(true)
            .from_reader(text);
        let columns = reader.headers()?.iter().map(str::to_owned).collect();
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record?;
            rows.push(Row {
                line: record.position().map_or(0, csv::Position::line),
                cells: record.iter().map(str::to_owned).collect(),
            });
        }
        Ok(Self { columns, rows })
    }

    /// The number in column `value` of the row in which every column of `condition` has its value, and every
    /// column with the name of a parameter has the parameter's value. In both, `{NAME}` stands for a
    /// parameter or a member of `names`.
    pub(super) fn look_up(
        &self,
        condition: &BTreeMap<String, Value>,
        value: &str,
        names: &[(&str, &str)],
        parameters: &BTreeMap<String, Value>,
    ) -> Result<Option<f64>, String> {
        let value = self.column(&fill(value, names, parameters))?;
        let mut wanted = Vec::new();
        for (column, want) in condition {
            wanted.push((self.column(column)?, fill(&cell(want), names, parameters)));
        }
        for (name, parameter) in parameters {
            if let (Ok(column), false) = (self.column(name), condition.contains_key(name)) {
                wanted.push((column, cell(parameter)));
            }
        }
        let mut rows = self.rows.iter().filter(|row| {
            wanted
                .iter()
                .all(|(column, want)| row.cells.get(*column).is_some_and(|cell| same(cell, want)))
        });
        let Some(row) = rows.next() else {
            return Ok(None);
        };
        let line = row.line;
        if let Some(second) = rows.next() {
            return Err(format!(
                "lines {line} and {} of the table match; add conditions to `where`",
                second.line
            ));
        }
        match row.cells.get(value).map_or("", String::as_str) {
            "" => Ok(None),
            text => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(format!(
                    "\"{text}\" in line {line} of the table is not a number; choose another column"
                )),
            },
        }
    }

    fn column(&self, name: &str) -> Result<usize, String> {
        let position = self.columns.iter().position(|column| column == name);
        position.ok_or_else(|| {
            super::error::unknown("column", name, self.columns.iter().map(String::as_str))
        })
    }
}

fn fill(text: &str, names: &[(&str, &str)], parameters: &BTreeMap<String, Value>) -> String {
    let mut text = text.to_owned();
    for (name, word) in names {
        text = text.replace(&format!("{{{name}}}"), word);
    }
    for (name, parameter) in parameters {
        text = text.replace(&format!("{{{name}}}"), &cell(parameter));
    }
    text
}

/// Published values at each point; at least at one of them.
pub(super) fn look_up(
    lookup: &Lookup,
    directory: Option<&Path>,
    names: &[(&str, &str)],
    points: &[Point],
) -> Result<Vec<Option<f64>>, Problem> {
    let values = look_up_any(lookup, directory, names, points)?;
    if values.iter().all(Option::is_none) {
        return Err(lookup.unmatched());
    }
    Ok(values)
}

/// Published values at the points that have one.
pub(super) fn look_up_any(
    lookup: &Lookup,
    directory: Option<&Path>,
    names: &[(&str, &str)],
    points: &[Point],
) -> Result<Vec<Option<f64>>, Problem> {
    let problem = |text: String| Problem::new(&lookup.place, text);
    let table = PublishedTable::find(&lookup.file, directory).map_err(problem)?;
    points
        .iter()
        .map(|point| table.look_up(&lookup.condition, &lookup.value, names, point))
        .collect::<Result<_, _>>()
        .map_err(problem)
}

impl Lookup {
    /// The error that no row matches.
    pub(super) fn unmatched(&self) -> Problem {
        let text = format!("no row of \"{}\" matches; change `where`", self.file);
        Problem::new(&self.place, text)
    }
}
