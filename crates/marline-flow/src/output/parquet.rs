//! Records as Parquet, in row groups.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use super::columns::{Column, Kind, TABLE, Value};
use crate::anonymize::Anonymizer;
use crate::limits::ROW_GROUP;
use crate::record::Record;

/// Bytes of texts that share an allocation.
const TEXTS: usize = 64 << 10;

/// Writes row groups.
pub(super) struct ParquetWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Buffer>,
    rows: usize,
    /// Bytes of values of the next row group.
    pending: u64,
}

/// The next row group of a column.
struct Buffer {
    /// The values that there are.
    values: Values,
    /// For a column with optional values: 1 for a value, 0 for a missing one.
    levels: Option<Vec<i16>>,
}

enum Values {
    Integers(Vec<i64>),
    Small(Vec<i32>),
    Floats(Vec<f64>),
    Flags(Vec<bool>),
    Texts {
        texts: Vec<ByteArray>,
        /// Room for further texts.
        room: BytesMut,
    },
}

fn io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let physical = match column.kind {
        Kind::Integer => Physical::INT64,
        Kind::Small => Physical::INT32,
        Kind::Float => Physical::DOUBLE,
        Kind::Flag => Physical::BOOLEAN,
        Kind::Text => Physical::BYTE_ARRAY,
    };
    let is_text = column.kind == Kind::Text;
    let builder = Type::primitive_type_builder(column.name, physical)
        .with_repetition(if column.is_optional {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        })
        .with_logical_type(is_text.then_some(LogicalType::String));
    builder.build().map(Arc::new)
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Writes the beginning of a file.
    pub(super) fn new(out: W) -> io::Result<Self> {
        let fields = TABLE.iter().map(field).collect::<Result<_, _>>();
        let schema = Type::group_type_builder("flow").with_fields(fields.map_err(io)?);
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by("marline".to_owned());
        for column in TABLE.iter().filter(|column| column.is_distinct) {
            properties = properties.set_column_dictionary_enabled(column.name.into(), false);
        }
        let properties = properties.build();
        let schema = Arc::new(schema.build().map_err(io)?);
        let writer = SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(io)?;
        Ok(Self {
            writer,
            columns: TABLE.iter().map(Buffer::of).collect(),
            rows: 0,
            pending: 0,
        })
    }

    pub(super) fn write(
        &mut self,
        record: &Record,
        anonymizer: Option<&Anonymizer>,
    ) -> io::Result<()> {
        for (column, buffer) in TABLE.iter().zip(&mut self.columns) {
            self.pending += buffer.push(column.value.read(record, anonymizer));
        }
        self.rows += 1;
        if self.rows >= ROW_GROUP {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group().map_err(io)?;
        for buffer in &mut self.columns {
            buffer.write(&mut group).map_err(io)?;
        }
        group.close().map_err(io)?;
        self.rows = 0;
        self.pending = 0;
        Ok(())
    }

    /// Bytes of the file so far, including those of the next row group before compression.
    pub(super) fn size(&self) -> u64 {
        self.writer.bytes_written() as u64 + self.pending
    }

    /// Writes the rest, and the end of the file.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.writer.into_inner().map_err(io)
    }
}

impl Buffer {
    fn of(column: &Column) -> Self {
        let values = match column.kind {
            Kind::Integer => Values::Integers(Vec::new()),
            Kind::Small => Values::Small(Vec::new()),
            Kind::Float => Values::Floats(Vec::new()),
            Kind::Flag => Values::Flags(Vec::new()),
            Kind::Text => Values::Texts {
                texts: Vec::new(),
                room: BytesMut::new(),
            },
        };
        let levels = column.is_optional.then(Vec::new);
        Self { values, levels }
    }

    /// Adds a value of the column's kind, and returns its number of bytes.
    fn push(&mut self, value: Value<'_>) -> u64 {
        if let Some(levels) = &mut self.levels {
            levels.push((value != Value::Nothing).into());
            if value == Value::Nothing {
                return 0;
            }
        }
        let bytes = match (&mut self.values, value) {
            (Values::Integers(values), Value::Integer(value)) => {
                values.push(value.cast_signed());
                size_of_val(&value)
            }
            (Values::Small(values), Value::Small(value)) => {
                values.push(value.cast_signed());
                size_of_val(&value)
            }
            (Values::Floats(values), Value::Float(value)) => {
                values.push(value);
                size_of_val(&value)
            }
            (Values::Flags(values), Value::Flag(value)) => {
                values.push(value);
                size_of_val(&value)
            }
            (Values::Texts { texts, room }, value) => {
                let text = match value {
                    Value::Name(name) => Bytes::from_static(name.as_bytes()),
                    Value::Text(text) | Value::Host(text) => kept(text.as_bytes(), room),
                    Value::Address(IpAddr::V4(address)) => kept_address(address, room),
                    Value::Address(address) => kept(address.to_string().as_bytes(), room),
                    value => {
                        debug_assert!(false, "{value:?} is not text");
                        Bytes::new()
                    }
                };
                let bytes = text.len();
                texts.push(ByteArray::from(text));
                bytes
            }
            (_, value) => {
                debug_assert!(false, "{value:?} is not of the kind of its column");
                0
            }
        };
        bytes as u64
    }

    /// Writes the values as the next column, and clears them.
    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let levels = self.levels.as_deref();
        match &mut self.values {
            Values::Integers(values) => write::<Int64Type, W>(group, values, levels),
            Values::Small(values) => write::<Int32Type, W>(group, values, levels),
            Values::Floats(values) => write::<DoubleType, W>(group, values, levels),
            Values::Flags(values) => write::<BoolType, W>(group, values, levels),
            Values::Texts { texts, .. } => write::<ByteArrayType, W>(group, texts, levels),
        }?;
        if let Some(levels) = &mut self.levels {
            levels.clear();
        }
        Ok(())
    }
}

/// A copy of a text in `room`, which is shared by many.
fn kept(text: &[u8], room: &mut BytesMut) -> Bytes {
    if room.capacity() < text.len() {
        *room = BytesMut::with_capacity(TEXTS.max(text.len()));
    }
    room.extend_from_slice(text);
    room.split().freeze()
}

/// The same of an address. The formatter of the standard library takes several times as many instructions.
fn kept_address(address: Ipv4Addr, room: &mut BytesMut) -> Bytes {
    let mut text = [b'.'; 16];
    let mut len = 0;
    for octet in address.octets() {
        let digits = [octet / 100, octet / 10 % 10, octet % 10];
        let skipped = usize::from(octet < 100) + usize::from(octet < 10);
        for digit in &digits[skipped..] {
            text[len] = b'0' + digit;
            len += 1;
        }
        // A dot, which the last one is without.
        len += 1;
    }
    kept(&text[..len - 1], room)
}

fn write<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &mut Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, levels, None)?;
        column.close()?;
    }
    values.clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::kept_address;

    proptest! {
        #[test]
        fn addresses_are_as_everywhere(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            let text = kept_address(address, &mut BytesMut::new());
            prop_assert_eq!(text, address.to_string());
        }
    }
}
