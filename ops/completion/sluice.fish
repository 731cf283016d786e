# SPDX-License-Identifier: Apache-2.0
# Made by dev/completions, from sluice's help and dev/completions.d.
# Completion of sluice for fish: of its commands and options, and of what they take.

# The command that is typed so far, such as "tune compare", without options and what they take; "run command" where
# the rest is a command of others.
function __sluice_path
    set -l at
    set -l takes no
    for word in (commandline -opc)[2..-1]
        if test $takes = yes
            set takes no
            continue
        end
        switch $word
            case --
                if contains -- "$at" $__sluice_runs
                    set at "$at command"
                end
                break
            case '-*'
                if contains -- "$at:$word" $__sluice_takes
                    set takes yes
                end
            case '*'
                if contains -- (string trim -- "$at $word") $__sluice_commands
                    set at (string trim -- "$at $word")
                else if contains -- "$at" $__sluice_runs
                    set at "$at command"
                    break
                end
        end
    end
    echo "$at"
end

function __sluice_at
    test (__sluice_path) = "$argv"
end

complete -c sluice -f

set -g __sluice_commands \
    'run' \
    'agent' \
    'cat' \
    'check' \
    'ctl' \
    'ctl status' \
    'ctl reload' \
    'ctl rules' \
    'ctl attach' \
    'ctl detach' \
    'ctl explain' \
    'ctl tag' \
    'ctl settle' \
    'dead-letters' \
    'dead-letters list' \
    'dead-letters show' \
    'dead-letters replay' \
    'doctor' \
    'update' \
    'tune' \
    'tune compare' \
    'tune trend' \
    'tune recommend' \
    'tune export' \
    'sweep' \
    'lake' \
    'lake info' \
    'lake compact' \
    'lake retain' \
    'help' \
    'ctl rules list' \
    'ctl rules add' \
    'ctl rules remove' \
    'ctl attach network' \
    'ctl detach network' \
    'help run' \
    'help agent' \
    'help cat' \
    'help check' \
    'help ctl' \
    'help dead-letters' \
    'help doctor' \
    'help update' \
    'help tune' \
    'help sweep' \
    'help lake'
set -g __sluice_runs 'run' 'check'
set -g __sluice_takes \
    'run:--pipeline' 'run:--run' 'run:--task' 'run:--sample' 'run:--lake' 'run:--json' 'run:--report' 'run:--rules' 'run:--control' 'run:--interval' 'run:--trace-env' \
    'agent:-c' 'agent:--config' 'agent:--pins' \
    'cat:-t' 'cat:--topic' \
    'check:-c' 'check:--config' 'check:--exe' 'check:--cwd' 'check:--cgroup' 'check:--uid' \
    'ctl:--socket' 'ctl:-c' 'ctl:--config' 'ctl:--timeout' \
    'ctl status:--socket' 'ctl status:-c' 'ctl status:--config' 'ctl status:--timeout' \
    'ctl reload:--socket' 'ctl reload:-c' 'ctl reload:--config' 'ctl reload:--timeout' \
    'ctl rules:--socket' 'ctl rules:-c' 'ctl rules:--config' 'ctl rules:--timeout' \
    'ctl attach:--socket' 'ctl attach:-c' 'ctl attach:--config' 'ctl attach:--timeout' \
    'ctl detach:--socket' 'ctl detach:-c' 'ctl detach:--config' 'ctl detach:--timeout' \
    'ctl explain:--socket' 'ctl explain:-c' 'ctl explain:--config' 'ctl explain:--timeout' \
    'ctl tag:--pid' 'ctl tag:--run' 'ctl tag:--pipeline' 'ctl tag:--task' 'ctl tag:--sample' 'ctl tag:--socket' 'ctl tag:-c' 'ctl tag:--config' 'ctl tag:--timeout' \
    'ctl settle:--socket' 'ctl settle:-c' 'ctl settle:--config' 'ctl settle:--timeout' \
    'dead-letters:-t' 'dead-letters:--topic' 'dead-letters:--reason' 'dead-letters:-c' 'dead-letters:--config' 'dead-letters:--folder' 'dead-letters:--socket' \
    'dead-letters list:-t' 'dead-letters list:--topic' 'dead-letters list:--reason' 'dead-letters list:-c' 'dead-letters list:--config' 'dead-letters list:--folder' 'dead-letters list:--socket' \
    'dead-letters show:-t' 'dead-letters show:--topic' 'dead-letters show:--reason' 'dead-letters show:-c' 'dead-letters show:--config' 'dead-letters show:--folder' 'dead-letters show:--socket' \
    'dead-letters replay:-t' 'dead-letters replay:--topic' 'dead-letters replay:--reason' 'dead-letters replay:-c' 'dead-letters replay:--config' 'dead-letters replay:--folder' 'dead-letters replay:--socket' \
    'update:--from' 'update:--key' 'update:--watch' 'update:-c' 'update:--config' \
    'tune:--interval' 'tune:--prices' 'tune:--watts-per-cpu' 'tune:--programs' 'tune:--format' 'tune:-o' 'tune:--output' 'tune:--section' 'tune:--lake' 'tune:--kafka' 'tune:--table' 'tune:--registry' 'tune:--kafka-property' 'tune:--engine' 'tune:--memory-limit' 'tune:--spark-master' 'tune:--spark-conf' \
    'tune compare:--prices' 'tune compare:--format' 'tune compare:-o' 'tune compare:--output' 'tune compare:--section' 'tune compare:--lake' 'tune compare:--kafka' 'tune compare:--table' 'tune compare:--registry' 'tune compare:--kafka-property' 'tune compare:--engine' 'tune compare:--memory-limit' 'tune compare:--spark-master' 'tune compare:--spark-conf' \
    'tune trend:--pipeline' 'tune trend:--runs' 'tune trend:--since' 'tune trend:--last' 'tune trend:--prices' 'tune trend:--format' 'tune trend:-o' 'tune trend:--output' 'tune trend:--section' 'tune trend:--lake' 'tune trend:--kafka' 'tune trend:--table' 'tune trend:--registry' 'tune trend:--kafka-property' 'tune trend:--engine' 'tune trend:--memory-limit' 'tune trend:--spark-master' 'tune trend:--spark-conf' \
    'tune recommend:--pipeline' 'tune recommend:--task' 'tune recommend:--runs' 'tune recommend:--since' 'tune recommend:--emit' 'tune recommend:--prices' 'tune recommend:--format' 'tune recommend:-o' 'tune recommend:--output' 'tune recommend:--section' 'tune recommend:--lake' 'tune recommend:--kafka' 'tune recommend:--table' 'tune recommend:--registry' 'tune recommend:--kafka-property' 'tune recommend:--engine' 'tune recommend:--memory-limit' 'tune recommend:--spark-master' 'tune recommend:--spark-conf' \
    'tune export:--otlp' 'tune export:--header' 'tune export:--openlineage' 'tune export:--openlineage-file' 'tune export:--namespace' 'tune export:--parquet' 'tune export:--lake' 'tune export:--kafka' 'tune export:--table' 'tune export:--registry' 'tune export:--kafka-property' 'tune export:--engine' 'tune export:--memory-limit' 'tune export:--spark-master' 'tune export:--spark-conf' \
    'sweep:--format' 'sweep:-o' 'sweep:--output' 'sweep:--section' 'sweep:--lake' 'sweep:--kafka' 'sweep:--table' 'sweep:--registry' 'sweep:--kafka-property' 'sweep:--engine' 'sweep:--memory-limit' 'sweep:--spark-master' 'sweep:--spark-conf' 'sweep:--since' 'sweep:--until' 'sweep:--by' 'sweep:--prices' 'sweep:--idle-cores' 'sweep:--least' 'sweep:--after-run' 'sweep:--busy-share' 'sweep:--oversized-share' \
    'lake info:--lake' 'lake info:--topic' 'lake info:--memory-limit' 'lake info:--format' 'lake info:-o' 'lake info:--output' \
    'lake compact:--lake' 'lake compact:--topic' 'lake compact:--memory-limit' 'lake compact:--until' 'lake compact:--format' 'lake compact:-o' 'lake compact:--output' \
    'lake retain:--lake' 'lake retain:--topic' 'lake retain:--keep' 'lake retain:--keep-usage' 'lake retain:--format' 'lake retain:-o' 'lake retain:--output' \
    'ctl rules list:--socket' 'ctl rules list:-c' 'ctl rules list:--config' 'ctl rules list:--timeout' \
    'ctl rules add:--socket' 'ctl rules add:-c' 'ctl rules add:--config' 'ctl rules add:--timeout' \
    'ctl rules remove:--socket' 'ctl rules remove:-c' 'ctl rules remove:--config' 'ctl rules remove:--timeout' \
    'ctl attach network:--socket' 'ctl attach network:-c' 'ctl attach network:--config' 'ctl attach network:--timeout' \
    'ctl detach network:--socket' 'ctl detach network:-c' 'ctl detach network:--config' 'ctl detach network:--timeout'

complete -c sluice -n '__sluice_at ' -a run -d 'run a command and record every program that it starts'
complete -c sluice -n '__sluice_at ' -a agent -d 'follow the whole host and deliver to Kafka or files, as a daemon'
complete -c sluice -n '__sluice_at ' -a cat -d 'print records of a lake as JSON lines'
complete -c sluice -n '__sluice_at ' -a check -d 'check the configuration and the rules'
complete -c sluice -n '__sluice_at ' -a ctl -d 'query or change the running agent'
complete -c sluice -n '__sluice_at ' -a dead-letters -d 'list, print and replay records that the output refused'
complete -c sluice -n '__sluice_at ' -a doctor -d 'show what this kernel and host support'
complete -c sluice -n '__sluice_at ' -a update -d 'replace this program by the newest release of a mirror'
complete -c sluice -n '__sluice_at ' -a tune -d 'explain a run in a lake'
complete -c sluice -n '__sluice_at ' -a sweep -d 'find idle capacity in a lake'
complete -c sluice -n '__sluice_at ' -a lake -d 'maintain a lake'
complete -c sluice -n '__sluice_at ' -a help -d 'print this help'
complete -c sluice -n '__sluice_at ' -l version -d 'print the version'
complete -c sluice -n '__sluice_at ' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at run' -l pipeline -x -d 'name of the pipeline in the records'
complete -c sluice -n '__sluice_at run' -l run -x -d 'run id'
complete -c sluice -n '__sluice_at run' -l task -x -d 'make all of COMMAND one task of this name'
complete -c sluice -n '__sluice_at run' -l sample -x -d 'sample of the programs whose step does not name one'
complete -c sluice -n '__sluice_at run' -l lake -x -a '(__fish_complete_directories)' -d 'write records to this folder'
complete -c sluice -n '__sluice_at run' -l json -r -F -d 'also write the summary as one JSON object'
complete -c sluice -n '__sluice_at run' -l report -r -F -d 'at the end, write the run as an HTML page, with sluice-tune'
complete -c sluice -n '__sluice_at run' -l rules -x -a '(__fish_complete_directories)' -d 'rules in addition to the built-in ones'
complete -c sluice -n '__sluice_at run' -l control -r -F -d 'socket of the agent of this host'
complete -c sluice -n '__sluice_at run' -l own-probes -d 'load probes even if the agent of this host would pass events on'
complete -c sluice -n '__sluice_at run' -l no-headers -d 'read no file in which Nextflow or Snakemake names its tasks and samples'
complete -c sluice -n '__sluice_at run' -l interval -x -d 'time between usage and host records'
complete -c sluice -n '__sluice_at run' -l trace-env -x -d 'put this environment variable of each program into its records, such as TRACEPARENT'
complete -c sluice -n '__sluice_at run' -l delay-accounting -d 'count what programs wait for storage, swap and memory'
complete -c sluice -n '__sluice_at run' -l wait -d 'wait for programs that outlive COMMAND'
complete -c sluice -n '__sluice_at run' -l as-root -d 'under sudo'
complete -c sluice -n '__sluice_at run' -l quiet -d 'print neither the live line nor the table'
complete -c sluice -n '__sluice_at run' -s h -l help -d 'print this help'
complete -c sluice -n '__sluice_at run' -x -a '(__fish_complete_subcommand --fcs-skip=2 - --pipeline --run --task --sample --lake --json --report --rules --control --interval --trace-env)'
complete -c sluice -n '__sluice_at run command' -x -a '(__fish_complete_subcommand --fcs-skip=2 - --pipeline --run --task --sample --lake --json --report --rules --control --interval --trace-env)'

complete -c sluice -n '__sluice_at agent' -s c -l config -r -F -d 'configuration'
complete -c sluice -n '__sluice_at agent' -l pins -x -a '(__fish_complete_directories)' -d 'folder of a BPF file system in which the probes are pinned'
complete -c sluice -n '__sluice_at agent' -l uninstall -d 'remove the probes that an agent left in the kernel, and exit'
complete -c sluice -n '__sluice_at agent' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at cat' -s t -l topic -x -a 'program usage task run host finding agent' -d 'only this topic'
complete -c sluice -n '__sluice_at cat' -s f -l follow -d 'continue with new records as they arrive, until interrupted'
complete -c sluice -n '__sluice_at cat' -l raw -d 'print times as integers'
complete -c sluice -n '__sluice_at cat' -s h -l help -d 'print this help'
complete -c sluice -n '__sluice_at cat' -F

complete -c sluice -n '__sluice_at check' -s c -l config -r -F -d 'configuration'
complete -c sluice -n '__sluice_at check' -l dump -d 'print the effective configuration, and where each value was set'
complete -c sluice -n '__sluice_at check' -l explain -d 'print how the rules judge COMMAND, which is not run'
complete -c sluice -n '__sluice_at check' -l exe -r -F -d 'executable of COMMAND'
complete -c sluice -n '__sluice_at check' -l cwd -x -a '(__fish_complete_directories)' -d 'working directory of COMMAND'
complete -c sluice -n '__sluice_at check' -l cgroup -r -F -d 'control group of COMMAND'
complete -c sluice -n '__sluice_at check' -l uid -x -a '(__fish_complete_users)' -d 'user of COMMAND, by number or name'
complete -c sluice -n '__sluice_at check' -s h -l help -d 'print this help'
complete -c sluice -n '__sluice_at check' -x -a '(__fish_complete_subcommand --fcs-skip=2 - -c --config --exe --cwd --cgroup --uid)'
complete -c sluice -n '__sluice_at check command' -x -a '(__fish_complete_subcommand --fcs-skip=2 - -c --config --exe --cwd --cgroup --uid)'

complete -c sluice -n '__sluice_at ctl' -a status -d 'print the state of the agent, problems first'
complete -c sluice -n '__sluice_at ctl' -a reload -d 'read the configuration again'
complete -c sluice -n '__sluice_at ctl' -a rules -d 'list | add NAME RULES | remove NAME'
complete -c sluice -n '__sluice_at ctl' -a attach -d 'switch an optional signal (see sluice doctor) on'
complete -c sluice -n '__sluice_at ctl' -a detach -d 'switch an optional signal off'
complete -c sluice -n '__sluice_at ctl' -a explain -d 'print the run and task of a process, with the evidence, or the rule that leaves it out'
complete -c sluice -n '__sluice_at ctl' -a tag -d '--pid PID --run RUN --pipeline P --task T --sample S'
complete -c sluice -n '__sluice_at ctl' -a settle -d 'wait until everything that happened before is recorded and safe in the spool'
complete -c sluice -n '__sluice_at ctl' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at ctl' -s c -l config -r -F -d 'that configuration'
complete -c sluice -n '__sluice_at ctl' -l json -d 'print the answer as one JSON object'
complete -c sluice -n '__sluice_at ctl' -l timeout -x -d 'time to wait for an answer'
complete -c sluice -n '__sluice_at ctl' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at ctl status' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at ctl status' -s c -l config -r -F -d 'that configuration'
complete -c sluice -n '__sluice_at ctl status' -l json -d 'print the answer as one JSON object'
complete -c sluice -n '__sluice_at ctl status' -l timeout -x -d 'time to wait for an answer'
complete -c sluice -n '__sluice_at ctl status' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at ctl reload' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at ctl reload' -s c -l config -r -F -d 'that configuration'
complete -c sluice -n '__sluice_at ctl reload' -l json -d 'print the answer as one JSON object'
complete -c sluice -n '__sluice_at ctl reload' -l timeout -x -d 'time to wait for an answer'
complete -c sluice -n '__sluice_at ctl reload' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at ctl rules' -a list
complete -c sluice -n '__sluice_at ctl rules' -a add
complete -c sluice -n '__sluice_at ctl rules' -a remove
complete -c sluice -n '__sluice_at ctl rules' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at ctl rules' -s c -l config -r -F -d 'that configuration'
complete -c sluice -n '__sluice_at ctl rules' -l json -d 'print the answer as one JSON object'
complete -c sluice -n '__sluice_at ctl rules' -l timeout -x -d 'time to wait for an answer'
complete -c sluice -n '__sluice_at ctl rules' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at ctl attach' -a network
complete -c sluice -n '__sluice_at ctl attach' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at ctl attach' -s c -l config -r -F -d 'that configuration'
complete -c sluice -n '__sluice_at ctl attach' -l json -d 'print the answer as one JSON object'
complete -c sluice -n '__sluice_at ctl attach' -l timeout -x -d 'time to wait for an answer'
complete -c sluice -n '__sluice_at ctl attach' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at ctl detach' -a network
complete -c sluice -n '__sluice_at ctl detach' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at ctl detach' -s c -l config -r -F -d 'that configuration'
complete -c sluice -n '__sluice_at ctl detach' -l json -d 'print the answer as one JSON object'
complete -c sluice -n '__sluice_at ctl detach' -l timeout -x -d 'time to wait for an answer'
complete -c sluice -n '__sluice_at ctl detach' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at ctl explain' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at ctl explain' -s c -l config -r -F -d 'that configuration'
complete -c sluice -n '__sluice_at ctl explain' -l json -d 'print the answer as one JSON object'
complete -c sluice -n '__sluice_at ctl explain' -l timeout -x -d 'time to wait for an answer'
complete -c sluice -n '__sluice_at ctl explain' -s h -l help -d 'print this help'
complete -c sluice -n '__sluice_at ctl explain' -x -a '(__fish_complete_pids)'

complete -c sluice -n '__sluice_at ctl tag' -l pid -x -a '(__fish_complete_pids)'
complete -c sluice -n '__sluice_at ctl tag' -l run -x
complete -c sluice -n '__sluice_at ctl tag' -l pipeline -x
complete -c sluice -n '__sluice_at ctl tag' -l task -x
complete -c sluice -n '__sluice_at ctl tag' -l sample -x
complete -c sluice -n '__sluice_at ctl tag' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at ctl tag' -s c -l config -r -F -d 'that configuration'
complete -c sluice -n '__sluice_at ctl tag' -l json -d 'print the answer as one JSON object'
complete -c sluice -n '__sluice_at ctl tag' -l timeout -x -d 'time to wait for an answer'
complete -c sluice -n '__sluice_at ctl tag' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at ctl settle' -l delivered -d 'also until it is delivered, to Kafka or the lake'
complete -c sluice -n '__sluice_at ctl settle' -l tasks -d 'also until tasks and runs without a program left have their END'
complete -c sluice -n '__sluice_at ctl settle' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at ctl settle' -s c -l config -r -F -d 'that configuration'
complete -c sluice -n '__sluice_at ctl settle' -l json -d 'print the answer as one JSON object'
complete -c sluice -n '__sluice_at ctl settle' -l timeout -x -d 'time to wait for an answer'
complete -c sluice -n '__sluice_at ctl settle' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at dead-letters' -a list -d 'print how many there are of each topic and reason, and from when'
complete -c sluice -n '__sluice_at dead-letters' -a show -d 'print them as lines of JSON'
complete -c sluice -n '__sluice_at dead-letters' -a replay -d 'hand them to the running agent for delivery once more'
complete -c sluice -n '__sluice_at dead-letters' -s t -l topic -x -a 'program usage task run host finding agent' -d 'only this topic'
complete -c sluice -n '__sluice_at dead-letters' -l reason -x -d 'only this reason, as list prints it'
complete -c sluice -n '__sluice_at dead-letters' -s c -l config -r -F -d 'the agents configuration'
complete -c sluice -n '__sluice_at dead-letters' -l folder -x -a '(__fish_complete_directories)' -d 'another folder, to which files were moved'
complete -c sluice -n '__sluice_at dead-letters' -l raw -d 'print times as integers'
complete -c sluice -n '__sluice_at dead-letters' -l dry-run -d 'print what would be replayed, and change nothing'
complete -c sluice -n '__sluice_at dead-letters' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at dead-letters' -l json -d 'print the result as one JSON object'
complete -c sluice -n '__sluice_at dead-letters' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at dead-letters list' -s t -l topic -x -a 'program usage task run host finding agent' -d 'only this topic'
complete -c sluice -n '__sluice_at dead-letters list' -l reason -x -d 'only this reason, as list prints it'
complete -c sluice -n '__sluice_at dead-letters list' -s c -l config -r -F -d 'the agents configuration'
complete -c sluice -n '__sluice_at dead-letters list' -l folder -x -a '(__fish_complete_directories)' -d 'another folder, to which files were moved'
complete -c sluice -n '__sluice_at dead-letters list' -l raw -d 'print times as integers'
complete -c sluice -n '__sluice_at dead-letters list' -l dry-run -d 'print what would be replayed, and change nothing'
complete -c sluice -n '__sluice_at dead-letters list' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at dead-letters list' -l json -d 'print the result as one JSON object'
complete -c sluice -n '__sluice_at dead-letters list' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at dead-letters show' -s t -l topic -x -a 'program usage task run host finding agent' -d 'only this topic'
complete -c sluice -n '__sluice_at dead-letters show' -l reason -x -d 'only this reason, as list prints it'
complete -c sluice -n '__sluice_at dead-letters show' -s c -l config -r -F -d 'the agents configuration'
complete -c sluice -n '__sluice_at dead-letters show' -l folder -x -a '(__fish_complete_directories)' -d 'another folder, to which files were moved'
complete -c sluice -n '__sluice_at dead-letters show' -l raw -d 'print times as integers'
complete -c sluice -n '__sluice_at dead-letters show' -l dry-run -d 'print what would be replayed, and change nothing'
complete -c sluice -n '__sluice_at dead-letters show' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at dead-letters show' -l json -d 'print the result as one JSON object'
complete -c sluice -n '__sluice_at dead-letters show' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at dead-letters replay' -s t -l topic -x -a 'program usage task run host finding agent' -d 'only this topic'
complete -c sluice -n '__sluice_at dead-letters replay' -l reason -x -d 'only this reason, as list prints it'
complete -c sluice -n '__sluice_at dead-letters replay' -s c -l config -r -F -d 'the agents configuration'
complete -c sluice -n '__sluice_at dead-letters replay' -l folder -x -a '(__fish_complete_directories)' -d 'another folder, to which files were moved'
complete -c sluice -n '__sluice_at dead-letters replay' -l raw -d 'print times as integers'
complete -c sluice -n '__sluice_at dead-letters replay' -l dry-run -d 'print what would be replayed, and change nothing'
complete -c sluice -n '__sluice_at dead-letters replay' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at dead-letters replay' -l json -d 'print the result as one JSON object'
complete -c sluice -n '__sluice_at dead-letters replay' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at doctor' -l self-test -d 'run a known tree of programs instead, as sluice run does, and print in one line whether each of them was recorded exactly'
complete -c sluice -n '__sluice_at doctor' -l json -d 'print one JSON object'
complete -c sluice -n '__sluice_at doctor' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at update' -l check -d 'only print whether there is a newer release'
complete -c sluice -n '__sluice_at update' -l from -x -d 'a URL, or the absolute path of a folder, in place of the configurations'
complete -c sluice -n '__sluice_at update' -l key -r -F -d 'public key of minisign, in place of the configurations'
complete -c sluice -n '__sluice_at update' -l watch -x -d 'how long the new agent is watched, and may take to be well'
complete -c sluice -n '__sluice_at update' -s c -l config -r -F -d 'configuration of the agent'
complete -c sluice -n '__sluice_at update' -l json -d 'print the result as one JSON object'
complete -c sluice -n '__sluice_at update' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at tune' -a compare -d 'two or more runs, task by task'
complete -c sluice -n '__sluice_at tune' -a trend -d 'wall, cost, peak and failures over the runs of a pipeline'
complete -c sluice -n '__sluice_at tune' -a recommend -d 'CPUs, memory and time for each task, and configuration for the engine'
complete -c sluice -n '__sluice_at tune' -a export -d 'a run as OTLP traces, OpenLineage events or Parquet files'
complete -c sluice -n '__sluice_at tune' -s h -l help -d 'show this help message and exit'
complete -c sluice -n '__sluice_at tune' -l list -d 'list the runs of the lake instead'
complete -c sluice -n '__sluice_at tune' -l follow -d 'follow a run until it ends'
complete -c sluice -n '__sluice_at tune' -l interval -x -d 'time between updates of --follow'
complete -c sluice -n '__sluice_at tune' -l prices -r -F -d 'a price table, a CSV file'
complete -c sluice -n '__sluice_at tune' -l watts-per-cpu -x -d 'model the energy that no meter counted, by W watts of a busy CPU, or default (12 W)'
complete -c sluice -n '__sluice_at tune' -l programs -x -d 'list at most N programs'
complete -c sluice -n '__sluice_at tune' -l format -x -a 'table json csv html' -d 'format of the output'
complete -c sluice -n '__sluice_at tune' -s o -l output -r -F -d 'write to this file'
complete -c sluice -n '__sluice_at tune' -l section -x -a 'tasks tools programs failures observations recommendations too_little_evidence' -d 'the table of --format csv'
complete -c sluice -n '__sluice_at tune' -l lake -x -a '(__fish_complete_directories)' -d 'a lake of files'
complete -c sluice -n '__sluice_at tune' -l kafka -x -d 'topics of a Kafka cluster, from their beginning up to now'
complete -c sluice -n '__sluice_at tune' -l table -x -d 'Iceberg tables, which the streaming jobs write'
complete -c sluice -n '__sluice_at tune' -l registry -x -d 'the schema registry of --kafka'
complete -c sluice -n '__sluice_at tune' -l kafka-property -x -d 'a property of librdkafka, such as security.protocol=SSL'
complete -c sluice -n '__sluice_at tune' -l engine -x -a 'duckdb spark' -d 'the engine that runs the queries'
complete -c sluice -n '__sluice_at tune' -l memory-limit -x -d 'memory limit of DuckDB, such as 1GiB'
complete -c sluice -n '__sluice_at tune' -l spark-master -x -d 'the cluster of Spark'
complete -c sluice -n '__sluice_at tune' -l spark-conf -x -d 'a property of Spark, as for spark-submit'

complete -c sluice -n '__sluice_at tune compare' -s h -l help -d 'show this help message and exit'
complete -c sluice -n '__sluice_at tune compare' -l prices -r -F -d 'a price table, a CSV file'
complete -c sluice -n '__sluice_at tune compare' -l format -x -a 'table json csv' -d 'format of the output'
complete -c sluice -n '__sluice_at tune compare' -s o -l output -r -F -d 'write to this file'
complete -c sluice -n '__sluice_at tune compare' -l section -x -a 'runs tasks tests tools versions' -d 'the table of --format csv'
complete -c sluice -n '__sluice_at tune compare' -l lake -x -a '(__fish_complete_directories)' -d 'a lake of files'
complete -c sluice -n '__sluice_at tune compare' -l kafka -x -d 'topics of a Kafka cluster, from their beginning up to now'
complete -c sluice -n '__sluice_at tune compare' -l table -x -d 'Iceberg tables, which the streaming jobs write'
complete -c sluice -n '__sluice_at tune compare' -l registry -x -d 'the schema registry of --kafka'
complete -c sluice -n '__sluice_at tune compare' -l kafka-property -x -d 'a property of librdkafka, such as security.protocol=SSL'
complete -c sluice -n '__sluice_at tune compare' -l engine -x -a 'duckdb spark' -d 'the engine that runs the queries'
complete -c sluice -n '__sluice_at tune compare' -l memory-limit -x -d 'memory limit of DuckDB, such as 1GiB'
complete -c sluice -n '__sluice_at tune compare' -l spark-master -x -d 'the cluster of Spark'
complete -c sluice -n '__sluice_at tune compare' -l spark-conf -x -d 'a property of Spark, as for spark-submit'

complete -c sluice -n '__sluice_at tune trend' -s h -l help -d 'show this help message and exit'
complete -c sluice -n '__sluice_at tune trend' -l pipeline -x -d 'the pipeline'
complete -c sluice -n '__sluice_at tune trend' -l runs -x -d 'only the latest N runs'
complete -c sluice -n '__sluice_at tune trend' -l since -x -d 'only runs that began within this time, such as 30d'
complete -c sluice -n '__sluice_at tune trend' -l last -x -d 'compare the last K runs with those before'
complete -c sluice -n '__sluice_at tune trend' -l prices -r -F -d 'a price table, a CSV file'
complete -c sluice -n '__sluice_at tune trend' -l format -x -a 'table json csv' -d 'format of the output'
complete -c sluice -n '__sluice_at tune trend' -s o -l output -r -F -d 'write to this file'
complete -c sluice -n '__sluice_at tune trend' -l section -x -a 'metrics changes runs' -d 'the table of --format csv'
complete -c sluice -n '__sluice_at tune trend' -l lake -x -a '(__fish_complete_directories)' -d 'a lake of files'
complete -c sluice -n '__sluice_at tune trend' -l kafka -x -d 'topics of a Kafka cluster, from their beginning up to now'
complete -c sluice -n '__sluice_at tune trend' -l table -x -d 'Iceberg tables, which the streaming jobs write'
complete -c sluice -n '__sluice_at tune trend' -l registry -x -d 'the schema registry of --kafka'
complete -c sluice -n '__sluice_at tune trend' -l kafka-property -x -d 'a property of librdkafka, such as security.protocol=SSL'
complete -c sluice -n '__sluice_at tune trend' -l engine -x -a 'duckdb spark' -d 'the engine that runs the queries'
complete -c sluice -n '__sluice_at tune trend' -l memory-limit -x -d 'memory limit of DuckDB, such as 1GiB'
complete -c sluice -n '__sluice_at tune trend' -l spark-master -x -d 'the cluster of Spark'
complete -c sluice -n '__sluice_at tune trend' -l spark-conf -x -d 'a property of Spark, as for spark-submit'

complete -c sluice -n '__sluice_at tune recommend' -s h -l help -d 'show this help message and exit'
complete -c sluice -n '__sluice_at tune recommend' -l pipeline -x -d 'only this pipeline'
complete -c sluice -n '__sluice_at tune recommend' -l task -x -d 'only this task'
complete -c sluice -n '__sluice_at tune recommend' -l runs -x -d 'only the latest N runs'
complete -c sluice -n '__sluice_at tune recommend' -l since -x -d 'only runs that began within this time, such as 30d'
complete -c sluice -n '__sluice_at tune recommend' -l emit -x -a 'kubernetes nextflow slurm snakemake' -d 'print a configuration for this engine, with its evidence'
complete -c sluice -n '__sluice_at tune recommend' -l prices -r -F -d 'a price table, a CSV file'
complete -c sluice -n '__sluice_at tune recommend' -l format -x -a 'table json csv' -d 'format of the output'
complete -c sluice -n '__sluice_at tune recommend' -s o -l output -r -F -d 'write to this file'
complete -c sluice -n '__sluice_at tune recommend' -l section -x -a 'tasks evidence too_little_evidence' -d 'the table of --format csv'
complete -c sluice -n '__sluice_at tune recommend' -l lake -x -a '(__fish_complete_directories)' -d 'a lake of files'
complete -c sluice -n '__sluice_at tune recommend' -l kafka -x -d 'topics of a Kafka cluster, from their beginning up to now'
complete -c sluice -n '__sluice_at tune recommend' -l table -x -d 'Iceberg tables, which the streaming jobs write'
complete -c sluice -n '__sluice_at tune recommend' -l registry -x -d 'the schema registry of --kafka'
complete -c sluice -n '__sluice_at tune recommend' -l kafka-property -x -d 'a property of librdkafka, such as security.protocol=SSL'
complete -c sluice -n '__sluice_at tune recommend' -l engine -x -a 'duckdb spark' -d 'the engine that runs the queries'
complete -c sluice -n '__sluice_at tune recommend' -l memory-limit -x -d 'memory limit of DuckDB, such as 1GiB'
complete -c sluice -n '__sluice_at tune recommend' -l spark-master -x -d 'the cluster of Spark'
complete -c sluice -n '__sluice_at tune recommend' -l spark-conf -x -d 'a property of Spark, as for spark-submit'

complete -c sluice -n '__sluice_at tune export' -s h -l help -d 'show this help message and exit'
complete -c sluice -n '__sluice_at tune export' -l otlp -x -d 'OTLP/HTTP receiver of traces'
complete -c sluice -n '__sluice_at tune export' -l header -x -d 'header for --otlp, such as a token'
complete -c sluice -n '__sluice_at tune export' -l openlineage -x -d 'OpenLineage receiver, http://HOST:PORT or kafka://BROKERS/TOPIC'
complete -c sluice -n '__sluice_at tune export' -l openlineage-file -r -F -d 'the same events, as JSON lines'
complete -c sluice -n '__sluice_at tune export' -l namespace -x -d 'OpenLineage namespace of the jobs'
complete -c sluice -n '__sluice_at tune export' -l parquet -x -a '(__fish_complete_directories)' -d 'folder for tasks.parquet, tools.parquet and programs.parquet'
complete -c sluice -n '__sluice_at tune export' -l lake -x -a '(__fish_complete_directories)' -d 'a lake of files'
complete -c sluice -n '__sluice_at tune export' -l kafka -x -d 'topics of a Kafka cluster, from their beginning up to now'
complete -c sluice -n '__sluice_at tune export' -l table -x -d 'Iceberg tables, which the streaming jobs write'
complete -c sluice -n '__sluice_at tune export' -l registry -x -d 'the schema registry of --kafka'
complete -c sluice -n '__sluice_at tune export' -l kafka-property -x -d 'a property of librdkafka, such as security.protocol=SSL'
complete -c sluice -n '__sluice_at tune export' -l engine -x -a 'duckdb spark' -d 'the engine that runs the queries'
complete -c sluice -n '__sluice_at tune export' -l memory-limit -x -d 'memory limit of DuckDB, such as 1GiB'
complete -c sluice -n '__sluice_at tune export' -l spark-master -x -d 'the cluster of Spark'
complete -c sluice -n '__sluice_at tune export' -l spark-conf -x -d 'a property of Spark, as for spark-submit'

complete -c sluice -n '__sluice_at sweep' -s h -l help -d 'show this help message and exit'
complete -c sluice -n '__sluice_at sweep' -l format -x -a 'table json csv' -d 'format of the output'
complete -c sluice -n '__sluice_at sweep' -s o -l output -r -F -d 'write to this file'
complete -c sluice -n '__sluice_at sweep' -l section -x -d 'the table of --format csv'
complete -c sluice -n '__sluice_at sweep' -l lake -x -a '(__fish_complete_directories)' -d 'a lake of files'
complete -c sluice -n '__sluice_at sweep' -l kafka -x -d 'topics of a Kafka cluster, from their beginning up to now'
complete -c sluice -n '__sluice_at sweep' -l table -x -d 'Iceberg tables, which the streaming jobs write'
complete -c sluice -n '__sluice_at sweep' -l registry -x -d 'the schema registry of --kafka'
complete -c sluice -n '__sluice_at sweep' -l kafka-property -x -d 'a property of librdkafka, such as security.protocol=SSL'
complete -c sluice -n '__sluice_at sweep' -l engine -x -a 'duckdb spark' -d 'the engine that runs the queries'
complete -c sluice -n '__sluice_at sweep' -l memory-limit -x -d 'memory limit of DuckDB, such as 1GiB'
complete -c sluice -n '__sluice_at sweep' -l spark-master -x -d 'the cluster of Spark'
complete -c sluice -n '__sluice_at sweep' -l spark-conf -x -d 'a property of Spark, as for spark-submit'
complete -c sluice -n '__sluice_at sweep' -l since -x -d 'start of the period'
complete -c sluice -n '__sluice_at sweep' -l until -x -d 'end of the period'
complete -c sluice -n '__sluice_at sweep' -l by -x -a 'host run pipeline task tool sample container user day' -d 'host|run|pipeline|task|tool|sample|container|user|day| TAG'
complete -c sluice -n '__sluice_at sweep' -l prices -r -F -d 'price of an hour of each host, a CSV file'
complete -c sluice -n '__sluice_at sweep' -l idle-cores -x -d 'a run or task that uses fewer CPUs is idle'
complete -c sluice -n '__sluice_at sweep' -l least -x -d 'do not report waits shorter than this'
complete -c sluice -n '__sluice_at sweep' -l after-run -x -d 'how long a host may stay up after a run'
complete -c sluice -n '__sluice_at sweep' -l busy-share -x -d 'share of its CPUs from which a host without a run is busy'
complete -c sluice -n '__sluice_at sweep' -l oversized-share -x -d 'a host whose peaks stay below this share is oversized'
complete -c sluice -n '__sluice_at sweep' -l spinning -d 'report programs that use CPU and move nothing'

complete -c sluice -n '__sluice_at lake' -a info -d 'print days, files, records, times, hosts, agents and losses of each topic'
complete -c sluice -n '__sluice_at lake' -a compact -d 'convert the Avro files of closed days to sorted Parquet, which is read faster'
complete -c sluice -n '__sluice_at lake' -a retain -d 'delete days that are too old'
complete -c sluice -n '__sluice_at lake' -s h -l help -d 'show this help message and exit'

complete -c sluice -n '__sluice_at lake info' -s h -l help -d 'show this help message and exit'
complete -c sluice -n '__sluice_at lake info' -l lake -x -a '(__fish_complete_directories)' -d 'the lake'
complete -c sluice -n '__sluice_at lake info' -l topic -x -a 'program usage task run host finding agent' -d 'only this topic'
complete -c sluice -n '__sluice_at lake info' -l memory-limit -x -d 'memory limit of DuckDB, such as 1GiB'
complete -c sluice -n '__sluice_at lake info' -l format -x -a 'table json csv' -d 'format of the output'
complete -c sluice -n '__sluice_at lake info' -s o -l output -r -F -d 'write to this file'

complete -c sluice -n '__sluice_at lake compact' -s h -l help -d 'show this help message and exit'
complete -c sluice -n '__sluice_at lake compact' -l lake -x -a '(__fish_complete_directories)' -d 'the lake'
complete -c sluice -n '__sluice_at lake compact' -l topic -x -a 'program usage task run host finding agent' -d 'only this topic'
complete -c sluice -n '__sluice_at lake compact' -l memory-limit -x -d 'memory limit of DuckDB, such as 1GiB'
complete -c sluice -n '__sluice_at lake compact' -l until -x -d 'the last day, as YYYY-MM-DD'
complete -c sluice -n '__sluice_at lake compact' -l remove-avro -d 'delete the Avro files of compacted days, after each of their records was found in Parquet'
complete -c sluice -n '__sluice_at lake compact' -l dry-run -d 'only print what would be done'
complete -c sluice -n '__sluice_at lake compact' -l format -x -a 'table json csv' -d 'format of the output'
complete -c sluice -n '__sluice_at lake compact' -s o -l output -r -F -d 'write to this file'

complete -c sluice -n '__sluice_at lake retain' -s h -l help -d 'show this help message and exit'
complete -c sluice -n '__sluice_at lake retain' -l lake -x -a '(__fish_complete_directories)' -d 'the lake'
complete -c sluice -n '__sluice_at lake retain' -l topic -x -a 'program usage task run host finding agent' -d 'only this topic'
complete -c sluice -n '__sluice_at lake retain' -l keep -x -d 'how long records are kept, such as 90d or 12w'
complete -c sluice -n '__sluice_at lake retain' -l keep-usage -x -d 'the same for sluice.usage, the largest part of a lake'
complete -c sluice -n '__sluice_at lake retain' -l yes -d 'delete'
complete -c sluice -n '__sluice_at lake retain' -l format -x -a 'table json csv' -d 'format of the output'
complete -c sluice -n '__sluice_at lake retain' -s o -l output -r -F -d 'write to this file'

complete -c sluice -n '__sluice_at help' -a run -d 'run a command and record every program that it starts'
complete -c sluice -n '__sluice_at help' -a agent -d 'follow the whole host and deliver to Kafka or files, as a daemon'
complete -c sluice -n '__sluice_at help' -a cat -d 'print records of a lake as JSON lines'
complete -c sluice -n '__sluice_at help' -a check -d 'check the configuration and the rules'
complete -c sluice -n '__sluice_at help' -a ctl -d 'query or change the running agent'
complete -c sluice -n '__sluice_at help' -a dead-letters -d 'list, print and replay records that the output refused'
complete -c sluice -n '__sluice_at help' -a doctor -d 'show what this kernel and host support'
complete -c sluice -n '__sluice_at help' -a update -d 'replace this program by the newest release of a mirror'
complete -c sluice -n '__sluice_at help' -a tune -d 'explain a run in a lake'
complete -c sluice -n '__sluice_at help' -a sweep -d 'find idle capacity in a lake'
complete -c sluice -n '__sluice_at help' -a lake -d 'maintain a lake'

complete -c sluice -n '__sluice_at ctl rules list' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at ctl rules list' -s c -l config -r -F -d 'that configuration'
complete -c sluice -n '__sluice_at ctl rules list' -l json -d 'print the answer as one JSON object'
complete -c sluice -n '__sluice_at ctl rules list' -l timeout -x -d 'time to wait for an answer'
complete -c sluice -n '__sluice_at ctl rules list' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at ctl rules add' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at ctl rules add' -s c -l config -r -F -d 'that configuration'
complete -c sluice -n '__sluice_at ctl rules add' -l json -d 'print the answer as one JSON object'
complete -c sluice -n '__sluice_at ctl rules add' -l timeout -x -d 'time to wait for an answer'
complete -c sluice -n '__sluice_at ctl rules add' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at ctl rules remove' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at ctl rules remove' -s c -l config -r -F -d 'that configuration'
complete -c sluice -n '__sluice_at ctl rules remove' -l json -d 'print the answer as one JSON object'
complete -c sluice -n '__sluice_at ctl rules remove' -l timeout -x -d 'time to wait for an answer'
complete -c sluice -n '__sluice_at ctl rules remove' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at ctl attach network' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at ctl attach network' -s c -l config -r -F -d 'that configuration'
complete -c sluice -n '__sluice_at ctl attach network' -l json -d 'print the answer as one JSON object'
complete -c sluice -n '__sluice_at ctl attach network' -l timeout -x -d 'time to wait for an answer'
complete -c sluice -n '__sluice_at ctl attach network' -s h -l help -d 'print this help'

complete -c sluice -n '__sluice_at ctl detach network' -l socket -r -F -d 'the agents control socket'
complete -c sluice -n '__sluice_at ctl detach network' -s c -l config -r -F -d 'that configuration'
complete -c sluice -n '__sluice_at ctl detach network' -l json -d 'print the answer as one JSON object'
complete -c sluice -n '__sluice_at ctl detach network' -l timeout -x -d 'time to wait for an answer'
complete -c sluice -n '__sluice_at ctl detach network' -s h -l help -d 'print this help'











