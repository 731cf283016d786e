# SPDX-License-Identifier: Apache-2.0
# Made by dev/completions, from sluice's help and dev/completions.d.
# Completion of sluice for bash: of its commands and options, and of what they take.
# shellcheck shell=bash

# _sluice_table COMMAND: what may follow it, in the variables of _sluice.
_sluice_table()
{
	words='' options='' rest=''
	case $1 in
	'')
		words='run agent cat check ctl dead-letters doctor update tune sweep lake help'
		options='--version -h --help'
		rest=''
		;;
	'run')
		words=''
		options='--pipeline: --run: --task: --sample: --lake:folder --json:file --report:file --rules:folder --control:file --own-probes --no-headers --interval: --trace-env: --delay-accounting --wait --as-root --quiet -h --help'
		rest='command'
		;;
	'agent')
		words=''
		options='-c:file --config:file --pins:folder --uninstall -h --help'
		rest=''
		;;
	'cat')
		words=''
		options='-t:program,usage,task,run,host,finding,agent --topic:program,usage,task,run,host,finding,agent -f --follow --raw -h --help'
		rest='file'
		;;
	'check')
		words=''
		options='-c:file --config:file --dump --explain --exe:file --cwd:folder --cgroup:file --uid:user -h --help'
		rest='command'
		;;
	'ctl')
		words='status reload rules attach detach explain tag settle'
		options='--socket:file -c:file --config:file --json --timeout: -h --help'
		rest=''
		;;
	'ctl status')
		words=''
		options='--socket:file -c:file --config:file --json --timeout: -h --help'
		rest=''
		;;
	'ctl reload')
		words=''
		options='--socket:file -c:file --config:file --json --timeout: -h --help'
		rest=''
		;;
	'ctl rules')
		words='list add remove'
		options='--socket:file -c:file --config:file --json --timeout: -h --help'
		rest=''
		;;
	'ctl attach')
		words='network'
		options='--socket:file -c:file --config:file --json --timeout: -h --help'
		rest=''
		;;
	'ctl detach')
		words='network'
		options='--socket:file -c:file --config:file --json --timeout: -h --help'
		rest=''
		;;
	'ctl explain')
		words=''
		options='--socket:file -c:file --config:file --json --timeout: -h --help'
		rest='process'
		;;
	'ctl tag')
		words=''
		options='--pid:process --run: --pipeline: --task: --sample: --socket:file -c:file --config:file --json --timeout: -h --help'
		rest=''
		;;
	'ctl settle')
		words=''
		options='--delivered --tasks --socket:file -c:file --config:file --json --timeout: -h --help'
		rest=''
		;;
	'dead-letters')
		words='list show replay'
		options='-t:program,usage,task,run,host,finding,agent --topic:program,usage,task,run,host,finding,agent --reason: -c:file --config:file --folder:folder --raw --dry-run --socket:file --json -h --help'
		rest=''
		;;
	'dead-letters list')
		words=''
		options='-t:program,usage,task,run,host,finding,agent --topic:program,usage,task,run,host,finding,agent --reason: -c:file --config:file --folder:folder --raw --dry-run --socket:file --json -h --help'
		rest=''
		;;
	'dead-letters show')
		words=''
		options='-t:program,usage,task,run,host,finding,agent --topic:program,usage,task,run,host,finding,agent --reason: -c:file --config:file --folder:folder --raw --dry-run --socket:file --json -h --help'
		rest=''
		;;
	'dead-letters replay')
		words=''
		options='-t:program,usage,task,run,host,finding,agent --topic:program,usage,task,run,host,finding,agent --reason: -c:file --config:file --folder:folder --raw --dry-run --socket:file --json -h --help'
		rest=''
		;;
	'doctor')
		words=''
		options='--self-test --json -h --help'
		rest=''
		;;
	'update')
		words=''
		options='--check --from: --key:file --watch: -c:file --config:file --json -h --help'
		rest=''
		;;
	'tune')
		words='compare trend recommend export'
		options='-h --help --list --follow --interval: --prices:file --watts-per-cpu: --programs: --format:table,json,csv,html -o:file --output:file --section:tasks,tools,programs,failures,observations,recommendations,too_little_evidence --lake:folder --kafka: --table: --registry: --kafka-property: --engine:duckdb,spark --memory-limit: --spark-master: --spark-conf:'
		rest=''
		;;
	'tune compare')
		words=''
		options='-h --help --prices:file --format:table,json,csv -o:file --output:file --section:runs,tasks,tests,tools,versions --lake:folder --kafka: --table: --registry: --kafka-property: --engine:duckdb,spark --memory-limit: --spark-master: --spark-conf:'
		rest=''
		;;
	'tune trend')
		words=''
		options='-h --help --pipeline: --runs: --since: --last: --prices:file --format:table,json,csv -o:file --output:file --section:metrics,changes,runs --lake:folder --kafka: --table: --registry: --kafka-property: --engine:duckdb,spark --memory-limit: --spark-master: --spark-conf:'
		rest=''
		;;
	'tune recommend')
		words=''
		options='-h --help --pipeline: --task: --runs: --since: --emit:kubernetes,nextflow,slurm,snakemake --prices:file --format:table,json,csv -o:file --output:file --section:tasks,evidence,too_little_evidence --lake:folder --kafka: --table: --registry: --kafka-property: --engine:duckdb,spark --memory-limit: --spark-master: --spark-conf:'
		rest=''
		;;
	'tune export')
		words=''
		options='-h --help --otlp: --header: --openlineage: --openlineage-file:file --namespace: --parquet:folder --lake:folder --kafka: --table: --registry: --kafka-property: --engine:duckdb,spark --memory-limit: --spark-master: --spark-conf:'
		rest=''
		;;
	'sweep')
		words=''
		options='-h --help --format:table,json,csv -o:file --output:file --section: --lake:folder --kafka: --table: --registry: --kafka-property: --engine:duckdb,spark --memory-limit: --spark-master: --spark-conf: --since: --until: --by:host,run,pipeline,task,tool,sample,container,user,day --prices:file --idle-cores: --least: --after-run: --busy-share: --oversized-share: --spinning'
		rest=''
		;;
	'lake')
		words='info compact retain'
		options='-h --help'
		rest=''
		;;
	'lake info')
		words=''
		options='-h --help --lake:folder --topic:program,usage,task,run,host,finding,agent --memory-limit: --format:table,json,csv -o:file --output:file'
		rest=''
		;;
	'lake compact')
		words=''
		options='-h --help --lake:folder --topic:program,usage,task,run,host,finding,agent --memory-limit: --until: --remove-avro --dry-run --format:table,json,csv -o:file --output:file'
		rest=''
		;;
	'lake retain')
		words=''
		options='-h --help --lake:folder --topic:program,usage,task,run,host,finding,agent --keep: --keep-usage: --yes --format:table,json,csv -o:file --output:file'
		rest=''
		;;
	'help')
		words='run agent cat check ctl dead-letters doctor update tune sweep lake'
		options=''
		rest=''
		;;
	'ctl rules list')
		words=''
		options='--socket:file -c:file --config:file --json --timeout: -h --help'
		rest=''
		;;
	'ctl rules add')
		words=''
		options='--socket:file -c:file --config:file --json --timeout: -h --help'
		rest=''
		;;
	'ctl rules remove')
		words=''
		options='--socket:file -c:file --config:file --json --timeout: -h --help'
		rest=''
		;;
	'ctl attach network')
		words=''
		options='--socket:file -c:file --config:file --json --timeout: -h --help'
		rest=''
		;;
	'ctl detach network')
		words=''
		options='--socket:file -c:file --config:file --json --timeout: -h --help'
		rest=''
		;;
	'help run')
		words=''
		options=''
		rest=''
		;;
	'help agent')
		words=''
		options=''
		rest=''
		;;
	'help cat')
		words=''
		options=''
		rest=''
		;;
	'help check')
		words=''
		options=''
		rest=''
		;;
	'help ctl')
		words=''
		options=''
		rest=''
		;;
	'help dead-letters')
		words=''
		options=''
		rest=''
		;;
	'help doctor')
		words=''
		options=''
		rest=''
		;;
	'help update')
		words=''
		options=''
		rest=''
		;;
	'help tune')
		words=''
		options=''
		rest=''
		;;
	'help sweep')
		words=''
		options=''
		rest=''
		;;
	'help lake')
		words=''
		options=''
		rest=''
		;;
	esac
}

# _sluice_takes OPTION: whether a value follows it; what that is, in kind.
_sluice_takes()
{
	local option
	for option in $options; do
		if [[ $option == "$1":* ]]; then
			kind=${option#*:}
			return 0
		fi
	done
	return 1
}

# _sluice_offer KIND: the words of this kind that begin with what is typed.
_sluice_offer()
{
	case $1 in
	'') return ;;
	file) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$typed") ;;
	folder) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$typed") ;;
	user) mapfile -t COMPREPLY < <(compgen -u -- "$typed") ;;
	process) mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$typed") ;;
	*) mapfile -t COMPREPLY < <(compgen -W "${1//,/ }" -- "$typed") ;;
	esac
}

# _sluice_command N: the command whose name is the Nth word, with its own completion where there is one.
_sluice_command()
{
	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif ((COMP_CWORD == $1)); then
		mapfile -t COMPREPLY < <(compgen -c -- "$typed")
	else
		_sluice_offer file
	fi
}

_sluice()
{
	local typed=${COMP_WORDS[COMP_CWORD]} at='' word kind words options rest i

	COMPREPLY=()
	_sluice_table ''
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ $word == -- ]]; then
			if [[ $rest == command ]]; then
				_sluice_command $((i + 1))
			else
				_sluice_offer "$rest"
			fi
			return
		elif [[ $word == -* ]]; then
			_sluice_takes "$word" || continue
			# Bash makes words of --option=value: the name, = and the value.
			[[ ${COMP_WORDS[i + 1]} != = ]] || ((i++))
			((++i < COMP_CWORD)) && continue
			[[ $typed != = ]] || typed=''
			_sluice_offer "$kind"
			return
		elif [[ " $words " == *" $word "* ]]; then
			at=${at:+$at }$word
			_sluice_table "$at"
		elif [[ $rest == command ]]; then
			_sluice_command "$i"
			return
		fi
	done
	if [[ $typed == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(printf '%s\n' $options | cut -d: -f1)" -- "$typed")
	elif [[ -n $words ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$typed")
	elif [[ $rest == command ]]; then
		_sluice_command "$COMP_CWORD"
	else
		_sluice_offer "$rest"
	fi
}

complete -F _sluice sluice
