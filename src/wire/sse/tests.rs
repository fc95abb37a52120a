//! What the decoder reads, what it calls canonical, and that neither depends on how a stream was cut.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

const NAMED: Form = Form { name: NameLine::Required, comments: true, end: End::Name(&["stop"]) };
const UNNAMED: Form = Form { name: NameLine::Absent, comments: true, end: End::Data("[DONE]") };
const BARE: Form = Form { name: NameLine::Absent, comments: false, end: End::Body };
const BOUND: usize = 4 << 20;

fn decode(form: Form, pieces: &[&[u8]], bound: usize) -> (Vec<Item>, Result<LineEnd, TooLong>, Bytes) {
    let mut decoder = Decoder::new(form, bound);
    let mut items = Vec::new();
    let mut outcome = Ok(());
    for piece in pieces.iter().map(Some).chain([None]) {
        match piece {
            Some(piece) => decoder.push(Bytes::copy_from_slice(piece)),
            None => decoder.end(),
        }
        while let Some(item) = decoder.next_item().unwrap_or_else(|error| {
            outcome = Err(error);
            None
        }) {
            items.push(item);
        }
    }
    let line_end = decoder.line_end();
    (items, outcome.map(|()| line_end), decoder.into_rest())
}

fn items(form: Form, stream: &str) -> Vec<Item> {
    let (items, outcome, rest) = decode(form, &[stream.as_bytes()], BOUND);
    assert!(outcome.is_ok() && rest.is_empty(), "{stream:?}");
    items
}

/// Name, data and departure of each event; a filler is left out.
fn events(form: Form, stream: &str) -> Vec<(Option<String>, String, Option<Departure>)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let events = items(form, stream).into_iter().filter_map(|item| match item {
        Item::Event(event) => {
            let name = event.name.clone().map(|name| text(&event.raw[name]));
            Some((name, text(event.data()), event.departure))
        }
        Item::Filler(_) => None,
    });
    events.collect()
}

#[test]
fn canonical_events_pass_in_each_form() {
    let cases = [
        (NAMED, "event: ping\ndata: {\"type\":\"ping\"}\n\nevent: stop\ndata: {}\n\n", 2),
        (NAMED, "event: response.output_item.done\r\ndata: {}\r\n\r\n", 1),
        (UNNAMED, "data: {\"a\":\"\u{2028}\u{85}\"}\n\n: keep-alive\n\n:\n\n\ndata: [DONE]\n\n", 2),
        (BARE, "data: {\"a\":1}\r\n\r\ndata: {\"a\":\t2}\r\n\r\n", 2),
    ];
    for (form, stream, count) in cases {
        let items = items(form, stream);
        assert!(items.iter().all(|item| item.departure().is_none()), "{items:?}");
        let events = items.iter().filter(|item| matches!(item, Item::Event(_)));
        assert_eq!(events.count(), count, "{stream:?}");
    }
}

#[test]
fn each_departure_is_noted_and_the_event_read_as_the_standard_says() {
    use Departure::*;
    let cases: &[(Form, &str, &str, Departure)] = &[
        (UNNAMED, "data: a", "a", Unterminated),
        (UNNAMED, "data: a\n", "a", Unterminated),
        (UNNAMED, "data: a\r\n\r", "a", LineEnd),
        (UNNAMED, "data: a\u{b}\n\n", "a\u{b}", Text),
        (UNNAMED, "data: a\0\n\n", "a\0", Text),
        (UNNAMED, "\u{feff}data: a\n\n", "a", ByteOrderMark),
        (UNNAMED, "data: a\r\r", "a", LineEnd),
        (UNNAMED, "data: a\n\r\n", "a", LineEnd),
        (UNNAMED, "\r\ndata: a\n\n", "a", LineEnd),
        (UNNAMED, ": c\ndata: a\n\n", "a", Comment),
        (UNNAMED, "data: a\nid: 1\n\n", "a", Field),
        (UNNAMED, "data: a\nretry: 1\n\n", "a", Field),
        (UNNAMED, " data: a\n\n", "", Field),
        (UNNAMED, "Data: a\n\n", "", Field),
        (UNNAMED, "{\"error\":{}}\n\n", "", Field),
        (UNNAMED, "data: a\n\u{feff}data: b\n\n", "a", Field),
        (UNNAMED, "event: ping\ndata: a\n\n", "a", Name),
        (NAMED, "data: a\n\n", "a", Name),
        (NAMED, "data: a\nevent: ping\n\n", "a", Name),
        (NAMED, "event: a\nevent: ping\ndata: a\n\n", "a", Name),
        (NAMED, "event: p ing\ndata: a\n\n", "a", Name),
        (NAMED, "event: p\u{e9}ng\ndata: a\n\n", "a", Name),
        (NAMED, "event: ping \ndata: a\n\n", "a", Space),
        (NAMED, "event:\ndata: a\n\n", "a", Space),
        (UNNAMED, "data:a\n\n", "a", Space),
        (UNNAMED, "data:  a\n\n", " a", Space),
        (UNNAMED, "data: a \n\n", "a ", Space),
        (UNNAMED, "data\n\n", "", Space),
        (UNNAMED, "data: \n\n", "", Data),
        (UNNAMED, "data: a\ndata: b\n\n", "a\nb", Data),
        (UNNAMED, "data: a\ndata: b\ndata: c\n\n", "a\nb\nc", Data),
        (NAMED, "event: ping\n\n", "", Data),
    ];
    for (form, stream, data, departure) in cases {
        let seen = events(*form, stream);
        assert_eq!(seen.len(), 1, "{stream:?}: {seen:?}");
        assert_eq!((seen[0].1.as_str(), seen[0].2), (*data, Some(*departure)), "{stream:?}");
        assert!(!departure.reason().is_empty());
    }
}

#[test]
fn text_that_is_not_utf_8_is_noted() {
    let (items, _, _) = decode(UNNAMED, &[b"data: \xff\n\n"], BOUND);
    assert_eq!(items[0].departure(), Some(Departure::Text));
}

#[test]
fn whatever_follows_the_end_is_noted() {
    let after = Some(Departure::AfterEnd);
    let seen = events(UNNAMED, "data: [DONE]\n\ndata: {\"call\":1}\n\ndata: tail");
    assert_eq!(seen.iter().map(|event| event.2).collect::<Vec<_>>(), [None, after, after]);
    let seen = events(NAMED, "event: stop\ndata: {}\n\nevent: tool\ndata: {}\n\n");
    assert_eq!(seen.iter().map(|event| event.2).collect::<Vec<_>>(), [None, after]);
    let seen = events(BARE, "data: [DONE]\r\n\r\ndata: {}\r\n\r\n");
    assert!(seen.iter().all(|event| event.2.is_none()), "a body's end is the only one there");
}

#[test]
fn the_lines_of_an_event_are_taken_together() {
    let seen = items(UNNAMED, "id: 1\nretry: 5\nevent: a\nevent: b\ndata: x\n\n");
    let Item::Event(event) = &seen[0] else { panic!("an event") };
    assert!(event.id && event.retry && !event.is_canonical());
    assert_eq!((event.name(), event.data()), (Some("b"), &b"x"[..]));
}

#[test]
fn comments_and_blank_lines_between_events_are_parts_of_their_own() {
    let seen = items(UNNAMED, ": a\n: b\n\n\ndata: x\n\n: c");
    let raw: Vec<&[u8]> = seen.iter().map(|item| item.raw().as_ref()).collect();
    assert_eq!(raw, [&b": a\n: b\n\n"[..], b"\n", b"data: x\n\n", b": c"]);
    let departures: Vec<_> = seen.iter().map(Item::departure).collect();
    assert_eq!(departures, [None, None, None, Some(Departure::Unterminated)]);
    assert_eq!(items(BARE, ": a\n\n")[0].departure(), Some(Departure::Comment));
}

#[test]
fn an_event_in_one_piece_is_a_slice_of_it() {
    let piece = Bytes::from_static(b"event: a\ndata: {}\n\nevent: b\ndata: [1]\n\n");
    let mut decoder = Decoder::new(NAMED, BOUND);
    decoder.push(piece.clone());
    let Ok(Some(Item::Event(first))) = decoder.next_item() else { panic!("an event") };
    let Ok(Some(Item::Event(second))) = decoder.next_item() else { panic!("an event") };
    assert_eq!(first.raw.as_ptr(), piece.as_ptr());
    assert_eq!(second.data().as_ptr(), piece[34..].as_ptr());
}

#[test]
fn an_event_comes_out_with_the_byte_that_ends_it() {
    let mut decoder = Decoder::new(UNNAMED, BOUND);
    for (piece, complete) in [("data: a\r", false), ("\n", false), ("\r", false), ("\n", true)] {
        decoder.push(Bytes::from_static(piece.as_bytes()));
        assert_eq!(decoder.next_item().unwrap().is_some(), complete, "{piece:?}");
    }
}

#[test]
fn an_event_longer_than_the_bound_is_an_error_from_then_on() {
    let stream = b"data: 1\n\ndata: 12\n\n";
    for cut in 0..=stream.len() {
        let (items, outcome, rest) = decode(UNNAMED, &[&stream[..cut], &stream[cut..]], 9);
        assert_eq!((items.len(), outcome), (1, Err(TooLong(9))), "cut at {cut}");
        assert_eq!(rest, &stream[9..], "nothing is lost");
    }
    let (_, outcome, _) = decode(UNNAMED, &[b"data: 12", b"34"], 9);
    assert_eq!(outcome, Err(TooLong(9)), "also where it has no end yet");
}

#[test]
fn what_is_written_is_one_event_whatever_is_given() {
    let mut output = Vec::new();
    encode(Some("stop"), " {\n\"a\":\r\n\t1}\n\ndata: {}", LineEnd::Lf, &mut output);
    encode(None, "[DONE]", LineEnd::CrLf, &mut output);
    encode_comment("held\n\ndata: x", LineEnd::Lf, &mut output);
    let expected = "event: stop\ndata: { \"a\":  \t1}  data: {}\n\ndata: [DONE]\r\n\r\n: held  data: x\n\n";
    assert_eq!(String::from_utf8_lossy(&output), expected);
}

/// Pieces of streams at which parsers differ, in any order.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        4 => Just(b"event: ping\ndata: {\"a\":1}\n\n".to_vec()),
        4 => Just(b"data: {\"a\":1}\n\n".to_vec()),
        2 => Just(b"data: x\r\n\r\n".to_vec()),
        1 => prop::sample::select(vec![
            &b"\n"[..], b"\r", b"\r\n", b": c\n", b"\xef\xbb\xbf", b"id: 1\n", b"data:", b" ", b"event: stop\n",
            b"data: [DONE]\n\n", b"data\n", b"data: y\n", b"\xff", b"{}",
        ]).prop_map(<[u8]>::to_vec),
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn chunking_never_matters_and_no_byte_is_lost(
        stream in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        form in prop::sample::select(vec![NAMED, UNNAMED, BARE]),
        bound in prop_oneof![Just(BOUND), 8usize..40],
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
        let (items, outcome, rest) = decode(form, &pieces, bound);
        let whole = decode(form, &[&stream], bound);
        prop_assert_eq!((&items, &outcome), (&whole.0, &whole.1));
        let mut raw = items.iter().map(|item| item.raw().as_ref()).collect::<Vec<_>>().concat();
        raw.extend_from_slice(&rest);
        prop_assert_eq!(raw, stream);
    }

    #[test]
    fn canonical_events_are_written_as_they_were_received(stream in stream()) {
        for form in [NAMED, UNNAMED, BARE] {
            let (items, outcome, _) = decode(form, &[&stream], BOUND);
            for item in items {
                let Item::Event(event) = item else { continue };
                let mut output = Vec::new();
                let data = String::from_utf8_lossy(event.data()).into_owned();
                encode(event.name(), &data, outcome.unwrap(), &mut output);
                if event.is_canonical() {
                    prop_assert_eq!(&output, &event.raw);
                }
                let again = decode(form, &[&output], BOUND).0;
                prop_assert_eq!(again.len(), 1, "one event is written");
            }
        }
    }

    #[test]
    fn what_is_written_is_canonical(data in "[ -~\\n\\r\u{a0}\u{2028}]{0,40}", name in "[a-z_.]{1,20}") {
        prop_assume!(!data.trim_matches([' ', '\n', '\r']).is_empty() && data != "[DONE]");
        for (form, name) in [(NAMED, Some(name.as_str())), (UNNAMED, None), (BARE, None)] {
            for line_end in [LineEnd::Lf, LineEnd::CrLf] {
                let mut output = Vec::new();
                encode(name, &data, line_end, &mut output);
                let seen = decode(form, &[&output], BOUND).0;
                prop_assert!(matches!(&seen[..], [Item::Event(event)] if event.is_canonical()), "{:?}", seen);
            }
        }
    }
}
