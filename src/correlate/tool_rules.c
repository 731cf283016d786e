/*
 * SPDX-License-Identifier: Apache-2.0
 * tool_rules: the tables behind tool_name().
 *
 * They stand where config/rules.d will: one line a case, no code to change.
 */
#include "correlate/tool_rules.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Programs that only serve others: TOOL_SHELL, TOOL_WRAPPER, TOOL_GLUE. */
static const char *const shells[] = {
	"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash",
};

static const char *const wrappers[] = {
	"env", "sudo", "su", "doas", "runuser", "setpriv", "nice", "ionice", "chrt", "nohup",
	"setsid", "stdbuf", "unbuffer", "time", "timeout", "taskset", "numactl", "chroot",
	"unshare", "nsenter", "xargs", "parallel", "flock", "script", "catchsegv", "strace",
	"ltrace", "tini", "dumb-init", "catatonit", "jspawnhelper", "prlimit", "systemd-run",
};

static const char *const glue[] = {
	"[", "basename", "cat", "chgrp", "chmod", "chown", "cp", "cut", "date", "dirname", "du",
	"echo", "expr", "false", "find", "getopt", "grep", "egrep", "fgrep", "head", "hostname",
	"id", "install", "ln", "locale", "ls", "mkdir", "mkfifo", "mktemp", "mv", "nproc", "paste",
	"pgrep", "printf", "ps", "pwd", "readlink", "realpath", "rm", "rmdir", "sed", "seq",
	"sleep", "stat", "sync", "tail", "tee", "test", "touch", "tput", "tr", "true", "tty",
	"uname", "uniq", "wc", "which", "whoami", "yes", "awk", "gawk", "mawk", "nawk",
};

/* TOOL_MULTI_CALL */
static const char *const multi_call[] = { "busybox", "toybox", "coreutils" };

static const struct tool_interpreter interpreters[] = {
	{ "python", "c", "m", "WX", .long_value = "--check-hash-based-pycs" },
	{ "pypy", "c", "m", "WX" },
	{ "perl", "eE", "", "I", "CDFMVimx" },
	{ "ruby", "e", "", "CEIr", "FKTWix" },
	{ "Rscript", "e", "", "" },
	{ "R", "e", "", "gd", .file = "f", .long_file = "--file", .long_value = "--gui --debugger",
	    .options_only = true },
	{ "node", "ep", "", "rC", .long_value = "--require --import --loader "
	    "--experimental-loader --env-file --conditions --title",
	    .long_inline = "--eval --print" },
	{ "nodejs", "ep", "", "rC", .long_value = "--require --import", .long_inline = "--eval --print" },
	{ "lua", "e", "", "l" },
	{ "luajit", "e", "", "lj" },
	{ "julia", "eE", "", "JtpLCH", .attached = "Og",
	    .long_value = "--sysimage --threads --procs --load --cpu-target --home --machine-file",
	    .long_inline = "--eval --print" },
	{ "php", "rBRE", "", "cdz", .file = "fF" },
	{ "tclsh", "", "", "" },
	{ "groovy", "e", "", "cD" },
	{ "guile", "c", "", "Lel", .file = "s" },
	{ "octave", "", "", "p", .long_value = "--path --image-path", .long_inline = "--eval" },
	{ "octave-cli", "", "", "p", .long_value = "--path --image-path", .long_inline = "--eval" },
	/* The dynamic loader run by hand, as relocatable packages do: ld.so --library-path D PROG */
	{ "ld.so", "", "", "", .long_value = "--library-path --preload --argv0 --audit --inhibit-rpath" },
};

static const struct tool_interpreter shell = {
	"sh", "cs", "", "", .next = "oO", .long_value = "--rcfile --init-file",
};

static const struct tool_command commands[] = {
	/* sequences, alignments, variants */
	{ "bamtools" }, { "bcftools" }, { "bedtools" }, { "biscuit" }, { "bwa" }, { "bwa-mem2" },
	{ "bwa-meme" }, { "cellranger" }, { "checkm" }, { "checkm2" }, { "cnvkit.py" }, { "cooler" },
	{ "csvtk" }, { "delly" }, { "diamond" }, { "dorado" }, { "fgbio", "--tmp-dir --log-level" },
	{ "fqtk" }, { "gatk", "--java-options --spark-runner" }, { "gatk3" }, { "goleft" },
	{ "gtdbtk" }, { "igvtools" }, { "jellyfish" }, { "kallisto" }, { "lofreq" }, { "macs2" },
	{ "macs3" }, { "mash" }, { "medaka" }, { "meryl" }, { "MethylDackel" }, { "mmseqs" },
	{ "modkit" }, { "nanopolish" }, { "odgi" }, { "pairtools" }, { "picard" }, { "qiime" },
	{ "regtools" }, { "rtg" }, { "salmon" }, { "sambamba" }, { "samtools" }, { "seqkit" },
	{ "seqtk" }, { "singlem" }, { "snpEff" }, { "SnpSift" }, { "sourmash" }, { "strling" },
	{ "taxonkit" }, { "trimmomatic" }, { "truvari" }, { "umi_tools" }, { "vg" }, { "vt" },
	{ "whatshap" },
	/* engines and schedulers */
	{ "nextflow", "-log -C -c -config -D -syslog -trace" },
	{ "airflow" }, { "cromwell" }, { "dagster" }, { "dvc" }, { "miniwdl" }, { "prefect" },
	/* the rest of a workstation */
	{ "git", "-C -c --git-dir --work-tree --namespace --exec-path --super-prefix" },
	{ "docker", "-c --context -H --host --config -l --log-level" },
	{ "podman", "-c --connection --root --runroot --log-level --url --storage-driver" },
	{ "nerdctl", "-n --namespace -a --address -H --host" },
	{ "singularity", "-c --config" }, { "apptainer", "-c --config" },
	{ "kubectl", "-n --namespace --context --cluster --kubeconfig --user -s --server" },
	{ "helm", "-n --namespace --kube-context --kubeconfig" },
	{ "conda" }, { "mamba" }, { "micromamba", "-n -p -r" }, { "pixi" }, { "uv" }, { "pip" },
	{ "pipx" }, { "poetry", "-C --directory -P --project" }, { "npm" }, { "yarn" }, { "pnpm" },
	{ "cargo", "--config -Z -C --color" }, { "go", "-C" }, { "rustup" }, { "apt" },
	{ "apt-get", "-o -c" }, { "aws", "--profile --region --output --endpoint-url" },
	{ "gcloud", "--project --account --configuration" },
	{ "gsutil", "-o -h -u" }, { "az" }, { "rclone", "--config" }, { "systemctl" },
	{ "openssl" }, { "perf" }, { "bpftool" }, { "dnf" }, { "yum" },
};

/* Jars and classes whose file name is not what people say. The version is already stripped. */
static const struct {
	const char *from;
	const char *to;
} java_names[] = {
	{ "gatk-package", "gatk" },
	{ "GenomeAnalysisTK", "gatk3" },
	{ "org.broadinstitute.hellbender.Main", "gatk" },
	{ "picard.cmdline.PicardCommandLine", "picard" },
	{ "nextflow.cli.Launcher", "nextflow" },
	{ "com.fulcrumgenomics.cmdline.FgBioMain", "fgbio" },
	{ "uk.ac.babraham.FastQC.FastQCApplication", "fastqc" },
	{ "org.usadellab.trimmomatic.Trimmomatic", "trimmomatic" },
	{ "org.usadellab.trimmomatic.TrimmomaticPE", "trimmomatic" },
	{ "org.usadellab.trimmomatic.TrimmomaticSE", "trimmomatic" },
};

static bool
is_in(const char *word, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (word[0] == list[i][0] && strcmp(word, list[i]) == 0)
			return true;
	}
	return false;
}

enum tool_class
tool_class(const char *base)
{
	if (is_in(base, shells, COUNT(shells)))
		return TOOL_SHELL;
	if (is_in(base, wrappers, COUNT(wrappers)))
		return TOOL_WRAPPER;
	if (is_in(base, glue, COUNT(glue)))
		return TOOL_GLUE;
	if (is_in(base, multi_call, COUNT(multi_call)))
		return TOOL_MULTI_CALL;
	return TOOL_OTHER;
}

const struct tool_interpreter *
tool_interpreter(const char *base)
{
	if (is_in(base, shells, COUNT(shells)))
		return &shell;
	for (size_t i = 0; i < COUNT(interpreters); i++) {
		size_t n;

		if (base[0] != interpreters[i].name[0])
			continue;
		n = strlen(interpreters[i].name);
		if (strncmp(base, interpreters[i].name, n) == 0 &&
		    base[n + strspn(base + n, "0123456789.-")] == '\0')
			return &interpreters[i];
	}
	return NULL;
}

const struct tool_command *
tool_command(const char *base)
{
	for (size_t i = 0; i < COUNT(commands); i++) {
		if (base[0] == commands[i].name[0] && strcmp(base, commands[i].name) == 0)
			return &commands[i];
	}
	return NULL;
}

const char *
tool_java_name(const char *name)
{
	for (size_t i = 0; i < COUNT(java_names); i++) {
		if (strcmp(java_names[i].from, name) == 0)
			return java_names[i].to;
	}
	return NULL;
}
