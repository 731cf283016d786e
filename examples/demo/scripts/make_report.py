# SPDX-License-Identifier: Apache-2.0
"""Summarises the statistics of all samples as one table, in TSV and Markdown."""
import argparse


def summary_numbers(path):
    """The "SN" lines of `samtools stats` and `bcftools stats`, by their label."""
    numbers = {}
    with open(path) as lines:
        for line in lines:
            if line.startswith("SN\t"):
                # samtools: SN, label, value, comment; bcftools: SN, id, label, value
                fields = line.rstrip("\n").split("\t")
                label, value = (fields[2], fields[3]) if fields[1].isdigit() else (fields[1], fields[2])
                numbers[label.rstrip(":")] = float(value)
    return numbers


def row(sample):
    reads = summary_numbers(f"stats/{sample}.stats.txt")
    variants = summary_numbers(f"stats/{sample}.variants.txt")
    with open(f"reads/{sample}.truth.tsv") as lines:
        planted = sum(1 for _ in lines)
    return {
        "sample": sample,
        "reads": f"{reads['raw total sequences']:.0f}",
        "mapped": f"{100 * reads['reads mapped'] / reads['raw total sequences']:.2f} %",
        "error rate": f"{reads['error rate']:.4f}",
        "mean insert": f"{reads['insert size average']:.0f}",
        "planted variants": str(planted),
        "SNPs called": f"{variants['number of SNPs']:.0f}",
        "indels called": f"{variants['number of indels']:.0f}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tsv", required=True)
    parser.add_argument("--markdown", required=True)
    parser.add_argument("samples", nargs="+")
    args = parser.parse_args()

    rows = [row(sample) for sample in args.samples]
    names = list(rows[0])
    with open(args.tsv, "w") as out:
        for values in [names] + [list(r.values()) for r in rows]:
            print("\t".join(values), file=out)
    with open(args.markdown, "w") as out:
        print("# Variants of the demo run\n", file=out)
        for values in [names, ["---"] * len(names)] + [list(r.values()) for r in rows]:
            print("| " + " | ".join(values) + " |", file=out)


if __name__ == "__main__":
    main()
