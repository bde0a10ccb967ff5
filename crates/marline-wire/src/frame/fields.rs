//! Frames that consist only of variable-length integers.

/// Defines a frame of integers: its struct, type, decoder, encoder and size.
macro_rules! varint_frame {
    (
        $(#[$doc:meta])*
        $name:ident = $type:literal {
            $($(#[$field_doc:meta])* $field:ident: $kind:ty,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)*
        }

        impl $name {
            /// The frame type.
            pub const TYPE: u64 = $type;

            /// Reads the fields after the type.
            pub(super) fn decode(
                reader: &mut $crate::Reader<'_>,
            ) -> Result<Self, $crate::frame::FrameErrorKind> {
                Ok(Self { $($field: reader.varint()?.try_into()?,)* })
            }

            /// Appends the frame.
            pub fn encode(&self, buf: &mut Vec<u8>) {
                $crate::varint::encode(Self::TYPE, buf);
                $($crate::varint::encode(self.$field.into(), buf);)*
            }

            /// Length of the frame in bytes.
            pub fn size(&self) -> usize {
                $crate::varint::size(Self::TYPE) $(+ $crate::varint::size(self.$field.into()))*
            }
        }
    };
}

pub(super) use varint_frame;
