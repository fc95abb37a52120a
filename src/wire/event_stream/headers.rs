//! Reads and writes the headers of a frame, of all ten types.

use bytes::{Buf, Bytes};

use super::{EventStreamError, Header, Value};

/// The types by their numbers. True and false are two, so that they need no value.
const TRUE: u8 = 0;
const FALSE: u8 = 1;
const BYTE: u8 = 2;
const SHORT: u8 = 3;
const INT: u8 = 4;
const LONG: u8 = 5;
const BYTES: u8 = 6;
const STRING: u8 = 7;
const TIMESTAMP: u8 = 8;
const UUID: u8 = 9;

/// Reads all headers. Names and strings are UTF-8.
pub(super) fn read(section: &Bytes) -> Result<Vec<Header>, EventStreamError> {
    let mut rest = section.clone();
    let mut headers: Vec<Header> = Vec::new();
    while rest.has_remaining() {
        let header = read_one(&mut rest).ok_or(EventStreamError::Header)?;
        headers.push(header);
    }
    check_names(&headers)?;
    Ok(headers)
}

/// Fails if a name occurs twice: some readers take the first, some the last.
pub(super) fn check_names(headers: &[Header]) -> Result<(), EventStreamError> {
    let mut names: Vec<&str> = headers.iter().map(|header| header.name.as_str()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| matches!(pair, [name, next] if name == next)) {
        return Err(EventStreamError::DuplicateHeader);
    }
    Ok(())
}

fn read_one(rest: &mut Bytes) -> Option<Header> {
    let length = rest.try_get_u8().ok().filter(|length| *length > 0)?;
    let name = text(take(rest, usize::from(length))?)?;
    let value = match rest.try_get_u8().ok()? {
        TRUE => Value::Bool(true),
        FALSE => Value::Bool(false),
        BYTE => Value::Byte(rest.try_get_i8().ok()?),
        SHORT => Value::Short(rest.try_get_i16().ok()?),
        INT => Value::Int(rest.try_get_i32().ok()?),
        LONG => Value::Long(rest.try_get_i64().ok()?),
        BYTES => Value::Bytes(run(rest)?),
        STRING => Value::String(text(run(rest)?)?),
        TIMESTAMP => Value::Timestamp(rest.try_get_i64().ok()?),
        UUID => Value::Uuid(take(rest, 16)?.as_ref().try_into().ok()?),
        _ => return None,
    };
    Some(Header { name, value })
}

/// Bytes behind their length (u16).
fn run(rest: &mut Bytes) -> Option<Bytes> {
    let length = rest.try_get_u16().ok()?;
    take(rest, usize::from(length))
}

fn take(rest: &mut Bytes, length: usize) -> Option<Bytes> {
    (length <= rest.len()).then(|| rest.split_to(length))
}

fn text(bytes: Bytes) -> Option<String> {
    String::from_utf8(bytes.into()).ok()
}

/// Appends one header.
pub(super) fn write(header: &Header, output: &mut Vec<u8>) -> Result<(), EventStreamError> {
    let length = u8::try_from(header.name.len()).ok().filter(|length| *length > 0);
    output.push(length.ok_or(EventStreamError::Header)?);
    output.extend_from_slice(header.name.as_bytes());
    match &header.value {
        Value::Bool(true) => output.push(TRUE),
        Value::Bool(false) => output.push(FALSE),
        Value::Byte(number) => write_fixed(BYTE, &number.to_be_bytes(), output),
        Value::Short(number) => write_fixed(SHORT, &number.to_be_bytes(), output),
        Value::Int(number) => write_fixed(INT, &number.to_be_bytes(), output),
        Value::Long(number) => write_fixed(LONG, &number.to_be_bytes(), output),
        Value::Bytes(bytes) => write_run(BYTES, bytes, output)?,
        Value::String(text) => write_run(STRING, text.as_bytes(), output)?,
        Value::Timestamp(number) => write_fixed(TIMESTAMP, &number.to_be_bytes(), output),
        Value::Uuid(bytes) => write_fixed(UUID, bytes, output),
    }
    Ok(())
}

fn write_fixed(kind: u8, bytes: &[u8], output: &mut Vec<u8>) {
    output.push(kind);
    output.extend_from_slice(bytes);
}

fn write_run(kind: u8, bytes: &[u8], output: &mut Vec<u8>) -> Result<(), EventStreamError> {
    let length = u16::try_from(bytes.len()).map_err(|_| EventStreamError::Header)?;
    output.push(kind);
    output.extend_from_slice(&length.to_be_bytes());
    output.extend_from_slice(bytes);
    Ok(())
}
