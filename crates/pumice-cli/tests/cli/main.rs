//! The `pumice` command as its users see it: output, errors, exit codes, files.

mod checking;
mod clearing;
mod clouds;
mod comparing;
mod corpus;
mod deep;
mod dumping;
mod dumping_json;
mod dumping_sparse;
mod h5importing;
mod importing;
mod listing;
mod looking;
mod newer;
mod paths;
mod repacking;
mod replaying;
mod support;
mod telling;
mod tool_details;
mod usage;
mod user_blocks;
mod writing;
