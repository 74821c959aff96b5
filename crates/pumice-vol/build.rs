//! Keeps the connector in memory until the process ends: libhdf5 closes plugins when it ends itself, and the connector's
//! threads may still be at work then.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
