# Completion of dtap for fish: its commands, and their options as --help has them.

function __dtap_commands
	dtap --help 2>/dev/null | string replace -rf '^  ([a-z]+) +(.*)$' '$1\t$2'
end

function __dtap_has_command
	test (count (commandline -opc)) -gt 1
end

function __dtap_options
	set -l words (commandline -opc)
	set -l lines (dtap $words[2] --help 2>/dev/null)
	string replace -rf '^  (-.), --[a-z]+[A-Z ]*  +(.*)$' '$1\t$2' -- $lines
	string replace -rf '^  -., (--[a-z]+)[A-Z ]*  +(.*)$' '$1\t$2' -- $lines
	string replace -rf '^      (--[a-z_]+)[A-Z ]*  +(.*)$' '$1\t$2' -- $lines
end

complete -c dtap -n 'not __dtap_has_command' -f -a '(__dtap_commands)'
complete -c dtap -n '__dtap_has_command; and string match -q -- "-*" (commandline -ct)' -f -a '(__dtap_options)'
complete -c dtap -n '__dtap_has_command; and contains -- (commandline -opc)[-1] -p --pid' -f -a '(__fish_complete_pids)'
complete -c dtap -n '__dtap_has_command; and contains -- (commandline -opc)[-1] -u --user' -f -a '(__fish_complete_users)'
