# SPDX-License-Identifier: Apache-2.0
# MADE
# Completion of sluice for bash: of its commands and options, and of what they take.
# shellcheck shell=bash

# _sluice_table COMMAND: what may follow it, in the variables of _sluice.
_sluice_table()
{
	words='' options='' rest=''
	case $1 in
# TABLE
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
