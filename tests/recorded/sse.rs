//! Recorded server-sent events: read as a plain splitter reads them, and how many are in canonical form.

use bytes::Bytes;
use postern::wire::sse::{Decoder, End, Event, Form, Item, LineEnd, NameLine, encode};

use super::{Recording, recordings};

const NAMED: Form = Form {
    name: NameLine::Required,
    comments: true,
    end: End::Name(&["message_stop", "response.completed", "response.incomplete", "response.failed"]),
};
const UNNAMED: Form = Form { name: NameLine::Absent, comments: true, end: End::Data("[DONE]") };
const BARE: Form = Form { name: NameLine::Absent, comments: false, end: End::Body };

/// Which form the answers below a directory have.
const FORMS: [(&str, Form); 5] = [
    ("anthropic/", NAMED),
    ("openai-responses/", NAMED),
    ("azure-openai/", NAMED),
    ("gemini/", BARE),
    ("sse-corner-cases/anthropic", NAMED),
];

#[test]
fn recorded_events_are_read_as_a_plain_splitter_reads_them() {
    for recording in recordings("sse") {
        let form = FORMS.iter().find(|(path, _)| recording.path.starts_with(path));
        items(&recording, form.map_or(UNNAMED, |(_, form)| *form));
    }
}

/// Reads a stream in each way to cut it, and checks what must hold of any.
fn items(recording: &Recording, form: Form) -> Vec<Item> {
    let path = &recording.path;
    let [(items, line_end), others @ ..] = recording.pieces().map(|pieces| decode(&pieces, form));
    assert!(others.iter().all(|other| other.0 == items), "{path}: cutting it matters");
    let raw: Vec<u8> = items.iter().flat_map(|item| item.raw().clone()).collect();
    assert_eq!(raw, recording.bytes, "{path}: bytes are lost");
    let events: Vec<&Event> = items
        .iter()
        .filter_map(|item| match item {
            Item::Event(event) => Some(event),
            Item::Filler(_) => None,
        })
        .collect();
    let read: Vec<(String, String)> = events
        .iter()
        .map(|event| (event.name().unwrap_or_default().to_owned(), text(event.data())))
        .filter(|event| *event != Default::default())
        .collect();
    assert_eq!(read, split(&recording.bytes), "{path}: read otherwise");
    for event in events.iter().filter(|event| event.is_canonical()) {
        let mut written = Vec::new();
        encode(event.name(), &text(event.data()), line_end, &mut written);
        assert_eq!(written, event.raw, "{path}: written otherwise");
    }
    items
}

fn decode(pieces: &[&[u8]], form: Form) -> (Vec<Item>, LineEnd) {
    let mut decoder = Decoder::new(form, 4 << 20);
    let mut items = Vec::new();
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece));
        items.extend(std::iter::from_fn(|| decoder.next_item().unwrap()));
    }
    decoder.end();
    items.extend(std::iter::from_fn(|| decoder.next_item().unwrap()));
    (items, decoder.line_end())
}

/// The same by the simplest means: name and data of each part between blank lines.
fn split(stream: &[u8]) -> Vec<(String, String)> {
    let text = text(stream).replace("\r\n", "\n");
    let parts = text.split("\n\n").map(|part| {
        let values = |field: &str| -> Vec<String> {
            let lines = part.split('\n').filter_map(|line| line.strip_prefix(field));
            lines.map(|value| value.strip_prefix(' ').unwrap_or(value).to_owned()).collect()
        };
        (values("event:").pop().unwrap_or_default(), values("data:").join("\n"))
    });
    parts.filter(|event| *event != Default::default()).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
