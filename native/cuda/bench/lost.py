"""Lists the kernels of a verbose log of BenchmarkLayers that take longest beyond a minimum: that of their bytes at 4 TB/s or
2.5 microseconds a launch, whichever is more. Products have more to do than that: judge those by their operations.

    python3 lost.py LOG [ROWS]
"""

import re
import sys

BYTES_PER_US = 4e6
LAUNCH_US = 2.5
LEAST_US = 7  # a launch that takes less is not listed
MOST = 2.2  # nor one below this multiple of its minimum

KERNEL = re.compile(r"\s*[\d.]+%\s+([\d.]+)\s+(\d+)\s+(\d+)\s+(?:[\d.]+\s+)?([a-z_]\S*)$")


def kernels(path):
    """Yields layer, kernel, microseconds, launches and GB/s."""
    name = None
    with open(path, errors="replace") as log:
        for line in log:
            if heading := re.match(r"BenchmarkLayers/(.*), by part", line):
                name = heading[1]
            elif name and (row := KERNEL.match(line)):
                yield name, row[4], float(row[1]), int(row[2]), float(row[3])


def main():
    rows = []
    for layer, kernel, us, launches, rate in kernels(sys.argv[1]):
        least = max(us * rate * 1e3 / BYTES_PER_US, LAUNCH_US * launches)
        if us >= LEAST_US * launches and us > MOST * least:
            rows.append((us - least, us / least, us, launches, rate, layer, kernel))
    rows.sort(reverse=True)
    print(f"{'lost µs':>8} {'times':>6} {'µs':>8} {'launches':>8} {'GB/s':>6}  layer, kernel")
    for lost, times, us, launches, rate, layer, kernel in rows[: int(sys.argv[2]) if len(sys.argv) > 2 else 60]:
        print(f"{lost:8.1f} {times:6.1f} {us:8.1f} {launches:8} {rate:6.0f}  {layer}, {kernel}")


if __name__ == "__main__":
    main()
