"""The approval cases: words of the command line, by name."""

# One rank of a job, as a shell program.
DIES = "if [ $RANK = 2 ]; then echo allocating 18.2 GiB >&2; kill -9 $$; fi; exec sleep 60"
EXITS = ("if [ $RANK = 1 ]; then echo cannot open data.bin >&2; exit 7; fi; "
         "trap 'exit 0' TERM; sleep 0.3; echo peer is gone >&2; exit 3")
SAME = "echo loading; echo rank $RANK of $WORLD_SIZE"


def text(*words, **more):
    return {"suite": "text", "words": list(words), **more}


def run(*words, **more):
    return {"suite": "run", "words": list(words), **more}


def approval_cases():
    return {
        "overview": text("help"),
        "no_words": text(),
        "version": text("--version"),
        **{f"help_{name}": text("help", name)
           for name in ("run", "bench", "show", "verify", "list", "doctor", "env", "help", "completion")},
        "help_option": text("list", "--help"),
        "help_json": text("help", "env", "--json"),
        "man_env": text("help", "env", "--man"),

        "unknown_command": text("verfy"),
        "unknown_command_far": text("frobnicate"),
        "unknown_option": text("show", "all_reduce/ring", "--steps", "3"),
        "unknown_option_run": text("run", "--tiemout", "3", "--", "true"),
        "unknown_choice": text("show", "all_reduce/ring", "--format", "jsn"),
        "missing_value": text("show", "all_reduce/ring", "--step"),
        "bad_number": text("show", "all_reduce/ring", "-n", "four"),
        "bad_color": text("list", "--color=alway"),
        "bad_color_variable": text("list", environment={"UNISONO_COLOR": "alway"}),
        "too_many_words": text("env", "x"),
        "unknown_collective": text("show", "all_redcue/ring"),
        "unknown_algorithm": text("show", "all_reduce/rign"),
        "no_algorithm": text("verify", "all_to_all"),
        "unknown_variable": text("list", "broadcast", "--names",
                                 environment={"UNISONO_TIMEOUT_SM": "1"}),
        "help_unknown": text("help", "shwo"),
        "completion_unknown": text("completion", "bsh"),

        "bench_no_collective": text("bench"),
        "bench_unknown_collective": text("bench", "all_redcue"),
        "bench_unknown_dtype": text("bench", "all_reduce", "-d", "f31"),
        "bench_bad_size": text("bench", "all_reduce", "-b", "8 apples"),
        "bench_bad_sizes": text("bench", "all_reduce", "-b", "16", "-e", "8"),
        "bench_main_job_and_word": text("bench", "all_reduce", "--main-job"),

        "list": text("list"),
        "list_all_reduce": text("list", "all_reduce"),
        "list_json": text("list", "barrier", "--json"),
        "list_dtypes": text("list", "--dtypes"),
        "env": text("env"),
        "env_set": text("env", environment={"UNISONO_TIMEOUT_MS": "5", "UNISONO_TOKEN": "s" * 20}),
        "env_json": text("env", "--json"),

        "show_step": text("show", "all_reduce/ring", "-n", "4", "--step", "3"),
        "show_all": text("show", "all_reduce/recursive_doubling", "-n", "3"),
        "show_root": text("show", "broadcast/binomial", "-n", "5", "--root", "2"),
        "show_all_to_all": text("show", "all_to_all/bruck", "-n", "4"),
        "show_one_rank": text("show", "reduce/binomial", "-n", "1"),
        "show_color": text("show", "gather/flat", "-n", "3", "--color=always"),
        "show_big": text("show", "all_reduce/halving_doubling", "-n", "32"),
        "show_big_step": text("show", "broadcast/flat", "-n", "100", "--step", "1"),
        "show_file": text("show", "twice.json"),
        "show_json": text("show", "all_gather/ring", "-n", "2", "--json"),
        "show_bad_root": text("show", "broadcast/flat", "-n", "2", "--root", "2"),
        "show_bad_step": text("show", "broadcast/flat", "-n", "2", "--step", "9"),

        "verify_right": text("verify", "all_reduce/ring", "-n", "4"),
        "verify_range": text("verify", "broadcast/binomial", "-n", "1..5"),
        "verify_all": text("verify", "--all", "-n", "1..4"),
        "verify_file": text("verify", "right.json"),
        "verify_twice": text("verify", "twice.json"),
        "verify_twice_json": text("verify", "twice.json", "--json"),
        "verify_lacks": text("verify", "lacks.json"),
        "verify_absent": text("verify", "absent.json"),
        "verify_folder": text("verify", "."),
        "verify_truncated": text("verify", "truncated.json"),
        "verify_empty": text("verify", "empty.json"),
        "verify_huge": text("verify", "huge.json"),
        "verify_binary": text("verify", "binary.json"),
        "verify_columns": text("verify", "columns.json"),
        "verify_bad_range": text("verify", "--all", "-n", "4..2"),
        "verify_file_and_ranks": text("verify", "right.json", "-n", "4"),

        "run_merge": run("run", "-n", "3", "--prefix=always", "--", "sh", "-c",
                         "echo same; echo also >&2"),
        "run_prefix": run("run", "-n", "3", "--", "sh", "-c", "sleep 0.$RANK; echo $RANK"),
        "run_table": run("run", "-n", "3", "--", "sh", "-c", "[ $RANK != 0 ] || printf 'a b\\nc'"),
        "run_no_prefix": run("run", "-n", "2", "--no-prefix", "--", "sh", "-c",
                             "sleep 0.$RANK; echo $RANK"),
        "run_color": run("run", "-n", "2", "--color=always", "--prefix=always", "--", "sh", "-c",
                         "sleep 0.$RANK; echo $RANK"),
        "run_only": run("run", "-n", "4", "--only", "1-2", "--", "sh", "-c",
                        "sleep 0.$RANK; echo $RANK"),
        "run_variables": run("run", "-n", "2", "--only", "1", "--env", "EXTRA=a b", "--", "sh", "-c",
                             "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR "
                             "$EXTRA ${#UNISONO_TOKEN}",
                             environment={"UNISONO_RANK": "7", "RANK": "9"}),
        "run_stdin": run("run", "-n", "2", "--", "sh", "-c", "read x; echo got $x", input="word\n"),
        "run_killed": run("run", "-n", "4", "--", "sh", "-c", DIES),
        "run_exit_code": run("run", "-n", "3", "--", "sh", "-c", EXITS),
        "run_timeout": run("run", "-n", "2", "--timeout", "300ms", "--", "sh", "-c",
                           "[ $RANK = 1 ] || { echo waiting >&2; exec sleep 60; }"),
        "run_ignores_term": run("run", "-n", "2", "--timeout", "200ms", "--", "sh", "-c",
                                "trap '' TERM; [ $RANK = 1 ] || while :; do sleep 1; done"),
        "run_no_program": run("run", "-n", "2"),
        "run_absent": run("run", "-n", "2", "--", "./absent"),
        "run_not_in_path": run("run", "--", "no-such-program"),
        "run_bad_only": run("run", "-n", "2", "--only", "2", "--", "true"),
        "run_bad_env": run("run", "-n", "2", "--env", "X", "--", "true"),
        "run_bad_timeout": run("run", "--timeout", "soon", "--", "true"),
        "run_zero_ranks": run("run", "-n", "0", "--", "true"),
    }
