//! Whatever the framer lets through, httparse (the parser of hyper) parses and frames alike, however it arrives.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern::wire::http1::{Framer, Limits, Progress, first_request};

fuzz_target!(|input: (Vec<u8>, Vec<u16>, bool)| {
    let (bytes, cuts, small) = input;
    let limits = if small { Limits { header_bytes: 80, header_count: 3 } } else { Limits::default() };
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut) % (bytes.len() + 1)).collect();
    cuts.sort_unstable();

    let whole = drive(&bytes, &[], limits);
    assert_eq!(drive(&bytes, &cuts, limits), whole, "another split, another verdict");
    walk(&bytes[..whole.0]);

    // The reader of one head agrees with the framer on whether there is one.
    match first_request(&bytes, &limits) {
        Ok(Some(head)) => {
            assert!(head.length <= whole.0 && head.length <= limits.header_bytes);
            assert!(head.target.bytes().all(|b| b.is_ascii_graphic()));
        }
        Ok(None) => assert_eq!(whole, (0, None)),
        Err(violation) => assert_eq!(whole, (0, Some(violation.reason()))),
    }
});

fn drive(bytes: &[u8], cuts: &[usize], limits: Limits) -> (usize, Option<&'static str>) {
    let mut framer = Framer::new(limits);
    let mut passed = 0;
    for end in cuts.iter().copied().chain([bytes.len()]) {
        loop {
            match framer.push(&bytes[passed.min(end)..end]) {
                Ok(Progress { pass: 0 }) => break,
                Ok(Progress { pass }) => passed += pass,
                Err(violation) => return (passed, Some(violation.reason())),
            }
        }
    }
    (passed, None)
}

/// Goes from head to head by httparse's reading of the framing.
fn walk(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let mut headers = [httparse::EMPTY_HEADER; 128];
        let mut request = httparse::Request::new(&mut headers);
        let status = request.parse(bytes).expect("httparse refuses a head that passed");
        let httparse::Status::Complete(length) = status else { panic!("a part of a head passed") };
        let values = |name: &str| -> Vec<&[u8]> {
            request.headers.iter().filter(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value).collect()
        };
        assert_eq!(values("host").len().max(usize::from(request.version == Some(0))), 1);
        let rest = &bytes[length..];
        bytes = match (&values("transfer-encoding")[..], &values("content-length")[..]) {
            ([], []) => rest,
            ([], [digits]) => {
                let digits = std::str::from_utf8(digits).expect("length");
                rest.get(digits.parse::<usize>().expect("length")..).unwrap_or_default()
            }
            ([coding], []) if coding.eq_ignore_ascii_case(b"chunked") => past_chunks(rest),
            other => panic!("framed twice: {other:?}"),
        };
    }
}

fn past_chunks(mut bytes: &[u8]) -> &[u8] {
    while !bytes.is_empty() {
        let parsed = httparse::parse_chunk_size(bytes).expect("httparse refuses a chunk line that passed");
        let httparse::Status::Complete((line, size)) = parsed else {
            panic!("a part of a chunk line passed")
        };
        let rest = &bytes[line..];
        if size == 0 {
            return past_trailers(rest);
        }
        let after = usize::try_from(size).ok().and_then(|size| rest.get(size..)).unwrap_or_default();
        bytes = if after.is_empty() { after } else { after.strip_prefix(b"\r\n").expect("end of a chunk") };
    }
    bytes
}

fn past_trailers(bytes: &[u8]) -> &[u8] {
    if bytes.is_empty() {
        return bytes;
    }
    let mut trailers = [httparse::EMPTY_HEADER; 128];
    match httparse::parse_headers(bytes, &mut trailers).expect("httparse refuses trailers that passed") {
        httparse::Status::Complete((length, _)) => &bytes[length..],
        httparse::Status::Partial => panic!("a part of the trailers passed"),
    }
}
