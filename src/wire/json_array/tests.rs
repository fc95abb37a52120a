//! Arrays as they are streamed, what is refused, and that cutting a body never matters.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

const BOUND: usize = 4 << 20;

type Object = serde_json::Map<String, serde_json::Value>;

fn decode(pieces: &[&[u8]], bound: usize) -> (Vec<Item>, Result<(), JsonArrayError>, Bytes) {
    let mut decoder = Decoder::new(bound);
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
    (items, outcome, decoder.into_rest())
}

fn element(before: &'static str, json: &'static str) -> Item {
    Item::Element { before: before.into(), json: json.into() }
}

#[test]
fn an_array_as_it_is_streamed_is_split() {
    let body = "[{\n  \"a\": \"]}\\\"{\"\n}\n,\r\n{\"b\": [{}, []]}\n]\n";
    let expected = vec![
        element("[", "{\n  \"a\": \"]}\\\"{\"\n}"),
        element("\n,\r\n", "{\"b\": [{}, []]}"),
        Item::Close("\n]".into()),
        Item::Space("\n".into()),
    ];
    assert_eq!(decode(&[body.as_bytes()], BOUND), (expected, Ok(()), Bytes::new()));
    let empty = vec![Item::Close(" [ ]".into())];
    assert_eq!(decode(&[b" [ ]"], BOUND), (empty, Ok(()), Bytes::new()));
}

#[test]
fn an_element_comes_out_with_the_byte_that_ends_it() {
    let mut decoder = Decoder::new(BOUND);
    for (piece, complete) in [("[{\"a\":", false), ("1", false), ("}", true), ("\n", false), ("]", true)] {
        decoder.push(Bytes::from_static(piece.as_bytes()));
        assert_eq!(decoder.next_item().unwrap().is_some(), complete, "{piece:?}");
    }
}

#[test]
fn what_is_no_array_of_objects_is_refused_and_nothing_is_lost() {
    use JsonArrayError::*;
    let cases: &[(&str, usize, JsonArrayError)] = &[
        ("", 0, Truncated),
        ("{\"error\":{}}", 0, NotArray),
        ("\u{feff}[]", 0, NotArray),
        ("data: {}", 0, NotArray),
        ("[", 0, Truncated),
        ("[{}", 1, Truncated),
        ("[{\"a\":\"", 0, Truncated),
        ("[1]", 0, NotObject),
        ("[,{}]", 0, NotObject),
        ("[[{}]]", 0, NotObject),
        ("[{},]", 1, NotObject),
        ("[{},,{}]", 1, NotObject),
        ("[{}{}]", 1, Separator),
        ("[{}/**/,{}]", 1, Separator),
        ("[{}\u{b},{}]", 1, Separator),
        ("[{}][{}]", 2, Trailing),
        ("[{}],{}", 2, Trailing),
    ];
    for (body, items, error) in cases {
        let (seen, outcome, rest) = decode(&[body.as_bytes()], BOUND);
        assert_eq!((seen.len(), outcome), (*items, Err(*error)), "{body:?}");
        assert!(body.as_bytes().ends_with(&rest), "{body:?}");
        assert!(!outcome.unwrap_err().to_string().is_empty());
    }
}

#[test]
fn an_element_longer_than_the_bound_is_an_error_from_then_on() {
    let body = b"[{\"a\":1},{\"a\":12}]";
    for cut in 0..=body.len() {
        let (items, outcome, rest) = decode(&[&body[..cut], &body[cut..]], 8);
        assert_eq!((items.len(), outcome), (1, Err(JsonArrayError::TooLong(8))), "cut at {cut}");
        assert_eq!(rest, &body[8..], "nothing is lost");
    }
    let (_, outcome, _) = decode(&[b"[         ", b"   "], 9);
    assert_eq!(outcome, Err(JsonArrayError::TooLong(9)), "white space counts");
    assert_eq!(decode(&[b"[]          "], 9).1, Err(JsonArrayError::TooLong(9)));
}

#[test]
fn an_element_in_one_piece_is_a_slice_of_it() {
    let piece = Bytes::from_static(b"[{}, {\"a\":1}]");
    let mut decoder = Decoder::new(BOUND);
    decoder.push(piece.clone());
    assert_eq!(decoder.next_item(), Ok(Some(element("[", "{}"))));
    let Ok(Some(Item::Element { json, .. })) = decoder.next_item() else { panic!("an element") };
    assert_eq!(json.as_ptr(), piece[5..].as_ptr());
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let part = prop::sample::select(vec![
        "{\"a\": 1}",
        "{\"a\":\"\\\\\\\"}[\"}",
        "{\"a\":[{}]}",
        ",",
        "\n,\r\n",
        "]",
        "[",
        "{",
        "\"",
        "\\",
        " ",
        "x",
    ]);
    let broken = prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat().into_bytes());
    let object =
        prop::sample::select(vec!["{}", "{\"a\":\"\\\\\\\"}[\"}", "{\"b\" : [{}, [1]], \"c\":\"é\"}"]);
    let whole = prop::collection::vec(object, 0..6)
        .prop_map(|elements| format!("[{}\n]\n", elements.join("\n,\r\n")).into_bytes());
    prop_oneof![
        broken.prop_map(|mut body| {
            body.insert(0, b'[');
            body
        }),
        whole
    ]
}

proptest! {
    #[test]
    fn chunking_never_matters_and_no_byte_is_lost(
        body in body(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        bound in prop_oneof![Just(BOUND), 4usize..40],
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).collect();
        let (items, outcome, rest) = decode(&pieces, bound);
        let whole = decode(&[&body], bound);
        prop_assert_eq!((&items, &outcome, &rest), (&whole.0, &whole.1, &whole.2));
        let raw = items.iter().flat_map(|item| match item {
            Item::Element { before, json } => [before.clone(), json.clone()].concat(),
            Item::Close(bytes) | Item::Space(bytes) => bytes.to_vec(),
        });
        prop_assert_eq!(raw.chain(rest).collect::<Vec<u8>>(), body);
    }

    #[test]
    fn what_serde_json_reads_as_objects_is_split_into_the_same(body in body()) {
        let Ok(expected) = serde_json::from_slice::<Vec<Object>>(&body) else { return Ok(()) };
        let (items, outcome, _) = decode(&[&body], BOUND);
        prop_assert_eq!(outcome, Ok(()));
        let objects: Vec<Object> = items.iter().filter_map(|item| match item {
            Item::Element { json, .. } => Some(serde_json::from_slice(json).unwrap()),
            Item::Close(_) | Item::Space(_) => None,
        }).collect();
        prop_assert_eq!(objects, expected);
    }
}
