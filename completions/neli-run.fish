# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_neli_run_global_optspecs
    string join \n g/group= b/brokers= properties= lease= stop-timeout= restart= schedule= window= once= listen= name= roles= spread= max-roles= elect= patience= priority= preempt= wait= embedded t/topic= no-create-topic X/property= heartbeat-interval= fence-warning= settle= overlap= stop-signal= restart-delay= restart-limit= timezone= catch-up= retries= done-status= once-retention= on-loss= health-cmd= health-interval= health-timeout= health-failures= health-start= on-lead= on-exit= on-standby= on-fence= log-format= log-file= v/verbose q/quiet h/help V/version
end

function __fish_neli_run_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_neli_run_global_optspecs) -- $cmd 2>/dev/null
    or return 0
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_neli_run_using_subcommand
    set -l cmd (__fish_neli_run_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c neli-run -n "__fish_neli_run_needs_command" -s g -l group -d 'Name of the election and of its consumer group (required)' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l properties -d 'Read properties, such as passwords, from a file' -r -F
complete -c neli-run -n "__fish_neli_run_needs_command" -l lease -d 'Time that a leader may act after it sent a heartbeat [default: 20s]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l stop-timeout -d 'Time from the stop signal to SIGKILL [default: 8s]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l restart -d 'Run the job again when it ends, and keep the lead [default: no]' -r -f -a "no\t''
on-failure\t''
always\t''"
complete -c neli-run -n "__fish_neli_run_needs_command" -l schedule -d 'Run the job at these times, and keep the lead in between' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l window -d 'Have the job succeed once per window, on all machines' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l once -d 'Have the job succeed once for this key, on all machines' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l listen -d 'Serve metrics, probes and a status page over HTTP' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l name -d 'Name of this candidate, in the log and for the others [default: <host>:<pid>]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l roles -d 'Stand in N elections, or in one for each name' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l spread -d 'Move roles until each candidate leads a fair share [default: yes]' -r -f -a "yes\t''
no\t''"
complete -c neli-run -n "__fish_neli_run_needs_command" -l max-roles -d 'Lead at most N roles in this process [default: no limit]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l elect -d 'Which candidate claims first when nobody leads [default: group]' -r -f -a "group\t''
log\t''"
complete -c neli-run -n "__fish_neli_run_needs_command" -l patience -d 'Time for which the group\'s choice alone may claim [default: 500ms]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l priority -d 'Claim before candidates of a lower priority [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l preempt -d 'Ask a leader of a lower priority to stand down' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l wait -d 'Exit with 75 if not leading after this time [default: no limit]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -s t -l topic -d 'Topic of the journal, made if missing [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -s X -l property -d 'Set a property of librdkafka; repeatable' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l heartbeat-interval -d 'Time between two heartbeats [default: --lease / 5, at most 1s]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l fence-warning -d 'Time from the stop signal to the kill by the guard [default: --lease / 4, at most 2500ms]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l settle -d 'Time from winning the lead to the start of the job [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l overlap -d 'Time for which the old job runs on beside the new one' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l stop-signal -d 'Signal that asks the job to stop, by name or number [default: TERM]' -r -f -a "TERM\t''
INT\t''
QUIT\t''
HUP\t''
USR1\t''
USR2\t''
WINCH\t''
ALRM\t''
ABRT\t''
none\t''"
complete -c neli-run -n "__fish_neli_run_needs_command" -l restart-delay -d 'Time from the end of a run to the next run [default: 1s]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l restart-limit -d 'Number of restarts after failures within a time [default: 10/5m]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l timezone -d 'Time zone of --schedule, and of the midnight of --window [default: UTC]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l catch-up -d 'Which missed window a new leader runs [default: last]' -r -f -a "last\t''
none\t''"
complete -c neli-run -n "__fish_neli_run_needs_command" -l retries -d 'Number of runs after a failed run of the key [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l done-status -d 'Exit status if the key is already done [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l once-retention -d 'Time for which the record of a key is kept [default: 90d, or twice the window]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l on-loss -d 'Stand by again, or exit, when the lead is lost [default: standby]' -r -f -a "standby\t''
exit\t''"
complete -c neli-run -n "__fish_neli_run_needs_command" -l health-cmd -d 'Shell command whose status says if the job is healthy' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l health-interval -d 'Time between two health commands [default: 10s]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l health-timeout -d 'Time after which a health command has failed [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l health-failures -d 'Number of failures in a row that make a job unhealthy [default: 3]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l health-start -d 'Time that a job has to become healthy [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l on-lead -d 'Shell command to run when this candidate wins the lead' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l on-exit -d 'Shell command to run after each run of the job' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l on-standby -d 'Shell command to run when this candidate stands by' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l on-fence -d 'Shell command to run after a fence has killed the job' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l log-format -d 'Log a sentence a line, or a JSON object a line [default: text]' -r -f -a "text\t''
json\t''"
complete -c neli-run -n "__fish_neli_run_needs_command" -l log-file -d 'Append the log to this file, and keep stderr for the job [default: stderr]' -r -F
complete -c neli-run -n "__fish_neli_run_needs_command" -l embedded -d 'Try neli-run on this machine, without Kafka'
complete -c neli-run -n "__fish_neli_run_needs_command" -l no-create-topic -d 'Exit with 125 if the topic is missing'
complete -c neli-run -n "__fish_neli_run_needs_command" -s v -l verbose -d 'Log the messages of librdkafka, too'
complete -c neli-run -n "__fish_neli_run_needs_command" -s q -l quiet -d 'Log only warnings and errors'
complete -c neli-run -n "__fish_neli_run_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_needs_command" -s V -l version -d 'Print version'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "status" -d 'Show who leads an election, or why nobody does'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "list" -d 'List the elections of a topic, or of all topics named *.neli'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "watch" -d 'Show an election live, or print a line for each change'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "history" -d 'List the terms that the topic keeps, and why each ended'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "observe" -d 'Serve all elections of a cluster on one page, with metrics'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "resign" -d 'Ask the leader to stand down, and wait for the next leader'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "end" -d 'End an election: every candidate stops its job and exits'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "forget" -d 'Make a key of --once, or the newest window, run again'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "assert" -d 'Exit with 0 if the job may still act: neli-run assert && pay'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "doctor" -d 'Report problems of this machine and of Kafka, and their fixes'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "broker" -d 'Run the broker of --embedded in the foreground'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "completions" -d 'Print the completions of a shell'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "man" -d 'Print a page of the manual: neli-run man | man -l -'
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -s g -l group -d 'Name of the election and of its consumer group (required)' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -s t -l topic -d 'Topic of the journal [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -s X -l property -d 'Set a property of librdkafka; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -l properties -d 'Read properties, such as passwords, from a file' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -l role -d 'Role, by its name, else its number [default: all]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -l once -d 'Only show whether this key is done' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -l timeout -d 'Time to wait for Kafka\'s answers [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -l embedded -d 'Look at a trial on this machine, without Kafka'
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -l json -d 'Print one JSON object for each election'
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -s X -l property -d 'Set a property of librdkafka; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -l properties -d 'Read properties, such as passwords, from a file' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -s g -l group -d 'Only this group [default: all groups]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -s t -l topic -d 'Only this topic [default: all named *.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -l timeout -d 'Time to wait for Kafka\'s answers [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -l embedded -d 'Look at a trial on this machine, without Kafka'
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -l watch -d 'Go on: a table, or a line for each change'
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -l all -d 'Also list elections that are dead for over a week'
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -l json -d 'Print one JSON object for each election'
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -s g -l group -d 'Name of the election and of its consumer group (required)' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -s t -l topic -d 'Topic of the journal [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -s X -l property -d 'Set a property of librdkafka; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l properties -d 'Read properties, such as passwords, from a file' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l role -d 'Role, by its name, else its number [default: all]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l from -d 'start, end, an offset or an age (1h) [default: end]' -r -f -a "start\t''
end\t''"
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l timeout -d 'Limit for Kafka\'s first answers [default: 30s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l embedded -d 'Look at a trial on this machine, without Kafka'
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l json -d 'Print each record, and whether it counts, as JSON'
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l all -d 'Also print the hellos of the candidates'
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l until-end -d 'Exit where the topic ended when watch started'
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -s g -l group -d 'Name of the election and of its consumer group (required)' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -s t -l topic -d 'Topic of the journal [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -s X -l property -d 'Set a property of librdkafka; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l properties -d 'Read properties, such as passwords, from a file' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l role -d 'Role, by its name, else its number [default: all]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l since -d 'Only terms led since then or whose gap lasts: 7d, 2h' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l svg -d 'Draw the terms on a time axis into this file' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l timeout -d 'Time to wait for Kafka\'s answers [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l embedded -d 'Look at a trial on this machine, without Kafka'
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l check -d 'Report violations, gaps and missing records'
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l json -d 'Print one JSON object for each term and finding'
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand observe" -l listen -d 'Serve metrics, probes and a status page over HTTP' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand observe" -l topics -d 'Only these topics; * is any text [default: *.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand observe" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand observe" -s X -l property -d 'Set a property of librdkafka; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand observe" -l properties -d 'Read properties, such as passwords, from a file' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand observe" -s g -l group -d 'Only this group [default: all groups]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand observe" -l embedded -d 'Look at a trial on this machine, without Kafka'
complete -c neli-run -n "__fish_neli_run_using_subcommand observe" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -s g -l group -d 'Name of the election and of its consumer group (required)' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -s t -l topic -d 'Topic of the journal [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -s X -l property -d 'Set a property of librdkafka; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l properties -d 'Read properties, such as passwords, from a file' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l role -d 'Role (its name, else number); needed with several' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l to -d 'The standby that is to lead next' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l reason -d 'Reason, for the candidates\' logs' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l timeout -d 'Limit for each wait [default: 30s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l embedded -d 'Look at a trial on this machine, without Kafka'
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l all-roles -d 'Ask the leaders of all roles, one after the other'
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l force -d 'Ask even if no candidate stands by'
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l json -d 'Print one JSON object for each election'
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -s g -l group -d 'Name of the election and of its consumer group (required)' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -s t -l topic -d 'Topic of the journal [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -s X -l property -d 'Set a property of librdkafka; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l properties -d 'Read properties, such as passwords, from a file' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l role -d 'Role (its name, else number); needed with several' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l reason -d 'Reason, for the candidates\' logs' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l timeout -d 'Time to wait for Kafka\'s answers [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l embedded -d 'Look at a trial on this machine, without Kafka'
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l all-roles -d 'End the elections of all roles'
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l yes -d 'Do not ask for confirmation on a terminal'
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l force -d 'Write the request even if no candidate is known'
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l json -d 'Print one JSON object for each election'
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -s g -l group -d 'Name of the election and of its consumer group (required)' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -s t -l topic -d 'Topic of the journal [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -s X -l property -d 'Set a property of librdkafka; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l properties -d 'Read properties, such as passwords, from a file' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l role -d 'Role (its name, else number); needed with several' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l once -d 'The key to forget' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l timeout -d 'Time to wait for Kafka\'s answers [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l embedded -d 'Look at a trial on this machine, without Kafka'
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l newest-window -d 'Forget the newest recorded window'
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l force -d 'Even if it runs, is not recorded or can\'t be read'
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l yes -d 'Do not ask for confirmation on a terminal'
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l json -d 'Print the outcome as one JSON object'
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -s g -l group -d 'Name of the election and of its consumer group (required)' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -s t -l topic -d 'Topic of the journal [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -s X -l property -d 'Set a property of librdkafka; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -l properties -d 'Read properties, such as passwords, from a file' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -l role -d 'Role (its name, else number); needed with several' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -l epoch -d 'The term, outside a job [default: NELI_EPOCH]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -l min-left -d 'Time that must be left of the lease [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -l timeout -d 'Time to wait for Kafka\'s answers [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -l embedded -d 'Look at a trial on this machine, without Kafka'
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -l json -d 'Print one JSON object'
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l properties -d 'Read properties, such as passwords, from a file' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l lease -d 'Time that a leader may act after it sent a heartbeat [default: 20s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l stop-timeout -d 'Time from the stop signal to SIGKILL [default: 8s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l restart -d 'Run the job again when it ends, and keep the lead [default: no]' -r -f -a "no\t''
on-failure\t''
always\t''"
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l schedule -d 'Run the job at these times, and keep the lead in between' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l window -d 'Have the job succeed once per window, on all machines' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l once -d 'Have the job succeed once for this key, on all machines' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l listen -d 'Serve metrics, probes and a status page over HTTP' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l name -d 'Name of this candidate, in the log and for the others [default: <host>:<pid>]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l roles -d 'Stand in N elections, or in one for each name' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l spread -d 'Move roles until each candidate leads a fair share [default: yes]' -r -f -a "yes\t''
no\t''"
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l max-roles -d 'Lead at most N roles in this process [default: no limit]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l elect -d 'Which candidate claims first when nobody leads [default: group]' -r -f -a "group\t''
log\t''"
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l patience -d 'Time for which the group\'s choice alone may claim [default: 500ms]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l priority -d 'Claim before candidates of a lower priority [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l preempt -d 'Ask a leader of a lower priority to stand down' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l wait -d 'Exit with 75 if not leading after this time [default: no limit]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -s t -l topic -d 'Topic of the journal, made if missing [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -s X -l property -d 'Set a property of librdkafka; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l heartbeat-interval -d 'Time between two heartbeats [default: --lease / 5, at most 1s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l fence-warning -d 'Time from the stop signal to the kill by the guard [default: --lease / 4, at most 2500ms]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l settle -d 'Time from winning the lead to the start of the job [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l overlap -d 'Time for which the old job runs on beside the new one' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l stop-signal -d 'Signal that asks the job to stop, by name or number [default: TERM]' -r -f -a "TERM\t''
INT\t''
QUIT\t''
HUP\t''
USR1\t''
USR2\t''
WINCH\t''
ALRM\t''
ABRT\t''
none\t''"
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l restart-delay -d 'Time from the end of a run to the next run [default: 1s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l restart-limit -d 'Number of restarts after failures within a time [default: 10/5m]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l timezone -d 'Time zone of --schedule, and of the midnight of --window [default: UTC]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l catch-up -d 'Which missed window a new leader runs [default: last]' -r -f -a "last\t''
none\t''"
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l retries -d 'Number of runs after a failed run of the key [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l done-status -d 'Exit status if the key is already done [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l once-retention -d 'Time for which the record of a key is kept [default: 90d, or twice the window]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l on-loss -d 'Stand by again, or exit, when the lead is lost [default: standby]' -r -f -a "standby\t''
exit\t''"
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l health-cmd -d 'Shell command whose status says if the job is healthy' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l health-interval -d 'Time between two health commands [default: 10s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l health-timeout -d 'Time after which a health command has failed [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l health-failures -d 'Number of failures in a row that make a job unhealthy [default: 3]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l health-start -d 'Time that a job has to become healthy [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l on-lead -d 'Shell command to run when this candidate wins the lead' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l on-exit -d 'Shell command to run after each run of the job' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l on-standby -d 'Shell command to run when this candidate stands by' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l on-fence -d 'Shell command to run after a fence has killed the job' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l log-format -d 'Log a sentence a line, or a JSON object a line [default: text]' -r -f -a "text\t''
json\t''"
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l log-file -d 'Append the log to this file, and keep stderr for the job [default: stderr]' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -s g -l group -d 'The election [default: check machine and Kafka]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l timeout -d 'Time to wait for Kafka\'s answers [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l embedded -d 'Try neli-run on this machine, without Kafka'
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l no-create-topic -d 'Exit with 125 if the topic is missing'
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -s v -l verbose -d 'Log the messages of librdkafka, too'
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -s q -l quiet -d 'Log only warnings and errors'
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l print-topic -d 'Only print the command that makes the topic'
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l json -d 'Print one JSON object for each finding'
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand broker" -l idle-timeout -d 'Exit when unused for this long [default: none]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand broker" -s h -l help -d 'Print help'
complete -c neli-run -n "__fish_neli_run_using_subcommand completions" -s h -l help -d 'Print help'
complete -c neli-run -n "__fish_neli_run_using_subcommand man" -s h -l help -d 'Print help'

complete -c neli-run -n "__fish_neli_run_using_subcommand completions" -f -a "bash fish zsh"

# Behind -- the job's own completions take over.
function __fish_neli_run_job
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    complete -C (string join -- ' ' (string escape -- $words[(math $at + 1)..-1]) (commandline -ct))
end
complete -c neli-run -n "contains -- -- (commandline -opc)" -f -a "(__fish_neli_run_job)"
