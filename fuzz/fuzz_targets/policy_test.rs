//! Files of policy tests: read or refused, never a crash; a refusal says where and why.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern::trial::document;

fuzz_target!(|text: &str| {
    match document::parse("fuzz.yaml", text) {
        Ok(tests) => {
            assert!(!tests.is_empty(), "a file without a test is refused");
            assert!(tests.iter().all(|test| !test.policy.is_empty() && !test.cases.is_empty()));
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "a refusal says why");
            assert!(
                problems.iter().all(|problem| !problem.message.is_empty() && problem.file == "fuzz.yaml")
            );
        }
    }
});
