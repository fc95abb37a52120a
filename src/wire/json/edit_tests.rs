//! What an edit leaves, byte for byte, and which edits are not taken.

use super::testing::read;
use super::*;

/// The value at a path of keys and positions: `tools.1.name`; the root for the empty path.
fn find<'d>(document: &'d Document<'d>, path: &str) -> Value<'d> {
    path.split('.').filter(|step| !step.is_empty()).fold(document.root(), |value, step| {
        let item = value.items().and_then(|mut items| items.nth(step.parse().unwrap()));
        item.or_else(|| value.get(step).unwrap()).unwrap()
    })
}

/// What is left of a document without the values at these paths.
fn without(text: &str, paths: &[&str]) -> String {
    let document = read(text);
    let mut edits = Edits::new(&document);
    for path in paths {
        edits.remove(find(&document, path)).unwrap();
    }
    String::from_utf8(edits.apply()).unwrap()
}

#[test]
fn a_removal_takes_one_comma_and_the_whitespace_of_its_side() {
    let cases: &[(&str, &[&str], &str)] = &[
        ("[1,2,3]", &["0"], "[2,3]"),
        ("[1,2,3]", &["1"], "[1,3]"),
        ("[1,2,3]", &["2"], "[1,2]"),
        ("[1,2,3]", &["0", "1"], "[3]"),
        ("[1,2,3]", &["1", "2"], "[1]"),
        ("[1,2,3]", &["0", "2"], "[2]"),
        ("[1,2,3]", &["2", "0", "1"], "[]"),
        ("[ 1 , 2 , 3 ]", &["0"], "[ 2 , 3 ]"),
        ("[ 1 , 2 , 3 ]", &["1"], "[ 1 , 3 ]"),
        ("[ 1 , 2 , 3 ]", &["2"], "[ 1 , 2 ]"),
        ("[ 1 , 2 , 3 ]", &["0", "1", "2"], "[  ]"),
        ("[\n  1\n]", &["0"], "[\n  \n]"),
        ("{\"a\":1,\"b\":[2]}", &["a"], "{\"b\":[2]}"),
        ("{\"a\":1,\"b\":[2]}", &["b"], "{\"a\":1}"),
        ("{\"a\" : 1 , \"b\" : [2] }", &["b"], "{\"a\" : 1 }"),
        ("{\"a\":1,\"b\":[2]}", &["b.0"], "{\"a\":1,\"b\":[]}"),
        ("{\"a\":1,\"b\":[2]}", &["b.0", "a"], "{\"b\":[]}"),
        ("{\"a\":{\"b\":1},\"c\":2}", &["a.b", "c"], "{\"a\":{}}"),
        ("[[1,2],[3,4]]", &["0.1", "1.0"], "[[1],[4]]"),
        ("[[1],[2],3]", &["0.0", "2", "1.0"], "[[],[]]"),
        ("[\",\",\"]\",\"[\"]", &["1"], "[\",\",\"[\"]"),
        ("[\",\",\"]\",\"[\"]", &["2"], "[\",\",\"]\"]"),
    ];
    for (text, paths, left) in cases {
        assert_eq!(without(text, paths), *left, "{text} without {paths:?}");
    }
}

#[test]
fn other_bytes_survive_a_replacement() {
    let text = "{ \"n\":1.10e400,\t\"model\" : \"a\\u0062\", \"x\": [ ] }\r\n";
    let document = read(text);
    let mut edits = Edits::new(&document);
    assert!(edits.is_empty());
    edits.replace(find(&document, "model"), "\"other\"").unwrap();
    assert!(!edits.is_empty());
    let edited = String::from_utf8(edits.apply()).unwrap();
    assert_eq!(edited, "{ \"n\":1.10e400,\t\"model\" : \"other\", \"x\": [ ] }\r\n");
}

#[test]
fn what_is_added_stands_at_the_end_after_a_comma_if_one_is_needed() {
    let cases: &[(&str, &[&str], &str)] = &[
        ("{}", &[], "{\"k\":1,\"l\\\"\":[]}"),
        ("{ }", &[], "{\"k\":1,\"l\\\"\":[] }"),
        ("{\"a\":1}", &[], "{\"a\":1,\"k\":1,\"l\\\"\":[]}"),
        ("{\"a\":1\n}", &[], "{\"a\":1,\"k\":1,\"l\\\"\":[]\n}"),
        ("{\"a\":1}", &["a"], "{\"k\":1,\"l\\\"\":[]}"),
        ("{ \"a\":1, \"b\":2 }", &["b"], "{ \"a\":1,\"k\":1,\"l\\\"\":[] }"),
        ("{ \"a\":1, \"b\":2 }", &["a"], "{ \"b\":2,\"k\":1,\"l\\\"\":[] }"),
        ("{ \"a\":1, \"b\":2 }", &["a", "b"], "{ \"k\":1,\"l\\\"\":[] }"),
        ("{\"a\":{}}", &[], "{\"a\":{},\"k\":1,\"l\\\"\":[]}"),
    ];
    for (text, removed, left) in cases {
        let document = read(text);
        let mut edits = Edits::new(&document);
        edits.insert(document.root(), "k", "1").unwrap();
        removed.iter().for_each(|path| edits.remove(find(&document, path)).unwrap());
        edits.insert(document.root(), "l\"", "[]").unwrap();
        assert_eq!(String::from_utf8(edits.apply()).unwrap(), *left, "{text} without {removed:?}");
    }
}

#[test]
fn items_are_added_to_arrays_in_the_order_of_the_calls() {
    let document = read("{\"a\": [], \"b\": [ 1 ]}");
    let mut edits = Edits::new(&document);
    edits.append(find(&document, "b"), "2").unwrap();
    edits.append(find(&document, "a"), "{\"x\": 0}").unwrap();
    edits.append(find(&document, "b"), "3").unwrap();
    assert_eq!(edits.apply(), b"{\"a\": [{\"x\": 0}], \"b\": [ 1,2,3 ]}");
}

#[test]
fn edits_that_put_different_text_at_the_same_bytes_are_refused() {
    let document = read("{\"a\": [1, {\"b\": 2}], \"c\": 3}");
    let [a, item, object, b] = ["a", "a.0", "a.1", "a.1.b"].map(|path| find(&document, path));
    let mut edits = Edits::new(&document);
    edits.replace(object, "{}").unwrap();
    for value in [a, object, b, document.root()] {
        assert_eq!(edits.replace(value, "0"), Err(EditError::Overlap), "{value:?}");
    }
    assert_eq!(edits.remove(b), Err(EditError::Overlap));
    assert_eq!(edits.insert(object, "k", "0"), Err(EditError::Overlap));
    edits.append(a, "4").unwrap();
    edits.remove(item).unwrap();
    assert_eq!(edits.apply(), b"{\"a\": [{},4], \"c\": 3}");

    let mut edits = Edits::new(&document);
    edits.insert(object, "k", "0").unwrap();
    for value in [a, object] {
        assert_eq!(edits.replace(value, "0"), Err(EditError::Overlap), "{value:?}");
    }
    edits.remove(b).unwrap();
    assert_eq!(edits.apply(), b"{\"a\": [1, {\"k\":0}], \"c\": 3}");
}

#[test]
fn a_removal_takes_every_edit_inside_of_it_with_it() {
    type Edit = for<'d> fn(&mut Edits<'d>, Value<'d>) -> Result<(), EditError>;
    let document = read("{\"a\": [1, {\"b\": [2]}], \"c\": 3}");
    let inside: [(&str, Edit); 7] = [
        ("a.1.b.0", |edits, item| edits.remove(item)),
        ("a.1.b.0", |edits, item| edits.replace(item, "0")),
        ("a.1.b", |edits, array| edits.append(array, "4")),
        ("a.1.b", |edits, array| edits.replace(array, "0")),
        ("a.1", |edits, object| edits.insert(object, "k", "0")),
        ("a.1", |edits, object| edits.replace(object, "0")),
        ("a.1", |edits, object| edits.remove(object)),
    ];
    for (around, left) in [("a.1", "{\"a\": [1], \"c\": 3}"), ("a", "{\"c\": 3}")] {
        for (path, edit) in inside {
            let [mut before, mut after] = [Edits::new(&document), Edits::new(&document)];
            edit(&mut before, find(&document, path)).unwrap();
            before.remove(find(&document, around)).unwrap();
            after.remove(find(&document, around)).unwrap();
            edit(&mut after, find(&document, path)).unwrap();
            assert_eq!(before.apply(), left.as_bytes(), "{path} before {around}");
            assert_eq!(after.apply(), left.as_bytes(), "{path} after {around}");
        }
    }
}

#[test]
fn of_edits_that_overlap_inside_of_a_removal_one_is_refused_before_it_and_none_after_it() {
    let document = read("{\"a\": [1, [2]], \"c\": 3}");
    let [around, replaced, item] = ["a", "a.1", "a.1.0"].map(|path| find(&document, path));
    let [mut before, mut after] = [Edits::new(&document), Edits::new(&document)];
    before.remove(item).unwrap();
    assert_eq!(before.replace(replaced, "0"), Err(EditError::Overlap));
    before.remove(around).unwrap();
    after.remove(item).unwrap();
    after.remove(around).unwrap();
    after.replace(replaced, "0").unwrap();
    for edits in [before, after] {
        assert_eq!(edits.apply(), b"{\"c\": 3}");
    }
}

#[test]
fn what_would_not_be_json_with_one_reading_is_not_put_in() {
    let document = read("{\"a\": [1], \"b\": {\"x\": 1, \"x\": 2}}");
    let [a, b, root] = ["a", "b", ""].map(|path| find(&document, path));
    let mut edits = Edits::new(&document);
    for json in ["", "1,2", "\"", "}", "1}", "{\"k\":1,}", "\u{feff}1"] {
        assert!(matches!(edits.replace(a, json), Err(EditError::Json(_))), "{json}");
        assert!(matches!(edits.append(a, json), Err(EditError::Json(_))), "{json}");
        assert!(matches!(edits.insert(root, "k", json), Err(EditError::Json(_))), "{json}");
    }
    let twice = Duplicate { first: 1, again: 7 };
    assert_eq!(edits.replace(a, "{\"k\":1,\"k\":1}"), Err(EditError::Duplicate(twice)));
    assert_eq!(edits.insert(root, "a", "1"), Err(EditError::Exists));
    assert!(matches!(edits.insert(b, "x", "1"), Err(EditError::Duplicate(_))));
    assert_eq!(edits.insert(a, "k", "1"), Err(EditError::Kind));
    assert_eq!(edits.append(root, "1"), Err(EditError::Kind));
    assert_eq!(edits.remove(root), Err(EditError::Root));
    let key = root.entries().unwrap().next().unwrap().key;
    assert_eq!((edits.remove(key), edits.replace(key, "\"b\"")), (Err(EditError::Key), Err(EditError::Key)));
    let other = read("{\"a\": [1]}");
    assert_eq!(edits.remove(find(&other, "a")), Err(EditError::Foreign));
    assert!(edits.is_empty(), "what is refused changes nothing");
    edits.insert(root, "k", "1").unwrap();
    assert_eq!(edits.insert(root, "k", "2"), Err(EditError::Exists));
}

#[test]
fn a_root_can_be_replaced_and_keeps_what_is_around_it() {
    let document = read(" [1] \n");
    let mut edits = Edits::new(&document);
    edits.replace(document.root(), "null").unwrap();
    assert_eq!(edits.apply(), b" null \n");
}

#[test]
fn a_hundred_thousand_neighbours_are_removed_as_one() {
    let text = format!("[{}0]", "1,".repeat(100_000));
    let document = read(&text);
    let mut edits = Edits::new(&document);
    for item in document.root().items().unwrap().filter(|item| item.raw() == "1") {
        edits.remove(item).unwrap();
    }
    assert_eq!(edits.apply(), b"[0]");
}

#[test]
fn an_edit_touches_what_it_is_in_and_what_is_in_it() {
    type Edit = for<'d> fn(&mut Edits<'d>, Value<'d>) -> Result<(), EditError>;
    let document = read(r#"{"a":[{"b":1,"c":{}},{"b":2}],"d":[3]}"#);
    let cases: [(&str, Edit, &[&str]); 5] = [
        ("a.0.b", |edits, entry| edits.remove(entry), &["a.0", "a.0.b"]),
        ("a.0.c", |edits, object| edits.insert(object, "k", "0"), &["a.0", "a.0.c"]),
        ("a.0", |edits, item| edits.remove(item), &["a.0", "a.0.b", "a.0.c"]),
        ("a", |edits, array| edits.replace(array, "0"), &["a.0", "a.0.b", "a.0.c", "a.1"]),
        ("d", |edits, array| edits.append(array, "4"), &["d"]),
    ];
    for (path, edit, touched) in cases {
        let mut edits = Edits::new(&document);
        edit(&mut edits, find(&document, path)).unwrap();
        let of = ["a.0", "a.0.b", "a.0.c", "a.1", "d"].into_iter();
        let seen: Vec<&str> = of.filter(|of| edits.touches(find(&document, of))).collect();
        assert_eq!(seen, touched, "{path}");
    }
}
