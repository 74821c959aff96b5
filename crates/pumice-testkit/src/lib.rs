//! Never published: file builders, oracles, damaged files, fault-injecting stores.
