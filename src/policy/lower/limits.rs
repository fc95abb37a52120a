//! `limits`, judged.

use crate::policy::document::limits as document;
use crate::policy::limits::Written;
use crate::yaml::field;

use super::Problems;

const PATH: &str = "spec.limits";

/// Judges each limit by itself; what is wrong is left out.
pub(super) fn lower(written: &document::Limits, problems: &mut Problems) -> Written {
    let mut limit = |name: &str, written: Option<i64>| {
        let most = written?;
        let result = u64::try_from(most).ok().filter(|most| *most > 0).ok_or_else(|| {
            format!("{most} allows nothing; write 1 or more, or leave the field out for no limit")
        });
        problems.keep(&field::key(PATH, name), result)
    };
    Written {
        request_body_bytes: limit("requestBodyBytes", written.request_body_bytes),
        tool_input_bytes: limit("toolInputBytes", written.tool_input_bytes),
        tokens_per_day: limit("tokensPerDay", written.tokens_per_day),
        requests_per_minute: limit("requestsPerMinute", written.requests_per_minute),
        consecutive_denials: limit("consecutiveDenials", written.consecutive_denials),
    }
}
