//! Datatypes as XML.

use super::{XmlDumper, escape_name};
use crate::value::{INDENT, Renderer};
use anyhow::Result;
use pumice::Datatype;
use pumice::types::{ByteOrder, CharacterSet, Enumeration, StringPadding, VarLenKind};

impl XmlDumper<'_> {
    /// The element of a datatype, without the one around it.
    pub(super) fn print_type(&mut self, datatype: &Datatype) -> Result<()> {
        match datatype {
            Datatype::Compound(compound) => {
                self.open("CompoundType")?;
                for member in &compound.members {
                    self.open(&format!("Field FieldName=\"{}\"", escape_name(&member.name)))?;
                    self.nested_type(&member.datatype)?;
                    self.close("Field")?;
                }
                self.close("CompoundType")
            }
            Datatype::VarLen(varlen) if varlen.kind == VarLenKind::Sequence => {
                self.open("VLType")?;
                self.nested_type(&varlen.base)?;
                self.close("VLType")
            }
            Datatype::Array(array) => {
                self.open(&format!("ArrayType Ndims=\"{}\"", array.dims.len()))?;
                for length in &array.dims {
                    self.tag(&format!("<{{}}ArrayDimension DimSize=\"{length}\"/>"))?;
                }
                self.nested_type(&array.base)?;
                self.close("ArrayType")
            }
            atomic => {
                self.open("AtomicType")?;
                self.atomic_type(atomic)?;
                self.close("AtomicType")
            }
        }
    }

    fn nested_type(&mut self, datatype: &Datatype) -> Result<()> {
        self.open("DataType")?;
        self.print_type(datatype)?;
        self.close("DataType")
    }

    fn atomic_type(&mut self, datatype: &Datatype) -> Result<()> {
        let size = datatype.size();
        match datatype {
            Datatype::Integer(integer) => self.tag(&format!(
                "<{{}}IntegerType ByteOrder=\"{}\" Sign=\"{}\" Size=\"{size}\" />",
                order(integer.order),
                integer.signed
            )),
            Datatype::Float(float) => self.tag(&format!(
                "<{{}}FloatType ByteOrder=\"{}\" Size=\"{size}\" SignBitLocation=\"{}\" \
                 ExponentBits=\"{}\" ExponentLocation=\"{}\" MantissaBits=\"{}\" \
                 MantissaLocation=\"{}\" />",
                order(float.order),
                float.sign_location,
                float.exponent_size,
                float.exponent_location,
                float.mantissa_size,
                float.mantissa_location
            )),
            Datatype::Time(_) => self.tag("<{}TimeType />"),
            Datatype::String(string) => {
                self.string_type(&size.to_string(), string.padding, string.charset)
            }
            Datatype::VarLen(varlen) => match &varlen.kind {
                VarLenKind::String { padding, charset } => {
                    self.string_type("H5T_VARIABLE", *padding, *charset)
                }
                VarLenKind::Sequence => Ok(()),
            },
            Datatype::Bitfield(bits) => self.tag(&format!(
                "<{{}}BitfieldType ByteOrder=\"{}\" Size=\"{size}\"/>",
                order(bits.order)
            )),
            Datatype::Opaque(opaque) => {
                self.tag(&format!("<{{}}OpaqueType Tag=\"{}\" Size=\"{size}\"/>", opaque.tag))
            }
            Datatype::Reference(_) => {
                self.open("ReferenceType")?;
                self.tag("<{}ObjectReferenceType />")?;
                self.close("ReferenceType")
            }
            Datatype::Enum(enumeration) => self.enumeration(enumeration),
            _ => self.line("<!-- unknown datatype -->"),
        }
    }

    fn string_type(
        &mut self,
        size: &str,
        padding: StringPadding,
        charset: CharacterSet,
    ) -> Result<()> {
        let charset = match charset {
            CharacterSet::Ascii => "H5T_CSET_ASCII",
            CharacterSet::Utf8 => "unknown_cset",
        };
        let padding = match padding {
            StringPadding::NullTerminate => "H5T_STR_NULLTERM",
            StringPadding::NullPad => "H5T_STR_NULLPAD",
            StringPadding::SpacePad => "H5T_STR_SPACEPAD",
        };
        self.tag(&format!(
            "<{{}}StringType Cset=\"{charset}\" StrSize=\"{size}\" StrPad=\"{padding}\"/>"
        ))
    }

    fn enumeration(&mut self, enumeration: &Enumeration) -> Result<()> {
        self.tag(&format!("<{{}}EnumType Nelems=\"{}\">", enumeration.members().count()))?;
        let base = Datatype::Integer(enumeration.base.clone());
        // h5dump sets the type of the numbers in no further than the enumeration.
        self.tag("<{}DataType>")?;
        self.print_type(&base)?;
        self.tag("</{}DataType>")?;
        self.indent += INDENT;
        let renderer = Renderer::new(&base)?;
        for (name, bytes) in enumeration.members() {
            let mut value = String::new();
            renderer.push_inline(&mut value, bytes, &[]);
            for (element, text) in [("EnumElement", escape_name(name)), ("EnumValue", value)] {
                self.open(element)?;
                self.line(&text)?;
                self.close(element)?;
            }
        }
        self.indent = self.indent.saturating_sub(INDENT);
        self.tag("</{}EnumType>")
    }
}

fn order(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "LE",
        ByteOrder::Big => "BE",
        ByteOrder::Vax => "VAX",
    }
}
