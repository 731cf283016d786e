# SPDX-License-Identifier: Apache-2.0
# MADE
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

# TABLE
