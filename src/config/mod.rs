//! Reads what the user has configured: the settings file, policy sources, the pod's labels; and watches those files.

mod directory;
pub mod dns;
pub mod evidence;
pub mod ledger;
pub mod limits;
pub mod listeners;
pub mod pod;
pub mod quantity;
pub mod settings;
pub mod source;
pub mod trust;
pub mod upstream;
mod value;
pub mod watch;

pub use crate::yaml::read::Environment;
pub use settings::Settings;
