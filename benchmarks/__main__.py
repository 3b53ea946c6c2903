"""All benchmarks, one after the other; at the end, which claims hold."""

import json

from benchmarks import accuracy, embedding_epochs, first_call, memory, operators, peers, plain_loop, sampling, speed
from benchmarks.common import RESULTS, line, verdict


def main() -> None:
    for benchmark in (speed, plain_loop, first_call, sampling, memory, operators, peers, accuracy, embedding_epochs):
        print(f"{benchmark.__name__.split('.')[-1]}: {(benchmark.__doc__ or '').strip()}", flush=True)
        benchmark.main()
    print("\nwith a requirement:")
    for path in sorted(RESULTS.glob("*.json")):
        for claim in json.loads(path.read_text())["claims"]:
            if verdict(claim):
                print(line(claim))


if __name__ == "__main__":
    main()
