"""Harm that marline's products do to flows of quinn (CUBIC, as it comes) at one bottleneck, in virtual time.

    harm.py MARLINE BENCH_QUINN [--json FILE]

One or four downloads over quinn run alone, beside one more of quinn, and beside a download over each product of `marline serve`
that begins after five seconds. Harm is the part of the goodput that quinn's flows lose beside a flow (Ware et al., HotNets 2019);
it is to be at most 1.25 times what one more flow of quinn does to them. Both ends run on the kernel of `marline lab link --backend
kernel`, so that times are those of the link alone, and equal commands give equal results.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

SERVER = "10.77.0.1"
QUINN_PORT, MARLINE_PORT = 5001, 5002
START_S, END_S = 5, 25
LINKS = {
    "10 Mb/s, 40 ms, 0.5 BDP": "rate=10mbps, rtt=40ms, buffer=0.5bdp",
    "10 Mb/s, 40 ms, 4 BDP": "rate=10mbps, rtt=40ms, buffer=4bdp",
}
PRODUCTS = {
    "default": ("", ""),
    "bundle": ("--profile bundle", "--connections 3 --bundle --split 1000000"),
    "history": ("--profile history", ""),
    "multipath": ("--profile multipath", "--path 10.77.0.2 --path 10.77.0.3"),
}


def goodput_mbps(capture: Path, port: int) -> float:
    """Mb/s of UDP payload that `port` of the server sent, from `START_S` to `END_S`."""
    fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "udp.length"]
    command = ["tshark", "-r", str(capture), "-Y", f"udp.srcport == {port}", *fields]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    packets = [(float(time), int(length)) for time, length in (line.split("\t") for line in lines)]
    if not packets:
        return 0.0
    begin = packets[0][0]
    seconds = Counter()
    for time, length in packets:
        seconds[int(time - begin)] += length
    return sum(seconds[second] for second in range(START_S, END_S)) * 8e-6 / (END_S - START_S)


def measure(programs: tuple[str, str], link: str, flows: int, beside: str, directory: Path) -> dict[str, float]:
    """What quinn's `flows` flows together have, and what runs beside them, in Mb/s."""
    marline, quinn = programs
    serve_flags, get_flags = PRODUCTS.get(beside, ("", ""))
    # The client has a second address, so that a connection can have two paths.
    route = "ip route add 10.77.0.3/32 dev $(ip -o link | sed -n 's/.*: \\(link[0-9]*\\).*/\\1/p')"
    servers = [
        # Its server ends with its standard input.
        f"sleep 1000 | {quinn} server --listen {SERVER}:{QUINN_PORT} --cert cert.pem --key key.pem --defaults",
        f"{marline} serve --listen {SERVER}:{MARLINE_PORT} --cert cert.pem --key key.pem {serve_flags} site",
    ]
    bulk = f"{quinn} client --server {SERVER}:{QUINN_PORT} --task bulk --bytes 1000000000 --defaults"
    clients = [f"{bulk} >/dev/null 2>&1 &"] * flows
    if beside == "quinn":
        clients += [f"sleep {START_S}", f"{bulk} >/dev/null 2>&1 &"]
    elif beside:
        url = f"https://{SERVER}:{MARLINE_PORT}/object"
        clients += [f"sleep {START_S}", f"{marline} get --insecure {get_flags} {url} -o /dev/null >get.log 2>&1 &"]
    rest = END_S + 1 - (START_S if beside else 0)
    script = "\n".join(["ip address add 10.77.0.3/32 dev link0", *clients, f"sleep {rest}", "exit 0"])
    capture = directory / "flows.pcapng"
    command = [marline, "lab", "link", "--backend", "kernel", "--link", link, "--pcap", str(capture)]
    command += ["--server", f"{route}; " + " & ".join(servers), "--", "sh", "-c", script]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return {"quinn": goodput_mbps(capture, QUINN_PORT), "beside": goodput_mbps(capture, MARLINE_PORT)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("marline", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("quinn", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    programs = (arguments.marline, arguments.quinn)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out cert.pem -days 30"
        make += f" -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:{SERVER}"
        subprocess.run(make.split(), cwd=directory, check=True, capture_output=True)
        (directory / "site").mkdir()
        with (directory / "site" / "object").open("wb") as file:
            file.truncate(1_000_000_000)
        print("| link | flows of quinn | alone | beside one more | " + " | ".join(PRODUCTS) + " |")
        print("| --- | --- " + "| ---: " * (2 + len(PRODUCTS)) + "|")
        for title, link in LINKS.items():
            for flows in (1, 4):
                quinn = {}
                for beside in ("", "quinn", *PRODUCTS):
                    run = measure(programs, link, flows, beside, directory)
                    rows.append({"link": title, "flows": flows, "beside": beside, **run})
                    # One more flow of quinn has an equal share of what all have on that port.
                    share = flows / (flows + 1) if beside == "quinn" else 1
                    quinn[beside] = share * run["quinn"]
                own = 1 - quinn["quinn"] / quinn[""]
                cells = [f"{quinn['']:.1f} Mb/s", f"{own:.2f}"]
                for product in PRODUCTS:
                    harm = 1 - quinn[product] / quinn[""]
                    cells.append(f"{harm:.2f} ({harm / own:.2f})")
                print(f"| {title} | {flows} | " + " | ".join(cells) + " |", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
