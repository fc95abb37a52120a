//! Reads what the user has configured: the settings file, policy sources, the pod's labels; and watches those files.

pub mod dns;
mod interception;
pub mod limits;
pub mod listeners;
pub mod pod;
pub mod quantity;
mod redacted;
mod section;
pub mod settings;
pub mod source;
pub mod trust;
pub mod upstream;
pub mod watch;

pub use section::Environment;
pub use settings::Settings;
