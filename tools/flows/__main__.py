"""Labelled flows of real traffic, and what the analyses find in them.

Chromium, curl and marline load pages over HTTP/1.1, 2 and 3, from `marline serve` and over emulated links. The packets
become flows, whose version two sources tell: the secrets that the clients log, and the server's own log. A second set,
of other pages and links, is the test of what was learnt from the first.
"""

import argparse
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final

import analyses
from capture import Capture, CaptureError, Certificate, Programs, Site, Within, capture, hosts_of
from export import export
from labels import LabelError
from pages import build, cloned, live
from plan import TEST, TRAIN, Set, visits

ROOT: Final = Path(__file__).resolve().parents[2]
PUBLISHED: Final = ROOT / "experiments" / "published"

QUICK_SITES: Final = 8


def main() -> int:
    """Capture, export, analyse; the status is 1 if anything of it fails."""
    arguments = _arguments()
    began = time.monotonic()
    try:
        programs = _programs(arguments)
        if not arguments.analyse_only:
            for of in (TRAIN, TEST):
                _captured(of, arguments, programs)
        for of in (TRAIN, TEST):
            export(of.name, _captures(of, arguments), arguments.out, programs.marline)
        analyses.run(arguments.out, PUBLISHED, 5 if arguments.quick else 10)
    except (CaptureError, LabelError, analyses.AnalysisError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    minutes = (time.monotonic() - began) / 60
    sys.stderr.write(f"{minutes:.1f} minutes; the report: {arguments.out / 'report.html'}\n")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/flows",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: make flows FLOWS=--quick",
    )
    parser.add_argument(
        "-o", "--out", type=Path, default=ROOT / "target" / "flows", metavar="DIR", help="(target/flows)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="two links, a few pages: some minutes, too few flows to learn much from"
    )
    parser.add_argument(
        "--rounds", type=_positive, default=2, metavar="N", help="how often each page is loaded by each client (2)"
    )
    parser.add_argument(
        "--seconds", type=_positive, default=1500, metavar="S", help="the longest that a link is used (1500)"
    )
    parser.add_argument("--jobs", type=_positive, default=2, metavar="N", help="links at once (2)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of pages, visits and links (1)")
    parser.add_argument("--analyse-only", action="store_true", help="use the captures that are in DIR")
    parser.add_argument(
        "--marline",
        type=Path,
        default=ROOT / "target" / "release" / "marline",
        metavar="FILE",
        help="(target/release/marline)",
    )
    parser.add_argument("--chromium", default="chromium", metavar="PROGRAM", help="(chromium)")
    arguments = parser.parse_args()
    arguments.out = arguments.out.absolute()
    return arguments


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, and is {text}")
    return int(text)


def _programs(arguments: argparse.Namespace) -> Programs:
    if not arguments.marline.is_file():
        raise CaptureError(f"{arguments.marline}: there is no such program; `make flows` builds it")
    if not arguments.analyse_only and not Path("/dev/net/tun").exists():
        raise CaptureError("/dev/net/tun: there is no such device, and emulated links need it")
    missing = [
        name for name in (arguments.chromium, "curl", "openssl", "unshare", "mount") if shutil.which(name) is None
    ]
    if missing and not arguments.analyse_only:
        raise CaptureError(f"{', '.join(missing)}: not installed; `make deps` installs them")
    return Programs(arguments.marline.absolute(), arguments.chromium)


def _captures(of: Set, arguments: argparse.Namespace) -> list[Capture]:
    links = of.links[:1] if arguments.quick else of.links
    return [Capture(arguments.out / of.name / str(at), link) for at, link in enumerate(links)]


def _captured(of: Set, arguments: argparse.Namespace, programs: Programs) -> None:
    """All captures of a set, some at once."""
    directory = arguments.out / of.name
    shutil.rmtree(directory, ignore_errors=True)
    root = directory / "pages"
    recipes = cloned(PUBLISHED) if of.sites == "cloned" else live(PUBLISHED)
    pages = [build(recipe, root, arguments.seed) for recipe in (recipes[:QUICK_SITES] if arguments.quick else recipes)]
    hosts = hosts_of(pages)
    site = Site(root, hosts, Certificate.make(hosts, directory))
    rounds = 1 if arguments.quick else arguments.rounds
    captures = _captures(of, arguments)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        running = {}
        for at, to in enumerate(captures):
            planned = visits(pages, rounds, f"{arguments.seed} {to.link}")
            within = Within(arguments.seconds, arguments.seed + at)
            running[pool.submit(capture, to, site, planned, programs, within)] = to
        for number, done in enumerate(as_completed(running), start=1):
            done.result()
            sys.stderr.write(f"{of.name}: {number} of {len(captures)} links, {running[done].link}\n")


if __name__ == "__main__":
    sys.exit(main())
