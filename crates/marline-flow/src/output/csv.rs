//! Records as CSV (RFC 4180): a line each, missing values empty.
//!
//! Texts come from peers, and spreadsheets interpret a cell that begins with certain characters as a formula. Such a text
//! gets a single quote before it, which marks it as text.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use super::columns::{COLUMNS, TABLE, Value};
use crate::anonymize::Anonymizer;
use crate::record::Record;

/// Writes lines.
pub(super) struct CsvWriter<W: Write> {
    writer: csv::Writer<W>,
    cell: String,
    bytes: u64,
}

impl<W: Write> CsvWriter<W> {
    /// Writes the header.
    pub(super) fn new(out: W) -> io::Result<Self> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(COLUMNS)?;
        Ok(Self {
            writer,
            cell: String::new(),
            bytes: 0,
        })
    }

    pub(super) fn write(
        &mut self,
        record: &Record,
        anonymizer: Option<&Anonymizer>,
    ) -> io::Result<()> {
        for column in &TABLE {
            self.cell.clear();
            // A `String` takes everything.
            let _ = match column.value.read(record, anonymizer) {
                Value::Integer(value) => write!(self.cell, "{value}"),
                Value::Small(value) => write!(self.cell, "{value}"),
                Value::Float(value) => write!(self.cell, "{value:.9}"),
                Value::Flag(value) => write!(self.cell, "{value}"),
                Value::Text(value) | Value::Host(value) => write_text(&mut self.cell, &value),
                Value::Name(value) => self.cell.write_str(value),
                Value::Address(value) => write!(self.cell, "{value}"),
                Value::Nothing => Ok(()),
            };
            self.writer.write_field(&self.cell)?;
            // And a comma, or the end of the line.
            self.bytes += self.cell.len() as u64 + 1;
        }
        self.writer.write_record(None::<&[u8]>)?;
        Ok(())
    }

    /// Bytes of the lines, without quotation marks.
    pub(super) fn size(&self) -> u64 {
        self.bytes
    }

    pub(super) fn finish(self) -> io::Result<W> {
        self.writer
            .into_inner()
            .map_err(|error| io::Error::new(error.error().kind(), error.to_string()))
    }
}

/// Characters that begin a formula in a spreadsheet, or that are skipped before one.
const BEFORE_FORMULAS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Writes a text of a peer so that no spreadsheet interprets it as a formula.
fn write_text(cell: &mut String, text: &str) -> fmt::Result {
    if text.starts_with(BEFORE_FORMULAS) {
        cell.write_char('\'')?;
    }
    cell.write_str(text)
}
