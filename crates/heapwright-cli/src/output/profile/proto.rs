//! The part of protocol buffers that a profile needs. Zeros and empty lists are not written.
//!
//! ```text
//! field    key = number << 3 | wire type, as a varint
//! 0        a varint: seven bits a byte, the lowest first, the top bit: more follow
//! 2        a length as a varint, and that many bytes: text, a message, packed numbers
//! ```

#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn of(numbers: &[(u32, u64)]) -> Self {
        let mut message = Self::default();
        numbers.iter().for_each(|&(field, value)| message.number(field, value));
        message
    }

    /// Adds a number, unless it is 0.
    pub(super) fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            varint(&mut self.0, u64::from(field) << 3);
            varint(&mut self.0, value);
        }
    }

    /// Adds text or bytes, even if empty: an empty entry of a list counts.
    pub(super) fn bytes(&mut self, field: u32, value: &[u8]) {
        varint(&mut self.0, u64::from(field) << 3 | 2);
        varint(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(super) fn message(&mut self, field: u32, value: &Self) {
        self.bytes(field, &value.0);
    }

    /// Adds a packed list of numbers, unless it is empty.
    pub(super) fn numbers(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut packed = Vec::new();
        values.into_iter().for_each(|value| varint(&mut packed, value));
        if !packed.is_empty() {
            self.bytes(field, &packed);
        }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
pub(super) mod read {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(in super::super) enum Value {
        Number(u64),
        Bytes(Vec<u8>),
    }

    pub(in super::super) fn fields(mut bytes: &[u8]) -> Vec<(u64, Value)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = number(&mut bytes);
            let value = number(&mut bytes);
            fields.push(match key & 7 {
                0 => (key >> 3, Value::Number(value)),
                2 => {
                    let (value, rest) = bytes.split_at(value as usize);
                    bytes = rest;
                    (key >> 3, Value::Bytes(value.to_vec()))
                }
                other => panic!("wire type {other}"),
            });
        }
        fields
    }

    pub(in super::super) fn packed(mut bytes: &[u8]) -> Vec<u64> {
        let mut numbers = Vec::new();
        while !bytes.is_empty() {
            numbers.push(number(&mut bytes));
        }
        numbers
    }

    fn number(bytes: &mut &[u8]) -> u64 {
        let end = bytes.iter().position(|byte| byte & 0x80 == 0).expect("ends");
        let (number, rest) = bytes.split_at(end + 1);
        *bytes = rest;
        number.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
    }
}

#[cfg(test)]
mod tests {
    use super::read::{Value, fields, packed};
    use super::*;

    #[test]
    fn the_examples_of_the_format_are_written_as_it_says() {
        let mut message = Message::default();
        message.number(1, 150);
        message.bytes(2, b"testing");
        message.number(3, 0);
        message.numbers(6, [3, 270, 86942]);
        let bytes = message.finish();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "089601120774657374696e673206038e029ea705");
        let read = fields(&bytes);
        assert_eq!(read[0], (1, Value::Number(150)));
        let Value::Bytes(list) = &read[2].1 else { panic!("{read:?}") };
        assert_eq!(packed(list), [3, 270, 86942]);
    }

    #[test]
    fn the_largest_number_survives() {
        let mut message = Message::default();
        message.number(15, u64::MAX);
        assert_eq!(fields(&message.finish()), [(15, Value::Number(u64::MAX))]);
    }
}
