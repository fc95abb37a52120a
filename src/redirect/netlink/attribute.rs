//! Netlink attributes, of which messages consist: a length, a kind, and a value or further attributes.

/// Length and kind, 16 bits each in the machine's order (RFC 3549, section 2.2; `struct nlattr`).
const HEADER: usize = 4;
const ALIGNMENT: usize = 4;
/// NLA_F_NESTED, of attributes that hold attributes.
const NESTED: u16 = 1 << 15;
/// The kind without NLA_F_NESTED and NLA_F_NET_BYTEORDER.
const KIND: u16 = !(0b11 << 14);

/// Attributes to be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AttributeWriter(Vec<u8>);

/// Attributes that were received, up to the first with a wrong length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attributes<'a>(&'a [u8]);

impl AttributeWriter {
    /// Writes a value as it is. Its length has 16 bits, header included: callers bound what they write.
    pub(super) fn bytes(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = u16::try_from(HEADER + value.len()).unwrap_or(u16::MAX);
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(ALIGNMENT), 0);
        self
    }

    /// Writes a number in network order, as nf_tables expects.
    pub(super) fn number(&mut self, kind: u16, value: u32) -> &mut Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Writes a text with the NUL that ends it.
    pub(super) fn text(&mut self, kind: u16, value: &str) -> &mut Self {
        self.bytes(kind, &[value.as_bytes(), &[0]].concat())
    }

    /// Writes attributes in an attribute.
    pub(super) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(kind | NESTED, &inner.0)
    }

    /// The bytes to send.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<'a> Attributes<'a> {
    /// The attributes in these bytes.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The value of the first attribute of this kind.
    pub(super) fn bytes(self, kind: u16) -> Option<&'a [u8]> {
        self.into_iter().find(|(found, _)| *found == kind).map(|(_, value)| value)
    }

    /// A number in network order.
    pub(super) fn number(self, kind: u16) -> Option<u32> {
        self.bytes(kind)?.try_into().ok().map(u32::from_be_bytes)
    }

    /// A text up to its NUL.
    pub(super) fn text(self, kind: u16) -> Option<&'a str> {
        let value = self.bytes(kind)?;
        std::str::from_utf8(value.split(|byte| *byte == 0).next()?).ok()
    }

    /// The attributes in an attribute.
    pub(super) fn nest(self, kind: u16) -> Option<Self> {
        self.bytes(kind).map(Self)
    }
}

impl<'a> IntoIterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        Iter(self.0)
    }
}

/// Kinds and values, in the order in which they came.
#[derive(Debug)]
pub(super) struct Iter<'a>(&'a [u8]);

impl<'a> Iterator for Iter<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (header, _) = self.0.split_first_chunk::<HEADER>()?;
        let [a, b, c, d] = *header;
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let value = self.0.get(HEADER..length)?;
        self.0 = self.0.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some((u16::from_ne_bytes([c, d]) & KIND, value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut writer = AttributeWriter::default();
        writer.text(1, "lo").number(2, 0xabcd).nest(3, |inner| {
            inner.bytes(1, &[7]);
        });
        let read = Attributes::new(writer.as_bytes());
        assert_eq!((read.text(1), read.number(2)), (Some("lo"), Some(0xabcd)));
        assert_eq!(read.nest(3).and_then(|inner| inner.bytes(1)), Some(&[7][..]));
        assert_eq!(read.bytes(4), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let total: usize = Attributes::new(&bytes).into_iter().map(|(_, value)| HEADER + value.len()).sum();
            prop_assert!(total <= bytes.len());
        }
    }
}
