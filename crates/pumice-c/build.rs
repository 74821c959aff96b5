//! Gives the shared library the name that it is installed by, `libpumice.so.MAJOR`, and keeps it in memory until the process
//! ends: a program that closes it has not waited for its threads.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libpumice.so.{major}");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
