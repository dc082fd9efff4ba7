# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_neli_run_global_optspecs
    string join \n g/group= name= roles= spread= max-roles= elect= patience= claim-delay= priority= preempt preempt-after= wait= b/brokers= embedded t/topic= no-create-topic X/property= properties= lease= heartbeat-interval= fence-warning= settle= overlap= stop-signal= stop-timeout= restart= restart-delay= restart-limit= once= window= timezone= schedule= catch-up= retries= done-status= once-retention= on-loss= health-cmd= health-interval= health-timeout= health-failures= health-start= on-lead= on-standby= on-fence= log-format= log-file= v/verbose q/quiet listen= h/help V/version
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

complete -c neli-run -n "__fish_neli_run_needs_command" -s g -l group -d 'The election, and the consumer group\'s id (required)' -r -f -a "(__fish_neli_run_groups)"
complete -c neli-run -n "__fish_neli_run_needs_command" -l name -d 'What this candidate is called [default: <host>:<pid>]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l roles -d 'Several elections in this process: so many, or of each name' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l spread -d 'Hand roles over until each candidate has a fair share [default: yes]' -r -f -a "yes\t''
no\t''"
complete -c neli-run -n "__fish_neli_run_needs_command" -l max-roles -d 'Lead no more of the --roles than so many here [default: no limit]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l elect -d 'Who claims a vacancy first: the group\'s choice, or anybody [default: group]' -r -f -a "group\t''
log\t''"
complete -c neli-run -n "__fish_neli_run_needs_command" -l patience -d 'How long the others leave a vacancy to the group\'s choice [default: 500ms]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l claim-delay -d 'Wait before claiming a vacancy: for a machine of last resort [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l priority -d 'Who has more claims a vacancy first [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l preempt-after -d 'Stand by this long before asking it [default: 1m]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l wait -d 'Exit with 75 when not leading after this long [default: for ever]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -s t -l topic -d 'The journal\'s topic; made if missing [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -s X -l property -d 'A librdkafka property; repeatable' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l properties -d 'A file of KEY=VALUE lines: the place for passwords' -r -F
complete -c neli-run -n "__fish_neli_run_needs_command" -l lease -d 'How long a leader may act on its last heartbeat [default: 20s]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l heartbeat-interval -d 'Between two heartbeats [default: a fifth of --lease, at most 1s]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l fence-warning -d 'The stop signal comes this long before the kill [default: a quarter of --lease, at most 2500ms]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l settle -d 'From the lead to the start of its job [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l overlap -d 'Let the next leader\'s job start before the old one stops' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l stop-signal -d 'What asks the job to stop, by name or number [default: TERM]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l stop-timeout -d 'From the stop signal to SIGKILL [default: 8s]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l restart -d 'Whether the job is run again here when it ends [default: no]' -r -f -a "no\t''
on-failure\t''
always\t''"
complete -c neli-run -n "__fish_neli_run_needs_command" -l restart-delay -d 'From the end of a run to the next [default: 1s]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l restart-limit -d 'How often it is run again after failures [default: 10/5m]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l once -d 'The job succeeds once for this key, on all machines' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l window -d 'The job succeeds once in each window, on all machines' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l timezone -d 'Where a schedule\'s times are, and midnight of a window [default: UTC]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l schedule -d 'Run the job at these times, and keep the lead between' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l catch-up -d 'What a new leader runs of windows in which nobody led [default: last]' -r -f -a "last\t''
none\t''"
complete -c neli-run -n "__fish_neli_run_needs_command" -l retries -d 'So many failed runs of the key are followed by another [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l done-status -d 'What those exit with who find the key done [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l once-retention -d 'For how long a key is known [default: 90d]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l on-loss -d 'What to do when the lead is lost [default: standby]' -r -f -a "standby\t''
exit\t''"
complete -c neli-run -n "__fish_neli_run_needs_command" -l health-cmd -d 'Tells by its status whether the job is healthy' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l health-interval -d 'Between two health commands [default: 10s]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l health-timeout -d 'A health command that takes longer has failed [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l health-failures -d 'So many failures in a row make a job unhealthy [default: 3]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l health-start -d 'How long a job may take to become healthy [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l on-lead -d 'Run when the lead is won, beside the job' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l on-standby -d 'Run when standing by begins, and at exit after a lead' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l on-fence -d 'Run when the lease was lost and the job killed for it' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l log-format -d 'One sentence a line, or one JSON object [default: text]' -r -f -a "text\t''
json\t''"
complete -c neli-run -n "__fish_neli_run_needs_command" -l log-file -d 'Append the log here, and leave stderr to the job [default: stderr]' -r -F
complete -c neli-run -n "__fish_neli_run_needs_command" -l listen -d 'Serve metrics, health and a status page by HTTP here' -r
complete -c neli-run -n "__fish_neli_run_needs_command" -l preempt -d 'Ask a leader of lower priority to stand down'
complete -c neli-run -n "__fish_neli_run_needs_command" -l embedded -d 'A trial without Kafka, on this machine alone'
complete -c neli-run -n "__fish_neli_run_needs_command" -l no-create-topic -d 'Refuse to run when the topic is missing'
complete -c neli-run -n "__fish_neli_run_needs_command" -s v -l verbose -d 'Log what librdkafka says, too'
complete -c neli-run -n "__fish_neli_run_needs_command" -s q -l quiet -d 'Log warnings and errors alone'
complete -c neli-run -n "__fish_neli_run_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_needs_command" -s V -l version -d 'Print version'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "status" -d 'Show who leads an election, or why nobody does, and who stands by'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "list" -d 'Show the elections of a topic, or of all topics whose names end in .neli'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "watch" -d 'Show an election live: a page on a terminal, elsewhere a line per change'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "history" -d 'Show the terms that the topic keeps: who led, for how long, and why it ended'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "resign" -d 'Ask the leader to stand down, and wait until another leads'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "end" -d 'End an election: every candidate stops its job and exits with 0'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "forget" -d 'Have a key of --once, or the newest window, run again'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "assert" -d 'Tell by the exit status whether a job may act still: neli-run assert && pay'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "doctor" -d 'Tell all that would keep a candidate here from its work, and what fixes it'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "broker" -d 'Run the small broker of --embedded in the foreground, and print its address'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "completions" -d 'Print a shell\'s completions'
complete -c neli-run -n "__fish_neli_run_needs_command" -f -a "man" -d 'Print the manual page: neli-run man | man -l -'
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -s g -l group -d 'The election, and the consumer group\'s id (required)' -r -f -a "(__fish_neli_run_groups)"
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -s t -l topic -d 'The journal\'s topic [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -s X -l property -d 'A librdkafka property; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -l properties -d 'A file of KEY=VALUE lines: the place for passwords' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -l role -d 'Which role of --roles, by its name or number [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -l timeout -d 'How long to wait for Kafka\'s answers [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -l embedded -d 'A trial without Kafka, on this machine alone'
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -l watch -d 'Show it again each second, on a terminal in place'
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -l json -d 'Print one JSON object; with --watch one a second'
complete -c neli-run -n "__fish_neli_run_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -s X -l property -d 'A librdkafka property; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -l properties -d 'A file of KEY=VALUE lines: the place for passwords' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -s g -l group -d 'Those of this group alone' -r -f -a "(__fish_neli_run_groups)"
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -s t -l topic -d 'This topic alone [default: all that end in .neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -l timeout -d 'How long to wait for Kafka\'s answers [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -l embedded -d 'A trial without Kafka, on this machine alone'
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -l json -d 'Print one JSON object an election'
complete -c neli-run -n "__fish_neli_run_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -s g -l group -d 'The election, and the consumer group\'s id (required)' -r -f -a "(__fish_neli_run_groups)"
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -s t -l topic -d 'The journal\'s topic [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -s X -l property -d 'A librdkafka property; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l properties -d 'A file of KEY=VALUE lines: the place for passwords' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l role -d 'Which role of --roles, by its name or number [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l from -d 'Where to begin; 1h is an hour ago [default: end]' -r -f -a "start\t''
end\t''"
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l timeout -d 'How long to wait for Kafka\'s first answers [default: 30s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l embedded -d 'A trial without Kafka, on this machine alone'
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l json -d 'Print every record of the election with the law\'s verdict, one JSON object a line'
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l all -d 'Print the candidates\' hellos, too'
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -l until-end -d 'Exit at what was the end when watch began'
complete -c neli-run -n "__fish_neli_run_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -s g -l group -d 'The election, and the consumer group\'s id (required)' -r -f -a "(__fish_neli_run_groups)"
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -s t -l topic -d 'The journal\'s topic [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -s X -l property -d 'A librdkafka property; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l properties -d 'A file of KEY=VALUE lines: the place for passwords' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l role -d 'Which role of --roles, by its name or number [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l since -d 'Leave out terms that were over before: 7d, 2h [default: none]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l svg -d 'Draw the terms on a time axis, into this file' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l timeout -d 'How long to wait for Kafka\'s answers [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l embedded -d 'A trial without Kafka, on this machine alone'
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l check -d 'Tell what is odd, and exit with 1 when two jobs may have run at once'
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -l json -d 'Print one JSON object a term, and with --check one a finding'
complete -c neli-run -n "__fish_neli_run_using_subcommand history" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -s g -l group -d 'The election, and the consumer group\'s id (required)' -r -f -a "(__fish_neli_run_groups)"
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -s t -l topic -d 'The journal\'s topic [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -s X -l property -d 'A librdkafka property; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l properties -d 'A file of KEY=VALUE lines: the place for passwords' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l role -d 'Which role of --roles, by its name or number [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l reason -d 'Why, for the candidates\' logs' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l timeout -d 'How long to wait until another leads [default: 30s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l embedded -d 'A trial without Kafka, on this machine alone'
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l force -d 'Also where nobody stands by'
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -l json -d 'Print one JSON object, whatever comes of it'
complete -c neli-run -n "__fish_neli_run_using_subcommand resign" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -s g -l group -d 'The election, and the consumer group\'s id (required)' -r -f -a "(__fish_neli_run_groups)"
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -s t -l topic -d 'The journal\'s topic [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -s X -l property -d 'A librdkafka property; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l properties -d 'A file of KEY=VALUE lines: the place for passwords' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l role -d 'Which role of --roles, by its name or number [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l reason -d 'Why, for the candidates\' logs' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l timeout -d 'How long to wait for Kafka\'s answers [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l embedded -d 'A trial without Kafka, on this machine alone'
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l yes -d 'Do not ask at a terminal'
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l force -d 'Also where nobody is known to lead or stand by'
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -l json -d 'Print one JSON object, whatever comes of it'
complete -c neli-run -n "__fish_neli_run_using_subcommand end" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -s g -l group -d 'The election, and the consumer group\'s id (required)' -r -f -a "(__fish_neli_run_groups)"
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -s t -l topic -d 'The journal\'s topic [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -s X -l property -d 'A librdkafka property; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l properties -d 'A file of KEY=VALUE lines: the place for passwords' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l role -d 'Which role of --roles, by its name or number [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l once -d 'The key that is to run again' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l timeout -d 'How long to wait for Kafka\'s answers [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l embedded -d 'A trial without Kafka, on this machine alone'
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l newest-window -d 'The newest window of --window or --schedule that is recorded'
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l force -d 'Also where it runs now (then it runs once more), or nothing is recorded of it'
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l yes -d 'Do not ask at a terminal'
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -l json -d 'Print one JSON object, whatever comes of it'
complete -c neli-run -n "__fish_neli_run_using_subcommand forget" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -s g -l group -d 'The election, and the consumer group\'s id (required)' -r -f -a "(__fish_neli_run_groups)"
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -s t -l topic -d 'The journal\'s topic [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -s X -l property -d 'A librdkafka property; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -l properties -d 'A file of KEY=VALUE lines: the place for passwords' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -l role -d 'Which role of --roles, by its name or number [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -l epoch -d 'The term, outside a job [default: NELI_EPOCH]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -l min-left -d 'So much of the lease must be left [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -l timeout -d 'How long to wait for Kafka\'s answers [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -l embedded -d 'A trial without Kafka, on this machine alone'
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -l json -d 'Print one JSON object, and no line on stderr'
complete -c neli-run -n "__fish_neli_run_using_subcommand assert" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l name -d 'What this candidate is called [default: <host>:<pid>]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l roles -d 'Several elections in this process: so many, or of each name' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l spread -d 'Hand roles over until each candidate has a fair share [default: yes]' -r -f -a "yes\t''
no\t''"
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l max-roles -d 'Lead no more of the --roles than so many here [default: no limit]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l elect -d 'Who claims a vacancy first: the group\'s choice, or anybody [default: group]' -r -f -a "group\t''
log\t''"
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l patience -d 'How long the others leave a vacancy to the group\'s choice [default: 500ms]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l claim-delay -d 'Wait before claiming a vacancy: for a machine of last resort [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l priority -d 'Who has more claims a vacancy first [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l preempt-after -d 'Stand by this long before asking it [default: 1m]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l wait -d 'Exit with 75 when not leading after this long [default: for ever]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -s b -l brokers -d 'Kafka\'s bootstrap servers' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -s t -l topic -d 'The journal\'s topic; made if missing [default: <group>.neli]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -s X -l property -d 'A librdkafka property; repeatable' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l properties -d 'A file of KEY=VALUE lines: the place for passwords' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l lease -d 'How long a leader may act on its last heartbeat [default: 20s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l heartbeat-interval -d 'Between two heartbeats [default: a fifth of --lease, at most 1s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l fence-warning -d 'The stop signal comes this long before the kill [default: a quarter of --lease, at most 2500ms]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l settle -d 'From the lead to the start of its job [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l overlap -d 'Let the next leader\'s job start before the old one stops' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l stop-signal -d 'What asks the job to stop, by name or number [default: TERM]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l stop-timeout -d 'From the stop signal to SIGKILL [default: 8s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l restart -d 'Whether the job is run again here when it ends [default: no]' -r -f -a "no\t''
on-failure\t''
always\t''"
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l restart-delay -d 'From the end of a run to the next [default: 1s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l restart-limit -d 'How often it is run again after failures [default: 10/5m]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l once -d 'The job succeeds once for this key, on all machines' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l window -d 'The job succeeds once in each window, on all machines' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l timezone -d 'Where a schedule\'s times are, and midnight of a window [default: UTC]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l schedule -d 'Run the job at these times, and keep the lead between' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l catch-up -d 'What a new leader runs of windows in which nobody led [default: last]' -r -f -a "last\t''
none\t''"
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l retries -d 'So many failed runs of the key are followed by another [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l done-status -d 'What those exit with who find the key done [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l once-retention -d 'For how long a key is known [default: 90d]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l on-loss -d 'What to do when the lead is lost [default: standby]' -r -f -a "standby\t''
exit\t''"
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l health-cmd -d 'Tells by its status whether the job is healthy' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l health-interval -d 'Between two health commands [default: 10s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l health-timeout -d 'A health command that takes longer has failed [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l health-failures -d 'So many failures in a row make a job unhealthy [default: 3]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l health-start -d 'How long a job may take to become healthy [default: 0]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l on-lead -d 'Run when the lead is won, beside the job' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l on-standby -d 'Run when standing by begins, and at exit after a lead' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l on-fence -d 'Run when the lease was lost and the job killed for it' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l log-format -d 'One sentence a line, or one JSON object [default: text]' -r -f -a "text\t''
json\t''"
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l log-file -d 'Append the log here, and leave stderr to the job [default: stderr]' -r -F
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l listen -d 'Serve metrics, health and a status page by HTTP here' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -s g -l group -d 'The election [default: none, and this machine and the brokers are looked at]' -r -f -a "(__fish_neli_run_groups)"
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l timeout -d 'How long to wait for Kafka\'s answers [default: 5s]' -r
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l preempt -d 'Ask a leader of lower priority to stand down'
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l embedded -d 'A trial without Kafka, on this machine alone'
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l no-create-topic -d 'Refuse to run when the topic is missing'
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -s v -l verbose -d 'Log what librdkafka says, too'
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -s q -l quiet -d 'Log warnings and errors alone'
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l print-topic -d 'Print the command that makes the topic, and look at nothing else'
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -l json -d 'Print one JSON object a finding'
complete -c neli-run -n "__fish_neli_run_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c neli-run -n "__fish_neli_run_using_subcommand broker" -s h -l help -d 'Print help'
complete -c neli-run -n "__fish_neli_run_using_subcommand completions" -s h -l help -d 'Print help'
complete -c neli-run -n "__fish_neli_run_using_subcommand man" -s h -l help -d 'Print help'

# The groups of the elections that are found by what the line says of Kafka.
function __fish_neli_run_groups
    set -l words (commandline -opc)
    $words[1] completions groups -- $words[2..-1] 2>/dev/null
end

complete -c neli-run -n "__fish_neli_run_using_subcommand completions" -f -a "bash fish zsh"

# Behind -- the job's own completions take over.
function __fish_neli_run_job
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    complete -C (string join -- ' ' (string escape -- $words[(math $at + 1)..-1]) (commandline -ct))
end
complete -c neli-run -n "contains -- -- (commandline -opc)" -f -a "(__fish_neli_run_job)"
