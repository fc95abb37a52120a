//! Policy files: read or refused, never a crash; what is read is read the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern::name::host::DnsName;
use postern::policy::destination::{Flow, Protocol};
use postern::policy::{Labels, Policy, document};

fuzz_target!(|text: &str| {
    let documents = match document::parse("fuzz.yaml", text) {
        Ok(documents) => documents,
        Err(problems) => {
            assert!(!problems.is_empty(), "a refusal says why");
            assert!(
                problems.iter().all(|problem| !problem.message.is_empty() && problem.file == "fuzz.yaml")
            );
            return;
        }
    };
    assert!(!documents.is_empty(), "a source without documents is refused");
    match Policy::compile(&documents, &Labels::new()) {
        Ok(policy) => {
            let again = Policy::compile(&documents, &Labels::new()).expect("compiling again");
            assert_eq!(policy.revision(), again.revision());
            let name = DnsName::parse("api.example.com").expect("a name");
            let flow = Flow { name: Some(&name), address: None, port: 443, protocol: Protocol::Tls };
            assert_eq!(policy.destination(&flow).decision, again.destination(&flow).decision);
        }
        Err(problems) => assert!(!problems.is_empty(), "a refusal says why"),
    }
});
