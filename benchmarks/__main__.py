"""Run experiments of the manifest, then make tables and figures of all rows there are.

python -m benchmarks [NAME ...] [--quick] [--data-dir FOLDER] [--minutes M] [--report] [--fresh]
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from pathlib import Path

from benchmarks.first_page import write_first_page
from benchmarks.harness import OUTPUT, RESULTS, Entry, Setting, manifest, measure_all, report
from benchmarks.pages import DOCS, Pages


def options() -> argparse.Namespace:
    """Return what was asked for."""
    known = manifest()
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--data-dir", type=Path, help="folder of data sets that no package brings")
    parser.add_argument("--quick", action="store_true", help="few repetitions: does it run?")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop then; run again to go on")
    parser.add_argument("--jobs", type=int, default=2, help="processes, where no time is measured")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the pages")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured")
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in known]
    if unknown:
        parser.error(f"no experiment {', '.join(unknown)}; there are {', '.join(known)}")
    asked.entries = [known[name] for name in asked.names] or list(known.values())
    return asked


def main() -> None:
    """Measure, then report; exit with 1 if something failed."""
    asked = options()
    setting = Setting(asked.quick, asked.data_dir)
    until = time.monotonic() + 60.0 * asked.minutes
    failed, incomplete = [], []
    if not asked.report:
        for entry in asked.entries:
            print(f"== {entry.name}: {entry.claim}", flush=True)
            start = time.monotonic()
            try:
                # A quick run must show that experiments run today.
                complete = measure_all(
                    entry, setting, asked.jobs, until, asked.fresh or asked.quick
                )
            except Exception:
                traceback.print_exc()
                failed.append(entry.name)
                continue
            print(f"{entry.name}: {time.monotonic() - start:.0f} s", flush=True)
            if not complete:
                incomplete.append(entry.name)
    failed += write_pages(asked.entries if asked.quick else list(manifest().values()), asked.quick)
    if incomplete:
        print(f"not complete: {', '.join(incomplete)}")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def write_pages(entries: list[Entry], quick: bool) -> list[str]:
    """Report on all experiments with rows; return those whose report failed."""
    pages = Pages(OUTPUT, quick=True) if quick else Pages(DOCS)
    if not quick:
        pages.clear()
    failed = []
    for entry in entries:
        try:
            report(entry, pages, OUTPUT / "results" if quick else RESULTS)
        except Exception:
            traceback.print_exc()
            failed.append(f"{entry.name} (report)")
    write_first_page(pages)
    return failed


if __name__ == "__main__":
    main()
