"""
How much memory does a fit to a large file need?
================================================

A matrix of 320 MB is loaded, and solvers copy it: on a small machine, or with a larger file, that is the end. A
streamed matrix stays in its file and is read panel by panel, within the memory that is allowed. Stochastic methods
read files in parts too, but end without a bound on their error; here the certificate is that of all data.
"""

import tempfile
import threading
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import psutil

import saddleback as sb

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "A.npy"
rng = np.random.default_rng(0)
samples, features = 1000, 40_000
A = np.lib.format.open_memmap(path, "w+", np.float64, (samples, features), fortran_order=True)
for start in range(0, features, 1000):
    A[:, start : start + 1000] = rng.standard_normal((samples, 1000))
A.flush()
b = A[:, :20] @ rng.standard_normal(20) + rng.standard_normal(samples)
del A


def watched(run):
    """Return the result of a function, and the memory of the process above that at the start, over time."""
    process, seconds, megabytes, done = psutil.Process(), [], [], threading.Event()
    before, begin = process.memory_info().rss, time.perf_counter()

    def watch():
        while not done.wait(0.005):
            seconds.append(time.perf_counter() - begin)
            megabytes.append((process.memory_info().rss - before) / 1e6)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        return run(), seconds, megabytes
    finally:
        done.set()
        watcher.join()


# %%
# The same path of 15 Lasso fits twice: streamed with 40 MB, and in memory.


def path_of(A):
    """Return the certified solutions for 15 weights of the penalty."""
    return list(sb.path(sb.L1(1.0), A, sb.Squared(b), n_alphas=15, eps=0.05, tol=1e-5))


streamed = sb.Streamed(path, memory=40e6)
runs = {"streamed": lambda: path_of(streamed), "in memory": lambda: path_of(np.load(path))}
curves = {}
for name, run in runs.items():
    results, *curves[name] = watched(run)
    gap = max(result.relative_gap for result in results)
    print(f"{name}: at most {max(curves[name][1]):.0f} MB more, largest relative gap {gap:.0e}")
print(f"the file was read {streamed.reads:.1f} times")
folder.cleanup()

# %%
# The solutions are the same. The streamed path reads the file about twice per fit, from the cache of the operating
# system or, if that is too small, from the disk.

figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
for colour, (name, (seconds, megabytes)) in zip(("C0", "C1"), curves.items(), strict=True):
    axis.plot(seconds, megabytes, color=colour, linewidth=2, label=name)
axis.axhline(320, color="0.5", linestyle=":", label="size of the file")
axis.axhline(40, color="C0", linestyle=":", label="memory that was allowed")
axis.set(xlabel="seconds", ylabel="memory above that at the start, MB", ylim=(0, 400))
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
plt.show()
