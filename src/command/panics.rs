//! Tells that a thread panicked by its place in the code: the message may hold what an agent said, such as the text in
//! which a character was cut.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Display;
use std::io::{self, Write};
use std::panic;

/// Has panics told so from now on, on standard error. One in an exchange ends that exchange alone.
pub fn tell_places() {
    panic::set_hook(Box::new(|info| {
        let told = told(info.location(), info.payload());
        let backtrace = Backtrace::capture();
        let backtrace = (backtrace.status() == BacktraceStatus::Captured).then_some(backtrace);
        let frames = backtrace.map(|frames| format!("\n{frames}")).unwrap_or_default();
        // Nobody may be reading it.
        let _ = writeln!(io::stderr(), "{told}{frames}");
    }));
}

/// The place of a panic, and its message where that stands in the code as it is.
fn told(place: Option<impl Display>, payload: &(dyn Any + Send)) -> String {
    let place = place.map_or_else(|| "an unknown place".to_owned(), |place| place.to_string());
    let message = payload.downcast_ref::<&'static str>().map(|message| format!(": {message}"));
    format!("postern panicked at {place}{}; this is a defect, please report it", message.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_was_made_at_run_time_is_not_told() {
        let place = Some("src/a.rs:1:2");
        let secret = "end byte index 7 is not a char boundary of `sk-canäry`".to_owned();
        let expected = "postern panicked at src/a.rs:1:2; this is a defect, please report it";
        assert_eq!(told(place, &secret), expected);
        assert_eq!(
            told(place, &"a lock is held"),
            "postern panicked at src/a.rs:1:2: a lock is held; this is a defect, please report it"
        );
    }

    #[test]
    fn the_message_of_a_text_that_is_cut_in_a_character_is_made_at_run_time() {
        let text = std::hint::black_box("sk-canäry");
        let payload = panic::catch_unwind(|| text[..7].len()).unwrap_err();
        assert!(payload.downcast_ref::<String>().unwrap().contains(text));
        assert!(!told(Some("a.rs"), &*payload).contains(text));
    }
}
