# SPDX-License-Identifier: Apache-2.0
"""Prints a random genome as FASTA: the same for the same seed, with repeats as real ones have."""
import argparse
import random


def genome(length, rng):
    """Bases with 41 % GC; now and then a piece from before is repeated, which makes aligners work."""
    parts, size = [], 0
    while size < length:
        if parts and rng.random() < 0.05:
            part = rng.choice(parts)
        else:
            part = "".join(rng.choices("ACGT", weights=(59, 41, 41, 59), k=rng.randint(300, 3000)))
        parts.append(part)
        size += len(part)
    return "".join(parts)[:length]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, required=True, help="bases, over all chromosomes")
    parser.add_argument("--chromosomes", type=int, default=3)
    parser.add_argument("--seed", type=int, required=True)
    args = parser.parse_args()

    rng = random.Random(args.seed)
    for number in range(1, args.chromosomes + 1):
        print(f">chr{number}")
        bases = genome(args.length // args.chromosomes, rng)
        for start in range(0, len(bases), 60):
            print(bases[start : start + 60])


if __name__ == "__main__":
    main()
