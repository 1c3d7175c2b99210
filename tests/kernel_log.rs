//! With the feature `log`, a name in `BLOOMLINE_KERNEL` that no kernel has is reported once.

#[path = "common/warnings.rs"]
mod warnings;

use std::env;

use bloomline::Kernel;

#[test]
fn an_unknown_name_is_reported_once() {
    warnings::keep();
    // SAFETY: This is the process's only test, so no other thread accesses the environment.
    unsafe { env::set_var("BLOOMLINE_KERNEL", "avx3") };
    assert_eq!(Kernel::active().name(), "portable");
    assert_eq!(Kernel::available().count(), 2);
    assert_eq!(
        warnings::kept(),
        [
            "WARN: BLOOMLINE_KERNEL=\"avx3\" names no kernel, so \"portable\" is used: name one of [\"avx512\", \"avx2\", \
             \"sse4.1\", \"neon\", \"portable\", \"reference\"]"
        ]
    );
}
