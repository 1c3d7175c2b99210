#!/usr/bin/env python3
"""Prints the tables of `scripts/check cli_bench` from its measurements.

Elapsed time is what a user waits for; CPU time compares better on a machine that is busy with other work.
"""

import os
import sys

measured = {}
for line in open(sys.argv[1]):
    name, clock, user, system, kib = line.split()
    run = (float(clock), float(user) + float(system), int(kib) / 1024)
    best = measured.get(name, run)
    measured[name] = tuple(map(min, best, run))

print("| | elapsed, s | CPU time, s | peak memory, MiB |")
print("|---|---|---|---|")
for name, (clock, cores, mib) in measured.items():
    print(f"| {name} | {clock:.2f} | {cores:.2f} | {mib:,.0f} |")

print("\n| target | elapsed | CPU time | memory |")
print("|---|---|---|---|")
for ours, theirs in [("dedup", "mawk"), ("dedup", "sort"), ("check", "grep")]:
    clock, cores, mib = (b / a for a, b in zip(measured[ours], measured[theirs]))
    print(f"| {ours} against {theirs} | {clock:.0f} × as fast | {cores:.0f} × | 1/{mib:.0f} |")
for name in ["build-keys", "build-counted"]:
    clock, cores, _ = measured[name]
    print(f"| {name} | {10 / clock:.1f} M keys/s | {10 / cores:.1f} M keys/s | |")
large = os.path.getsize(sys.argv[2]) / (1 << 20)
print(f"| build-large, beyond its filter | | | filter + {measured['build-large'][2] - large:.0f} MiB |")
