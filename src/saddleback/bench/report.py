"""The document: the ratios, the machine, one table per case, and how to reproduce it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from ..common.outputs import replacing_text
from . import figures
from .growth import slope
from .race import OURS, ratio
from .store import Records
from .worker.peers import PEERS

Record = dict[str, Any]

RATIOS = "bench-ratios.png"
GROWTH = "bench-growth.png"

BUSY = 1.5
"""Load per core above which other work was running: the benchmark alone causes at most 1."""

INTRODUCTION = """\
# Benchmarks

After reading this page you know how long this library and others take for the same problem, on the same data, to the
same *certified* accuracy, and how to repeat the measurements.

A ratio is the time of the fastest other library that reached the accuracy, divided by ours: above 1 we are faster. If a
case has several problems, the ratio is their geometric mean, with the smallest and the largest in brackets.
"""

PROTOCOL = """\
## How it is measured

- The answer of every library gets the same certificate, `saddleback.certify`: the relative gap between the objective at
  its x and a dual bound, and the infeasibility if there are constraints. The dual point is the gradient of a squared
  loss at x. For other losses it is the dual point of the library or, if it returns none, the best one of the run.
- A tolerance means something different in each library. Each is run with smaller and smaller tolerances, in half
  decades from 1e-2, and is timed at the largest one whose answer is accurate enough. In cases with linear and cone
  programs the first one is the target, and those are left out that would not be accurate enough if the error were in
  proportion to the tolerance. Ours is called with `tol` set to the target and no other option.
- Each library runs in a separate process. Only the solve is timed. The data are in memory, in the layout that libraries
  prefer (column-major or CSC). The first solve, in which some libraries compile, and the certificate are not timed. Our
  time includes `Problem(...)`, that of the others includes what they need to build their problem.
- A loss with two slopes per row (hinge, absolute or pinball) and an L1 penalty make a linear program. HiGHS, with its
  simplex method, gets it with the positive and the negative part of x as variables. HiGHS IPM, its interior point
  followed by its crossover, and PDLP get the dual, which has half the entries. Clarabel gets the problem as one writes
  it in CVXPY. Each has the form on which it is faster.
- The best of the repeats counts for every library; the libraries take turns. A solve of more than 5 s is not repeated.
  No library has a limit on its threads.
- A solve that takes longer than the cap of its case is stopped, and the table says so. So is a library whose solves
  with larger tolerances were not accurate enough and took longer together: than the cap in cases with linear and cone
  programs, and than four times the cap in others. If a case has the same problem in two sizes, a library is not tried
  on the larger one if it would exceed the cap with a time in proportion to the entries of A.
- Non-zeros are those of the answer that was timed, without an intercept. Libraries marked * return no exact zeros: for
  them an entry counts if it is larger than 1e-6 times the largest.
"""

REPRODUCE = """\
## Reproducing these results

```
make bench                            # everything; writes this document, its figures and benchmarks.json
saddleback bench --list               # the cases
saddleback bench --case lasso --out docs     # one of them; the other results stay as they are
saddleback bench --report --out docs  # only this document again, from benchmarks.json
```

Cases on real data need `--data FOLDER`, or `DATA=FOLDER` for `make bench`. The folder has:

```text
libsvm/a9a                the data set a9a of LIBSVM
highdim/BASEHOCK.mat      that of scikit-feature
highdim/riboflavin.npz    X and y of the R package hdi
memset/                   the original files of MEMset Donor
netlib/*.mps.gz           linear programs of netlib
```
"""


def write(folder: Path, records: Records) -> None:
    """Write ``benchmarks.md`` and the figures that it shows into a folder."""
    pictures = folder / "figures"
    pictures.mkdir(exist_ok=True)
    figures.draw_ratios({name: ratios(record) for name, record in races(records).items()}, pictures / RATIOS)
    if "growth" in records:
        figures.draw_growth(records["growth"], pictures / GROWTH)
    with replacing_text(folder / "benchmarks.md") as stream:
        stream.write(document(records))


def document(records: Records) -> str:
    """Return the whole document."""
    parts = [INTRODUCTION]
    if races(records):
        parts.append(ratio_table(records))
    if any(ratios(record) for record in races(records).values()):
        parts.append(f"![the ratios of all cases](figures/{RATIOS})\n")
    parts.append(machines(records))
    parts += [SECTIONS[record["kind"]](name, record) for name, record in records.items()]
    return "\n".join([*parts, PROTOCOL, REPRODUCE])


# --- the parts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A race in a line: the ratio in words, and the fastest other library."""

    case: str
    about: str
    target: float
    ratio: str
    fastest: str


def ratio_rows(records: Records) -> list[Row]:
    """Return one row per race."""
    return [
        Row(
            name,
            record["about"] + (" (quick sizes)" if record["quick"] else ""),
            record["target"],
            _in_words(ratios(record), record),
            _fastest(record),
        )
        for name, record in races(records).items()
    ]


def races(records: Records) -> Records:
    """Return the records of races only."""
    return {name: record for name, record in records.items() if record["kind"] == "race"}


def ratios(record: Record) -> list[float]:
    """Return the ratios of the problems for which both sides have a time."""
    found = [ratio(instance["entries"]) for instance in record["instances"]]
    return [one[0] for one in found if one is not None]


def ratio_table(records: Records) -> str:
    """Return the first table of the document."""
    return table(
        ["case", "problem", "certified to", "fastest other / ours", "fastest other"],
        [
            [f"[{row.case}](#{anchor(row.case)})", row.about, f"{row.target:.0e}", row.ratio, row.fastest]
            for row in ratio_rows(records)
        ],
    )


def _in_words(ratios: list[float], record: Record) -> str:
    count = len(record["instances"])
    if not count:
        return str(record["note"])
    if not ratios:
        ours = [_entry(instance, OURS) for instance in record["instances"]]
        missed = [entry for entry in ours if entry["outcome"] != "reached"]
        return f"ours {time_cell(missed[0], record['cap'])}" if missed else "no other got there"
    mean = f"{geometric_mean(ratios):.2f}"
    if len(ratios) > 1:
        mean += f" ({min(ratios):.2f} to {max(ratios):.2f})"
    return mean + (f", on {len(ratios)} of {count}" if len(ratios) < count else "")


def _fastest(record: Record) -> str:
    """Return the fastest other libraries, the most frequent one first."""
    found = [ratio(instance["entries"]) for instance in record["instances"]]
    names = [one[1] for one in found if one is not None]
    return ", ".join(sorted(set(names), key=lambda name: (-names.count(name), name)))


def machines(records: Records) -> str:
    """Return on which machine and with which versions the cases ran; one paragraph if they are the same for all."""
    lines = ["## The machine\n"]
    described = [(_machine(record["machine"]), name) for name, record in records.items()]
    for words, group in groupby(sorted(described), key=lambda pair: pair[0]):
        names = [name for _, name in group]
        of = "" if len(names) == len(records) else f" ({', '.join(names)})"
        lines.append(f"{words}{of}\n")
    busy = [name for name, record in records.items() if record["load"] > BUSY * record["machine"]["cores"]]
    if busy:
        lines.append(
            f"**The machine was busy with other work during {', '.join(busy)}** (a load of up to "
            f"{max(records[name]['load'] for name in busy):.1f}): do not rely on these times.\n"
        )
    return "\n".join(lines)


def _machine(machine: Record) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{machine['cores']} cores of {machine['processor']}, {machine['memory_gb']} GB of memory, "
        f"{machine['system']}, Python {machine['python']}; {versions}."
    )


def race_section(name: str, record: Record) -> str:
    """Return the tables of a race: the seconds of all libraries, and the work of ours."""
    heading = f"## {name}\n\n{record['about']}; certified to {record['target']:.0e}, cap {record['cap']:g} s"
    heading += f", best of {record['repeats']}." + (" Quick sizes.\n" if record["quick"] else "\n")
    if not record["instances"]:
        return f"{heading}\n{record['note']}\n"
    peers = [entry["peer"] for entry in record["instances"][0]["entries"]]
    rows = []
    for instance in record["instances"]:
        by_peer = {entry["peer"]: entry for entry in instance["entries"]}
        found = ratio(instance["entries"])
        cells = [time_cell(by_peer[peer], record["cap"]) for peer in peers]
        rows.append([instance["label"], *cells, "" if found is None else f"**{found[0]:.2f}**"])
    times = table(["seconds", *peers, "fastest other / ours"], rows)
    parts = [times, nonzeros_table(record, peers), tolerances(record, peers), failures(record)]
    return "\n".join([heading, *filter(None, parts), "The work behind ours:\n", ours_table(record)])


def nonzeros_table(record: Record, peers: Sequence[str]) -> str:
    """Return the number of non-zeros of the answers; nothing if none was counted."""
    rows = [
        [instance["label"], *(_nonzeros(_entry(instance, peer)) for peer in peers)] for instance in record["instances"]
    ]
    if not any(any(counts) for _, *counts in rows):
        return ""
    marked = [peer if PEERS[peer].exact_zeros else f"{peer} *" for peer in peers]
    about = " (*: entries above 1e-6 of the largest)" if marked != list(peers) else ""
    return table([f"non-zeros{about}", *marked], rows)


def _nonzeros(entry: Record) -> str:
    return number(entry.get("nonzeros")) if entry["outcome"] == "reached" else ""


def failures(record: Record) -> str:
    """Return what the libraries said that failed; nothing if none did."""
    notes = [
        f"{entry['peer']} on {instance['label']}: {entry['note']}"
        for instance in record["instances"]
        for entry in instance["entries"]
        if entry["outcome"] == "failed"
    ]
    return f"Failed: {'; '.join(notes)}.\n" if notes else ""


def tolerances(record: Record, peers: Sequence[str]) -> str:
    """Return the tolerance at which each library was timed, and the largest certified error with it."""
    words = []
    for peer in peers:
        entries = [_entry(instance, peer) for instance in record["instances"]]
        reached = [entry for entry in entries if entry["outcome"] == "reached"]
        if reached:
            asked = sorted({entry["tolerance"] for entry in reached}, reverse=True)
            span = " to ".join(f"{tolerance:.0e}" for tolerance in dict.fromkeys([asked[0], asked[-1]]))
            words.append(f"{peer} {span} ({max(entry['error'] for entry in reached):.1e})")
    return f"Timed at the tolerances (largest certified error): {', '.join(words)}.\n" if words else ""


def ours_table(record: Record) -> str:
    """Return the work behind our times."""
    rows = []
    for instance in record["instances"]:
        entry = _entry(instance, OURS)
        info = entry["info"]
        passes = info.get("passes")
        products = instance["products_seconds"]
        rows.append(
            [
                instance["label"],
                f"{instance['rows']} x {instance['columns']}",
                number(passes),
                number(info.get("working_set")),
                number(info.get("blocks_per_iteration")),
                "" if entry["error"] is None else f"{entry['error']:.1e}",
                number(1e3 * products),
                number(min(entry["seconds"]) / passes / products) if passes and entry["seconds"] else "",
            ]
        )
    return table(
        [
            "problem",
            "size",
            "passes",
            "working set",
            "blocks per iteration",
            "error",
            "ms of `A.T @ y` and `A @ x`",
            "pass / those",
        ],
        rows,
    )


def time_cell(entry: Record, cap: float) -> str:
    """Return the time of a library, or why there is none."""
    match entry["outcome"]:
        case "reached":
            return number(min(entry["seconds"]))
        case "not in time":
            return f"not in {cap:g} s"
        case "not reached":
            return "no bound" if entry["error"] is None else f"stays at {entry['error']:.0e}"
    return str(entry["outcome"])


def _entry(instance: Record, peer: str) -> Record:
    found: Record = next(entry for entry in instance["entries"] if entry["peer"] == peer)
    return found


def passes_section(name: str, record: Record) -> str:
    """Return the table of the cost of a pass."""
    rows = [[line["what"], f"{line['measured']:.2f}", line["bar"]] for line in record["lines"]]
    return f"{_heading(name, record)}\n{table(['', 'measured', 'bar'], rows)}"


def growth_section(name: str, record: Record) -> str:
    """Return how the time of a pass grows, with the fitted powers."""
    threads = record["threads"]
    times = [f"ms on {count} thread{'s' * (count > 1)}" for count in threads]
    rows = [
        [
            point["layout"],
            f"{point['entries']:.0e}",
            *(number(1e3 * t) for t in point["seconds"]),
            f"{point['seconds'][0] / point['seconds'][-1]:.2f}",
            number(1e9 * point["seconds"][-1] / point["entries"]),
        ]
        for point in record["points"]
    ]
    grown = table(["layout", "entries", *times, "speed-up", f"ns per entry on {threads[-1]}"], rows)
    layouts = dict.fromkeys(point["layout"] for point in record["points"])
    fits = [
        f"{layout} {slope(record['points'], layout, i):.2f} on {count}"
        for layout in layouts
        for i, count in enumerate(threads)
    ]
    doubled = table(["with", "time x"], [[line["what"], f"{line['ratio']:.2f}"] for line in record["doubled"]])
    skipped = [f"Skipped for lack of memory: {line}.\n" for line in record["skipped"]]
    power = f"Time grows with the number of entries to the power of: {', '.join(fits)} threads. 1 is proportional.\n"
    picture = f"![time of a pass against stored entries](figures/{GROWTH})\n"
    return "\n".join([_heading(name, record), grown, *skipped, power, picture, doubled])


def _heading(name: str, record: Record) -> str:
    return f"## {name}\n\n{record['about']}.{' Quick sizes.' if record['quick'] else ''}\n"


SECTIONS: dict[str, Callable[[str, Record], str]] = {
    "race": race_section,
    "passes": passes_section,
    "growth": growth_section,
}

# --- words ------------------------------------------------------------------------------------------------------------


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, with numbers aligned to the right."""
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def number(value: float | int | None) -> str:
    """Return three digits of a number; an empty text for None."""
    if value is None:
        return ""
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}" if math.isfinite(value) else "infinite"


def anchor(heading: str) -> str:
    """Return the anchor of a heading."""
    return heading.replace(".", "")
