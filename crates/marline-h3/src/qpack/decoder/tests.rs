use super::*;
use crate::qpack::tests::hex;

mod appendix_b;
mod hostile;
mod limits;
mod malformed;

/// The limits of appendix B of RFC 9204, with room for everything else.
const LIMITS: DecoderLimits = DecoderLimits {
    table_capacity: 220,
    blocked_streams: 100,
    max_field_section_size: 1 << 16,
    blocked_bytes: 1 << 16,
};

fn field(name: &str, value: &str) -> FieldLine {
    FieldLine {
        name: Bytes::copy_from_slice(name.as_bytes()),
        value: Bytes::copy_from_slice(value.as_bytes()),
        is_sensitive: false,
    }
}

fn fields(lines: &[(&str, &str)]) -> Result<Decoded, Error> {
    Ok(Decoded::Fields(
        lines
            .iter()
            .map(|(name, value)| field(name, value))
            .collect(),
    ))
}

fn decode(decoder: &mut Decoder, stream_id: u64, section: &str) -> Result<Decoded, Error> {
    decoder.decode(stream_id, hex(section).into())
}

/// A decoder that has executed these instructions.
fn decoder(instructions: &str) -> Decoder {
    let mut decoder = Decoder::new(LIMITS);
    decoder.on_encoder_stream(&hex(instructions)).unwrap();
    decoder.take_instructions();
    decoder
}

/// Sets the capacity to 220 and inserts :authority: a, :path: b, age: c.
const THREE_ENTRIES: &str = "3fbd01 c00161 c10162 c20163";
