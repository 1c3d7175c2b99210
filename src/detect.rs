//! Which kernels this process may use, by the features of its CPU and the environment variable `BLOOMLINE_KERNEL`.

/// Whether the CPU has these features, and the operating system saves their registers. `std` knows more than
/// `cpufeatures`, for example that macOS grants AVX-512 only once it is used.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
macro_rules! has {
    ($($feature:tt),+) => {{
        #[cfg(feature = "std")]
        {
            $(std::arch::is_x86_feature_detected!($feature))&&+
        }
        #[cfg(not(feature = "std"))]
        {
            cpufeatures::new!(cpu, $($feature),+);
            cpu::get() && (cfg!(target_env = "sgx") || $crate::detect::has_leaf_7())
        }
    }};
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) use has;

/// Returns whether cpuid's leaf 7 exists, which has the newer features. On old CPUs, and where firmware limits the
/// leaves, reading it returns the content of a different leaf.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(feature = "std")))]
pub(crate) fn has_leaf_7() -> bool {
    // Safe in newer versions of Rust.
    #[allow(unused_unsafe)]
    // SAFETY: All x86-64 CPUs have this instruction and its leaf 0. Only SGX enclaves forbid it, where `has!` does not
    // call this function.
    let leaf_0 = unsafe { core::arch::x86_64::__cpuid(0) };
    leaf_0.eax >= 7
}

/// The kernels that the environment allows, of `names`, which has the fastest first.
///
/// If the environment's name is unknown, allows only the kernels that are safe on every CPU, because ignoring the name
/// could crash the host.
pub(crate) fn allowed(names: &'static [&'static str]) -> &'static [&'static str] {
    #[cfg(feature = "std")]
    if let Some(given) = std::env::var_os("BLOOMLINE_KERNEL").filter(|name| !name.is_empty()) {
        const SAFE: &str = "portable";
        let index_of = |fastest: &std::ffi::OsStr| names.iter().position(|name| fastest == *name);
        let fastest = index_of(&given).or_else(|| {
            #[cfg(feature = "log")]
            log::warn!(
                "BLOOMLINE_KERNEL={given:?} names no kernel, so {SAFE:?} is used: name one of {names:?}"
            );
            index_of(SAFE.as_ref())
        });
        return &names[fastest.unwrap_or(0)..];
    }
    names
}

/// Bytes of this core's L2 cache, at least 256 KiB and at most 2 MiB. 2 MiB where only the system knows.
pub(crate) fn l2_cache() -> usize {
    #[cfg(all(target_arch = "x86_64", not(any(target_env = "sgx", miri))))]
    // The leaves of Intel and of AMD, which describe a cache in the same form.
    for (leaf, index) in [4, 0x8000_001D].into_iter().flat_map(|leaf| (0..4).map(move |index| (leaf, index)))
    {
        // Safe in newer versions of Rust.
        #[allow(unused_unsafe)]
        // SAFETY: All x86-64 CPUs have this instruction. Only SGX enclaves forbid it. A CPU that lacks the leaf returns
        // zeros or a different one, so a size may be wrong, which costs only speed.
        let cache = unsafe { core::arch::x86_64::__cpuid_count(leaf, index) };
        let (kind, level) = (cache.eax & 31, cache.eax >> 5 & 7);
        if level == 2 && kind != 2 {
            // Ways, partitions, bytes of a line, and sets, each less one.
            let factors = [cache.ebx >> 22, cache.ebx >> 12 & 0x3FF, cache.ebx & 0xFFF, cache.ecx];
            let bytes = factors.map(|less_one| u128::from(less_one) + 1).iter().product::<u128>();
            return bytes.clamp(256 << 10, 2 << 20) as usize;
        }
    }
    2 << 20
}

#[cfg(all(test, feature = "std", target_os = "linux", target_arch = "x86_64", not(miri)))]
mod tests {
    use std::fs::read_to_string;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn the_size_of_the_cache_is_what_the_system_says() {
        // Cores may differ. An emulated CPU has caches of its own.
        let caches = (0..1_024 * 4)
            .map(|i| std::format!("/sys/devices/system/cpu/cpu{}/cache/index{}/", i / 4, i % 4));
        let l2 =
            caches.filter(|path| read_to_string(path.clone() + "level").is_ok_and(|level| level == "2\n"));
        let kibibytes =
            l2.map(|path| read_to_string(path + "size").unwrap().replace("K\n", "").parse().unwrap());
        let sizes: Vec<usize> = kibibytes.map(|size: usize| (size << 10).clamp(256 << 10, 2 << 20)).collect();
        // AMD's CPUs without this feature tell the system otherwise.
        let is_told =
            read_to_string("/proc/cpuinfo").is_ok_and(|cpu| cpu.contains("Intel") || cpu.contains("topoext"));
        let is_known = is_told && !sizes.is_empty() && std::env::var_os("EXPECT_KERNELS").is_none();
        assert!(!is_known || sizes.contains(&l2_cache()), "{} of {sizes:?}", l2_cache());
    }
}
