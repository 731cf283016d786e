/* SPDX-License-Identifier: Apache-2.0 */
/* The shipped tools: real command lines of every field get their usual name, and by which rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/tool_rules.h"
#include "identify/tool.h"
#include "shipped_rules.h"

/* Words apart at blanks; the first is the executable, the rest argv from argv[0] on. */
static const struct {
	const char *command;
	const char *tool;
	const char *rule;
} commands[] = {
	/* bioinformatics */
	{ "/usr/bin/bwa bwa mem -t 8 -R @RG ref.fa a_1.fq a_2.fq", "bwa mem", "bioinformatics/bwa" },
	{ "/opt/bwa-mem2.avx512bw bwa-mem2 mem -t 8 ref.fa a.fq", "bwa-mem2 mem", "bioinformatics/bwa-mem2" },
	{ "/usr/bin/samtools samtools sort -@ 4 -o out.bam in.bam", "samtools sort", "bioinformatics/samtools" },
	{ "/usr/bin/bcftools bcftools mpileup -f ref.fa a.bam", "bcftools mpileup", "bioinformatics/bcftools" },
	{ "/usr/bin/bedtools bedtools genomecov -bg -ibam a.bam", "bedtools genomecov", "bioinformatics/bedtools" },
	{ "/usr/lib/jvm/java-17/bin/java java -Xmx6g -jar /usr/share/java/picard.jar MarkDuplicates -I a.bam",
	    "picard MarkDuplicates", "bioinformatics/picard" },
	{ "/usr/bin/java java -Dx=y -Xmx8g -jar /gatk/gatk-package-4.5.0.0-local.jar HaplotypeCaller -R r.fa",
	    "gatk HaplotypeCaller", "bioinformatics/gatk" },
	{ "/usr/bin/python3.10 python /gatk/gatk --java-options -Xmx4g BaseRecalibrator -I a.bam",
	    "gatk BaseRecalibrator", "bioinformatics/gatk" },
	{ "/usr/bin/perl perl /usr/bin/fastqc -t 2 a.fq", "fastqc", "bioinformatics/fastqc" },
	{ "/usr/bin/java java -Xmx500m -cp /usr/share uk.ac.babraham.FastQC.FastQCApplication a.fq", "fastqc",
	    "bioinformatics/fastqc" },
	{ "/usr/bin/python3.11 python3 /usr/bin/multiqc .", "multiqc", "bioinformatics/multiqc" },
	{ "/usr/bin/fastp fastp -i a.fq -o b.fq", "fastp", "bioinformatics/fastp" },
	{ "/opt/conda/bin/STAR STAR --runThreadN 8 --genomeDir idx", "STAR", "bioinformatics/STAR" },
	{ "/usr/bin/salmon salmon --no-version-check quant -i idx", "salmon quant", "bioinformatics/salmon" },
	{ "/usr/bin/kallisto kallisto quant -i idx a.fq", "kallisto quant", "bioinformatics/kallisto" },
	{ "/usr/lib/hisat2-align-s hisat2-align-s --wrapper basic-0 -x idx", "hisat2-align-s",
	    "bioinformatics/hisat2-align-s" },
	{ "/usr/bin/featureCounts featureCounts -a g.gtf a.bam", "featureCounts", "bioinformatics/featureCounts" },
	{ "/usr/bin/java java -jar /opt/trimmomatic-0.39.jar PE -threads 4 a b", "trimmomatic PE",
	    "bioinformatics/trimmomatic" },
	{ "/usr/bin/java java -Xmx8g -jar snpEff.jar -c snpEff.config ann GRCh38 x.vcf", "snpEff ann",
	    "bioinformatics/snpEff" },
	{ "/usr/bin/perl perl /opt/vep/vep --offline -i x.vcf", "vep", "bioinformatics/vep" },
	{ "/usr/bin/python3 python3 /usr/local/bin/macs2 callpeak -t a.bam", "macs2 callpeak",
	    "bioinformatics/macs2" },
	{ "/usr/bin/kraken2 kraken2 --db x a.fq", "kraken2", "bioinformatics/kraken2" },
	{ "/usr/bin/seqkit seqkit -j 4 stats a.fq", "seqkit stats", "bioinformatics/seqkit" },
	{ "/usr/bin/blastn blastn -query q.fa -db nt", "blastn", "bioinformatics/blastn" },
	{ "/usr/bin/diamond diamond blastp -d nr -q q.fa", "diamond blastp", "bioinformatics/diamond" },
	{ "/usr/bin/mmseqs mmseqs easy-search q t r tmp", "mmseqs easy-search", "bioinformatics/mmseqs" },
	{ "/usr/bin/python3 python /opt/bin/qiime feature-table summarize --i-table t", "qiime feature-table summarize",
	    "bioinformatics/qiime" },
	{ "/usr/bin/hmmsearch hmmsearch --tblout o p.hmm s.fa", "hmmsearch", "bioinformatics/hmmsearch" },
	{ "/usr/bin/mafft mafft --auto in.fa", "mafft", "bioinformatics/mafft" },
	{ "/usr/bin/iqtree2 iqtree2 -s a.phy", "iqtree2", "bioinformatics/iqtree2" },
	{ "/usr/bin/tabix tabix -p vcf a.vcf.gz", "tabix", "bioinformatics/tabix" },
	{ "/usr/bin/prefetch prefetch SRR1", "prefetch", "bioinformatics/prefetch" },
	{ "/usr/bin/Rscript Rscript --vanilla deseq2.R counts.tsv", "deseq2.R", "interpreter" },
	{ "/opt/cellranger/bin/cellranger cellranger count --id=x", "cellranger count", "bioinformatics/cellranger" },
	/* imaging */
	{ "/usr/bin/convert convert a.png -resize 50% b.jpg", "convert", "imaging/imagemagick" },
	{ "/opt/bin/convert convert data 7", "convert", "exe" },
	{ "/usr/bin/magick magick identify a.tif", "magick identify", "imaging/magick" },
	{ "/opt/fsl/bin/flirt flirt -in a.nii.gz -ref b.nii.gz", "flirt", "imaging/flirt" },
	{ "/opt/ants/bin/antsRegistration antsRegistration -d 3", "antsRegistration", "imaging/antsRegistration" },
	{ "/usr/bin/dcm2niix dcm2niix -o out in", "dcm2niix", "imaging/dcm2niix" },
	{ "/usr/bin/python3.11 python3.11 /opt/bin/fmriprep /bids /out participant", "fmriprep", "imaging/fmriprep" },
	{ "/usr/bin/python3 python -m cellpose --dir imgs", "cellpose", "imaging/cellpose" },
	{ "/usr/bin/ffmpeg ffmpeg -i a.mp4 b.webm", "ffmpeg", "imaging/ffmpeg" },
	{ "/usr/bin/java java -Xmx512m -cp /x/bioformats_package.jar loci.formats.tools.ImageConverter a.czi b.tif",
	    "bfconvert", "imaging/bfconvert" },
	{ "/usr/bin/gdalwarp gdalwarp -t_srs EPSG:4326 a.tif b.tif", "gdalwarp", "imaging/gdalwarp" },
	/* machine learning and data science */
	{ "/usr/bin/python3.11 python3 train.py --epochs 3", "train.py", "interpreter" },
	{ "/usr/bin/python3 python3 /opt/bin/torchrun --nproc_per_node 2 train.py", "torchrun", "cluster/torchrun" },
	{ "/usr/bin/python3 python -m torch.distributed.run --nproc_per_node 2 t.py", "torchrun",
	    "machine-learning/torchrun" },
	{ "/usr/bin/python3 python /opt/bin/accelerate launch train.py", "accelerate launch",
	    "machine-learning/accelerate" },
	{ "/usr/bin/python3 python -m ipykernel_launcher -f k.json", "ipykernel_launcher",
	    "machine-learning/ipykernel_launcher" },
	{ "/usr/bin/python3 python3 /usr/bin/jupyter nbconvert --execute n.ipynb", "jupyter nbconvert",
	    "machine-learning/jupyter" },
	{ "/usr/bin/java java -cp /opt/spark/jars/x org.apache.spark.deploy.SparkSubmit --class A a.jar",
	    "spark-submit", "machine-learning/spark-submit" },
	{ "/usr/bin/python3 python /opt/bin/mlflow server --port 5000", "mlflow server", "machine-learning/mlflow" },
	{ "/opt/vllm/bin/python3.12 python /opt/bin/vllm serve model", "vllm serve", "machine-learning/vllm" },
	{ "/usr/bin/gmx gmx mdrun -deffnm md", "gmx mdrun", "simulation/gmx" },
	{ "/usr/bin/python3 python /opt/bin/dbt run --select m", "dbt run", "machine-learning/dbt" },
	/* shells, runtimes and what serves others */
	{ "/usr/bin/bash bash -ue .command.sh", ".command.sh", "interpreter" },
	{ "/usr/bin/bash /bin/bash -euo pipefail -c bwa", "bash", "shell" },
	{ "/usr/bin/env env python3 x.py", "env", "wrapper" },
	{ "/usr/bin/sudo sudo -u a samtools view", "sudo", "wrapper" },
	{ "/usr/bin/mkdir mkdir -p out", "mkdir", "glue" },
	{ "/bin/busybox busybox wget x", "wget", "system/wget" },
	{ "/usr/bin/sort sort -k1,1 a.bed", "sort", "system/sort" },
	{ "/usr/bin/julia julia --project=. -t 4 sim.jl", "sim.jl", "interpreter" },
	{ "/usr/bin/qemu-aarch64-static qemu-aarch64-static -0 bwa /usr/bin/bwa mem r.fa", "bwa mem",
	    "bioinformatics/bwa" },
	{ "/lib64/ld-linux-x86-64.so.2 ld.so --library-path /x /opt/samtools view", "samtools view",
	    "bioinformatics/samtools" },
	{ "/usr/bin/aws aws --profile p s3 cp s3://a b", "aws s3 cp", "system/aws" },
	{ "/usr/bin/git git -C /x clone https://y", "git clone", "system/git" },
	{ "/usr/bin/pip3.11 pip3 install x", "pip install", "system/pip" },
	{ "/usr/bin/pigz pigz -p 4 a.fq", "pigz", "system/pigz" },
	{ "/usr/bin/gcc-12 gcc a.c", "gcc-12", "exe" },
	/* engines, containers and batch systems */
	{ "/usr/bin/bash bash /opt/bin/nextflow -log l.log run main.nf", "nextflow run", "cluster/nextflow" },
	{ "/usr/bin/java java -cp x nextflow.cli.Launcher run main.nf", "nextflow run",
	    "cluster/nextflow" },
	{ "/usr/bin/python3 python3 /venv/bin/snakemake -c4", "snakemake", "cluster/snakemake" },
	{ "/usr/bin/java java -jar /opt/cromwell-87.jar run w.wdl", "cromwell run", "cluster/cromwell" },
	{ "/usr/bin/python3 python3 /venv/bin/cwltool --outdir o w.cwl", "cwltool", "cluster/cwltool" },
	{ "/usr/bin/docker docker run --rm img", "docker run", "cluster/docker" },
	{ "/usr/bin/docker docker compose -f x up", "docker compose", "cluster/docker-compose" },
	{ "/usr/bin/docker docker compose up -d", "docker compose up", "cluster/docker-compose" },
	{ "/usr/bin/apptainer apptainer exec img.sif bwa mem", "apptainer exec", "cluster/apptainer" },
	{ "/usr/bin/kubectl kubectl -n x get pods", "kubectl get", "cluster/kubectl" },
	{ "/usr/bin/sbatch sbatch -n 4 job.sh", "sbatch", "cluster/sbatch" },
	{ "/usr/bin/mpirun mpirun -np 4 gmx_mpi mdrun", "mpirun", "cluster/mpirun" },
};

static void
real_commands_get_the_names_that_people_use(void **state)
{
	int failed = 0;

	(void)state;
	assert_true(sizeof(commands) / sizeof(commands[0]) >= 60);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		char text[1024], tool[TOOL_NAME_SIZE];
		const char *argv[64], *rule;
		struct candidate s = { .argv = argv, .comm = "x" };
		char *save;

		snprintf(text, sizeof(text), "%s", commands[i].command);
		s.exe = strtok_r(text, " ", &save);
		for (char *word; (word = strtok_r(NULL, " ", &save)) != NULL;)
			argv[s.argc++] = word;
		tool_name(shipped, &s, tool, sizeof(tool), &rule);
		if (strcmp(tool, commands[i].tool) != 0 || strcmp(rule, commands[i].rule) != 0) {
			print_error("%s\n  got \"%s\" by %s, not \"%s\" by %s\n", commands[i].command, tool, rule,
			    commands[i].tool, commands[i].rule);
			failed++;
		}
	}
	assert_int_equal(failed, 0);
}

static bool
is_of(const struct tool_key *k, const char *file)
{
	return strcmp(k->rule->location.file, file) == 0;
}

static void
there_are_as_many_tools_as_promised(void **state)
{
	static const struct {
		const char *file;
		size_t least;
	} files[] = {
		{ "bioinformatics.yaml", 800 }, { "imaging.yaml", 400 }, { "machine-learning.yaml", 250 },
		{ "simulation.yaml", 500 },
		{ "runtimes.yaml", 50 }, { "system.yaml", 300 }, { "cluster.yaml", 150 },
	};
	size_t n[sizeof(files) / sizeof(files[0])] = { 0 }, with_subcommands = 0;

	(void)state;
	for (size_t b = 0; b < shipped->tools->n_buckets; b++) {
		for (const struct tool_key *k = shipped->tools->buckets[b]; k != NULL; k = k->next) {
			with_subcommands += k->kind == TOOL_KEY_EXE && k->rule->has_subcommands;
			for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++)
				n[f] += k->kind == TOOL_KEY_EXE && is_of(k, files[f].file);
		}
	}
	for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
		if (n[f] < files[f].least)
			fail_msg("%s has %zu tools, not %zu", files[f].file, n[f], files[f].least);
	}
	assert_true(with_subcommands >= 250);
}

/* The second rule for a name would never be reached. */
static void
no_tool_is_shipped_twice(void **state)
{
	int twice = 0;

	(void)state;
	for (size_t b = 0; b < shipped->tools->n_buckets; b++) {
		for (const struct tool_key *k = shipped->tools->buckets[b]; k != NULL; k = k->next) {
			const struct tool_key *other = tool_key_next(k);

			if (k->rule->when != NULL || other == NULL)
				continue;
			print_error("%s:%u: %s is also in %s:%u\n", other->rule->location.file, other->rule->location.line,
			    k->name, k->rule->location.file, k->rule->location.line);
			twice++;
		}
	}
	assert_int_equal(twice, 0);
}

/* Rules without a name cost every program: none is shipped. */
static void
every_shipped_rule_is_found_by_a_name(void **state)
{
	(void)state;
	assert_null(shipped->tools->general);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_commands_get_the_names_that_people_use),
		cmocka_unit_test(there_are_as_many_tools_as_promised),
		cmocka_unit_test(no_tool_is_shipped_twice),
		cmocka_unit_test(every_shipped_rule_is_found_by_a_name),
	};

	return cmocka_run_group_tests(tests, shipped_load, shipped_unload);
}
