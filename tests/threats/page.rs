//! The page of events on the loopback: whoever has its address reads it, and no web page does.

use crate::ui::{Page, line};

/// J19: a web page that rebinds its own name to the loopback, or asks across sites, reads nothing, even where it knows the
/// token; it cannot write either.
#[test]
fn a_web_page_reads_nothing_of_the_local_page() {
    let page = Page::of(&line(1));
    page.until(|answer| answer["next"] == 1);
    let (address, path) = (page.address, format!("/{}/events?from=0&change=0", page.token));
    let own = format!("host: {address}\r\n");
    for (method, fields, status) in [
        ("GET", format!("host: evil.example:{}\r\n", address.port()), 421),
        ("GET", "host: 127.0.0.1.evil.example\r\n".to_owned(), 421),
        ("GET", format!("{own}{own}"), 421),
        ("GET", format!("{own}origin: http://evil.example\r\n"), 403),
        ("GET", format!("{own}origin: null\r\n"), 403),
        ("GET", format!("{own}origin: http://localhost:{}\r\n", address.port()), 403),
        ("GET", format!("{own}sec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\n"), 403),
        ("GET", format!("{own}sec-fetch-site: same-site\r\nsec-fetch-mode: cors\r\n"), 403),
        ("OPTIONS", format!("{own}origin: http://evil.example\r\n"), 403),
        ("POST", own.clone(), 405),
        ("DELETE", own.clone(), 405),
    ] {
        let answer = page.ask(method, &path, &fields);
        assert_eq!(answer.status, status, "{method} {fields:?}: {answer:?}");
        assert!(!answer.body.contains("Bash"), "{answer:?}");
        assert!(!answer.head.contains("access-control-"), "{answer:?}");
    }

    let twin =
        page.ask("GET", &path, &format!("{own}origin: http://{address}\r\nsec-fetch-site: same-origin\r\n"));
    assert_eq!(twin.status, 200, "{twin:?}");
    assert!(twin.body.contains("Bash"), "{twin:?}");
}

/// J19: who does not have the token reads nothing, and finds out nothing about it; other addresses of this machine do not
/// answer.
#[test]
fn without_the_token_nothing_is_read() {
    let page = Page::of(&line(1));
    let own = format!("host: {}\r\n", page.address);
    assert_eq!(page.token.len(), 64);
    let almost = format!("/{}x/", &page.token[..63]);
    for path in [
        "/",
        "/events?from=0&change=0",
        "/index.html",
        "/x/events?from=0&change=0",
        &almost,
        &format!("/{}", page.token),
    ] {
        let answer = page.ask("GET", path, &own);
        assert_eq!((answer.status, answer.body.contains("Bash")), (403, false), "{path}: {answer:?}");
        assert!(!answer.body.contains(&page.token) && !answer.head.contains(&page.token), "{answer:?}");
    }
    assert!(page.address.ip().is_loopback());
    assert!(
        std::net::TcpStream::connect((std::net::Ipv4Addr::new(127, 0, 0, 2), page.address.port())).is_err()
    );

    assert_eq!(page.ask("GET", &format!("/{}/", page.token), &own).status, 200);
}

/// J18: markup in a name reaches the browser as data alone, under a policy by which no text becomes markup.
#[test]
fn a_name_is_no_markup_in_the_page() {
    const MARKUP: &str = "<script>alert(1)</script>";
    let page = Page::of(&line(1).replace("Bash", MARKUP));
    page.until(|answer| answer["next"] == 1);
    let document = page.get("");
    assert!(
        document.head.contains("require-trusted-types-for 'script'; trusted-types 'none'"),
        "{document:?}"
    );
    assert!(!document.body.contains(MARKUP), "{document:?}");
    for path in ["events?from=0&change=0", "event?number=0"] {
        let answer = page.get(path);
        assert!(answer.head.contains("content-type: application/json"), "{answer:?}");
        assert!(answer.head.contains("x-content-type-options: nosniff"), "{answer:?}");
        assert!(answer.body.contains(MARKUP), "{answer:?}");
    }
}
