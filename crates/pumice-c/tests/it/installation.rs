//! `scripts/install-c` into a folder, found from there by pkg-config and by CMake.

use crate::support::{built, crate_folder, has, run};
use std::path::Path;
use std::process::Command;

fn install(prefix: &Path) {
    let script = crate_folder().join("../../scripts/install-c");
    run(Command::new("bash").arg(script).arg("--built").arg(built()).arg(prefix));
}

#[test]
fn pkg_config_finds_what_is_installed() {
    let folder = tempfile::tempdir().expect("a folder");
    install(folder.path());
    if !has("pkg-config") || !has("gcc") || !has("make") {
        return;
    }
    let described = |asked: &str| {
        let descriptions = folder.path().join("lib/pkgconfig");
        run(Command::new("pkg-config")
            .arg(asked)
            .arg("pumice")
            .env("PKG_CONFIG_PATH", descriptions))
    };
    assert_eq!(described("--modversion").trim(), env!("CARGO_PKG_VERSION"));
    assert!(described("--libs").contains("-lpumice"));
    // One example by the Makefile, as a user would build it.
    let out = format!("OUT={}/", folder.path().display());
    run(Command::new("make")
        .arg("-C")
        .arg(crate_folder().join("c-examples"))
        .arg(format!("PREFIX={}", folder.path().display()))
        .args([&out, &format!("{}/members", folder.path().display())]));
    run(Command::new(folder.path().join("members")).arg(folder.path().join("a.h5")));
}

#[test]
fn cmake_finds_what_is_installed() {
    let folder = tempfile::tempdir().expect("a folder");
    install(folder.path());
    let config = folder.path().join("lib/cmake/Pumice/PumiceConfig.cmake");
    let text = std::fs::read_to_string(config).expect("it is installed");
    assert!(!text.contains("@VERSION@") && text.contains("libpumice.so.0"));
    if !has("cmake") || !has("make") {
        return;
    }
    let project = "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nfind_package(Pumice 0.1 REQUIRED)\n\
                   add_executable(x ${SOURCE})\ntarget_link_libraries(x Pumice::pumice)\n";
    std::fs::write(folder.path().join("CMakeLists.txt"), project).expect("writable");
    let build = folder.path().join("build");
    run(Command::new("cmake")
        .arg("-S")
        .arg(folder.path())
        .arg("-B")
        .arg(&build)
        .arg(format!("-DCMAKE_PREFIX_PATH={}", folder.path().display()))
        .arg(format!("-DSOURCE={}", crate_folder().join("c-examples/members.c").display())));
    run(Command::new("cmake").arg("--build").arg(&build));
    run(Command::new(build.join("x")).arg(folder.path().join("a.h5")));
}
