#!/usr/bin/env python3
"""Prints the table of `scripts/check cli_bench` from its measurements: the least and the most of all rounds.

Elapsed time is what a user waits for; CPU time compares better on a machine that is busy with other work.
"""

import sys

measured = {}
for line in open(sys.argv[1]):
    name, clock, user, system, kib = line.split(",")
    measured.setdefault(name, []).append((float(clock), float(user) + float(system), int(kib) * 1024 / 1e6))


def shown(values, decimals):
    least, most = (f"{value:,.{decimals}f}" for value in (min(values), max(values)))
    return least if least == most else f"{least} to {most}"


print("| | CPU time, s | elapsed, s | memory, MB |")
print("|---|---|---|---|")
for name, runs in measured.items():
    clocks, cores, megabytes = zip(*runs)
    print(f"| {name} | {shown(cores, 2)} | {shown(clocks, 2)} | {shown(megabytes, 0)} |")

print("\n| ratio of the least | CPU time | memory |")
print("|---|---|---|")
for ours, theirs in [("dedup", "mawk"), ("dedup --keys", "mawk"), ("build + check", "grep")]:
    (_, cores, megabytes), (_, their_cores, their_megabytes) = (
        tuple(map(min, zip(*measured[name]))) for name in (ours, theirs)
    )
    print(f"| {theirs} / {ours} | {their_cores / cores:.0f} | {their_megabytes / megabytes:.0f} |")
