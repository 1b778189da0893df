"""All checks that cannot be compared with a file: name, suite, function."""
import bench_checks
import output_checks
import run_checks
import text_checks


def all_checks():
    suites = {
        "text": [text_checks.tables_agree, text_checks.help_fits, text_checks.scripts_parse,
                 text_checks.json_everywhere, text_checks.shown_file_verifies, text_checks.exchange_of_counts, text_checks.topologies_read_back,
                 text_checks.simulation_trace, text_checks.chinese_is_whole, text_checks.this_host, text_checks.view_pages,
                 output_checks.outputs_into_devices, output_checks.outputs_through_links,
                 output_checks.outputs_refused, output_checks.outputs_on_full_disks],
        "run": [run_checks.nothing_left, run_checks.launcher_signals, run_checks.log_files,
                run_checks.binding, run_checks.job_variables,
                run_checks.who_was_ended, output_checks.job_on_a_full_disk,
                output_checks.logs_and_recordings_refused_or_lost],
        "bench": [bench_checks.bench_all, bench_checks.bench_moe, bench_checks.bench_words, bench_checks.bench_types,
                  bench_checks.bench_forms, bench_checks.bench_plot, bench_checks.tune_table, bench_checks.tune_threads,
                  bench_checks.tune_measures,
                  bench_checks.bench_thresholds, bench_checks.doctor],
    }
    return [(check.__name__, suite, check) for suite, checks in suites.items() for check in checks]
