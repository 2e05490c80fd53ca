//! What is served, and changing it while it is served.
//!
//! ```text
//!   configuration, SIGHUP --\
//!   admin API --------------> Deployer: compile, load, initialise aside --> Catalogue --> publish --> every thread's HTTP service
//!                                └ store (what was deployed outlives the server)
//! ```
//!
//! * [`catalogue`]: the functions by name, with their tenants, and the routes that they make;
//! * [`quarantine`]: those of them that cannot be served, and why;
//! * [`publish`]: how threads come to use new routes; `taken`: and how it is known that all do;
//! * [`canary`]: the next version of a function, while only a part of its requests goes to it;
//! * [`deployer`]: the changes, one after the other: each is complete or has not happened; `loading`: what may become a part of them;
//!   `reconfigure`: what a new configuration changes;
//! * [`store`]: deployed functions on disk; [`history`]: their versions;
//! * `grants`: what of this machine and its network deployed functions may have;
//! * [`scope`]: whose functions a client may change;
//! * `tiers`: optimised code in the place of what was served before it was there; `jobs`: which of it is to be made;
//! * `pinned`: versions that durable executions need beside the served ones; `kept`: their files.
//!
//! A request keeps the version to which it was routed. A version that has been replaced is *retired*: it ends what it began, its idle
//! sandboxes are given back, and with its last request everything of it is unmapped.

pub mod canary;
pub mod catalogue;
pub mod deployer;
mod grants;
pub mod history;
mod jobs;
mod kept;
mod loading;
mod pinned;
pub mod publish;
pub mod quarantine;
mod reconfigure;
pub mod scope;
pub mod store;
mod taken;
mod tiers;

pub use catalogue::{Candidate, Info, Origin};
pub use deployer::{Change, DeployError, Deployer};
pub use grants::NotGranted;
pub use kept::folder as pinned_folder;
pub use publish::Published;
pub use scope::{Client, Denied, Scope};
