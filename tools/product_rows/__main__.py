#!/usr/bin/env python3
"""What operators do daily with a server, tried with nginx, Caddy and marline.

    tools/product_rows                  every row with every program, as a summary
    tools/product_rows --only ROW       rows whose titles have this in them; repeatable
    tools/product_rows --program NAME   this program alone: nginx, caddy or marline; repeatable
    tools/product_rows --check          marline alone, and whether everything that worked still works
    tools/product_rows --update         writes docs/compare-servers.json and docs/compare-servers.md anew
    tools/product_rows --configurations prints the configurations of the rows

A row has a configuration for each program, which is started in a network of its own, and a check that uses it as
clients do. The check consists of promises. A program for which all hold `works`, one for which some hold does so
`partly`, and where the first does not, the row is `missing`.

MARLINE names the program (target/debug/marline unless it is set). `tools/deps.sh servers` installs Debian's nginx in
target/servers, `make -C interop nginx aioquic` the nginx that has HTTP/3, and the client of some checks of HTTP/3.
"""

import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import time

import page
import programs
import rig
import rows

NAMES = ("caddy", "nginx", "marline")


def absent(config):
    """The tool that is missing for a configuration, if there is one."""
    if config.program == "caddy":
        return None if shutil.which(rig.CADDY) else "caddy"
    if config.program == "nginx":
        path = rig.NGINX_H3 if config.h3 else rig.NGINX
        return None if path.exists() else str(path.relative_to(rig.ROOT))
    return None


def cell(lab, row, name, marline):
    """The result of a row for a program."""
    config = row.programs[name]
    if isinstance(config, programs.Missing):
        return page.Cell("missing", config.reason)
    if isinstance(config, programs.Known):
        return page.Cell("works", config.where)
    if tool := absent(config):
        return page.Cell("skipped", f"{tool} is not there")
    with tempfile.TemporaryDirectory(prefix="rows-", dir=lab.dir) as directory:
        server = rig.Server(lab, config, marline, directory)
        trial = rig.Trial(lab, server)
        try:
            if row.start:
                server.start()
            row.check(trial)
        except (rig.Failed, AssertionError, OSError) as error:
            trial.broken.insert(0, ["", str(error)])
        finally:
            trial.close()
        return page.Cell.of(trial, config)


def try_rows(arguments, chosen, names):
    marline = pathlib.Path(os.environ.get("MARLINE", rig.ROOT / "target/debug/marline")).resolve()
    results = {}
    with tempfile.TemporaryDirectory(prefix="product-rows-") as directory:
        lab = rig.Lab(directory)
        for title, row in chosen.items():
            results[title] = {}
            for name in names:
                begun = time.monotonic()
                done = results[title][name] = cell(lab, row, name, marline)
                took = time.monotonic() - begun
                print(f"{title:<34.34} {name:<8} {done.result:<8} {took:4.1f} s  {done.note}", flush=True)
                if done.result != "works" or arguments.verbose:
                    for promise, why in done.broken:
                        print(f"    {promise}: {why}")
                    for why in done.skipped:
                        print(f"skipped: {title}, {name}: {why}")
    return results, programs.versions(marline)


def compare(results):
    """Whether a row of marline that worked does not, or not wholly, any more."""
    known = page.load()
    worse = 0
    for title, cells in results.items():
        before, now = known.get(title, {}).get("marline"), cells["marline"]
        if before is None or now.result == "skipped":
            continue
        lost = [promise for promise in before.kept if promise not in now.kept and not now.left_out(promise)]
        if lost or page.RANK[now.result] < page.RANK[before.result]:
            worse += 1
            print(f"FAILED: {title}: {before.result} before, {now.result} now ({', '.join(lost) or now.note})")
        elif (now.result, now.kept) != (before.result, before.kept):
            print(f"note: {title}: {now.result} now, {before.result} before; run tools/product_rows --update")
    print(f"product rows: {len(results)} tried, {worse} worse")
    return 1 if worse else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--program", action="append", choices=NAMES)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--configurations", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    known = rows.load()
    chosen = {
        title: known[title]
        for title in page.ORDER
        if title in known
        if not arguments.only or any(part.lower() in title.lower() for part in arguments.only)
    }
    if not chosen:
        sys.exit(f"no row has {' or '.join(arguments.only)} in its title")
    names = ("marline",) if arguments.check else tuple(name for name in NAMES if name in (arguments.program or NAMES))
    if arguments.configurations:
        for title, row in chosen.items():
            for name in names:
                config = row.programs[name]
                known = isinstance(config, programs.Known | programs.Missing)
                text = f"# {config}" if known else config.whole(config.text)
                print(f"=== {title}: {name}\n{text}")
        return 0
    if not rig.alone(sys.executable, sys.argv):
        print("skipped: the rows of the comparison of servers need a network namespace (unshare --net --mount)")
        return 0
    results, versions = try_rows(arguments, chosen, names)
    if arguments.check:
        return compare(results)
    if arguments.update:
        page.update(results, versions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
