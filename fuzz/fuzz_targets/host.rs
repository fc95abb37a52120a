//! Hosts as agents write them: one canonical form, from which nothing escapes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern::name::host::{Authority, DnsName, Host};
use postern::policy::pattern::Pattern;

fuzz_target!(|text: &str| {
    if let Ok(host) = Host::parse(text) {
        check(&host);
        assert_eq!(
            Host::parse(&host.to_string()).as_ref(),
            Ok(&host),
            "canonicalising twice changes nothing"
        );
        assert_eq!(Host::parse(&text.to_ascii_uppercase()).as_ref(), Ok(&host), "case does not matter");
        if let Ok(pattern) = Pattern::parse(text) {
            assert!(pattern.matches(&host), "a host written in a policy matches itself");
        }
    }
    if let Ok(authority) = Authority::parse(text) {
        check(&authority.host);
        assert_ne!(authority.port, Some(0));
        assert_eq!(Authority::parse(&authority.to_string()), Ok(authority), "printing and reading agree");
    }
    if let Ok(name) = DnsName::parse_written(text) {
        assert_eq!(DnsName::parse(name.as_str()), Ok(name), "a written name is one of the wire");
    }
    if let Ok(pattern) = Pattern::parse(text) {
        assert_eq!(Pattern::parse(&pattern.to_string()), Ok(pattern), "printing and reading agree");
    }
});

fn check(host: &Host) {
    let Host::Name(name) = host else { return };
    let name = name.as_str();
    assert!((1..=253).contains(&name.len()));
    assert!(name.split('.').all(|label| (1..=63).contains(&label.len())));
    assert!(
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte))
    );
    assert!(name.parse::<std::net::IpAddr>().is_err(), "an address is never a name");
}
