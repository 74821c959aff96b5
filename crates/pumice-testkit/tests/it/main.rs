//! Crash replay, faults, damaged files and manifests.
//!
//! One program, linked once: a new file of tests is a module here.

mod cache_traces;
mod calls;
mod crash;
mod crash_family;
mod crash_foreign;
mod crash_multi;
mod crash_parked;
mod crash_refused;
mod crash_replaced;
mod damaged;
mod ended;
mod faults;
mod faults_closing;
mod faults_outside;
mod faults_strings;
mod manifest;
mod references;
mod swmr;
mod unused;
