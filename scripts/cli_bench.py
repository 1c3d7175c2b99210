#!/usr/bin/env python3
"""The table of `scripts/check cli_bench`, from the lines that it has measured.

Times by the clock say what a user waits; those of the cores are the fairer ones where the machine has other work.
"""

import os
import sys

measured = {}
for line in open(sys.argv[1]):
    name, clock, user, system, kib = line.split()
    run = (float(clock), float(user) + float(system), int(kib) / 1024)
    best = measured.get(name, run)
    measured[name] = tuple(map(min, best, run))

print("| | seconds by the clock | of cores | MiB at most |")
print("|---|---|---|---|")
for name, (clock, cores, mib) in measured.items():
    print(f"| {name} | {clock:.2f} | {cores:.2f} | {mib:,.0f} |")

print("\n| bar | by the clock | by time of cores | memory |")
print("|---|---|---|---|")
for ours, theirs in [("dedup", "mawk"), ("dedup", "sort"), ("check", "grep")]:
    clock, cores, mib = (b / a for a, b in zip(measured[ours], measured[theirs]))
    print(f"| {ours} beside {theirs} | {clock:.0f} × as fast | {cores:.0f} × | 1/{mib:.0f} |")
for name in ["build-keys", "build-counted"]:
    clock, cores, _ = measured[name]
    print(f"| {name} | {10 / clock:.1f} M keys/s | {10 / cores:.1f} M keys/s | |")
large = os.path.getsize(sys.argv[2]) / (1 << 20)
print(f"| build-large, beside its filter | | | filter + {measured['build-large'][2] - large:.0f} MiB |")
